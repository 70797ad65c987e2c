"""Everything that a generation is sent has the shape of that generation's own schema.

0.4.0 has our own types. The other schemas are the specification's; they are used when its data lies beside the
checkout. 0.8.0 has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import jsonschema_rs
import pytest
from hypothesis import given

from ahpkit.dialects import Generation
from ahpkit.dialects import states_down as down
from ahpkit.protocol.channels import CHANNELS as OLD
from ahpkit.protocol.validation import check, check_action
from ahpkit.protocol_next.channels import CHANNELS as NEW
from support.histories import INITIAL, KINDS, SESSION, histories, opening
from support.properties import examples
from support.specification import specification
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


@cache
def definitions(release: str) -> Json:
    """All types of a release by name, read as they are meant.

    Names of 0.4 to 0.5.1 that lead nowhere (members of enumerations) match everything, so variants are not told apart
    and more than one may fit. The status is a set of bits, and not only one of the values that have a name.
    """
    found: Json = {"SessionStatus": {"type": "number"}}
    for path in specification(f"ahp-{release}", "schema"):
        text = path.read_text(encoding="utf-8").replace('"oneOf"', '"anyOf"')
        found = json.loads(text)["$defs"] | found
    return dict.fromkeys(references(found), True) | found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            if key == "$ref":
                yield str(inner).removeprefix("#/$defs/")
            yield from references(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from references(inner)


@cache
def validator(release: str, name: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": definitions(release)})


def wrong(release: str, name: str, value: Json) -> list[str]:
    """What the schema of a release says against a value; nothing without the schema."""
    if name not in definitions(release):
        return []
    return [
        f"{release} {name}{error.instance_path}: {error.message[:300]}"
        for error in validator(release, name).iter_errors(value)
    ]


@cache
def names_of_actions(release: str) -> Json:
    """Action type → names of its shapes, where the schema says so in one place."""
    found: Json = {}
    for name, shape in definitions(release).items():
        if isinstance(shape, dict) and name.endswith("Action"):
            members = cast("Json", shape).get("properties", {})
            if (kind := members.get("type", {}).get("const")) is not None:
                found.setdefault(kind, []).append(name)
    return found


def wrong_action(release: str, action: Json) -> list[str]:
    names = names_of_actions(release).get(action["type"], [])
    found = [wrong(release, name, action) for name in names]
    return [] if [] in found else [message for messages in found for message in messages]


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
                check_action(action)

    holds()
