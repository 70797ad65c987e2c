"""The demo agent: what each slash command says, and that it says the same every time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.demo_commands import COMMANDS, QUESTIONS, fenced
from ahpkit.agents.demo_tools import calculate
from ahpkit.agents.tools import ToolError
from ahpkit.authoring.canvas import CanvasError
from ahpkit.host.agent import (
    AgentError,
    Confirmation,
    InputAnswers,
    McpServerOffer,
    SkillOffer,
    ToolOutcome,
    TurnContext,
)
from ahpkit.protocol.chat.state import ChatInputAnswer
from ahpkit.protocol.common.state import JsonObject
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from support.waiting import BOUND

CALL = "turn-tool-1"


async def run(prompt: str, **options: Any) -> RecordingTurn:
    turn = RecordingTurn(prompt, **options)
    chat = await DemoAgent().open(turn.chat)
    async with asyncio.timeout(BOUND):
        await chat.run(turn)
    return turn


async def answer(prompt: str, **options: Any) -> str:
    return (await run(prompt, **options)).answer


# Answers, models, configuration


async def test_a_plain_prompt_is_answered_in_streamed_markdown() -> None:
    turn = await run("How are\nyou?")
    assert turn.answer.startswith("Hello! You said:\n\n> How are\n> you?\n\nI am the demo agent (`demo-small`).")
    assert set(turn.verbs()) == {"text"}
    assert len(turn.said) > 10


@pytest.mark.parametrize(
    "prompt", ["hello", "/help", "/stream 3", "/think", "/usage", "/subagent", "/skills", "/canvas list"]
)
async def test_the_same_prompt_gives_the_same_actions(prompt: str) -> None:
    first, second = await run(prompt), await run(prompt)
    assert first.said == second.said
    assert first.chat.said == second.chat.said


async def test_the_model_and_the_configuration_show_in_the_answer() -> None:
    text = await answer("hi", model={"id": "demo-large"}, chat=RecordingChat(config={"greeting": "Hola"}))
    assert text.startswith("Hola! ")
    assert "`demo-large`" in text


async def test_attachments_are_named() -> None:
    message = {"text": "see", "origin": {"kind": "user"}, "attachments": [{"type": "simple", "label": "a.txt"}]}
    assert "You attached:\n\n- a.txt" in await answer("see", message=message)


def test_there_are_two_models() -> None:
    assert [model["id"] for model in DemoAgent.models] == ["demo-small", "demo-large", "m1"]


async def test_a_topic_is_completed_as_the_user_types() -> None:
    agent = DemoAgent()
    assert [item["value"] for item in await agent.config_completions(None, "topic", "TRO")] == ["astronomy"]
    assert await agent.config_completions(None, "greeting", "") == []
    schema = await agent.session_config(None, {})
    assert schema is not None
    assert schema["properties"]["topic"].get("enumDynamic") is True


# Commands


async def test_help_lists_every_command_and_so_do_the_completions() -> None:
    turn = await run("/help")
    for name in COMMANDS:
        assert f"| `/{name}" in turn.answer
    assert turn.chat.said[0] == ("commands", list(COMMANDS))


@pytest.mark.parametrize("prompt", ["/dance now", "/"])
async def test_an_unknown_command_is_said_to_be_unknown(prompt: str) -> None:
    text = await answer(prompt)
    assert text.startswith("I do not know `/")
    assert "/help" in text


async def test_stream_sends_as_many_deltas_as_asked_for() -> None:
    assert (await run("/stream 3")).said == [("text", "delta 1 "), ("text", "delta 2 "), ("text", "delta 3 ")]
    assert len((await run("/stream 5000")).said) == 5000


@pytest.mark.parametrize(
    "prompt", ["/stream x", "/stream 0", "/stream 100001", "/sleep -1", "/sleep nan", "/sleep 9e9"]
)
async def test_a_number_out_of_range_is_explained(prompt: str) -> None:
    assert "takes a number" in await answer(prompt)


async def test_think_reasons_before_it_answers() -> None:
    assert (await run("/think")).verbs() == ["think", "think", "think", "text"]


async def test_fail_ends_the_turn_with_an_error() -> None:
    with pytest.raises(AgentError, match="This is the failure you asked for") as failed:
        await run("/fail")
    assert failed.value.error_type == "demo/requested"
    with pytest.raises(AgentError, match="out of cheese"):
        await run("/fail out of cheese")


async def test_sleep_shows_what_it_does_and_wakes_up() -> None:
    turn = await run("/sleep 0")
    assert turn.said == [
        ("activity", "Sleeping for 0 s"),
        ("text", "Sleeping for 0 seconds. "),
        ("text", "Awake again."),
        ("activity", None),
    ]


async def test_sleep_can_be_cancelled_and_leaves_no_activity_behind() -> None:
    turn = RecordingTurn("/sleep 3600")
    running = asyncio.ensure_future((await DemoAgent().open(turn.chat)).run(turn))
    await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(BOUND):
        await asyncio.wait([running])
    assert running.cancelled()
    assert turn.said[-1] == ("activity", None)


@pytest.mark.parametrize("prompt", ["/sleep 0.05", "/stream 3"])
async def test_steering_is_acknowledged_while_the_turn_runs(prompt: str) -> None:
    turn = RecordingTurn(prompt)
    turn.steer("turn left")
    async with asyncio.timeout(BOUND):
        await (await DemoAgent().open(turn.chat)).run(turn)
    assert "> turn left" in turn.answer


async def test_usage_is_reported() -> None:
    turn = await run("/usage", model={"id": "demo-large"})
    assert turn.said[0] == (
        "usage",
        {"inputTokens": 1, "outputTokens": 12, "cacheReadTokens": 0, "model": "demo-large"},
    )


async def test_a_sub_agent_answers_in_its_own_chat() -> None:
    turn = await run("/subagent Count the files.")
    shown = {"type": "subagent", "resource": "ahp-chat:/turn-sub-1", "title": "Helper", "agentName": "helper"}
    assert turn.said == [
        ("tool_call", CALL, "delegate", {"display_name": "Delegate"}),
        ("running", CALL, '{"task": "Count the files."}', {"message": "Asking a helper"}),
        ("subchat", "Helper", "Count the files.", {"tool_call": CALL}),
        ("content", CALL, [shown]),
        (
            "complete",
            CALL,
            True,
            {"message": "Asked a helper", "content": [shown, {"type": "text", "text": "All is well."}]},
        ),
        ("text", "My helper says: all is well."),
    ]
    helper = turn.subchats[0]
    assert "> Count the files." in helper.record.answer
    assert (helper.ended, helper.error) == (True, None)


# Tools


async def test_a_tool_asks_for_approval_with_options_and_editable_input() -> None:
    turn = await run('/tool calculate {"expression": "6 * 7"}')
    assert turn.said[:2] == [
        ("tool_call", CALL, "calculate", {"display_name": "Calculate"}),
        ("confirm", CALL, '{"expression": "6 * 7"}', {"options": ["allow", "deny"], "editable": True}),
    ]
    assert turn.answer == "`calculate` returned:\n\n```\n42\n```"


async def test_a_tool_runs_with_the_input_the_user_edited() -> None:
    edited = Confirmation(approved=True, tool_input='{"expression": "1 + 1"}')
    assert "```\n2\n```" in await answer('/tool calculate {"expression": "6 * 7"}', confirmations=[edited])


async def test_a_denied_tool_does_not_run() -> None:
    denied = Confirmation(approved=False, tool_input="", reason="too dangerous")
    text = await answer('/tool calculate {"expression": "1"}', confirmations=[denied])
    assert text == "`calculate` gave no result: too dangerous."


async def test_a_tool_that_the_client_registered_is_run_by_the_client() -> None:
    done = ToolOutcome(success=True, content=[{"type": "text", "text": "12 passed"}])
    context = TurnContext(tools=[{"name": "runTests"}])
    turn = await run('/tool runTests {"pattern": "a"}', context=context, outcomes=[done])
    assert turn.said[0] == ("call_tool", "runTests", '{"pattern": "a"}')
    assert "12 passed" in turn.answer


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/tool", "There are: `calculate`, `read_file`, `runTests`."),
        ("/tool fly {}", "there is no tool 'fly'; there are: calculate, read_file, runTests"),
        ("/tool calculate {", "The input is not valid JSON"),
        ("/tool calculate {}", "missing required field `expression`"),
    ],
)
async def test_a_tool_call_that_makes_no_sense_is_explained(prompt: str, expected: str) -> None:
    assert expected in await answer(prompt, context=TurnContext(tools=[{"name": "runTests"}]))


async def read(path: str, directory: Path) -> str:
    chat = RecordingChat(working_directory=directory)
    return await answer(f'/tool read_file {{"path": "{path}"}}', chat=chat)


async def test_a_file_of_the_working_directory_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Some ```code```")
    assert "````\nSome ```code```\n````" in await read("a.md", tmp_path)


async def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    (inside / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", str(tmp_path / "secret"), "link"):
        assert "is outside the working directory" in await read(path, inside)


@pytest.mark.parametrize(
    ("path", "problem"), [("nothing", "is not a file"), (".", "is not a file"), ("\\u0000", "cannot be read")]
)
async def test_a_file_that_cannot_be_read_is_explained(path: str, problem: str, tmp_path: Path) -> None:
    assert problem in await read(path, tmp_path)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 2 * 3", "7"), ("-(2 ** 10) // 3", "-342"), ("7 / 2", "3.5"), ("10 % 4", "2"), (" +1 ", "1")],
)
def test_it_calculates_what_it_is_given(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("__import__('os')", "is not an arithmetic expression"),
        ("True + 1", "is not an arithmetic expression"),
        ("(-1) ** 0.5", "is not an arithmetic expression"),
        ("1 +", "is not an arithmetic expression"),
        ("1 / 0", "division by zero"),
        ("9 ** 9 ** 9", "the result is too large"),
        ("(" * 400 + "1" + ")" * 400, "is not an arithmetic expression"),
        ("1+" * 600 + "1", "at most 1000 characters"),
    ],
)
def test_what_is_not_harmless_arithmetic_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        calculate(expression)


# Questions


def test_every_kind_of_question_is_asked() -> None:
    kinds = {question["kind"] for question in QUESTIONS}
    assert kinds == {"text", "number", "integer", "boolean", "single-select", "multi-select"}


async def test_answers_are_repeated() -> None:
    given: dict[str, ChatInputAnswer] = {
        "name": {"state": "submitted", "value": {"kind": "text", "value": "Ada"}},
        "age": {"state": "submitted", "value": {"kind": "number", "value": 36}},
        "agree": {"state": "submitted", "value": {"kind": "boolean", "value": False}},
        "colour": {"state": "draft", "value": {"kind": "selected", "value": "", "freeformValues": ["mauve"]}},
        "fruit": {"state": "submitted", "value": {"kind": "selected-many", "value": ["apple", "plum"]}},
        "email": {"state": "skipped"},
    }
    turn = await run("/ask", answers=[InputAnswers("accept", given)])
    assert turn.said[0] == ("ask", [q["id"] for q in QUESTIONS], {"message": "The demo agent has a few questions."})
    for line in (
        "**name**: Ada",
        "**age**: 36",
        "**agree**: False",
        "**colour**: mauve",
        "**fruit**: apple, plum",
        "**email**: no answer",
        "**ratio**: no answer",
    ):
        assert line in turn.answer


@pytest.mark.parametrize("response", ["decline", "cancel"])
async def test_declining_is_accepted(response: Any) -> None:
    assert await answer("/ask", answers=[InputAnswers(response)]) == f"You chose to {response}."


# Customizations


async def test_skills_shows_everything_the_turn_was_given() -> None:
    context = TurnContext(
        system_prompt="You are a tester.",
        rules=["Be brief."],
        skills=[SkillOffer("deploy", "Ships it.", "file:///deploy")],
        agents=[SkillOffer("critic", "Finds faults.", "file:///critic.md")],
        mcp_servers=[McpServerOffer("m", "files", {"command": "secret-command"})],
        tools=[{"name": "runTests", "description": "Runs tests."}],
    )
    text = await answer("/skills", context=context)
    for part in (
        "**System prompt**\n\n- You are a tester.",
        "**Rules**\n\n- Be brief.",
        "**Skills**\n\n- `deploy`: Ships it. (file:///deploy)",
        "**Agents**\n\n- `critic`: Finds faults. (file:///critic.md)",
        "**MCP servers**\n\n- `files`",
        "**Tools**\n\n- `runTests`: Runs tests.",
    ):
        assert part in text
    assert "secret-command" not in text


async def test_skills_says_none_when_there_is_nothing() -> None:
    assert (await answer("/skills")).count("- none") == 6


# Canvases


class Canvases:
    """A canvas runtime that remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def list(self) -> Sequence[JsonObject]:
        actions = [{"name": "add"}, {"name": "clear"}]
        return [{"canvasId": "chart", "extensionId": "x", "description": "Draws.", "actions": actions}]

    def list_open(self) -> Sequence[JsonObject]:
        return [{"instanceId": "i1", "canvasId": "chart", "availability": "stale"}]

    async def open(
        self, canvas_id: str, instance_id: str, *, extension_id: str | None = None, input: Any = None
    ) -> JsonObject:
        self.calls.append(("open", canvas_id, instance_id, input))
        return {"instanceId": instance_id, "url": "https://example.com"}

    async def close(self, instance_id: str) -> None:
        self.calls.append(("close", instance_id))

    async def invoke(self, instance_id: str, action: str, input: Any = None) -> Any:
        self.calls.append(("invoke", instance_id, action, input))
        if action == "break":
            raise CanvasError("the provider is gone", code="canvas_provider_unavailable")
        return {"ok": True}

    def subscribe(self, listener: Callable[[str, JsonObject], Awaitable[None] | None]) -> Callable[[], None]:
        return lambda: None


