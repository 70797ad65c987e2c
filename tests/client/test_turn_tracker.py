"""Events of a turn: the same from actions as from the states after a gap, and never twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.client.events import (
    ConfirmationNeeded,
    InputNeeded,
    InputResolved,
    Notice,
    PartAdded,
    ReasoningDelta,
    TextDelta,
    ToolCallCancelled,
    ToolCallCompleted,
    ToolCallContent,
    ToolCallInputDelta,
    ToolCallRunning,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    Usage,
)
from ahpkit.client.turn_tracker import TurnTracker
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import SETTLED
from ahpkit.testing.fake_host import chat_state

T = {"turnId": "t"}
CALL = {"turnId": "t", "toolCallId": "c"}
START: JsonObject = {
    "type": "chat/turnStarted",
    **T,
    "startedAt": "2026-11-15T10:00:00.000Z",
    "message": {"text": "hi", "origin": {"kind": "user"}},
}
RESULT = {"success": True, "pastTenseMessage": "Did it"}


def part(kind: str, id: str, content: str = "") -> JsonObject:
    return {"type": "chat/responsePart", **T, "part": {"kind": kind, "id": id, "content": content}}


def delta(content: str, id: str = "p") -> JsonObject:
    return {"type": "chat/delta", **T, "partId": id, "content": content}


def call(kind: str, **fields: Any) -> JsonObject:
    return {"type": f"chat/toolCall{kind}", **CALL, **fields}


def ready(**fields: Any) -> JsonObject:
    return call("Ready", invocationMessage="Doing it", toolInput="{}", **fields)


CALL_START = call("Start", toolName="tool", displayName="Tool")


def run(*actions: JsonObject) -> list[TurnEvent]:
    """All events of a turn, action by action."""
    tracker, state = TurnTracker("t"), chat_state("ahp-chat:/c")
    events: list[TurnEvent] = []
    for action in actions:
        state = chat_reducer(state, action)
        events += tracker.act(action, state)
    return events


def kinds(events: list[TurnEvent]) -> list[type]:
    return [type(event) for event in events]


def test_text_streams_part_by_part():
    events = run(
        START,
        part("markdown", "p", "A"),
        delta("B"),
        part("reasoning", "r"),
        {**delta("C", "r"), "type": "chat/reasoning"},
    )

    assert events[1:] == [TextDelta("p", "A"), TextDelta("p", "B"), ReasoningDelta("r", "C")]
    assert isinstance(events[0], TurnStarted)


def test_a_tool_call_is_followed_through_its_life():
    events = run(
        START,
        CALL_START,
        call("Delta", content='{"a"'),
        call("Delta", content=":1}"),
        ready(),
        call("Confirmed", approved=True, confirmed="user-action"),
        call("ContentChanged", content=[{"type": "text", "text": "half"}]),
        call("Complete", result=RESULT),
    )

    assert kinds(events[1:]) == [
        ToolCallStarted,
        ToolCallInputDelta,
        ToolCallInputDelta,
        ConfirmationNeeded,
        ToolCallRunning,
        ToolCallContent,
        ToolCallCompleted,
    ]
    assert events[4].call["status"] == "pending-confirmation"  # type: ignore[union-attr]  # These events have a call.
    assert events[-1].call["success"] is True  # type: ignore[union-attr]  # These events have a call.


class Untouched(dict[str, Any]):
    """Stands for the many parts that came before: none of them may be looked at."""

    def __getitem__(self, name: str, _default: Any = None, /) -> Any:
        raise AssertionError(f"looked at {name} of a part that did not change")

    get = __getitem__


def test_an_action_about_a_call_costs_the_same_after_thousands_of_others():
    started = {"type": "chat/toolCallStart", **CALL, "toolName": "x", "displayName": "X"}
    state = chat_reducer(chat_reducer(chat_state("ahp-chat:/x"), START), started)
    tracker = TurnTracker("t")
    tracker.catch_up(state)
    state = chat_reducer(state, ready(confirmed="not-needed"))
    parts = [*(Untouched() for _ in range(5000)), *state["activeTurn"]["responseParts"]]
    long = {**state, "activeTurn": {**state["activeTurn"], "responseParts": parts}}
    assert kinds(tracker.act(ready(confirmed="not-needed"), long)) == [ToolCallRunning]


def test_a_result_that_must_be_approved_asks_again():
    events = run(
        START,
        CALL_START,
        ready(confirmed="not-needed"),
        call("Complete", result=RESULT, requiresResultConfirmation=True),
    )

    assert isinstance(events[-1], ConfirmationNeeded)
    assert events[-1].of == "result"


def test_a_denied_call_is_cancelled_and_a_second_confirmation_is_seen():
    events = run(
        START,
        CALL_START,
        ready(),
        call("Confirmed", approved=True, confirmed="user-action"),
        ready(),
        call("Confirmed", approved=False, reason="denied"),
    )

    assert kinds(events[2:]) == [ConfirmationNeeded, ToolCallRunning, ConfirmationNeeded, ToolCallCancelled]


def test_questions_come_and_go():
    asked = {"type": "chat/inputRequested", "request": {"id": "q"}}
    done = {"type": "chat/inputCompleted", "requestId": "q", "response": "decline"}

    assert run(START, asked, done)[1:] == [InputNeeded({"id": "q"}), InputResolved("q")]


def test_other_parts_and_usage_are_reported_once():
    notice = {"type": "chat/responsePart", **T, "part": {"kind": "systemNotification", "content": "note"}}
    other = {"type": "chat/responsePart", **T, "part": {"kind": "hologram", "x": 1}}
    usage = {"type": "chat/usage", **T, "usage": {"inputTokens": 3}}

    events = run(START, notice, other, usage, usage, CALL_START)

    assert events[1:4] == [Notice("note"), PartAdded({"kind": "hologram", "x": 1}), Usage({"inputTokens": 3})]  # type: ignore[arg-type]  # A part of a kind that nobody knows.
    assert kinds(events[4:]) == [ToolCallStarted]


def test_each_way_a_turn_can_end():
    error = {"errorType": "agent", "message": "broken"}
    complete = run(START, {"type": "chat/turnComplete", **T, "duration": 1})[-1]
    cancelled = run(START, {"type": "chat/turnCancelled", **T, "duration": 1})[-1]
    failed = run(START, {"type": "chat/error", **T, "duration": 1, "part": {"kind": "error", "error": error}})[-1]
    cut = run(START, {"type": "chat/truncated"})[-1]

    assert isinstance(complete, TurnCompleted)
    assert complete.turn["id"] == "t"
    assert isinstance(cancelled, TurnCancelled)
    assert isinstance(failed, TurnFailed)
    assert failed.error == error
    assert cut == TurnCancelled(None)


def test_nothing_is_reported_about_other_turns_or_after_the_end():
    end = {"type": "chat/turnComplete", **T, "duration": 1}
    foreign = {**START, "turnId": "u"}

    assert kinds(run(START, end, foreign, {**part("markdown", "x", "no"), "turnId": "u"}, {**end, "turnId": "u"})) == [
        TurnStarted,
        TurnCompleted,
    ]


def test_a_delta_for_a_part_that_is_not_there_is_not_reported():
    assert kinds(run(START, delta("lost", "nowhere"))) == [TurnStarted]


_ACTIONS = st.lists(
    st.sampled_from(
        [
            part("markdown", "p", "x"),
            part("reasoning", "r"),
            delta("ab"),
            delta("c"),
            {**delta("r", "r"), "type": "chat/reasoning"},
            CALL_START,
            call("Delta", content="{}"),
            ready(),
            ready(confirmed="not-needed"),
            call("Confirmed", approved=True, confirmed="user-action"),
            call("Complete", result=RESULT),
            {"type": "chat/inputRequested", "request": {"id": "q"}},
            {"type": "chat/inputCompleted", "requestId": "q", "response": "decline"},
        ]
    ),
    max_size=15,
    unique_by=lambda action: (
        repr(action) if action["type"] in ("chat/responsePart", "chat/toolCallStart") else object()
    ),
)


@given(_ACTIONS, st.sets(st.integers(0, 17)))
def test_gaps_lose_no_text_and_repeat_none(actions: list[JsonObject], gaps: set[int]):
    """Actions at `gaps` never arrive; the state after the next one makes up for them."""
    tracker, state = TurnTracker("t"), chat_state("ahp-chat:/c")
    events: list[TurnEvent] = []
    missed = False
    for number, action in enumerate([START, *actions, {"type": "chat/turnComplete", **T, "duration": 1}]):
        state = chat_reducer(state, action)
        if number in gaps:
            missed = True
        else:
            events += tracker.catch_up(state) if missed else tracker.act(action, state)
            missed = False
    events += tracker.catch_up(state)

    turn = state["turns"][-1]
    for kind, event_type in (("markdown", TextDelta), ("reasoning", ReasoningDelta)):
        said = "".join(event.text for event in events if isinstance(event, event_type))
        assert said == "".join(part["content"] for part in turn["responseParts"] if part["kind"] == kind)
    assert kinds(events).count(TurnStarted) == 1
    assert isinstance(events[-1], TurnCompleted)
    assert kinds(events).count(TurnCompleted) == 1
    assert kinds(events).count(ToolCallStarted) == sum(part["kind"] == "toolCall" for part in turn["responseParts"])


def test_a_call_that_is_denied_already_is_no_question() -> None:
    tracker, state = TurnTracker("t"), chat_state("ahp-chat:/x")
    told: list[TurnEvent] = []
    denied = call("Confirmed", approved=False, reason="denied")
    for action in (START, call("Start", toolName="x", displayName="X"), ready(_meta={SETTLED: "rule"}), denied):
        state = chat_reducer(state, action)
        told += tracker.act(action, state)
    assert [type(event) for event in told] == [TurnStarted, ToolCallStarted, ToolCallCancelled]
