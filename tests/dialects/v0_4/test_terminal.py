"""The terminal reducer. What one action does to one state is in tests/fixtures/reducers/terminal."""

from typing import Any

import pytest

from ahpkit.dialects.v0_4.common import JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.terminal import HANDLERS, terminal_reducer
from ahpkit.protocol.rope import Rope
from support import requirement

EMPTY: JsonObject = {"title": "sh", "content": [], "claim": {"kind": "client", "clientId": "c"}}
EXECUTED = {"type": "terminal/commandExecuted", "commandId": "k", "commandLine": "ls", "timestamp": 1}
FINISHED = {"type": "terminal/commandFinished", "commandId": "k"}


def data(text: Any) -> JsonObject:
    return {"type": "terminal/data", "data": text}


def fold(state: JsonObject, *actions: JsonObject) -> JsonObject:
    for action in actions:
        state = terminal_reducer(state, action, now=1)
    return state


def test_every_action_of_the_channel_has_a_handler() -> None:
    assert set(HANDLERS) == {spec.type for spec in ACTIONS.values() if spec.channel == "terminal"}


@requirement("core:reducer:not-applicable-same-object")
@pytest.mark.parametrize(
    "action",
    [{"type": "terminal/input", "data": "x"}, {"type": "terminal/cleared"}, FINISHED],
    ids=lambda action: action["type"],
)
def test_an_action_that_changes_nothing_returns_the_same_state(action: JsonObject) -> None:
    assert terminal_reducer(EMPTY, action, now=1) is EMPTY


def test_output_grows_in_a_rope_and_is_a_string_once_its_part_is_closed() -> None:
    state = fold(EMPTY, data("$ "), data("l"))
    assert isinstance(state["content"][0]["value"], Rope)
    state = fold(state, EXECUTED, data("a"), data("b"))
    assert type(state["content"][0]["value"]) is str
    assert isinstance(state["content"][1]["output"], Rope)
    state = fold(state, FINISHED)
    assert type(state["content"][1]["output"]) is str
    state = fold(state, data("bye"), {"type": "terminal/exited", "exitCode": 0})
    assert [part.get("value", part.get("output")) for part in state["content"]] == ["$ l", "ab", "bye"]
    assert type(state["content"][2]["value"]) is str


def test_output_copies_no_other_part() -> None:
    state = fold(EMPTY, EXECUTED, data("a"), FINISHED, data("b"))
    assert fold(state, data("c"))["content"][0] is state["content"][0]
