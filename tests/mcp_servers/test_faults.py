"""Hostile and broken servers in a running host: each is bounded and visible, and disturbs no other."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import ToolOutcome, Turn
from ahpkit.log.engine import LocalLog, LogEngine
from ahpkit.log.entry import Batch, Entry
from ahpkit.log.memory import MemoryStorage
from ahpkit.mcp.calls import Limits
from ahpkit.mcp.feature import McpServers
from mcp_servers.http_server import Guard, http_server
from mcp_servers.running import PROGRAM, QUICK, sdk_command
from mcp_servers.test_configured import entry
from mcp_servers.test_tolerance import odd as raw_odd
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

ALLOW = {"decision": "allow", "kind": "server", "scope": "everywhere"}


@asynccontextmanager
async def host(
    tmp_path: Path, odd: Json, limits: Limits = QUICK, log: LogEngine | None = None, **settings: Any
) -> AsyncGenerator[tuple[Bench, RawClient]]:
    """A host with an odd server and a good one. Nobody is asked about their tools."""
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(work)
    good = {"name": "good", "command": [sys.executable, PROGRAM]}
    customizations = Customizations(CustomizationSettings(default_directory=work, servers=[odd, good]))
    bench.features = [customizations, McpServers(customizations.servers, directory=work, limits=limits, **settings)]
    await bench.start(log=log)
    try:
        client = await bench.connect()
        await client.initialize(protocolVersions=["1.0.0"])
        for name in ("odd", "good"):
            await client.ask("_ahpkit/rules/add", owner=f"mcp:{name}", **ALLOW)
        yield bench, client
    finally:
        await bench.stop()


def odd(*modes: str, **more: Any) -> Json:
    return {"name": "odd", "command": [sys.executable, PROGRAM], "env": {"TEST_MODES": " ".join(modes)}, **more}


async def turn(bench: Bench, client: RawClient, chat: str, *calls: tuple[str, Json]) -> list[ToolOutcome]:
    """What an agent gets for its calls, one after another, in one turn."""
    outcomes: list[ToolOutcome] = []

    async def script(running: Turn) -> None:
        for name, given in calls:
            outcomes.append(await running.call_tool(name, json.dumps(given)))

    bench.agent.script = script
    turn_id = f"t{len(bench.agent.turns)}"
    await client.accepted(chat, {**say("go", turn_id), "startedAt": "2026-01-01T00:00:00.000Z"})
    await client.action(
        lambda one: (one["action"]["type"], one["action"].get("turnId")) == ("chat/turnComplete", turn_id)
    )
    return outcomes


async def others_are_well(bench: Bench, client: RawClient, session: str, chat: str) -> None:
    """The good server of this session and of a new one answers."""
    await entry(bench, client, session, "ready", "good")
    [here] = await turn(bench, client, chat, ("good_add", {"a": 1, "b": 2}))
    assert here.content[0]["text"] == "3"  # type: ignore[typeddict-item]  # It is text.
    other, other_chat = await bench.session(client)
    await entry(bench, client, other, "ready", "good")
    [there] = await turn(bench, client, other_chat, ("good_add", {"a": 3, "b": 4}))
    assert there.content[0]["text"] == "7"  # type: ignore[typeddict-item]  # It is text.


CALLS: dict[str, tuple[list[str], Json, bool, str]] = {
    "returns 100 MB": (["big"], {"size": 100_000_000}, False, "longer than this host takes"),
    "exits during a call": (["crash"], {}, False, "the disk is on fire"),
    "fails": (["fail"], {}, False, "no luck"),
    "asks in a loop": (["ask"], {"times": 40}, True, "refused"),
    "changes its tools during a call": (["grow"], {"name": "late"}, True, "grown"),
}


@pytest.mark.parametrize("case", CALLS)
async def test_a_call_of_an_odd_server_ends_and_says_why(tmp_path: Path, case: str) -> None:
    [tool], given, success, words = CALLS[case]
    async with host(tmp_path, odd(), replace(QUICK, asks=2)) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        answering = asyncio.create_task(decline_all(client, chat))
        [outcome] = await turn(bench, client, chat, (f"odd_{tool}", given))
        answering.cancel()
        said = f"{outcome.error} {json.dumps(outcome.content)}"
        assert (outcome.success, words in said) == (success, True), said[:500]
        await others_are_well(bench, client, session, chat)
        await entry(bench, client, session, "ready", "odd")


async def decline_all(client: RawClient, chat: str) -> None:
    seen = 0
    while True:
        requests = [one["action"]["request"] for one in client.actions(chat) if "request" in one["action"]]
        for request in requests[seen:]:
            client.post(chat, {"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"})
        seen = len(requests)
        await asyncio.sleep(0.02)


async def test_a_tool_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async with host(tmp_path, odd(), replace(QUICK, call=0.5)) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        [outcome] = await turn(bench, client, chat, ("odd_hang", {"file": str(tmp_path / "hang")}))
        assert "did not answer within 0.5 seconds" in (outcome.error or "")
        await others_are_well(bench, client, session, chat)


@pytest.mark.parametrize(
    ("mode", "words"), [("silent", "did not answer within"), ("dead", "cannot start: no configuration")]
)
async def test_a_server_that_does_not_start_is_an_error_with_its_reason(tmp_path: Path, mode: str, words: str) -> None:
    patience = 3.0 if mode == "silent" else 60.0
    async with host(tmp_path, odd(mode), replace(QUICK, start=patience, delays=())) as (bench, client):
        session, chat = await bench.session(client)
        shown = await entry(bench, client, session, "error", "odd")
        assert words in shown["state"]["error"]["message"]
        await others_are_well(bench, client, session, chat)


async def test_five_thousand_tools_and_garbage_leave_room_for_the_others(tmp_path: Path) -> None:
    async with host(tmp_path, odd("many", "garbage")) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        state = await bench.state(client, session)
        assert len(json.dumps(state["serverTools"])) < 600_000
        [outcome] = await turn(bench, client, chat, ("odd_tool_4999", {}))
        assert outcome.content[0]["text"] == "called tool_4999"  # type: ignore[typeddict-item]  # It is text.
        await others_are_well(bench, client, session, chat)


async def test_names_that_no_model_takes_and_names_twice_become_names_that_work(tmp_path: Path) -> None:
    async with host(tmp_path, odd("twice")) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        tools = bench.host.services.tools(session)
        own = {tool.own_name: tool.name for tool in tools if tool.owner.title == "odd"}
        assert set(own) == {"add", "bad name!", "x" * 200, "додати"}
        names = [tool.name for tool in tools]
        assert len(set(names)) == len(names)
        assert all(name.isascii() and len(name) <= 64 and " " not in name for name in names)
        outcomes = await turn(bench, client, chat, *((name, {"a": 1, "b": 1}) for name in own.values()))
        assert [outcome.success for outcome in outcomes] == [True] * 4


async def test_a_tool_that_has_just_gone_is_an_error_for_its_caller(tmp_path: Path) -> None:
    async with host(tmp_path, odd()) as (bench, client):
        session, chat = await bench.session(client)
        shown = await entry(bench, client, session, "ready", "odd")
        await client.accepted(session, {"type": "session/mcpServerStopRequested", "id": shown["id"]})
        await entry(bench, client, session, "stopped", "odd")
        never, outcome = await turn(bench, client, chat, ("odd_never", {}), ("odd_add", {"a": 1, "b": 2}))
        assert (never.success, outcome.success, outcome.error) == (False, False, "there is no tool 'odd_add' now")
        [card] = await cards(bench, client, chat)
        assert (card["toolName"], card["status"], card["success"]) == ("add", "completed", False)
        assert card["error"]["message"] == "there is no tool 'odd_add' now"
        assert card["contributor"] == {"kind": "mcp", "customizationId": shown["id"]}
        await others_are_well(bench, client, session, chat)


async def cards(bench: Bench, client: RawClient, chat: str) -> list[Json]:
    """The calls that the last turn shows."""
    parts: list[Json] = (await bench.state(client, chat))["turns"][-1]["responseParts"]
    return [part["toolCall"] for part in parts if part["kind"] == "toolCall"]


async def test_a_tool_that_has_just_gone_is_shown_once_for_an_agent_behind_the_gateway(tmp_path: Path) -> None:
    """The agent announced its call, and then made it; another one it made without a word."""
    said: list[str] = []

    async def script(running: Turn) -> None:
        [offer] = await running.chat.mcp_servers()
        config = dict(offer.config)
        parameters = StdioServerParameters(command=config["command"], args=config["args"], env=config["env"])
        async with Client(parameters, cache=None) as agent:
            await agent.list_tools()
            assert running.announce("odd_add", '{"a": 1, "b": 2}') is not None
            for given in ({"b": 2, "a": 1}, {"a": 3}):
                result = await agent.call_tool("odd_add", given)
                said.append(result.content[0].text)  # type: ignore[union-attr]  # It is text.
            assert running.announce("odd_add", '{"a": 3}') is not None

    async with host(tmp_path, odd()) as (bench, client):
        session, chat = await bench.session(client)
        shown = await entry(bench, client, session, "ready", "odd")
        await client.accepted(session, {"type": "session/mcpServerStopRequested", "id": shown["id"]})
        await entry(bench, client, session, "stopped", "odd")
        bench.agent.script = script
        await client.accepted(chat, {**say("go", "first"), "startedAt": "2026-01-01T00:00:00.000Z"})
        await client.action("chat/turnComplete")
        assert said == ["there is no tool 'odd_add' now; find_tool shows what there is"] * 2
        assert [card["status"] for card in await cards(bench, client, chat)] == ["completed"] * 2
        await others_are_well(bench, client, session, chat)


async def test_two_calls_at_once_with_one_id_are_two_calls(tmp_path: Path) -> None:
    """Some models give every call the same id. Each call gets its own result, and a card of its own."""
    outcomes: list[ToolOutcome] = []

    async def script(running: Turn) -> None:
        inputs = ('{"a": 1, "b": 2}', '{"a": 3, "b": 4}')
        outcomes.extend(await asyncio.gather(*(running.call_tool("odd_add", given, id="x") for given in inputs)))
        outcomes.append(await running.call_tool("odd_add", '{"a": 5, "b": 6}', id="x"))

    async with host(tmp_path, odd()) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        bench.agent.script = script
        await client.accepted(chat, {**say("go", "first"), "startedAt": "2026-01-01T00:00:00.000Z"})
        await client.action("chat/turnComplete")
        assert [outcome.content[0]["text"] for outcome in outcomes] == ["3", "7", "11"]  # type: ignore[typeddict-item]  # It is text.
        shown = await cards(bench, client, chat)
        assert [(card["status"], card["content"][0]["text"]) for card in shown] == [
            ("completed", "3"),
            ("completed", "7"),
            ("completed", "11"),
        ]
        assert shown[0]["toolCallId"] == "x"
        assert len({card["toolCallId"] for card in shown}) == 3


class Noting(MemoryStorage):
    """Remembers the kinds of actions of each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[list[str]] = []

    def commit(self, batch: Batch) -> None:
        self.commits.append([step.type for step in batch if isinstance(step, Entry)])
        super().commit(batch)


