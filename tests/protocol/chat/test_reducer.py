"""The chat reducer of 1.0.0: turns with times, questions as parts, errors that can be resumed, windows of turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.chat import actions as make
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import BackgroundWork, ErrorResponsePart, Message
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_json, encode
from support import requirement

IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, READ, ARCHIVED, FUTURE = 1, 2, 8, 24, 32, 64, 1 << 31
BEGAN = "2026-11-15T12:00:00.000Z"
HELLO: Message = {"text": "Hello", "origin": {"kind": "user"}}
RESUMABLE: ErrorResponsePart = {
    "kind": "error",
    "error": {"errorType": "network", "message": "gone"},
    "resumable": True,
}
QUESTION: Any = {"id": "q", "questions": [{"id": "a", "kind": "text", "message": "?"}]}


def chat(**more: Any) -> JsonObject:
    return {"resource": "ahp-chat:/c", "title": "", "status": IDLE, "modifiedAt": "x", "turns": [], **more}


def reduced(state: JsonObject, *actions: Any) -> JsonObject:
    for action in actions:
        state = chat_reducer(state, action)
    return decode_json(encode(state))


def started(turn_id: str = "t", at: str = BEGAN) -> Any:
    return make.chat_turn_started(turn_id=turn_id, started_at=at, message=HELLO)


def turn(turn_id: str, **more: Any) -> Any:
    return {"id": turn_id, "message": HELLO, "responseParts": [], "state": "complete", **more}


ASKED = reduced(chat(), started(), make.chat_input_requested(request=QUESTION))


# Turns and times


@requirement("gen:turn:modified-at-start")
def test_a_turn_that_starts_sets_the_time_as_it_is_written() -> None:
    after = reduced(chat(status=IDLE | READ | FUTURE), started(at="2026-11-15T13:00:00+01:00"))
    assert after["modifiedAt"] == after["activeTurn"]["startedAt"] == "2026-11-15T13:00:00+01:00"
    assert after["status"] == IN_PROGRESS | FUTURE


@requirement("gen:turn:modified-at-end")
@pytest.mark.parametrize(
    ("began", "duration", "kept", "ended"),
    [
        (BEGAN, 4000, 4000, "2026-11-15T12:00:04.000Z"),
        (BEGAN, -5, 0, "2026-11-15T12:00:00.000Z"),
        (BEGAN, 1.75, 1.75, "2026-11-15T12:00:00.001Z"),
        ("2026-11-15T13:30:00.5+01:30", 1, 1, "2026-11-15T12:00:00.501Z"),
        ("2026-11-15T12:00:00Z", 0, 0, "2026-11-15T12:00:00.000Z"),
    ],
)
def test_a_turn_that_ends_sets_the_time_it_took(began: str, duration: float, kept: float, ended: str) -> None:
    after = reduced(chat(), started(at=began), make.chat_turn_complete(turn_id="t", duration=duration))
    assert after["modifiedAt"] == ended
    assert (after["turns"][0]["duration"], after["turns"][0]["state"]) == (kept, "complete")
    assert "activeTurn" not in after


@requirement("gen:turn:force-cancel")
def test_the_end_of_a_turn_cancels_what_is_open_and_drops_what_it_showed() -> None:
    call: Any = {"turn_id": "t", "tool_call_id": "1"}
    after = reduced(
        chat(),
        started(),
        make.chat_tool_call_start(**call, tool_name="n", display_name="N"),
        make.chat_tool_call_ready(**call, invocation_message="m", confirmed="setting"),
        make.chat_tool_call_content_changed(**call, content=[{"type": "text", "text": "x"}]),
        make.chat_turn_cancelled(turn_id="t", duration=1),
    )
    (part,) = after["turns"][0]["responseParts"]
    assert part["toolCall"] == {
        "status": "cancelled",
        "reason": "skipped",
        "toolCallId": "1",
        "toolName": "n",
        "displayName": "N",
        "invocationMessage": "m",
    }


CALL: Any = {"turn_id": "t", "tool_call_id": "1"}
BEGUN = reduced(
    chat(),
    started(),
    make.chat_tool_call_start(
        **CALL, tool_name="n", display_name="N", contributor={"kind": "mcp", "customizationId": "m"}
    ),
)
RUNNING = reduced(BEGUN, make.chat_tool_call_ready(**CALL, invocation_message="m", confirmed="setting"))
SIGN_IN: Any = {"reason": "required", "resource": {"resource": "https://x.test"}}
OPEN_CALLS = {
    "streaming": BEGUN,
    "pending-confirmation": reduced(BEGUN, make.chat_tool_call_ready(**CALL, invocation_message="m")),
    "running": RUNNING,
    "auth-required": reduced(RUNNING, make.chat_tool_call_auth_required(**CALL, auth=SIGN_IN)),
    "pending-result-confirmation": reduced(
        RUNNING,
        make.chat_tool_call_complete(
            **CALL, result={"success": True, "pastTenseMessage": "p"}, requires_result_confirmation=True
        ),
    ),
}


@requirement("gen:turn:force-cancel")
@pytest.mark.parametrize("status", OPEN_CALLS)
def test_every_end_of_a_turn_cancels_a_call_that_is_open(status: str) -> None:
    before = OPEN_CALLS[status]
    assert before["activeTurn"]["responseParts"][0]["toolCall"]["status"] == status
    for end in (
        make.chat_turn_complete(turn_id="t", duration=1),
        make.chat_turn_cancelled(turn_id="t", duration=1),
        make.chat_error(turn_id="t", duration=1, part=RESUMABLE),
    ):
        call = reduced(before, end)["turns"][0]["responseParts"][0]["toolCall"]
        assert (call["status"], call["reason"]) == ("cancelled", "skipped")


@requirement("gen:tool:auth-required", "gen:input:status-back")
def test_a_call_that_waits_needs_input_also_when_a_question_is_answered() -> None:
    waiting = OPEN_CALLS["auth-required"]
    assert waiting["status"] == INPUT_NEEDED
    answered = reduced(
        waiting,
        make.chat_input_requested(request=QUESTION),
        make.chat_input_completed(request_id="q", response="decline"),
    )
    assert answered["status"] == INPUT_NEEDED
    assert reduced(answered, make.chat_tool_call_auth_resolved(**CALL))["status"] == IN_PROGRESS


@requirement("gen:draft:survives-turn-start", "gen:draft:set-and-clear")
def test_a_draft_is_set_and_cleared_by_its_action_only() -> None:
    drafted = reduced(chat(), make.chat_draft_changed(draft=HELLO), started())
    assert drafted["draft"] == HELLO
    assert "draft" not in reduced(drafted, make.chat_draft_changed())


@requirement("gen:activity:set-and-clear")
def test_an_activity_is_set_and_cleared() -> None:
    busy = reduced(chat(), make.chat_activity_changed(activity="Reading"))
    assert busy["activity"] == "Reading"
    assert "activity" not in reduced(busy, make.chat_activity_changed())


# Errors and resuming

FAILED = reduced(
    chat(),
    started(),
    make.chat_usage(turn_id="t", usage={"inputTokens": 1}),
    make.chat_error(turn_id="t", duration=1000, part=RESUMABLE),
)


@requirement("gen:error:part-appended")
def test_an_error_is_the_last_part_of_the_turn_it_ends() -> None:
    assert FAILED["status"] == ERROR
    assert FAILED["turns"][0]["state"] == "error"
    assert FAILED["turns"][0]["responseParts"] == [RESUMABLE]
    assert "error" not in FAILED["turns"][0]


@requirement("gen:error:not-by-response-part")
def test_an_error_part_alone_changes_nothing() -> None:
    state = chat_reducer(chat(), started())
    assert chat_reducer(state, {"type": "chat/responsePart", "turnId": "t", "part": RESUMABLE}) is state


@requirement("gen:resume:reopens")
def test_a_turn_that_failed_goes_on_with_all_it_had() -> None:
    after = reduced({**FAILED, "status": ERROR | READ}, make.chat_turn_resume(turn_id="t"))
    assert after["activeTurn"] == {
        "id": "t",
        "startedAt": BEGAN,
        "message": HELLO,
        "responseParts": [RESUMABLE],
        "usage": {"inputTokens": 1},
    }
    assert (after["turns"], after["status"], after["modifiedAt"]) == ([], IN_PROGRESS, FAILED["modifiedAt"])


@requirement("gen:resume:reopens")
def test_a_turn_without_a_start_takes_the_time_of_the_chat() -> None:
    state = chat(turns=[turn("t", state="error", responseParts=[RESUMABLE])], modifiedAt=BEGAN)
    assert reduced(state, make.chat_turn_resume(turn_id="t"))["activeTurn"]["startedAt"] == BEGAN


@requirement("gen:resume:only-resumable")
@pytest.mark.parametrize(
    "state",
    [
        reduced(FAILED, started("u")),
        {**FAILED, "turns": [*FAILED["turns"], turn("u")]},
        chat(turns=[turn("t", responseParts=[RESUMABLE])]),
        chat(turns=[turn("t", state="error", responseParts=[{**RESUMABLE, "resumable": False}])]),
        chat(turns=[turn("t", state="error", responseParts=[RESUMABLE, {"kind": "markdown", "id": "p"}])]),
        chat(turns=[turn("t", state="error")]),
        chat(),
    ],
)
def test_only_the_last_failed_turn_can_be_resumed(state: JsonObject) -> None:
    assert chat_reducer(state, {**make.chat_turn_resume(turn_id="t")}) is state


@requirement("gen:resume:open-question")
def test_a_resumed_turn_with_an_open_question_waits_again() -> None:
    failed = reduced(ASKED, make.chat_error(turn_id="t", duration=1, part=RESUMABLE))
    assert reduced(failed, make.chat_turn_resume(turn_id="t"))["status"] == INPUT_NEEDED


# Windows of turns


@requirement("gen:turns:loaded-prepends")
def test_older_turns_come_before_those_we_have() -> None:
    state = chat(turns=[turn("c")], turnsNextCursor="1")
    after = reduced(state, make.chat_turns_loaded(turns=[turn("a"), turn("c")], turns_next_cursor="2"))
    assert [each["id"] for each in after["turns"]] == ["a", "c"]
    assert after["turnsNextCursor"] == "2"
    assert "turnsNextCursor" not in reduced(after, make.chat_turns_loaded(turns=[]))


@requirement("gen:turns:truncate-all-clears-cursor")
def test_a_chat_that_loses_all_turns_has_no_older_ones() -> None:
    state = chat(turns=[turn("a"), turn("b")], turnsNextCursor="1")
    kept = reduced(state, make.chat_truncated(turn_id="a"))
    assert ([each["id"] for each in kept["turns"]], kept["turnsNextCursor"]) == (["a"], "1")
    emptied = reduced(state, make.chat_truncated())
    assert (emptied["turns"], "turnsNextCursor" in emptied, emptied["modifiedAt"]) == ([], False, "x")


# Questions


@requirement("gen:input:part-appended")
def test_a_question_is_a_part_at_the_end_that_waits() -> None:
    after = reduced(chat(), started(), make.chat_input_requested(request=QUESTION))
    assert after["activeTurn"]["responseParts"] == [{"kind": "inputRequest", "request": QUESTION}]
    assert after["status"] == INPUT_NEEDED
    idle = chat()
    assert chat_reducer(idle, {**make.chat_input_requested(request=QUESTION)}) is idle


DRAFT: Any = {"state": "draft", "value": {"kind": "text", "value": "y"}}


@requirement("gen:input:replace-in-place", "gen:input:answer-merge")
def test_a_question_that_is_asked_again_stands_where_it_stood_and_keeps_its_answers() -> None:
    answered = reduced(
        ASKED,
        make.chat_input_answer_changed(request_id="q", question_id="a", answer=DRAFT),
        make.chat_response_part(turn_id="t", part={"kind": "markdown", "id": "p", "content": ""}),
    )
    again = reduced(answered, make.chat_input_requested(request={"id": "q", "message": "again"}))
    first, _ = again["activeTurn"]["responseParts"]
    assert first["request"] == {"id": "q", "message": "again", "answers": {"a": DRAFT}}
    own: Any = {"b": {"state": "skipped"}}
    brought = reduced(again, make.chat_input_requested(request={"id": "q", "answers": own}))
    assert brought["activeTurn"]["responseParts"][0]["request"]["answers"] == own, "unless it brings others"
    cleared = reduced(again, make.chat_input_answer_changed(request_id="q", question_id="a"))
    assert "answers" not in cleared["activeTurn"]["responseParts"][0]["request"]


@requirement("gen:input:completed-in-place", "gen:input:status-back", "gen:input:resolved-id-reused")
def test_a_question_that_is_answered_stays_with_its_answers() -> None:
    done = reduced(
        ASKED,
        make.chat_input_answer_changed(request_id="q", question_id="a", answer=DRAFT),
        make.chat_response_part(turn_id="t", part={"kind": "markdown", "id": "p", "content": ""}),
        make.chat_input_completed(request_id="q", response="accept", answers={"b": {"state": "skipped"}}),
    )
    part, _ = done["activeTurn"]["responseParts"]
    assert part["response"] == "accept"
    assert part["request"]["answers"] == {"a": DRAFT, "b": {"state": "skipped"}}
    assert done["status"] == IN_PROGRESS
    reused = reduced(done, make.chat_input_requested(request=QUESTION))
    assert [each.get("response") for each in reused["activeTurn"]["responseParts"]] == ["accept", None, None]


@requirement("gen:input:turn-end-keeps-part")
def test_a_question_that_nobody_answered_stays_open_in_the_record() -> None:
    after = reduced(ASKED, make.chat_turn_complete(turn_id="t", duration=1))
    assert after["turns"][0]["responseParts"] == [{"kind": "inputRequest", "request": QUESTION}]
    assert after["status"] == IDLE


# Flags and lists


@requirement("gen:chat:is-read", "gen:forward:status-bits")
def test_flags_of_a_chat_are_single_bits() -> None:
    state = chat(status=INPUT_NEEDED | FUTURE)
    read = reduced(state, make.chat_is_read_changed(is_read=True), make.chat_is_archived_changed(is_archived=True))
    assert read["status"] == INPUT_NEEDED | FUTURE | READ | ARCHIVED
    assert chat_reducer(state, {**make.chat_is_read_changed(is_read=False)}) is state


def work(label: str) -> BackgroundWork:
    return {"kind": "shell", "id": "w", "label": label, "startedAt": BEGAN, "command": "make"}


@requirement("gen:chat:background-upsert")
def test_background_work_is_kept_by_id() -> None:
    working = reduced(chat(), *(make.chat_background_work_set(work=work(label)) for label in ("a", "b")))
    assert working["backgroundWork"] == [work("b")]
    assert "backgroundWork" not in reduced(working, make.chat_background_work_removed(id="w"))
    assert chat_reducer(working, {**make.chat_background_work_removed(id="z")}) is working


@requirement("gen:canvas:catalogue")
def test_catalogues_are_replaced_and_cleared() -> None:
    listed = reduced(chat(), make.chat_canvases_changed(canvases=[{"resource": "ahp-canvas:/x"}]))
    assert listed["canvases"] == [{"resource": "ahp-canvas:/x"}]
    assert "canvases" not in reduced(listed, make.chat_canvases_changed())
    assert "changesets" not in reduced(chat(changesets=[]), make.chat_changesets_changed())


@requirement("gen:workdir:set", "gen:workdir:removed")
def test_directories_of_a_chat() -> None:
    one = reduced(chat(), make.chat_working_directory_set(directory="a"))
    assert one["workingDirectories"] == ["a"]
    assert chat_reducer(one, {**make.chat_working_directory_set(directory="a")}) is one
    assert reduced(one, make.chat_working_directory_removed(directory="a"))["workingDirectories"] == []
    bare = chat()
    assert chat_reducer(bare, {**make.chat_working_directory_removed(directory="a")}) is bare


def call(number: int) -> Any:
    return {"turn_id": "t", "tool_call_id": f"c{number}"}


CALL_STEPS: dict[str, Callable[[int], Any]] = {
    "ask": lambda number: make.chat_tool_call_ready(**call(number), invocation_message="Runs x"),
    "run": lambda number: make.chat_tool_call_ready(
        **call(number), invocation_message="Runs x", confirmed="not-needed"
    ),
    "approve": lambda number: make.chat_tool_call_approved(**call(number), confirmed="user-action"),
    "deny": lambda number: make.chat_tool_call_denied(**call(number), reason="denied"),
    "done": lambda number: make.chat_tool_call_complete(
        **call(number),
        result={"success": True, "pastTenseMessage": "Ran x"},
        requires_result_confirmation=number % 2 == 0,
    ),
}


@given(steps=st.lists(st.tuples(st.integers(114, 119), st.sampled_from(sorted(CALL_STEPS))), max_size=25))
def test_the_status_of_a_long_response_says_whether_something_waits(steps: list[tuple[int, str]]) -> None:
    """However many calls came before, and whichever of the last ones change in whatever order."""
    begun: list[Any] = [make.chat_tool_call_start(**call(n), tool_name="x", display_name="X") for n in range(120)]
    state = reduced(chat(), started(), *begun)
    for number, step in steps:
        state = chat_reducer(state, CALL_STEPS[step](number))
        calls = [part["toolCall"]["status"] for part in state["activeTurn"]["responseParts"]]
        waits = any(status in ("pending-confirmation", "pending-result-confirmation") for status in calls)
        assert state["status"] == (INPUT_NEEDED if waits else IN_PROGRESS)
