from __future__ import annotations

from typing import Any

import pytest

from ahpkit.agents.acp.limits import MAX_ATTACHED, MAX_KINDS
from ahpkit.agents.acp.mapping import MAX_LATE, MAX_UPDATES, PLAN_KEY, USAGE_KEY, SessionMapper, without_reminders
from ahpkit.agents.acp.options import SessionOptions
from ahpkit.agents.acp.turn import TURN_UPDATES
from ahpkit.protocol.meta_keys import ACP
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from support.told import Told

STABLE_AND_UNSTABLE = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "plan_update",
    "plan_removed",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
]


class Mapped:
    """A session mapper between recordings."""

    def __init__(self) -> None:
        self.chat = RecordingChat()
        self.reported: list[SessionOptions] = []
        self.mapper = SessionMapper(self.chat, on_options=self.reported.append)
        self.turn = RecordingTurn("hi", chat=self.chat)

    def update(self, kind: str, **fields: Any) -> None:
        self.mapper.update({"sessionUpdate": kind, **fields})

    def text(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})


@pytest.mark.parametrize("kind", STABLE_AND_UNSTABLE)
def test_every_variant_of_the_protocol_is_known_and_survives_being_empty(kind: str) -> None:
    for within_a_turn in (True, False):
        mapped = Mapped()
        if within_a_turn:
            mapped.mapper.begin(mapped.turn)

        mapped.update(kind)

        assert not any(said[0] == "meta" and said[1] == ACP for said in mapped.chat.said)


def test_commands_are_offered() -> None:
    mapped = Mapped()
    listed = [{"name": "web", "description": "Search", "input": {"hint": "query"}, "_meta": {"x": "y" * 99}}, {}]
    mapped.update("available_commands_update", availableCommands=listed)

    facts = {"commands": {"web": {"x": "y" * 99}}}
    assert mapped.chat.said == [("commands", ["web"]), ("meta", "ahpkit/acp", facts)]


def test_options_and_modes_are_reported_to_the_chat_and_to_the_agent() -> None:
    mapped = Mapped()
    mapped.mapper.take_options(
        {"sessionId": "s", "modes": {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}}
    )
    mapped.update("current_mode_update", currentModeId="b")
    option = {"id": "m", "type": "select", "category": "model", "currentValue": "x", "options": [{"value": "x"}]}
    mapped.update("config_option_update", configOptions=[option])

    assert [said[2] for said in mapped.chat.said] == [{"mode": "a"}, {"mode": "b"}, {"m": "x", "mode": "b"}]
    assert mapped.reported[-1].models("p") == [{"id": "x", "provider": "p", "name": "x"}]


def test_an_agent_without_options_reports_none() -> None:
    mapped = Mapped()
    mapped.mapper.take_options({"sessionId": "s"})

    assert mapped.chat.said == []


def test_the_title_is_taken_and_a_removed_one_is_not() -> None:
    mapped = Mapped()
    mapped.update("session_info_update", title="About cats", updatedAt="now")
    mapped.update("session_info_update", title=None, _meta={"run": "idle"})

    assert mapped.chat.said == [("title", "About cats"), ("meta", ACP, {"session": {"run": "idle"}})]


def test_plans_are_shown_in_the_sessions_meta_as_they_change() -> None:
    mapped = Mapped()
    entry = {"content": "Read", "priority": "high", "status": "pending", "_meta": {"x": 1}}
    mapped.update("plan", entries=[entry])
    mapped.update("plan_update", plan={"type": "markdown", "planId": "p2", "content": "# Plan"})
    mapped.update("plan_removed", planId="p2")
    mapped.update("plan", entries=[])

    def plans(*plans: Any) -> Any:
        return ("meta", PLAN_KEY, list(plans))

    second = {"id": "p2", "type": "markdown", "content": "# Plan"}
    assert mapped.chat.said == [
        plans({"entries": [entry]}),
        plans({"entries": [entry]}, second),
        plans({"entries": [entry]}),
        ("meta", PLAN_KEY, None),
    ]


def test_usage_in_a_turn_is_told_with_the_turn_and_outside_at_once() -> None:
    mapped = Mapped()
    mapped.mapper.begin(mapped.turn)
    mapped.text("a")
    mapped.update("usage_update", used=1, size=10)
    assert mapped.chat.said == []
    mapped.mapper.finish({"stopReason": "end_turn"})
    mapped.update("usage_update", used=2, size=10)

    assert mapped.turn.said[-1] == ("usage", {"_meta": {ACP: {"context": {"used": 1, "size": 10}}}})
    assert mapped.chat.said == [
        ("meta", USAGE_KEY, {"used": 1, "size": 10}),
        ("meta", USAGE_KEY, {"used": 2, "size": 10}),
    ]


