"""The annotations reducer. What one action does to one state is in tests/fixtures/reducers/annotations."""

import pytest

from ahpkit.dialects.v0_4.annotations import HANDLERS, annotations_reducer
from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from support import requirement

STATE: JsonObject = {"annotations": [{"id": "a", "resolved": False, "entries": [{"id": "e", "text": "why?"}]}]}


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "annotations"}


@requirement("core:reducer:not-applicable-same-object")
@pytest.mark.parametrize(
    "action",
    [
        {"type": "annotations/removed", "annotationId": "z"},
        {"type": "annotations/updated", "annotationId": "z", "resolved": True},
        {"type": "annotations/updated", "annotationId": "a"},
        {"type": "annotations/entrySet", "annotationId": "z", "entry": {"id": "e", "text": "x"}},
        {"type": "annotations/entryRemoved", "annotationId": "a", "entryId": "z"},
        {"type": "annotations/entryRemoved", "annotationId": "z", "entryId": "e"},
    ],
)
def test_an_action_that_changes_nothing_returns_the_same_state(action: JsonObject) -> None:
    assert annotations_reducer(STATE, action, now=1) is STATE
