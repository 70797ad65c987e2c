"""Everything that a generation is sent has the shape of that generation's schema.

The schemas are made of our own types and tables. The published ones are asked too, when they are beside the checkout.
0.8.0 published none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from ahpkit.dialects import Generation
from ahpkit.dialects import states_down as down
from ahpkit.dialects.generations import NEWEST
from ahpkit.dialects.v0_4.channels import CHANNELS as OLD
from ahpkit.dialects.v0_4.registry import ACTIONS as OLD_ACTIONS
from ahpkit.protocol.channels import CHANNELS as NEW
from ahpkit.protocol.validation import check
from support.histories import INITIAL, KINDS, SESSION, histories, opening
from support.properties import examples
from support.schemas import own_definitions, wrong, wrong_action
from support.squares import LISTED, hinted, plain, refused, told

Json = dict[str, Any]

WITH_SCHEMA = [one for one in Generation if one not in (Generation.V0_4, Generation.V0_8)]

STATES = {
    "root": "RootState",
    "session": "SessionState",
    "chat": "ChatState",
    "terminal": "TerminalState",
    "annotations": "AnnotationsState",
    "changeset": "ChangesetState",
}


def emitted(kind: str, history: list[Json], to: Generation) -> Iterator[tuple[Json | None, Json]]:
    """After each action of a history: the action that a reader is sent, and the state that it would be shown."""
    reducer = NEW[kind].reducer
    assert reducer is not None
    state = INITIAL[kind]
    for said in history:
        if not refused(kind, said, state):
            action = hinted(kind, said, state)
            state = reducer(state, action)
            yield told(action, to), plain(projected(kind, state, to))


def wrong_frames(kind: str, history: list[Json], to: Generation) -> Iterator[str]:
    for action, state in emitted(kind, history, to):
        if action is not None:
            yield from wrong_action(to.release, action)
        yield from wrong(to.release, STATES[kind], state)


def projected(kind: str, state: Json, to: Generation) -> Json:
    if kind == "session":
        return down.session_state(state, to, SESSION, LISTED, ours=False)
    return down.state_of_kind(kind, state, to)


@pytest.mark.parametrize("generation", WITH_SCHEMA, ids=lambda generation: generation.release)
@pytest.mark.parametrize("kind", KINDS)
def test_states_and_actions_have_the_shapes_of_their_reader(kind: str, generation: Generation) -> None:
    @examples(0.2)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        started = [*opening(), *history] if kind == "chat" else history
        assert list(wrong_frames(kind, started, generation)) == []

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_actions_for_0_4_have_the_shapes_of_0_4(kind: str) -> None:
    @examples(0.5)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        started = [*opening(), *history] if kind == "chat" else history
        for action, state in emitted(kind, started, Generation.V0_4):
            check(OLD[kind].state, state)
            if action is not None:
                check(OLD_ACTIONS[action["type"]].shape, action)

    holds()


@pytest.mark.parametrize("generation", [one for one in Generation if one != Generation.V0_8], ids=str)
def test_what_does_not_fit_is_found_without_the_published_schemas(generation: Generation) -> None:
    """By our own tables: they are what the tests of the repository rely on."""
    release = generation.release
    own: Json = own_definitions(release)
    turn: Json = {"id": 1, "message": {"text": "Hi", "origin": {"kind": "user"}}, "responseParts": [], "nonsense": 1}
    assert {"state"} <= set(own["Turn"]["required"])
    told = "\n".join(wrong(release, "Turn", turn, strictly=True))
    for problem in ('"state" is a required property', "1 is not of type", "'nonsense'"):
        assert problem in told
    later = {"type": "chat/movableChanged", "movable": True} if generation < NEWEST else {"type": "chat/neverSpecified"}
    assert bool(wrong_action(release, later)) is (generation < NEWEST)
