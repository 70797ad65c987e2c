"""The chat reducer. What one action does to one state is in tests/fixtures/reducers/chat; here is what cannot be."""

from typing import Any

import pytest

from ahpkit.dialects.v0_4.chat.reducer import HANDLERS, STAMPED, chat_reducer
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.protocol.common.status import ERROR, IDLE, IN_PROGRESS, INPUT_NEEDED, IS_ARCHIVED, IS_READ
from ahpkit.protocol.rope import Rope
from ahpkit.wire.codec import decode_json, encode
from support import requirement

UNKNOWN = 1 << 10
MESSAGE = {"text": "Hi", "origin": {"kind": "user"}}


def new_chat(**more: Any) -> JsonObject:
    return {
        "resource": "ahp-chat:/c",
        "title": "Chat",
        "status": IDLE,
        "modifiedAt": "1970-01-01T00:00:00.000Z",
        "turns": [],
        **more,
    }


def act(kind: str, **more: Any) -> JsonObject:
    return {"type": f"chat/{kind}", "turnId": "t", **more}


def fold(state: JsonObject, *actions: JsonObject) -> JsonObject:
    for action in actions:
        state = chat_reducer(state, action, now=9999)
    return state


START = act("turnStarted", message=MESSAGE)
TOOL = act("toolCallStart", toolCallId="tc", toolName="sh", displayName="Shell")
ASK = act("toolCallReady", toolCallId="tc", invocationMessage="Run")
APPROVE = act("toolCallConfirmed", toolCallId="tc", approved=True, confirmed="user-action")
QUESTION = {"type": "chat/inputRequested", "request": {"id": "q"}}
ANSWER = {"type": "chat/inputCompleted", "requestId": "q", "response": "accept"}


def part(kind: str, content: str = "", part_id: str = "p") -> JsonObject:
    return act("responsePart", part={"kind": kind, "id": part_id, "content": content})


def delta(content: str, kind: str = "delta", part_id: str = "p") -> JsonObject:
    return act(kind, partId=part_id, content=content)


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "chat"}
    assert set(HANDLERS) >= STAMPED


@requirement("core:chat:append")
@pytest.mark.parametrize(("kind", "action"), [("markdown", "delta"), ("reasoning", "reasoning")])
def test_text_is_appended_to_the_named_part_of_its_kind(kind: str, action: str) -> None:
    state = fold(new_chat(), START, part(kind, "a"), part(kind, "z", "other"), delta("b", action), delta("c", action))
    assert [p["content"] for p in state["activeTurn"]["responseParts"]] == ["abc", "z"]
    other = "reasoning" if action == "delta" else "delta"
    assert fold(state, delta("x", other)) is state


def test_streamed_text_is_a_rope_while_the_turn_runs_and_a_string_afterwards() -> None:
    running = fold(new_chat(), START, part("markdown"), delta("a"), part("reasoning", part_id="r"))
    running = fold(running, delta("b", "reasoning", "r"))
    assert [type(p["content"]) for p in running["activeTurn"]["responseParts"]] == [Rope, Rope]
    ended = fold(running, act("turnComplete"))
    assert [type(p["content"]) for p in ended["turns"][0]["responseParts"]] == [str, str]


def test_a_running_chat_encodes_its_ropes_as_strings() -> None:
    state = fold(
        new_chat(), START, part("markdown"), delta("a"), TOOL, act("toolCallDelta", toolCallId="tc", content="{")
    )
    text, tool = decode_json(encode(state))["activeTurn"]["responseParts"]
    assert (text["content"], tool["toolCall"]["partialInput"]) == ("a", "{")


def test_a_delta_copies_neither_the_history_nor_the_other_parts() -> None:
    state = fold(new_chat(), START, act("turnComplete"), START, part("markdown"), part("markdown", "x", "other"))
    after = fold(state, delta("a"))
    assert after["turns"] is state["turns"]
    assert after["activeTurn"]["message"] is state["activeTurn"]["message"]
    assert after["activeTurn"]["responseParts"][1] is state["activeTurn"]["responseParts"][1]


@requirement("core:reducer:not-applicable-same-object")
@pytest.mark.parametrize(
    "action",
    [
        {**delta("x"), "turnId": "other"},
        delta("x", part_id="other"),
        delta("", part_id="p"),
        {**act("turnComplete"), "turnId": "other"},
        {**act("turnCancelled"), "turnId": "other"},
        {**act("usage", usage={}), "turnId": "other"},
        {**TOOL, "turnId": "other"},
        {**ASK, "toolCallId": "other"},
        APPROVE,
        act("toolCallContentChanged", toolCallId="tc", content=[]),
        {"type": "chat/truncated", "turnId": "other"},
        {"type": "chat/pendingMessageRemoved", "kind": "steering", "id": "other"},
        {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "other"},
        {"type": "chat/queuedMessagesReordered", "order": ["q1", "q2"]},
        {"type": "chat/inputAnswerChanged", "requestId": "other", "questionId": "q", "answer": {"state": "skipped"}},
        {"type": "chat/inputCompleted", "requestId": "other", "response": "cancel"},
    ],
    ids=lambda action: action["type"],
)
def test_an_action_that_does_not_apply_returns_the_same_state(action: JsonObject) -> None:
    queued = [{"id": name, "message": MESSAGE} for name in ("q1", "q2")]
    chat = new_chat(steeringMessage={"id": "s", "message": MESSAGE}, queuedMessages=queued, inputRequests=[{"id": "r"}])
    state = fold(chat, START, part("markdown"), TOOL)
    assert chat_reducer(state, action, now=1) is state


