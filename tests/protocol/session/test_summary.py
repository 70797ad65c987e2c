"""Summaries: how a session's follows from its chats, and what is told when one changes."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.summary import (
    annotations_summary,
    changed_fields,
    chat_summary,
    current_session,
    has_lost,
    session_summary,
)
from support import requirement

IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, IS_READ, IS_ARCHIVED, UNKNOWN = 1, 2, 8, 24, 32, 64, 1 << 9


def chat(name: str, status: int = IDLE, at: int = 1000, **fields: Any) -> JsonObject:
    return {"resource": name, "title": name, "status": status, "modifiedAt": iso_time(at), **fields}


def session(*chats: JsonObject, default: str | None = None, **fields: Any) -> JsonObject:
    state: JsonObject = {"provider": "demo", "title": "S", "status": IDLE, "lifecycle": "ready", "chats": list(chats)}
    return state | fields | ({"defaultChat": default} if default else {})


def summary_of(state: JsonObject, modified: int = 1) -> JsonObject:
    return {**session_summary("ahp-session:/s", state, created_at=iso_time(1), modified_at=iso_time(modified))}


def status(*chats: JsonObject, default: str | None = None, own: int = IDLE) -> int:
    return summary_of(session(*chats, default=default, status=own))["status"]


def activity(*chats: JsonObject, default: str | None = None) -> str | None:
    return summary_of(session(*chats, default=default)).get("activity")


@requirement("session:aggregate:status-from-default-chat")
def test_the_default_chat_gives_the_activity_bits() -> None:
    assert status(chat("a", IN_PROGRESS), chat("b", IDLE, at=9000), default="a") == IN_PROGRESS


@requirement("session:aggregate:status-from-latest-chat")
def test_without_a_default_chat_the_latest_gives_them() -> None:
    assert status(chat("a", IDLE, at=1), chat("b", IN_PROGRESS, at=3), chat("c", IDLE, at=2)) == IN_PROGRESS
    assert status(chat("a", IDLE, at=1), chat("b", IN_PROGRESS, at=3), default="gone") == IN_PROGRESS


@requirement("session:aggregate:input-needed-promoted")
def test_a_chat_that_needs_input_is_promoted() -> None:
    assert status(chat("a", IN_PROGRESS), chat("b", INPUT_NEEDED), default="a") == INPUT_NEEDED


@requirement("session:aggregate:error-promoted")
def test_a_chat_that_failed_is_promoted() -> None:
    assert status(chat("a", IN_PROGRESS), chat("b", ERROR), default="a") == ERROR


def test_a_chat_that_needs_input_and_one_that_failed_are_both_promoted() -> None:
    assert status(chat("a", ERROR), chat("b", INPUT_NEEDED), default="a") == INPUT_NEEDED | ERROR


def test_a_running_chat_does_not_count_as_one_that_needs_input() -> None:
    assert status(chat("a", IDLE), chat("b", IN_PROGRESS), default="a") == IDLE


@requirement("session:aggregate:flags-session-scoped")
def test_read_and_archived_are_the_sessions_own() -> None:
    unread_chat = chat("a", IN_PROGRESS)
    read_chat = chat("a", IDLE | IS_READ | IS_ARCHIVED)
    assert status(unread_chat, own=IDLE | IS_READ | IS_ARCHIVED) == IN_PROGRESS | IS_READ | IS_ARCHIVED
    assert status(read_chat, own=IDLE) == IDLE


def test_bits_nobody_knows_survive() -> None:
    assert status(chat("a", IN_PROGRESS), own=IDLE | UNKNOWN) == IN_PROGRESS | UNKNOWN


@requirement("session:aggregate:activity-from-default-chat")
def test_the_default_chat_gives_the_activity_text() -> None:
    assert activity(chat("a", activity="A"), chat("b", at=9000, activity="B"), default="a") == "A"


@requirement("session:aggregate:activity-from-winning-chat")
@pytest.mark.parametrize("promoted", [INPUT_NEEDED, ERROR])
def test_a_promoted_chat_gives_the_activity_text_too(promoted: int) -> None:
    assert activity(chat("a", activity="A"), chat("b", promoted, activity="B"), default="a") == "B"


def test_of_several_promoted_chats_the_default_speaks_else_the_latest() -> None:
    waiting = [chat(name, INPUT_NEEDED, at=at, activity=name) for name, at in (("a", 1), ("b", 3), ("c", 2))]
    assert activity(*waiting, default="a") == "a"
    assert activity(*waiting) == "b"


@pytest.mark.parametrize("silent", [{}, {"activity": ""}])
def test_a_chat_that_does_nothing_leaves_no_activity(silent: JsonObject) -> None:
    state = session(chat("a", **silent), default="a", activity="an old one")
    assert "activity" not in summary_of(state)


@requirement("session:aggregate:modified-at")
def test_the_session_was_modified_when_its_latest_chat_was() -> None:
    chats = [chat("a", at=5000), chat("b", at=7001), chat("c", at=6000)]
    assert summary_of(session(*chats))["modifiedAt"] == iso_time(7001)


def test_what_the_session_itself_was_stamped_with_counts_too() -> None:
    assert summary_of(session(chat("a", at=5000)), modified=8000)["modifiedAt"] == iso_time(8000)


def test_a_time_without_a_zone_is_utc() -> None:
    late = {**chat("a"), "modifiedAt": "2030-01-01T00:00:00"}
    assert summary_of(session(chat("b"), late))["modifiedAt"] == "2030-01-01T00:00:00"


@requirement("session:aggregate:model-and-agent-not")
@requirement("session:aggregate:working-directory-not")
def test_overrides_of_chats_stay_with_the_chats() -> None:
    overriding = chat("a", model={"id": "big"}, agent={"uri": "x:a"}, workingDirectories=["file:///elsewhere"])
    summary = summary_of(session(overriding, default="a", workingDirectories=["file:///here"]))
    assert summary["workingDirectories"] == ["file:///here"]
    assert not {"model", "agent"} & summary.keys()


@requirement("session:aggregate:single-chat")
@pytest.mark.parametrize("bits", [IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED])
@pytest.mark.parametrize("default", [None, "a"])
def test_a_single_chats_values_pass_through(bits: int, default: str | None) -> None:
    summary = summary_of(session(chat("a", bits, at=1234, activity="busy"), default=default))
    assert (summary["status"], summary["activity"], summary["modifiedAt"]) == (bits, "busy", iso_time(1234))


def test_a_session_without_chats_speaks_for_itself() -> None:
    state = session(activity="starting", status=IN_PROGRESS)
    assert summary_of(state)["status"] == IN_PROGRESS
    assert current_session({**state, "activity": ""})["status"] == IN_PROGRESS


def test_a_session_that_could_not_be_created_failed_whatever_its_chats_say() -> None:
    assert summary_of(session(chat("a", IN_PROGRESS), lifecycle="creationFailed"))["status"] == ERROR


def test_a_state_that_says_what_its_chats_say_is_the_same_object() -> None:
    state = session(chat("S"), default="S")
    assert current_session(state) is state
    assert current_session(session(chat("S", IN_PROGRESS)))["status"] == IN_PROGRESS


def test_summarising_changes_nothing() -> None:
    state = session(chat("a", INPUT_NEEDED, at=9000, activity="x"))
    before = dict(state)
    summary_of(state)
    assert state == before


@requirement("core:chat:state-repeats-summary")
def test_a_chats_summary_is_the_repeated_part_of_its_state() -> None:
    fields: JsonObject = {
        "activity": "x",
        "origin": {"kind": "user"},
        "interactivity": "full",
        "workingDirectories": ["file:///d"],
    }
    entry = chat("a", **fields)
    state: JsonObject = {**entry, "turns": [], "activeTurn": {}, "queuedMessages": [], "inputRequests": [], "_meta": {}}
    assert chat_summary(state) == entry


def test_absent_fields_stay_absent() -> None:
    assert chat_summary({**chat("a"), "turns": []}) == chat("a")


@requirement("session:action:chat-updated-no-identity-sent")
def test_only_what_changed_in_a_chat_is_told() -> None:
    before: JsonObject = {**chat("a", IDLE, at=1, activity="x"), "turns": []}
    after = {**before, "status": IN_PROGRESS, "turns": [1]}
    assert changed_fields(chat_summary(before), chat_summary(after)) == {"status": IN_PROGRESS}
    assert chat_summary({**before, "turns": [1]}) == chat_summary(before)


def test_a_field_that_is_gone_cannot_be_told_in_part() -> None:
    before = chat("a", activity="x", changes={"files": 1})
    assert changed_fields(before, chat("a")) == {}
    assert has_lost(before, chat("a"))
    assert not has_lost(chat("a"), before)


def test_only_changed_fields_of_a_session_are_told() -> None:
    old = summary_of(session(chat("a")))
    assert changed_fields(old, old) == {}
    assert changed_fields(old, {**old, "title": "T", "status": 8}) == {"title": "T", "status": 8}
    assert changed_fields(old, {**old, "activity": "x"}) == {"activity": "x"}


def test_annotations_are_counted_with_their_entries() -> None:
    state = {"annotations": [{"id": "a", "entries": [1, 2]}, {"id": "b", "entries": [3]}]}
    assert annotations_summary("ahp-session:/s/annotations", state) == {
        "resource": "ahp-session:/s/annotations",
        "annotationCount": 2,
        "entryCount": 3,
    }
