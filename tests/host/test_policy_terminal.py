"""What clients may do to terminals and annotations."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from support.policy_cases import ANNOTATIONS, TERMINAL, check

MINE: JsonObject = {"kind": "client", "clientId": "me"}
SESSIONS: JsonObject = {"kind": "session", "session": "ahp-session:/s"}

BY_HOLDER: list[JsonObject] = [
    {"type": "terminal/input", "data": "ls\n"},
    {"type": "terminal/resized", "cols": 80, "rows": 24},
    {"type": "terminal/claimed", "claim": SESSIONS},
    {"type": "terminal/claimed", "claim": {"kind": "client", "clientId": "other"}},
    {"type": "terminal/cleared"},
]


def terminal(claim: JsonObject, **fields: Any) -> JsonObject:
    return {"title": "T", "content": [], "claim": claim, **fields}


@pytest.mark.parametrize("action", BY_HOLDER)
def test_the_holder_of_a_terminal_uses_it_and_hands_it_on(action: JsonObject) -> None:
    assert check(TERMINAL, terminal(MINE), **action) is None


@pytest.mark.parametrize("action", BY_HOLDER)
def test_nobody_else_uses_a_terminal(action: JsonObject) -> None:
    assert check(TERMINAL, terminal(MINE), **action, by="other") == "this terminal is held by another client"
    assert check(TERMINAL, terminal(SESSIONS), **action) == "this terminal is held by a session"


def test_any_client_may_rename_a_terminal() -> None:
    assert check(TERMINAL, terminal(SESSIONS), "terminal/titleChanged", title="build") is None


def test_a_terminal_that_has_exited_takes_no_input() -> None:
    reason = check(TERMINAL, terminal(MINE, exitCode=0), "terminal/input", data="x")
    assert reason == "this terminal's process has exited"


@pytest.mark.parametrize(("cols", "rows"), [(0, 24), (80, -1)])
def test_a_terminal_keeps_a_size(cols: int, rows: int) -> None:
    reason = check(TERMINAL, terminal(MINE), "terminal/resized", cols=cols, rows=rows)
    assert reason == "a terminal has at least one column and one row"


def test_a_terminal_is_handed_on_to_a_client_or_a_session() -> None:
    reason = check(TERMINAL, terminal(MINE), "terminal/claimed", claim={"kind": "nobody"})
    assert reason == "a terminal is held by a client or a session, not by a 'nobody'"


def annotation(id: str = "n", *entries: str) -> JsonObject:
    return {
        "id": id,
        "turnId": "t",
        "resource": "file:///a",
        "resolved": False,
        "entries": [{"id": entry, "text": "x"} for entry in entries],
    }


def annotate(name: str, **fields: Any) -> str | None:
    state = {"annotations": [annotation("n", "e"), annotation("m", "e", "f")]}
    return check(ANNOTATIONS, state, f"annotations/{name}", **fields)


def test_any_client_may_annotate() -> None:
    assert annotate("set", annotation=annotation("new", "e")) is None
    assert annotate("updated", annotationId="n", resolved=True) is None
    assert annotate("removed", annotationId="n") is None
    assert annotate("entrySet", annotationId="n", entry={"id": "g", "text": "y"}) is None
    assert annotate("entryRemoved", annotationId="m", entryId="e") is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (annotation("new"), "an annotation has at least one entry"),
        (annotation("", "e"), "the annotation id must not be empty"),
        (annotation("new", "e", "e"), "entry id 'e' is given twice"),
        (annotation("new", ""), "the entry id must not be empty"),
    ],
)
def test_an_annotation_has_entries_that_can_be_told_apart(wrong: JsonObject, reason: str) -> None:
    assert annotate("set", annotation=wrong) == reason


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("updated", {"resolved": True}),
        ("removed", {}),
        ("entrySet", {"entry": {"id": "g", "text": "y"}}),
        ("entryRemoved", {"entryId": "e"}),
    ],
)
def test_an_annotation_that_is_not_there_is_named(name: str, fields: JsonObject) -> None:
    assert annotate(name, annotationId="x", **fields) == "there is no annotation 'x'"


def test_an_entry_that_is_not_there_is_named() -> None:
    assert annotate("entryRemoved", annotationId="m", entryId="x") == "annotation 'm' has no entry 'x'"


def test_the_last_entry_goes_with_its_annotation() -> None:
    reason = annotate("entryRemoved", annotationId="n", entryId="e")
    assert reason == "an annotation keeps at least one entry; remove the annotation instead"
