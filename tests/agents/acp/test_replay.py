"""A history as an agent repeats it, update by update, and the turns it becomes."""

from typing import Any

import pytest

from ahpkit.agents.acp.mapping import SessionMapper
from ahpkit.agents.acp.replay import MAX_UPDATES, without_reminders
from ahpkit.testing.recording import RecordingChat
from support.told import Told


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}, **more}


def agent(text: str, **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}


def replayed(*updates: dict[str, Any], most: int = MAX_UPDATES) -> Told:
    told, mapper = Told(), SessionMapper(RecordingChat())
    with mapper.replaying(told, most=most):
        for update in updates:
            mapper.update(update)
    return told


def test_a_turn_begins_with_each_thing_the_user_said() -> None:
    told = replayed(user("one"), agent("1"), agent("!"), user("two"), agent("2"))

    assert told.conversation() == [("one", "1!"), ("two", "2")]


def test_pieces_of_one_message_are_put_together_and_messages_in_a_row_are_one_turn() -> None:
    told = replayed(user("he", messageId="a"), user("llo", messageId="a"), user("you", messageId="b"), agent("yes"))

    assert told.conversation() == [("hello\n\nyou", "yes")]


def test_a_last_message_without_an_answer_and_an_answer_without_a_message_are_kept() -> None:
    told = replayed(agent("Welcome."), user("hello"))

    assert told.conversation() == [("", "Welcome."), ("hello", "")]
    assert "notice" not in told.turns[1].verbs()


def test_tool_calls_and_thoughts_are_part_of_the_turn_and_none_is_left_open() -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read a", "kind": "read", "status": "in_progress"}
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    told = replayed(user("read"), thought, call, user("and?"), agent("done"))

    [first, second] = told.turns
    assert [call.over for call in first.tool_calls.values()] == [True]
    assert "think" in first.verbs()
    assert second.answer == "done"


def test_what_belongs_to_the_session_goes_to_the_chat_also_while_a_history_is_told() -> None:
    chat, told = RecordingChat(), Told()
    mapper = SessionMapper(chat)
    with mapper.replaying(told):
        mapper.update({"sessionUpdate": "session_info_update", "title": "Old talk"})

    assert told.turns == []
    assert chat.said[0][:2] == ("title", "Old talk")


def test_a_history_without_end_is_cut_and_says_so() -> None:
    told = replayed(user("one"), agent("1"), agent("2"), agent("3"), agent("4"), most=3)

    [turn] = told.turns
    assert turn.answer == "12"
    assert turn.said[-1][1] == "The history is longer: 2 updates are not shown."


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("hello<system-reminder>\nToday is Sunday.\n</system-reminder>", "hello"),
        ("<system-reminder>a</system-reminder>\nhello\n<system-reminder>b</system-reminder> you", "hello\n you"),
        ("what is a <system-reminder>?", "what is a <system-reminder>?"),
        ("  hello ", "hello"),
        ("", ""),
    ],
)
def test_what_an_agent_added_to_the_words_of_a_person_is_left_out(told: str, said: str) -> None:
    assert without_reminders(told) == said
    assert replayed(user(told), agent("yes")).conversation() == [(said, "yes")]