async def test_a_card_and_a_quick_result_are_one_commit(tmp_path: Path) -> None:
    """The start of a call that nobody is asked about waits a moment for its result. What clients see is the same."""
    storage = Noting()
    async with host(tmp_path, odd(), log=LocalLog(storage, moment=BOUND)) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        [outcome] = await turn(bench, client, chat, ("odd_add", {"a": 1, "b": 2}))
        assert outcome.success
        steps = ["chat/toolCallStart", "chat/toolCallReady", "chat/toolCallComplete"]
        [together] = [batch for batch in storage.commits if "chat/toolCallStart" in batch]
        assert [type for type in together if "toolCall" in type] == steps
        seen = [one["action"]["type"] for one in client.actions(chat)]
        assert [type for type in seen if "toolCall" in type] == steps


async def test_quick_calls_of_an_agent_process_in_a_row_are_one_commit(tmp_path: Path) -> None:
    """The result of a call waits a moment for the next call, and for the end of the turn at most."""
    storage = Noting()

    async def script(running: Turn) -> None:
        [offer] = await running.chat.mcp_servers()
        config = dict(offer.config)
        parameters = StdioServerParameters(command=config["command"], args=list(config["args"]), env=config["env"])
        async with Client(parameters, cache=None) as agent:
            for number in range(3):
                assert not (await agent.call_tool("odd_add", {"a": number, "b": 2})).is_error

    async with host(tmp_path, odd(), log=LocalLog(storage, moment=BOUND)) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        bench.agent.script = script
        await client.accepted(chat, {**say("go", "t0"), "startedAt": "2026-01-01T00:00:00.000Z"})
        await client.action(lambda one: one["action"]["type"] == "chat/turnComplete")
        [together] = [batch for batch in storage.commits if "chat/toolCallStart" in batch]
        steps = ["chat/toolCallStart", "chat/toolCallReady", "chat/toolCallComplete"]
        assert [type for type in together if "toolCall" in type] == steps * 3


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_all_of_a_result_reaches_the_agent_and_the_people(tmp_path: Path, era: str) -> None:
    """A structured result may be any JSON value for a newer server, and a failure may have more than words."""
    results: list[tuple[bool, list[Json], Any]] = []

    async def script(running: Turn) -> None:
        [offer] = await running.chat.mcp_servers()
        config = dict(offer.config)
        parameters = StdioServerParameters(command=config["command"], args=list(config["args"]), env=config["env"])
        async with Client(parameters, cache=None, mode=era) as agent:
            for name in ("odd_list", "odd_fail_in_full"):
                result = await agent.call_tool(name, {})
                content = [part.model_dump(by_alias=True, exclude_none=True) for part in result.content]
                results.append((result.is_error, content, result.structured_content))

    async with host(tmp_path, {"name": "odd", "command": sdk_command()}) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        bench.agent.script = script
        await client.accepted(chat, {**say("go", "t0"), "startedAt": "2026-01-01T00:00:00.000Z"})
        await client.action("chat/turnComplete")
        picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        assert results == [
            (False, [{"type": "text", "text": '[1, "ü"]'}], None),
            (True, [{"type": "text", "text": '{"code": 7}'}, picture], {"code": 7}),
        ]
        listed, failed = await cards(bench, client, chat)
        assert listed["content"] == [{"type": "text", "text": '[1, "ü"]'}]
        assert (failed["error"]["message"], failed["structuredContent"]) == ('{"code": 7}', {"code": 7})


