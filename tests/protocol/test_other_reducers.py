"""What 1.0.0 changed in the reducers of terminals, changesets, annotations, canvases and automations."""

from __future__ import annotations

from typing import Any

from ahpkit.protocol.annotations import annotations_reducer, annotations_updated
from ahpkit.protocol.automation import actions as automation
from ahpkit.protocol.automation.actions import automation_reducer, automation_run_reducer
from ahpkit.protocol.canvas import canvas_reducer, canvas_state_changed
from ahpkit.protocol.changeset import changeset_content_changed, changeset_files_review_changed, changeset_reducer
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.terminal import terminal_exited, terminal_reducer
from support import requirement


@requirement("gen:terminal:exited")
def test_a_terminal_exits_with_or_without_a_code() -> None:
    state: JsonObject = {"title": "", "content": [], "lifecycle": {"status": "running"}, "claim": {"kind": "client"}}
    coded = terminal_reducer(state, {**terminal_exited(exit_code=3)})
    assert coded["lifecycle"] == {"status": "exited", "exitCode": 3}
    assert terminal_reducer(state, {**terminal_exited()})["lifecycle"] == {"status": "exited"}


def test_new_content_of_a_changeset_leaves_its_status_and_error() -> None:
    error: Any = {"errorType": "e", "message": "m"}
    state: JsonObject = {"status": "error", "error": error, "files": [], "operations": [{"id": "o"}]}
    after = changeset_reducer(state, {**changeset_content_changed(files=[{"id": "f", "edit": {}}])})
    assert after == {**state, "files": [{"id": "f", "edit": {}}]}


def test_a_review_marks_the_named_files() -> None:
    state: JsonObject = {"status": "ready", "files": [{"id": "a", "edit": {}}, {"id": "b", "edit": {}}]}
    after = changeset_reducer(state, {**changeset_files_review_changed(files=["a"], reviewed=True)})
    assert [file.get("reviewed") for file in after["files"]] == [True, None]
    unknown = changeset_files_review_changed(files=["z"], reviewed=True)
    assert changeset_reducer(state, {**unknown}) is state


@requirement("gen:annotations:updated-overlay")
def test_an_update_of_an_annotation_clears_nothing() -> None:
    annotation: JsonObject = {
        "id": "1",
        "origin": {"session": "s"},
        "range": {"start": 0},
        "resolved": False,
        "entries": [],
    }
    state: JsonObject = {"annotations": [annotation]}
    action = annotations_updated(annotation_id="1", origin={"session": "s", "turnId": "t"}, resolved=True)
    (after,) = annotations_reducer(state, {**action})["annotations"]
    assert after == {**annotation, "origin": {"session": "s", "turnId": "t"}, "resolved": True}
    lines: Any = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
    elsewhere = annotations_updated(annotation_id="1", resource="file:///b", range_=lines)
    (moved,) = annotations_reducer(state, {**elsewhere})["annotations"]
    assert moved == {**annotation, "resource": "file:///b", "range": lines}


@requirement("gen:canvas:replaced")
def test_a_canvas_is_replaced_as_a_whole() -> None:
    state: JsonObject = {"instanceId": "i", "extensionId": "e", "canvasId": "c", "url": "https://x.test"}
    action = canvas_state_changed(canvas={"instanceId": "i", "extensionId": "e", "canvasId": "c"})
    assert canvas_reducer(state, {**action}) == {"instanceId": "i", "extensionId": "e", "canvasId": "c"}
    assert canvas_reducer(state, {"type": "canvas/stateChanged"}) is state


@requirement("gen:automation:reducers")
def test_automations_are_kept_by_resource_and_requests_change_nothing() -> None:
    empty: JsonObject = {"entries": []}
    entry: Any = {"resource": "ahp-automation:/a"}
    one = automation_reducer(empty, {**automation.automation_set(automation=entry)})
    assert one == {"entries": [entry]}
    renamed: Any = {**entry, "title": "Renamed"}
    other: Any = {"resource": "ahp-automation:/b"}
    two = automation_reducer(one, {**automation.automation_set(automation=other)})
    assert automation_reducer(two, {**automation.automation_set(automation=renamed)}) == {"entries": [renamed, other]}
    assert automation_reducer(one, {**automation.automation_removed(resource="ahp-automation:/a")}) == empty
    definition: Any = {"title": "t"}
    for wish in (
        automation.automation_create_requested(resource="ahp-automation:/b", definition=definition),
        automation.automation_update_requested(resource="ahp-automation:/a", changes={"enabled": False}),
    ):
        assert automation_reducer(one, {**wish}) is one


@requirement("gen:automation:reducers")
def test_a_run_that_loses_its_main_session_has_none() -> None:
    run: JsonObject = {"sessions": ["a", "b"], "primarySession": "a"}
    after = automation_run_reducer(run, {**automation.automation_run_session_removed(session="a")})
    assert after == {"sessions": ["b"]}
    kept = automation_run_reducer(run, {**automation.automation_run_session_removed(session="b")})
    assert kept == {"sessions": ["a"], "primarySession": "a"}
    assert automation_run_reducer(run, {**automation.automation_run_cancel_requested()}) is run
