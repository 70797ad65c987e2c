"""The changeset reducer. What one action does to one state is in tests/fixtures/reducers/changeset."""

import pytest

from ahpkit.dialects.v0_4.changeset import HANDLERS, changeset_reducer
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from support import requirement

STATE: JsonObject = {"status": "ready", "files": [], "operations": [{"id": "pr", "status": "idle"}]}


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "changeset"}


@requirement("core:reducer:not-applicable-same-object")
@pytest.mark.parametrize(
    "action",
    [
        {"type": "changeset/fileRemoved", "fileId": "x"},
        {"type": "changeset/operationStatusChanged", "operationId": "x", "status": "running"},
        {"type": "changeset/cleared"},
    ],
    ids=lambda action: action["type"],
)
def test_an_action_that_changes_nothing_returns_the_same_state(action: JsonObject) -> None:
    assert changeset_reducer(STATE, action, now=1) is STATE


@pytest.mark.parametrize("status", ["idle", "running", "disabled"])
def test_only_a_status_of_error_keeps_an_error(status: str) -> None:
    failed = {
        "type": "changeset/operationStatusChanged",
        "operationId": "pr",
        "status": "error",
        "error": {"message": "x"},
    }
    state = changeset_reducer(STATE, failed, now=1)
    assert state["operations"] == [{"id": "pr", "status": "error", "error": {"message": "x"}}]
    assert changeset_reducer(state, {**failed, "status": status}, now=1)["operations"] == [
        {"id": "pr", "status": status}
    ]


def test_a_new_content_without_error_removes_the_error_of_a_failed_changeset() -> None:
    state = {**STATE, "status": "error", "error": {"message": "x"}}
    assert "error" not in changeset_reducer(state, {"type": "changeset/contentChanged", "files": []}, now=1)