async def test_a_server_that_refuses_every_token_waits_and_is_not_asked_again(tmp_path: Path) -> None:
    guard = Guard()
    async with (
        http_server(guard) as url,
        host(tmp_path, {"name": "odd", "url": url}) as (bench, client),
    ):
        session, chat = await bench.session(client)
        first = await entry(bench, client, session, "authRequired", "odd")
        await client.ask("authenticate", resource=url, token="wrong")
        await client.action(lambda one: one["action"].get("state") == {"kind": "starting"})
        again = await entry(bench, client, session, "authRequired", "odd")
        assert again["state"]["resource"] == first["state"]["resource"]
        assert guard.seen.count("Bearer wrong") <= 2
        await others_are_well(bench, client, session, chat)


async def test_a_redirect_to_another_host_gets_nothing(tmp_path: Path) -> None:
    guard = Guard()
    async with (
        http_server(guard) as elsewhere,
        http_server(redirect=elsewhere) as url,
        host(tmp_path, {"name": "odd", "url": url, "headers": {"X-Key": "secret"}}) as (bench, client),
    ):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "error", "odd")
        assert guard.seen == []
        await others_are_well(bench, client, session, chat)


async def test_a_schema_without_end_costs_its_tool_alone(tmp_path: Path) -> None:
    async with host(tmp_path, odd("schemas")) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        state = await bench.state(client, session)
        [shown] = [tool for tool in state["serverTools"] if tool["name"] == "odd_endless"]
        assert shown["inputSchema"] == {"type": "object"}
        assert "schema of its input is not used" in shown["description"]
        [outcome] = await turn(bench, client, chat, ("odd_slow_pattern", {}))
        assert outcome.success or "does not match its own schema" in (outcome.error or "")
        await others_are_well(bench, client, session, chat)