def test_an_unknown_variant_is_kept_and_shown_once() -> None:
    mapped = Mapped()
    mapped.mapper.begin(mapped.turn)
    for _ in range(3):
        mapped.update("subagent_update", who="x", token="secret")

    kept = {"sessionUpdate": "subagent_update", "who": "x"}
    assert mapped.chat.said == [("meta", ACP, {"unknownUpdates": {"subagent_update": kept}})]
    [(verb, text, more)] = mapped.turn.said
    assert verb == "notice"
    assert "subagent_update" in text
    assert more == {"meta": {ACP: {"update": kept}}}


@pytest.mark.parametrize("where", ["data", "blob", "text"])
def test_a_picture_or_file_that_is_too_long_is_named_and_not_stored(where: str) -> None:
    mapped = Mapped()
    mapped.mapper.begin(mapped.turn)
    for length in (MAX_ATTACHED, MAX_ATTACHED + 1):
        content = {where: "A" * length}
        block = {"type": "image", **content} if where == "data" else {"type": "resource", "resource": content}
        mapped.update("agent_message_chunk", content=block)

    stored, notice = mapped.turn.said
    assert stored[0] == "attach"
    assert notice[0] == "notice"
    assert "too long to be shown" in notice[1]


def test_what_is_said_between_turns_is_shown_when_the_next_begins() -> None:
    mapped = Mapped()
    mapped.text("[MODE_UPDATE] ")
    mapped.update("notice", message="careful")
    mapped.update("tool_call", toolCallId="t")
    mapped.mapper.begin(mapped.turn)

    [(verb, text)] = mapped.turn.said
    assert verb == "notice"
    assert "[MODE_UPDATE] \ncareful" in text


def test_what_is_said_between_turns_is_bounded() -> None:
    mapped = Mapped()
    for _ in range(100):
        mapped.text("x" * 1000)
    mapped.mapper.begin(mapped.turn)

    assert len(mapped.turn.said[0][1]) < MAX_LATE + 100


def test_text_after_the_end_does_not_get_into_the_turn() -> None:
    mapped = Mapped()
    mapped.mapper.begin(mapped.turn)
    mapped.text("in time")
    mapped.mapper.finish({"stopReason": "end_turn"})
    mapped.text("too late")

    assert mapped.turn.answer == "in time"


def test_news_of_a_tool_call_after_its_turn_does_not_reach_the_next() -> None:
    mapped = Mapped()
    mapped.mapper.begin(mapped.turn)
    mapped.update("tool_call", toolCallId="t", status="in_progress")
    mapped.mapper.end()
    following = RecordingTurn("next")
    mapped.mapper.begin(following)
    mapped.update("tool_call_update", toolCallId="t", status="completed")

    assert following.said == []


def test_a_history_that_is_replayed_is_dropped_but_options_and_commands_are_taken() -> None:
    mapped = Mapped()
    mapped.mapper.restoring = True
    for kind in TURN_UPDATES:
        mapped.update(kind, content={"type": "text", "text": "old"}, toolCallId="t")
    mapped.update("available_commands_update", availableCommands=[{"name": "c"}])
    mapped.mapper.restoring = False
    mapped.mapper.begin(mapped.turn)

    assert mapped.turn.said == []
    assert mapped.chat.said == [("commands", ["c"])]


def test_what_is_said_about_the_session_beside_the_fields_is_collected() -> None:
    mapped = Mapped()
    mapped.mapper.take_options({"sessionId": "s", "_meta": {"opened": 1}})
    mapped.update("usage_update", used=1, size=2, _meta={"usage": 2})
    mapped.update("current_mode_update", currentModeId="m", _meta={"usage": 2})
    told = [said[2] for said in mapped.chat.said if said[:2] == ("meta", ACP)]
    assert told == [{"session": {"opened": 1}}, {"session": {"opened": 1, "usage": 2}}]


def test_a_flood_of_unknown_variants_is_kept_up_to_a_number() -> None:
    mapped = Mapped()
    for number in range(MAX_KINDS + 10):
        mapped.update(f"strange_{number}")
    assert len(mapped.chat.said[-1][2]["unknownUpdates"]) == MAX_KINDS


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
