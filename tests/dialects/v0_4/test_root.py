"""The root reducer. What one action does to one state is in tests/fixtures/reducers/root."""

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.root import HANDLERS, root_reducer
from support import requirement

STATE: JsonObject = {"agents": []}


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "root"}


@requirement("core:reducer:not-applicable-same-object")
def test_without_a_config_there_is_nothing_to_configure() -> None:
    assert root_reducer(STATE, {"type": "root/configChanged", "config": {"a": 1}}, now=1) is STATE


def test_an_action_without_its_payload_does_not_apply() -> None:
    assert root_reducer(STATE, {"type": "root/agentsChanged"}, now=1) is STATE