@requirement("gen:mcp:background-releases")
async def test_a_message_waits_for_a_server_that_starts_until_somebody_sends_it_to_the_background(
    tmp_path: Path,
) -> None:
    async with host(tmp_path, odd("silent"), replace(QUICK, start=600.0)) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "good")
        await client.accepted(chat, {**say("hello"), "startedAt": "2026-01-01T00:00:00.000Z"})
        waits = await client.action(lambda one: one["action"].get("state", {}).get("blocking") is True)
        assert not bench.agent.turns
        background = {"type": "session/mcpServerBackgroundRequested", "id": waits["action"]["id"]}
        await client.accepted(session, background)
        await client.action("chat/turnComplete")
        assert (await entry(bench, client, session, "starting", "odd"))["state"].get("blocking") is not True


async def test_messages_wait_once_for_a_server_that_hangs_when_it_starts(tmp_path: Path) -> None:
    limits = replace(QUICK, start=600.0)
    async with host(tmp_path, odd("silent"), limits, patience=0.1) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "good")
        for _ in range(3):
            await turn(bench, client, chat, ("good_add", {"a": 1, "b": 2}))
        shown = [one["action"].get("state", {}) for one in client.actions(session)]
        assert sum(state.get("blocking") is True for state in shown) == 1
        assert (await entry(bench, client, session, "starting", "odd"))["state"]["kind"] == "starting"