@requirement("core:chat:truncated")
def test_truncation_keeps_turns_up_to_the_named_one_and_drops_the_active_turn() -> None:
    turns: list[JsonObject] = [
        {"id": name, "message": MESSAGE, "responseParts": [], "state": "complete"} for name in "abc"
    ]
    state = fold(new_chat(turns=turns), START)
    assert fold(state, {"type": "chat/truncated", "turnId": "b"}) == new_chat(
        turns=turns[:2], modifiedAt="1970-01-01T00:00:09.999Z"
    )
    assert fold(state, {"type": "chat/truncated"}) == new_chat(modifiedAt="1970-01-01T00:00:09.999Z")


@requirement("core:chat:status-activity-exclusive")
@pytest.mark.parametrize(
    ("actions", "activity"),
    [
        ([], IDLE),
        ([START], IN_PROGRESS),
        ([START, TOOL], IN_PROGRESS),
        ([START, TOOL, ASK], INPUT_NEEDED),
        ([START, TOOL, ASK, APPROVE], IN_PROGRESS),
        ([START, QUESTION], INPUT_NEEDED),
        ([START, TOOL, ASK, QUESTION, APPROVE], INPUT_NEEDED),
        ([START, TOOL, ASK, QUESTION, ANSWER], INPUT_NEEDED),
        ([START, QUESTION, ANSWER], IN_PROGRESS),
        ([START, TOOL, ASK, act("turnComplete")], IDLE),
        ([START, QUESTION, act("turnCancelled")], IDLE),
        ([START, QUESTION, act("error", error={"errorType": "x", "message": "y"})], ERROR),
        ([START, act("error", error={"errorType": "x", "message": "y"}), START], IN_PROGRESS),
        ([START, QUESTION, {"type": "chat/truncated"}], IDLE),
    ],
)
def test_the_status_follows_from_the_turn_and_who_waits(actions: list[JsonObject], activity: int) -> None:
    assert fold(new_chat(), *actions)["status"] == activity


def test_a_chat_needs_input_while_a_result_waits_for_approval() -> None:
    complete = act("toolCallComplete", toolCallId="tc", result={"success": True}, requiresResultConfirmation=True)
    state = fold(new_chat(), START, TOOL, ASK, APPROVE, complete)
    assert state["status"] == INPUT_NEEDED
    assert state["status"] & IN_PROGRESS
    assert fold(state, act("toolCallResultConfirmed", toolCallId="tc", approved=True))["status"] == IN_PROGRESS


@requirement("core:chat:status-other-bits")
def test_flags_survive_every_change_of_activity() -> None:
    flags = IS_ARCHIVED | UNKNOWN
    state = new_chat(status=IDLE | flags)
    for action in (START, TOOL, ASK, APPROVE, QUESTION, ANSWER, act("turnComplete")):
        state = fold(state, action)
        assert state["status"] & ~0b11111 == flags
    read: JsonObject = {
        **state,
        "status": state["status"] | IS_READ,
        "activeTurn": {"id": "t", "message": {}, "responseParts": []},
    }
    assert fold(read, act("turnComplete"))["status"] & IS_READ


@pytest.mark.parametrize("action", [START, QUESTION], ids=["turn", "question"])
def test_a_new_turn_and_a_question_are_unread(action: JsonObject) -> None:
    assert fold(new_chat(status=IDLE | IS_READ), action)["status"] & IS_READ == 0


def test_an_error_ends_the_turn_and_stays_in_the_status() -> None:
    error = {"errorType": "agent", "message": "It broke"}
    state = fold(new_chat(), START, act("error", error=error))
    assert (state["status"], state["turns"][0]["state"], state["turns"][0]["error"]) == (ERROR, "error", error)


@requirement("core:reducer:time-formats", "core:reducer:pure")
def test_what_a_summary_shows_is_stamped_with_the_given_time_and_streaming_is_not() -> None:
    state = chat_reducer(new_chat(), START, now=1500)
    assert state["modifiedAt"] == "1970-01-01T00:00:01.500Z"
    for action in (part("markdown"), delta("a"), TOOL, ASK, APPROVE, act("usage", usage={})):
        state = chat_reducer(state, action, now=99_000)
    assert state["modifiedAt"] == "1970-01-01T00:00:01.500Z"
    assert chat_reducer(state, act("turnComplete"), now=2000)["modifiedAt"] == "1970-01-01T00:00:02.000Z"


@requirement("core:reducer:no-null-on-the-wire")
def test_what_has_no_value_is_absent_and_not_null() -> None:
    pending = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "m", "message": MESSAGE}
    started = act("turnStarted", message=MESSAGE, queuedMessageId="m")
    state = fold(new_chat(), pending, started, TOOL, ASK, APPROVE, QUESTION, ANSWER, act("turnComplete"))
    assert b"null" not in encode(state)
    assert set(state) == set(new_chat())
