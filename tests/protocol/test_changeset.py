"""The changeset reducer, action by action."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.dialects.v0_4.channels import CHANNELS as OLD
from ahpkit.protocol import changeset as make
from ahpkit.protocol.changeset import changeset_reducer
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.session.reducer import session_reducer
from support import requirement

Json = dict[str, Any]

A: Json = {"id": "a", "edit": {}, "reviewed": True}
B: Json = {"id": "b", "edit": {}}
ERROR: Json = {"errorType": "git", "message": "broken"}
UNDO: Json = {"id": "undo", "label": "Undo", "scopes": ["changeset"], "status": "idle"}


def changeset(**fields: Any) -> Json:
    return {"status": "ready", "files": [A, B], **fields}


def reduced(state: Json, action: Any) -> Json:
    return changeset_reducer(state, {**action})


@requirement("changesets:status:error-payload")
def test_an_error_comes_with_its_reason_and_goes_with_it() -> None:
    failed = reduced(changeset(), make.changeset_status_changed(status="error", error=ERROR))  # type: ignore[arg-type]  # A plain dict.
    assert (failed["status"], failed["error"]) == ("error", ERROR)
    again = reduced(failed, make.changeset_status_changed(status="recomputing"))
    assert (again["status"], "error" in again) == ("recomputing", False)


@requirement("changesets:status:open-enum")
def test_what_a_later_version_says_is_kept_as_it_is() -> None:
    strange: Any = {"id": "x", "label": "X", "scopes": ["galaxy"], "status": "pondering"}
    state = reduced(changeset(), make.changeset_operations_changed(operations=[strange]))
    state = reduced(state, {"type": "changeset/statusChanged", "status": "dreaming"})
    assert (state["status"], state["operations"]) == ("dreaming", [strange])


@requirement("changesets:file:set")
def test_a_file_is_replaced_at_its_place_or_appended() -> None:
    other: Any = {"id": "a", "edit": {"diff": {"added": 1}}}
    new: Any = {"id": "c", "edit": {}}
    assert reduced(changeset(), make.changeset_file_set(file=other))["files"] == [other, B]
    assert reduced(changeset(), make.changeset_file_set(file=new))["files"] == [A, B, new]


@requirement("changesets:file:removed")
def test_a_file_is_removed_and_an_unknown_one_changes_nothing() -> None:
    state = changeset()
    assert reduced(state, make.changeset_file_removed(file_id="a"))["files"] == [B]
    assert reduced(state, make.changeset_file_removed(file_id="z")) is state


@requirement("changesets:file:content-changed")
def test_new_content_replaces_files_and_operations_only_when_given() -> None:
    state = changeset(status="error", error=ERROR, operations=[UNDO])
    files: Any = [B]
    after = reduced(state, make.changeset_content_changed(files=files))
    assert after == {**state, "files": [B]}
    assert reduced(state, make.changeset_content_changed(files=files, operations=[]))["operations"] == []


@requirement("changesets:file:content-changed-legacy")
def test_reducers_up_to_0_8_take_the_error_from_new_content() -> None:
    old = OLD["changeset"].reducer
    assert old is not None
    state: Json = {"status": "ready", "files": [], "error": ERROR}
    told: Json = {"type": "changeset/contentChanged", "files": []}
    assert "error" not in old(state, told, now=0)
    assert old(state, {**told, "error": ERROR}, now=0)["error"] == ERROR
    assert "error" not in make.changeset_content_changed(files=[])


@requirement("changesets:file:cleared")
def test_clearing_empties_the_files_alone() -> None:
    state = changeset(status="error", error=ERROR, operations=[UNDO])
    empty = reduced(state, make.changeset_cleared())
    assert empty == {**state, "files": []}
    assert reduced(empty, make.changeset_cleared()) is empty


@requirement("changesets:review:batch", "changesets:review:no-match")
def test_a_review_marks_every_listed_file_that_is_there() -> None:
    state = changeset()
    both = reduced(state, make.changeset_files_review_changed(files=["a", "b", "z"], reviewed=False))
    assert both["files"] == [{**A, "reviewed": False}, {**B, "reviewed": False}]
    assert reduced(state, make.changeset_files_review_changed(files=["z"], reviewed=True)) is state
    assert reduced(state, make.changeset_files_review_changed(files=["a"], reviewed=True)) is state


@requirement("changesets:review:no-automatic-reset")
def test_a_file_says_itself_whether_it_is_reviewed() -> None:
    unmarked: Any = {"id": "a", "edit": {}}
    assert reduced(changeset(), make.changeset_file_set(file=unmarked))["files"][0] == unmarked
    files: Any = [unmarked, {**B, "reviewed": True}]
    assert reduced(changeset(), make.changeset_content_changed(files=files))["files"] == files


@requirement("changesets:operation:list-replaced")
def test_operations_are_replaced_or_removed() -> None:
    offered: Any = [UNDO]
    state = reduced(changeset(), make.changeset_operations_changed(operations=offered))
    assert state["operations"] == [UNDO]
    assert "operations" not in reduced(state, {"type": "changeset/operationsChanged"})


@requirement("changesets:operation:status")
def test_the_status_of_one_operation_has_an_error_exactly_when_it_failed() -> None:
    state = changeset(operations=[UNDO, {**UNDO, "id": "keep"}])
    said = make.changeset_operation_status_changed
    failed = reduced(state, said(operation_id="undo", status="error", error=ERROR))  # type: ignore[arg-type]  # A plain dict.
    assert failed["operations"] == [{**UNDO, "status": "error", "error": ERROR}, {**UNDO, "id": "keep"}]
    assert reduced(failed, said(operation_id="undo", status="idle"))["operations"][0] == UNDO
    assert reduced(state, said(operation_id="z", status="running")) is state
    bare = changeset()
    assert reduced(bare, said(operation_id="undo", status="running")) is bare


@requirement("changesets:catalogue:session-replaced", "changesets:catalogue:chat-replaced")
@pytest.mark.parametrize(("reducer", "kind"), [(session_reducer, "session"), (chat_reducer, "chat")])
def test_a_catalogue_is_replaced_as_a_whole(reducer: Any, kind: str) -> None:
    entry: Json = {"label": "x", "uriTemplate": "ahp-changeset:/x", "changeKind": "session"}
    state = reducer({"changesets": [{"label": "old"}]}, {"type": f"{kind}/changesetsChanged", "changesets": [entry]})
    assert state["changesets"] == [entry]
    assert "changesets" not in reducer(state, {"type": f"{kind}/changesetsChanged"})