async def test_messages_do_not_wait_for_a_server_that_keeps_ending(tmp_path: Path) -> None:
    limits = replace(QUICK, delays=(0.01, 600.0))
    async with host(tmp_path, odd("dead"), limits, patience=600.0) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "good")
        [outcome] = await turn(bench, client, chat, ("good_add", {"a": 1, "b": 2}))
        assert outcome.success
        await entry(bench, client, session, "starting", "odd")


RAW = """
import json, sys

DEEP = '{"a":' * DEPTH + '1' + '}' * DEPTH
GOOD = '{"name": "fine", "description": "works", "inputSchema": {"type": "object"}}'
BAD = [
    '{"name": "no_schema", "description": "has none"}',
    '{"name": "text_schema", "inputSchema": "object"}',
    '{"name": "list_schema", "inputSchema": [1, 2]}',
    '{"name": 7, "inputSchema": {"type": "object"}}',
    '"not even an object"',
    '{"name": "deep_schema", "inputSchema": {"type": "object", "properties": %s}}' % DEEP,
]
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = '{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, '
        result += '"serverInfo": {"name": "raw", "version": "1"}}'
    elif message.get("method") == "tools/list":
        result = '{"tools": [%s]}' % ", ".join([*BAD, GOOD])
    elif message.get("method") == "tools/call":
        result = '{"content": [{"type": "text", "text": "it works"}]}'
    elif "id" in message:
        print('{"jsonrpc": "2.0", "id": %s, "error": {"code": -32601, "message": "no"}}' % json.dumps(message["id"]))
        sys.stdout.flush()
        continue
    else:
        continue
    print('{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(message["id"]), result))
    sys.stdout.flush()
"""


@pytest.mark.parametrize("depth", [60, 150])
async def test_a_tool_that_is_none_costs_itself_alone_and_is_named(tmp_path: Path, depth: int) -> None:
    program = tmp_path / "raw.py"
    program.write_text(f"DEPTH = {depth}\n{RAW}")
    async with host(tmp_path, {"name": "odd", "command": [sys.executable, str(program)]}) as (bench, client):
        session, chat = await bench.session(client)
        shown = await entry(bench, client, session, "ready", "odd")
        left_out = shown["_meta"]["ahpkit/left-out"]
        assert {"no_schema", "text_schema", "list_schema"} <= left_out.keys()
        assert "inputSchema" in left_out["no_schema"]
        state = await bench.state(client, session)
        names = {tool["name"] for tool in state["serverTools"] if tool["name"].startswith("odd")}
        assert "odd_fine" in names
        assert not names & {"odd_no_schema", "odd_text_schema", "odd_list_schema"}
        await entry(bench, client, session, "ready", "good")
        fine, good = await turn(bench, client, chat, ("odd_fine", {}), ("good_add", {"a": 1, "b": 2}))
        assert (fine.success, good.success) == (True, True)


async def test_progress_without_end_is_shown_in_bounds(tmp_path: Path) -> None:
    """Each word of progress is an action that everybody gets."""
    told = "notify('notifications/progress', progressToken=params['_meta']['progressToken'], progress=step)"
    code = f"def on_call(id, params):\n    for step in range(5000): {told}\n    answer(id, {{'content': []}})"
    command = raw_odd(tmp_path, code).command
    async with host(tmp_path, {"name": "odd", "command": list(command)}) as (bench, client):
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "odd")
        [outcome] = await turn(bench, client, chat, ("odd_t", {}))
        assert outcome.success, outcome
        changes = [one for one in client.actions(chat) if one["action"]["type"] == "chat/toolCallContentChanged"]
        assert 1 <= len(changes) < 1000
        await others_are_well(bench, client, session, chat)
