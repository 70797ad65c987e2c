"""Properties of all reducers: total, pure, and blind to what nobody knows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.channels import CHANNELS
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.registry import ACTIONS
from support import requirement
from support.properties import examples
from support.reducer_properties import Reducers

EXAMPLES = examples(0.3)

INITIAL: dict[str, JsonObject] = {
    "annotations": {"annotations": []},
    "changeset": {"status": "computing", "files": []},
    "chat": {"resource": "ahp-chat:/c", "title": "", "status": 1, "modifiedAt": "", "turns": []},
    "resourceWatch": {"root": "file:///w", "recursive": True},
    "root": {"agents": [], "config": {"schema": {}, "values": {}}},
    "session": {"title": "", "status": 1, "lifecycle": "creating", "activeClients": [], "chats": []},
    "terminal": {
        "title": "",
        "content": [],
        "claim": {"kind": "client", "clientId": "c"},
        "lifecycle": {"status": "running"},
    },
    "canvas": {"instanceId": "i", "extensionId": "e", "canvasId": "c"},
    "automation": {"entries": []},
    "automationRun": {"sessions": [], "lifecycle": {"status": "pending", "createdAt": ""}},
}


def reduce(channel: str, state: Any, action: Any) -> Any:
    reducer = CHANNELS[channel].reducer
    assert reducer is not None
    return reducer(state, action)


REDUCERS = Reducers(CHANNELS, ACTIONS, initial=INITIAL, reduce=reduce)


every_channel = pytest.mark.parametrize("channel", REDUCERS.names)


@requirement("core:reducer:pure", "gen:turn:no-clock")
@every_channel
@EXAMPLES
@given(data=st.data())
def test_folding_a_log_never_raises_never_mutates_and_gives_the_same_twice(channel: str, data: st.DataObject) -> None:
    REDUCERS.check_log(channel, data)


@requirement("gen:forward:status-bits")
@pytest.mark.parametrize("channel", ["chat", "session"])
@EXAMPLES
@given(data=st.data())
def test_bits_of_a_status_that_nobody_knows_outlive_every_action(channel: str, data: st.DataObject) -> None:
    REDUCERS.check_future_bits(channel, data, bits=1 << 31 | 1 << 20)


@every_channel
@EXAMPLES
@given(data=st.data())
def test_no_state_and_no_action_makes_a_reducer_raise(channel: str, data: st.DataObject) -> None:
    REDUCERS.check_anything(channel, data)


@requirement("core:reducer:unknown-type-same-object")
@every_channel
@EXAMPLES
@given(data=st.data())
def test_an_unknown_type_returns_the_same_state(channel: str, data: st.DataObject) -> None:
    REDUCERS.check_unknown(channel, data)


@every_channel
@EXAMPLES
@given(data=st.data())
def test_actions_of_other_channels_do_not_apply(channel: str, data: st.DataObject) -> None:
    REDUCERS.check_others(channel, data)


def test_every_channel_with_a_reducer_is_tried() -> None:
    assert REDUCERS.names == sorted(name for name, channel in CHANNELS.items() if channel.reducer is not None)