@pytest.mark.parametrize(
    ("prompt", "call", "expected"),
    [
        ("open chart i1", ("open", "chart", "i1", None), '{\n  "instanceId": "i1"\n}'),
        ('open chart i1 {"a": [1, 2]}', ("open", "chart", "i1", {"a": [1, 2]}), "Opened `i1`"),
        ("invoke i1 add 7", ("invoke", "i1", "add", 7), '`add` returned:\n\n```json\n{\n  "ok": true\n}'),
        ("close i1", ("close", "i1"), "Closed `i1`."),
        (
            "invoke i1 break",
            ("invoke", "i1", "break", None),
            "failed with `canvas_provider_unavailable`: the provider is gone",
        ),
    ],
)
async def test_canvas_calls_and_their_results_appear_in_the_answer(
    prompt: str, call: tuple[Any, ...], expected: str
) -> None:
    canvases = Canvases()
    assert expected in await answer(f"/canvas {prompt}", canvas=canvases)
    assert canvases.calls == [call]


async def test_canvases_are_listed_with_their_actions_and_open_instances() -> None:
    text = await answer("/canvas list", canvas=Canvases())
    assert "- `chart` of `x`: Draws. Actions: `add`, `clear`." in text
    assert "- `i1` of `chart` is stale" in text


@pytest.mark.parametrize("prompt", ["", "paint", "open chart", "close", "close a b", "invoke i1"])
async def test_a_canvas_command_that_makes_no_sense_shows_the_usage(prompt: str) -> None:
    canvases = Canvases()
    assert (await answer(f"/canvas {prompt}", canvas=canvases)).startswith("Usage: `/canvas list |")
    assert canvases.calls == []


async def test_canvas_input_that_is_not_json_is_explained() -> None:
    assert "not valid JSON" in await answer("/canvas open chart i1 {", canvas=Canvases())


async def test_a_host_without_canvases_is_no_failure() -> None:
    assert await answer("/canvas list") == "This host offers no canvases."


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fenced("a````b") == "`````\na````b\n`````"


@pytest.mark.parametrize("prompt", ["a " * 500_000, "z" * 1_000_000], ids=["words", "one word"])
async def test_a_long_message_is_repeated_in_few_pieces_none_of_them_long(prompt: str) -> None:
    """A message of a few megabytes was millions of actions, or one that held up everybody."""
    turn = await run(prompt)
    pieces = [entry for entry in turn.said if entry[0] == "text"]
    assert len(pieces) <= 5_010
    assert max(len(str(entry)) for entry in pieces) < 1_000
    assert prompt.strip() in turn.answer
