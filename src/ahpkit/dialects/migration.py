"""Converts states and exported turns that ahpkit wrote in the form of 0.4.0 to 1.0.0. Pure.

The caller reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ahpkit.dialects import states_up
from ahpkit.protocol.common.state import JsonObject


class Migrated(NamedTuple):
    """One channel in its new form."""

    state: JsonObject
    listed: JsonObject | None
    """For a session: its entry in lists, which has the times that a 1.0.0 state does not contain."""


def migrate_channels(
    states: Mapping[str, JsonObject], kind_of: Callable[[str], str | None], session_of: Callable[[str], str | None]
) -> Mapping[str, Migrated]:
    """Convert the states of all channels of a 0.4.0 log, by URI. A state that is 1.0.0 already does not change.

    A channel of unknown kind is kept as it is.
    """
    return {uri: migrate_channel(uri, state, states, kind_of, session_of) for uri, state in states.items()}


def migrate_channel(
    uri: str,
    state: JsonObject,
    states: Mapping[str, JsonObject],
    kind_of: Callable[[str], str | None],
    session_of: Callable[[str], str | None],
) -> Migrated:
    """Convert the state of one channel. `states` are the states of all channels, converted or not."""

    def default_chat(session: str) -> str | None:
        return states.get(session, {}).get("defaultChat")

    kind = kind_of(uri) or ""
    migrated = states_up.state_of_kind(kind, state, session=session_of(uri) or "", default_chat=default_chat)
    return Migrated(migrated, states_up.listed(state) if kind == "session" else None)


def migrate_turns(turns: Sequence[JsonObject]) -> list[JsonObject]:
    """Convert finished turns. Those that are 1.0.0 already do not change."""
    return [states_up.turn(turn) for turn in turns]


__all__ = ["Migrated", "migrate_channels", "migrate_turns"]
