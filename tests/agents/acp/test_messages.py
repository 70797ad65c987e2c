"""Every message we send to an agent has the shape its schema says, and nothing besides; our names are documented."""

import asyncio
import json
from pathlib import Path
from typing import Any

import acp.schema as schema
import pytest

from ahpkit.agents.acp.config import AcpConfigError, config_from_table
from ahpkit.agents.acp.mapping import PLAN_KEY, USAGE_KEY
from ahpkit.agents.acp.questions import ANSWER_META
from ahpkit.agents.acp.turn import TURN_UPDATES
from ahpkit.host.agent import Confirmation, InputAnswers, McpServerOffer, TurnContext
from ahpkit.protocol.meta_keys import ACP
from ahpkit.testing.recording import RecordingTurn, user_message
from support import requirement
from support.scripted_acp import Scripted
from support.waiting import until

DOCS = Path(__file__).parents[3] / "docs"
KEYS = [ACP, PLAN_KEY, USAGE_KEY, ANSWER_META, "ahpkit/selection", "ahpkit/left-out"]
REQUESTS: dict[str, Any] = {
    "initialize": schema.InitializeRequest,
    "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
    "session/close": schema.CloseSessionRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
}
SESSION: dict[str, Any] = {
    "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]},
    "configOptions": [
        {
            "id": "m",
            "name": "M",
            "type": "select",
            "currentValue": "1",
            "options": [{"value": "1", "name": "1"}, {"value": "2", "name": "2"}],
        }
    ],
}
ASKING = [
    {
        "request": "session/request_permission",
        "params": {"toolCall": {"toolCallId": "t"}, "options": [{"optionId": "n", "name": "N", "kind": "reject_once"}]},
    },
    {
        "request": "elicitation/create",
        "params": {"mode": "form", "requestedSchema": {"properties": {"q": {"type": "string"}}}},
    },
]
ANSWERS: list[Any] = [schema.RequestPermissionResponse, schema.AcceptElicitationResponse]


def same(model: Any, sent: Any) -> bool:
    """Nothing in `sent` is unknown to the model."""
    understood = model.model_validate(sent).model_dump(mode="json", by_alias=True, exclude_unset=True)
    return understood == sent


async def a_full_life(scripted: Scripted) -> None:
    methods = [{"id": "web", "name": "Web"}]
    agent = scripted.agent(
        session=SESSION,
        initialize={"authMethods": methods},
        methods={"session/resume": [{"error": {"code": -32601, "message": "no"}}]},
        turns=[ASKING, [{"text": "x"}, {"wait_cancel": True}, {"stop": "cancelled"}]],
    )
    chat = scripted.chat()
    opened = await agent.open(chat)
    await agent.authenticate("acp://scripted/web", "")
    await opened.configure(model=None, agent=None, config={"mode": "b", "m": "2"})
    servers = [McpServerOffer("1", "a", {"command": "x"}), McpServerOffer("2", "b", {"url": "http://x"})]
    image = {"type": "embeddedResource", "label": "i", "contentType": "image/png", "data": "eA=="}
    text = {"type": "embeddedResource", "label": "t", "contentType": "text/plain", "data": "eA=="}
    link: Any = {"type": "resource", "label": "l", "uri": "file:///l", "selection": {"range": {}}, "_meta": {"a/b": 1}}
    message: Any = {**user_message("hi"), "attachments": [image, text, link], "_meta": {"x/y": 1}}
    denied = Confirmation(approved=False, tool_input="", reason="no")
    given = InputAnswers("accept", {"q": {"state": "submitted", "value": {"kind": "text", "value": "a"}}})
    context = TurnContext(rules=["r"], mcp_servers=servers)
    first = RecordingTurn("hi", message=message, chat=chat, confirmations=[denied], answers=[given], context=context)
    await opened.run(first)
    second = RecordingTurn("two", chat=chat, context=context)
    running = asyncio.create_task(opened.run(second))
    await until(lambda: second.answer == "x")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await opened.restart()
    await opened.run(RecordingTurn("three", chat=chat, context=context))
    await agent.aclose()


@requirement("extensibility:meta:no-custom-root-fields")
async def test_every_message_we_send_has_only_fields_of_the_schema(scripted: Scripted) -> None:
    await a_full_life(scripted)

    lines = [json.loads(line) for line in (scripted.directory / "record.jsonl").read_text().splitlines()]
    sent = [(line["method"], line["params"]) for line in lines if "method" in line]
    assert {method for method, _ in sent} == set(REQUESTS)
    assert [method for method, params in sent if not same(REQUESTS[method], params)] == []
    answered = [line["result"] for line in lines if "method" not in line]
    assert [same(model, result) for model, result in zip(ANSWERS, answered, strict=True)] == [True, True]


@requirement("extensibility:naming:namespaced")
@requirement("extensibility:practice:descriptive-names")
@requirement("extensibility:practice:documented")
@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_ours_has_a_namespace_and_is_documented(key: str) -> None:
    owner, _, feature = key.partition("/")

    assert owner == "ahpkit"
    assert feature
    assert f"`{key}`" in (DOCS / "reference" / "acp-mapping.md").read_text()


@pytest.mark.parametrize("variant", TURN_UPDATES)
def test_every_variant_is_documented(variant: str) -> None:
    assert f"`{variant}`" in (DOCS / "reference" / "acp-mapping.md").read_text()


def test_every_setting_is_documented() -> None:
    page = (DOCS / "how-to" / "use-acp-agents.md").read_text()
    with pytest.raises(AcpConfigError, match="known:") as error:
        config_from_table("x", {"nonsense": 1})
    settings = str(error.value).partition("known: ")[2].split(", ")

    assert len(settings) > 10
    assert [name for name in settings if f"`{name}`" not in page] == []
