"""What a rule of the policy looks at: who wants to do what, in which state. Knows no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ahpkit.protocol.common.state import JsonObject

StateOf = Callable[[str], JsonObject | None]
"""The present state of any channel by URI."""


class Attempt(NamedTuple):
    """A client's action that has the right shape and is addressed to a channel that exists."""

    client_id: str
    channel: str
    action: JsonObject
    state: JsonObject
    state_of: StateOf
    session: JsonObject | None = None
    """The session that the channel belongs to, where the channel is not a session itself."""


Rule = Callable[[Attempt], str | None]
"""Returns a reason that a person can read, or None: it may."""


def allow(attempt: Attempt) -> str | None:
    """For actions that any client may dispatch in any state."""
    return None


def find(entries: Iterable[JsonObject] | None, key: str, value: object) -> JsonObject | None:
    """The first entry whose `key` is `value`."""
    return next((entry for entry in entries or () if entry.get(key) == value), None)


def repeated(values: Iterable[str]) -> str | None:
    """The first value that occurs twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def check_names(what: str, names: Iterable[str], *, where: str = "") -> str | None:
    """Names that identify something are not empty and not given twice."""
    names = list(names)
    if not all(names):
        return f"the {what} must not be empty{where}"
    if (name := repeated(names)) is not None:
        return f"{what} {name!r} is given twice{where}"
    return None


__all__ = ["Attempt", "Rule", "StateOf", "allow", "check_names", "find", "repeated"]
