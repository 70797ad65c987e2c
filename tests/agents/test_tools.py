"""Typed functions as an agent's tools: approval, running, results, failures."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from ahpkit.agents.openai_messages import answered
from ahpkit.agents.tools import Toolbox, ToolError, outcome_of, text_of
from ahpkit.host.agent import Confirmation, ToolCall, ToolOutcome, Turn, TurnContext
from ahpkit.mcp.results import result_of
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.testing.recording import RecordingTurn
from ahpkit.tools.registry import FINDERS

CALL = "turn-tool-1"


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def look(call: ToolCall, where: str) -> dict[str, str]:
    call.content([{"type": "text", "text": "looking"}])
    return {"found": where}


def fails(expected: bool) -> None:
    raise ToolError("no luck") if expected else RuntimeError("/secret/path")


def toolbox() -> Toolbox:
    tools = Toolbox()
    tools.tool(title="Add")(add)
    tools.tool(approval=False)(look)
    tools.tool(name="fail", approval=False)(fails)
    return tools


@pytest.mark.parametrize("given", ['{"a": 2}', {"a": 2}], ids=["text", "object"])
async def test_a_tool_asks_runs_and_completes(given: Any) -> None:
    turn = RecordingTurn()
    outcome = await toolbox().call(turn, "add", given)
    assert text_of(outcome) == "3"
    assert turn.said == [
        ("tool_call", CALL, "add", {"display_name": "Add"}),
        ("confirm", CALL, '{"a": 2}'),
        ("complete", CALL, True, {"content": [{"type": "text", "text": "3"}]}),
    ]


async def test_a_denied_tool_does_not_run() -> None:
    turn = RecordingTurn(confirmations=[Confirmation(approved=False, tool_input="", reason="not today"), False])
    tools = toolbox()
    assert await tools.call(turn, "add", '{"a": 2}') == ToolOutcome(success=False, error="not today")
    assert (await tools.call(turn, "add", '{"a": 2}')).error == "the user denied this tool call"
    assert turn.verbs() == ["tool_call", "confirm"] * 2


async def test_the_person_may_change_the_input() -> None:
    turn = RecordingTurn(confirmations=[Confirmation(approved=True, tool_input='{"a": 40, "b": 2}')])
    assert text_of(await toolbox().call(turn, "add", '{"a": 2}')) == "42"


async def test_options_and_editing_are_offered_with_every_approval() -> None:
    tools = Toolbox(options=[{"id": "y", "label": "Yes", "kind": "approve"}], editable=True)
    tools.tool(add)
    turn = RecordingTurn()
    await tools.call(turn, "add", "{}")
    assert turn.said[1] == ("confirm", CALL, "{}", {"options": ["y"], "editable": True})


async def test_a_tool_without_approval_runs_at_once_and_may_report_progress() -> None:
    turn = RecordingTurn()
    outcome = await toolbox().call(turn, "look", '{"where": "here"}')
    assert outcome.structured_content == {"found": "here"}
    assert turn.verbs() == ["tool_call", "running", "content", "complete"]


@pytest.mark.parametrize(
    ("name", "tool_input", "problem"),
    [
        ("add", '{"a": "x"}', "input of add: Expected `int`, got `str` - at `$.a`"),
        ("fail", '{"expected": true}', "no luck"),
    ],
)
async def test_a_failure_is_an_outcome_that_tells_what_was_wrong(name: str, tool_input: str, problem: str) -> None:
    turn = RecordingTurn()
    assert await toolbox().call(turn, name, tool_input) == ToolOutcome(success=False, error=problem)
    assert turn.said[-1] == ("complete", CALL, False, {"error": problem})


async def test_details_of_an_unexpected_failure_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        outcome = await toolbox().call(RecordingTurn(), "fail", '{"expected": false}')
    assert outcome.error == "fail failed unexpectedly; the host's log has the details"
    assert "/secret/path" in caplog.text


async def test_an_unknown_tool_is_an_outcome_that_names_the_known_ones() -> None:
    turn = RecordingTurn()
    outcome = await toolbox().call(turn, "fly", "{}")
    assert outcome.error == "there is no tool 'fly'; there are: add, look, fail"
    assert turn.said == []


async def test_a_tool_that_has_just_gone_is_called_so_that_people_see_it_fail() -> None:
    turn = RecordingTurn(context=TurnContext(gone=[{"name": "runTests"}]), outcomes=[ToolOutcome(success=False)])
    assert not (await toolbox().call(turn, "runTests", "{}")).success
    assert turn.said == [("call_tool", "runTests", "{}")]


async def test_a_tool_of_the_active_client_is_run_by_that_client() -> None:
    done = ToolOutcome(success=True, content=[{"type": "text", "text": "12 passed"}])
    context = TurnContext(tools=[{"name": "runTests", "title": "Run tests"}])
    turn = RecordingTurn(context=context, outcomes=[done])
    assert await toolbox().call(turn, "runTests", "{}") is done
    assert turn.said == [("call_tool", "runTests", "{}")]


async def test_of_two_tools_with_one_name_the_agents_own_is_meant() -> None:
    turn = RecordingTurn(context=TurnContext(tools=[{"name": "add"}]))
    await toolbox().call(turn, "add", '{"a": 1, "b": 2}')
    assert turn.verbs() == ["tool_call", "confirm", "complete"]
    assert [tool["name"] for tool in toolbox().definitions(turn)] == ["add", "look", "fail"]


def test_the_model_is_told_of_own_tools_and_of_the_clients() -> None:
    turn = RecordingTurn(context=TurnContext(tools=[{"name": "runTests"}]))
    assert [tool["name"] for tool in toolbox().definitions()] == ["add", "look", "fail"]
    assert [tool["name"] for tool in toolbox().definitions(turn)] == ["add", "look", "fail", "runTests"]
    look = toolbox().definitions()[1]
    assert list(look.get("inputSchema", {})["properties"]) == ["where"]


async def test_the_turn_is_given_to_tools_that_ask_for_it() -> None:
    async def say(turn: Turn, words: str) -> None:
        turn.text(words)

    tools, turn = Toolbox(), RecordingTurn()
    tools.tool(approval=False)(say)
    await tools.call(turn, "say", '{"words": "hi"}')
    assert turn.answer == "hi"


async def test_a_plain_function_does_not_block_the_host() -> None:
    tools, threads = Toolbox(), list[threading.Thread]()

    def where() -> None:
        threads.append(threading.current_thread())

    tools.tool(approval=False)(where)
    await tools.call(RecordingTurn(), "where", "")
    assert threads != [threading.main_thread()]


def test_results_become_content() -> None:
    assert outcome_of(None) == ToolOutcome(success=True)
    assert outcome_of("x").content == [{"type": "text", "text": "x"}]
    assert outcome_of({"a": "ü"}) == ToolOutcome(
        success=True, content=[{"type": "text", "text": '{"a": "ü"}'}], structured_content={"a": "ü"}
    )
    failed = ToolOutcome(success=False)
    assert outcome_of(failed) is failed
    assert text_of(failed) == "the tool failed"


def test_a_model_reads_a_result_that_is_structured_only() -> None:
    """It read nothing: the texts of the result, and there were none."""
    outcome = ToolOutcome(success=True, structured_content={"a": "ü"})
    assert text_of(outcome) == '{"a": "ü"}'
    assert result_of(outcome)["content"] == [{"type": "text", "text": '{"a": "ü"}'}]
    call: Any = {"toolCallId": "c", "toolName": "t", "success": True, "structuredContent": {"a": "ü"}}
    part: Any = {"kind": "toolCall", "toolCall": call}
    assert answered([part])[-1]["content"] == '{"a": "ü"}', "and in later turns"
    picture: Any = {"type": "embeddedResource", "data": "", "contentType": "image/png"}
    beside = ToolOutcome(success=True, content=[picture], structured_content={"a": "ü"})
    assert text_of(beside) == '{"a": "ü"}', "a picture is no text"


async def test_a_list_that_is_too_long_is_replaced_by_two_tools() -> None:
    names = [f"tool_{number}" for number in range(200)]
    every: list[ToolDefinition] = [{"name": name, "description": f"does {name}"} for name in names]
    turn = RecordingTurn(context=TurnContext(tools=every, listed=[every[0], *FINDERS]))
    tools = toolbox()
    assert [one["name"] for one in tools.definitions(turn)][3:] == ["tool_0", "find_tool", "call_tool"]
    assert '"tool_77"' in text_of(await tools.call(turn, "find_tool", '{"query": "tool 77"}'))
    assert '"add"' in text_of(await tools.call(turn, "find_tool", '{"query": "add"}'))
    assert text_of(await tools.call(turn, "call_tool", '{"name": "add", "arguments": {"a": 2}}')) == "3"
    for wrong in ('{"name": "add", "arguments": 5}', '{"name": "call_tool"}', "[", "[1]"):
        assert not (await tools.call(turn, "call_tool", wrong)).success
