"""The orders in which real agents tell of their tool calls, and what a turn hears of each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp.content import Contents
from ahpkit.agents.acp.limits import MAX_TEXT
from ahpkit.agents.acp.questions import confirmation_options
from ahpkit.agents.acp.toolcalls import ToolCalls
from ahpkit.host.agent import TurnContext
from ahpkit.testing.recording import RecordingTurn
from support import requirement

OPTIONS = confirmation_options(
    [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
)


class Played:
    """Plays a trace: C = tool_call, u = tool_call_update, PERM = a permission request."""

    def __init__(self, *, confirmations: list[Any] | None = None, past: frozenset[str] = frozenset()) -> None:
        self.turn = RecordingTurn(confirmations=confirmations or [])
        contents = Contents(self.turn.store, root=Path("/w"), terminal_uri=lambda id: None)
        self.calls = ToolCalls(self.turn, contents, past=past)

    def say(self, update: str, id: str = "t", /, **fields: Any) -> bool:
        return self.calls.update({"sessionUpdate": update, "toolCallId": id, **fields})

    async def play(self, trace: str, **fields: Any) -> None:
        for word in trace.split():
            what, _, status = word.partition(":")
            if what == "PERM":
                await self.permit()
            else:
                update = "tool_call" if what == "C" else "tool_call_update"
                self.say(update, title="Write a", kind="edit", rawInput={"p": 1}, status=status, **fields)

    async def permit(self, id: str = "t", **fields: Any) -> Any:
        request = {"toolCallId": id, **fields}
        return await self.calls.for_permission(request).confirm(request, OPTIONS)

    def verbs(self, *, without: tuple[str, ...] = ("meta", "store")) -> list[str]:
        return [verb for verb in self.turn.verbs() if verb not in without]


@pytest.mark.parametrize(
    ("trace", "heard"),
    [
        ("C:pending PERM u:in_progress u:completed", ["tool_call", "confirm", "complete"]),
        ("C:in_progress PERM u:completed", ["tool_call", "running", "confirm", "complete"]),
        ("C:pending u:in_progress PERM u:completed", ["tool_call", "running", "confirm", "complete"]),
        ("PERM C:in_progress u:completed", ["tool_call", "confirm", "complete"]),
        ("PERM u:completed", ["tool_call", "confirm", "complete"]),
        ("u:pending PERM u:in_progress C:pending u:completed", ["tool_call", "confirm", "complete"]),
        ("C:pending C:pending u:completed", ["tool_call", "running", "complete"]),
        ("C:completed", ["tool_call", "running", "complete"]),
        ("u:completed C:pending u:in_progress", ["tool_call", "running", "complete"]),
        ("C:in_progress u:in_progress u:failed u:completed", ["tool_call", "running", "complete"]),
    ],
)
async def test_every_order_seen_in_the_field_is_one_call_that_moves_forward(trace: str, heard: list[str]) -> None:
    played = Played()

    await played.play(trace)

    assert played.verbs() == heard
    assert len(played.turn.tool_calls) == 1
    assert played.turn.tool_calls["t"].over


async def test_after_a_denial_the_call_is_over_and_later_news_of_it_changes_nothing() -> None:
    played = Played(confirmations=[False])

    await played.play("C:pending PERM u:failed")

    assert played.verbs() == ["tool_call", "confirm"]


async def test_the_permission_carries_what_was_said_about_the_call_before() -> None:
    played = Played()
    diff = {"type": "diff", "path": "a", "oldText": None, "newText": "x"}
    played.say("tool_call", title="Write a", kind="edit", rawInput={"path": "a"}, content=[diff])

    await played.permit()

    [confirm] = [said for said in played.turn.said if said[0] == "confirm"]
    assert confirm[2] == '{"path":"a"}'
    assert confirm[3]["title"] == "Write a"
    assert confirm[3]["options"] == ["y", "n"]
    assert confirm[3]["edits"][0]["after"]["uri"] == "file:///w/a"


@pytest.mark.parametrize(
    ("kind", "raw_input", "intention"),
    [
        ("execute", {"command": "rm x", "description": "Make room"}, "Make room"),
        ("execute", {"cmd": "rm x", "justification": "It is in the way"}, "It is in the way"),
        ("execute", {"command": ["rm", "x"], "reason": "Outside the sandbox"}, "Outside the sandbox"),
        ("execute", {"command": "rm x", "description": "Remove x"}, None),
        ("execute", {"command": "rm x", "description": 7}, None),
        ("execute", ["rm", "x"], None),
        ("other", {"title": "Bug", "description": "The body of an issue"}, None),
    ],
)
async def test_why_an_agent_runs_a_command_is_its_intention(kind: str, raw_input: Any, intention: str | None) -> None:
    played = Played()
    played.say("tool_call", title="Remove x", kind=kind)
    await played.permit(rawInput=raw_input)
    played.say("tool_call", "another", title="Remove x", kind=kind, rawInput=raw_input, status="in_progress")
    said = [more.get("intention") for verb, *_, more in played.turn.said if verb in ("tool_call", "confirm", "running")]
    assert said == [None, intention, intention, intention]


async def test_a_question_says_how_many_changes_it_does_not_show() -> None:
    played = Played()
    diffs = [{"type": "diff", "path": str(number), "newText": "x"} for number in range(1_002)]
    played.say("tool_call", title="Write all", kind="edit", content=diffs)

    await played.permit()

    [confirm] = [said for said in played.turn.said if said[0] == "confirm"]
    assert confirm[3]["title"] == confirm[3]["message"] == "Write all – and 2 more changes that are not shown"
    assert len(confirm[3]["edits"]) == 1_000


async def test_a_permission_with_an_id_of_its_own_is_a_call_of_its_own_each_time() -> None:
    played = Played()

    await played.permit("confirmation", title="First")
    played.say("tool_call_update", "confirmation", status="completed")
    await played.permit("confirmation", title="Second")
    played.calls.close(ended_well=True)

    assert len(played.turn.tool_calls) == 2
    assert [said[0] for said in played.turn.said if said[0] in ("tool_call", "complete")] == [
        "tool_call",
        "complete",
        "tool_call",
        "complete",
    ]


async def test_two_permissions_at_once_for_one_id_are_asked_apart() -> None:
    first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    played = Played(confirmations=[first])
    asked = asyncio.create_task(played.permit("same"))
    await asyncio.sleep(0)

    await played.permit("same")
    first.set_result(False)

    assert (await asked).approved is False
    assert len(played.turn.tool_calls) == 2


async def test_what_the_agent_says_while_a_person_decides_waits() -> None:
    decision: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    played = Played(confirmations=[decision])
    asked = asyncio.create_task(played.permit(title="Run"))
    await asyncio.sleep(0)

    played.say("tool_call_update", status="in_progress", content=[_text("working")])
    assert played.verbs() == ["tool_call", "confirm"]
    decision.set_result(True)
    await asked

    assert played.verbs() == ["tool_call", "confirm", "content"]


def test_content_is_told_while_running_and_only_when_it_changed() -> None:
    played = Played()
    played.say("tool_call", status="in_progress")
    for text in ("a", "a", "ab"):
        played.say("tool_call_update", content=[_text(text)])

    assert [said[2] for said in played.turn.said if said[0] == "content"] == [
        [{"type": "text", "text": "a"}],
        [{"type": "text", "text": "ab"}],
    ]


@pytest.mark.parametrize("content", [[], [{"type": "terminal", "terminalId": "own"}]])
def test_output_of_the_agents_own_terminal_is_shown_as_it_comes_also_if_the_call_names_no_terminal(
    content: list[Any],
) -> None:
    played = Played()
    played.say("tool_call", status="in_progress", content=content)
    for key, data in (("terminal_output", "one "), ("terminal_output_delta", "two")):
        played.say("tool_call_update", _meta={key: {"terminal_id": "own", "data": data}})

    shown = [said[2] for said in played.turn.said if said[0] == "content"]
    assert shown == [[{"type": "text", "text": "one "}], [{"type": "text", "text": "one two"}]]
    assert "data" not in str([said for said in played.turn.said if said[0] == "meta"])


def test_a_title_that_changes_before_it_runs_is_told() -> None:
    played = Played()
    played.say("tool_call", title="Read")
    played.say("tool_call_update", title="Read a.py")
    played.say("tool_call_update", title="Read a.py")

    assert [said for said in played.turn.said if said[0] == "input"] == [("input", "t", "", {"message": "Read a.py"})]


def test_the_result_has_content_structured_output_or_the_error() -> None:
    played = Played()
    played.say("tool_call", "ok", status="completed", title="T", rawOutput={"n": 1}, content=[_text("done")])
    played.say("tool_call", "plain", status="completed", rawOutput="words")
    played.say("tool_call", "bad", status="failed", rawOutput={"error": "no such file"})
    played.say("tool_call", "silent", status="failed")

    completed = {said[1]: said[2:] for said in played.turn.said if said[0] == "complete"}
    assert completed == {
        "ok": (
            True,
            {"message": "T", "content": [{"type": "text", "text": "done"}], "structured_content": {"n": 1}},
        ),
        "plain": (True, {"content": [{"type": "text", "text": "words"}]}),
        "bad": (False, {"error": "no such file", "structured_content": {"error": "no such file"}}),
        "silent": (False, {"error": "failed"}),
    }


def test_what_a_command_printed_is_shown_when_only_the_raw_output_has_it() -> None:
    played = Played()
    terminal = [{"type": "terminal", "terminalId": "t"}]
    output = {"stdout": "", "aggregated_output": "one\ntwo\n", "exit_code": 0}
    played.say("tool_call", status="completed", content=terminal, rawOutput=output)

    [(_, result)] = [said[2:] for said in played.turn.said if said[0] == "complete"]
    assert result["content"] == [{"type": "text", "text": "one\ntwo\n"}]
    assert result["structured_content"] == output


@pytest.mark.parametrize(("ended_well", "done"), [(True, ["ran", "waited"]), (False, ["ran"])])
def test_what_was_never_ended_is_done_with_the_turn_unless_it_never_ran_in_a_turn_that_broke_off(
    ended_well: bool, done: list[str]
) -> None:
    played = Played()
    played.say("tool_call", "ran", status="in_progress")
    played.say("tool_call", "waited", status="pending")

    played.calls.close(ended_well=ended_well)

    assert [said[1] for said in played.turn.said if said[0] == "complete"] == done


@requirement("extensibility:meta:on-every-type")
def test_kind_locations_and_meta_of_the_agent_are_merged_under_one_key() -> None:
    played = Played()
    where = [{"path": "/w/a", "line": 3, "_meta": {"x": 1}}]
    played.say("tool_call", kind="edit", locations=where, _meta={"one": 1, "session_id": "EVIL"})
    played.say("tool_call_update", _meta={"two": 2})

    metas = [said[2] for said in played.turn.said if said[0] == "meta"]
    assert metas[-1] == {
        "ahpkit/acp": {"kind": "edit", "locations": where, "meta": {"one": 1, "session_id": "EVIL", "two": 2}}
    }


def test_an_input_that_changes_after_it_was_told_is_kept_in_meta() -> None:
    played = Played()
    played.say("tool_call", status="in_progress", rawInput={"a": 1})
    played.say("tool_call_update", rawInput={"a": 2})

    assert played.turn.said[-1] == ("meta", "t", {"ahpkit/acp": {"input": {"a": 2}}})


async def test_an_input_that_is_shown_without_its_middle_is_marked_when_somebody_is_asked() -> None:
    played = Played(confirmations=[True])
    await played.permit(rawInput={"text": "x" * MAX_TEXT})

    [began, asked] = [said for said in played.turn.said if said[0] in ("tool_call", "confirm")]
    assert "'ahpkit/truncated': True" in str(began)
    assert "characters are not shown" in str(asked)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"name": "write_file", "kind": "edit"}, "write_file"),
        ({"_meta": {"toolName": "bash"}, "kind": "execute"}, "bash"),
        ({"_meta": {"claudeCode": {"toolName": "Write"}}}, "Write"),
        ({"_meta": {"goose": {"created": 1, "toolCall": {"toolName": "shell"}}}}, "shell"),
        ({"kind": "execute"}, "execute"),
        ({}, "tool"),
        ({"name": "clients_own"}, "agent.clients_own"),
    ],
)
def test_the_tools_name_is_found_where_agents_put_it_and_never_taken_for_a_clients(
    fields: dict[str, Any], name: str
) -> None:
    played = Played()
    played.turn.context = TurnContext(tools=[{"name": "clients_own"}])

    played.say("tool_call", **fields)

    assert played.turn.tool_calls["t"].name == name


def test_late_news_of_the_turn_before_is_dropped_but_an_id_may_be_used_again() -> None:
    played = Played(past=frozenset({"old"}))

    assert not played.say("tool_call_update", "old", status="completed")
    assert played.turn.said == []
    assert played.say("tool_call", "old", status="completed")
    assert "old" not in played.turn.tool_calls
    assert len(played.turn.tool_calls) == 1


def test_an_update_without_an_id_is_ignored_and_unknown_words_do_no_harm() -> None:
    played = Played()

    assert not played.calls.update({"sessionUpdate": "tool_call", "toolCallId": 7})
    played.say("tool_call", status="levitating", kind="teleport", content="x", locations=5, rawInput=[])

    assert played.verbs() == ["tool_call"]


async def test_a_call_that_the_configuration_decides_about_passes_the_gate_all_the_same() -> None:
    played = Played()
    for id, setting in (("a", True), ("b", False)):
        request = {"toolCallId": id, "title": id, "rawInput": {"x": 1}}
        answer = await played.calls.for_permission(request).confirm(request, [], setting=setting)
        assert answer.approved is setting

    decided = [said for said in played.turn.said if said[0] == "setting"]
    assert decided == [
        ("setting", "a", True, '{"x":1}', {"message": "a"}),
        ("setting", "b", False, '{"x":1}', {"message": "b"}),
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}
