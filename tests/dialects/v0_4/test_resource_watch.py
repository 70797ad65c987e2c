"""The resource watch reducer: events pass by, nothing is kept."""

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.resource_watch import HANDLERS, resource_watch_reducer

STATE: JsonObject = {"root": "file:///w", "recursive": True}


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "resourceWatch"}


def test_changes_leave_the_same_state() -> None:
    changes = {"items": [{"uri": "file:///w/a", "type": "added"}]}
    assert resource_watch_reducer(STATE, {"type": "resourceWatch/changed", "changes": changes}, now=1) is STATE
