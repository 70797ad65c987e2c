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
    """Of a session: its entry in lists, with the times that its state has no place for."""


def migrate_channels(
    states: Mapping[str, JsonObject], kind_of: Callable[[str], str | None], session_of: Callable[[str], str | None]
) -> Mapping[str, Migrated]:
    """Convert all channels of a 0.4.0 log, by URI, each with every action applied. A channel that is 1.0.0 already
    stays as it is.

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
    """One of them; `states` are all, in either form: a session's default chat is the same in both."""

    def default_chat(session: str) -> str | None:
        return states.get(session, {}).get("defaultChat")

    kind = kind_of(uri) or ""
    migrated = states_up.state_of_kind(kind, state, session=session_of(uri) or "", default_chat=default_chat)
    return Migrated(migrated, states_up.listed(state) if kind == "session" else None)


def migrate_turns(turns: Sequence[JsonObject]) -> list[JsonObject]:
    """Finished turns, of either form."""
    return [states_up.turn(turn) for turn in turns]


__all__ = ["Migrated", "migrate_channels", "migrate_turns"]
