"""What all reducers share: finding the handler of an action, and edits that copy.

Every edit returns its argument itself when nothing changes, so that `after is before` means "does not apply".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import indexOf, itemgetter
from typing import Any, Final

from ahpkit.protocol.common.state import JsonObject

Handler = Callable[[JsonObject, Any], JsonObject]
"""One action type's effect: state and action in, state out. A handler says which action it takes."""

_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What a handler raises when a state or an action is malformed."""

_LONG = 64
"""With at least this many entries, searching a list of their keys is faster than comparing one by one: five times
faster with thousands."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def apply(
    handlers: Mapping[str, Handler],
    state: JsonObject,
    action: JsonObject,
    *,
    stamped: Container[str] = (),
    stamp: Callable[[JsonObject], JsonObject] | None = None,
) -> JsonObject:
    """Run the handler of the action's type, and `stamp` the outcome when a type in `stamped` changed something.

    Unknown types and malformed data do not apply: the same state comes back. Handlers rely on well-formed data, because
    actions are validated before; this is the one place that handles everything else. Nothing is half applied, because
    handlers never change their input.
    """
    try:
        kind = action["type"]
        handler = handlers.get(kind)
        after = state if handler is None else handler(state, action)
        return after if after is state or stamp is None or kind not in stamped else stamp(after)
    except _MALFORMED:
        return state


def unchanged(state: JsonObject, action: JsonObject) -> JsonObject:
    """The handler of an action that only carries a message and changes no state."""
    return state


def assign(key: str, *, field: str | None = None) -> Handler:
    """A handler that replaces `state[key]` by the action's field of the same (or the given) name."""
    source = field or key
    return lambda state, action: {**state, key: action[source]}


def assign_optional(key: str) -> Handler:
    """A handler that replaces `state[key]` by the action's field, and removes it when the action carries none."""
    return lambda state, action: put(state, key, action.get(key))


def put(item: JsonObject, key: str, value: Any) -> JsonObject:
    """`item` with `key` set to `value`; None removes the key."""
    return without(item, key) if value is None else {**item, key: value}


def without(item: JsonObject, *keys: str) -> JsonObject:
    """`item` without `keys`."""
    if not any(key in item for key in keys):
        return item
    return {key: value for key, value in item.items() if key not in keys}


def amend(item: JsonObject, changes: Mapping[str, Any]) -> JsonObject:
    """`item` with `changes` written over it; a value of None removes its key."""
    after = {**item, **changes}
    return {key: value for key, value in after.items() if value is not None or key not in changes}


def index_of(items: list[JsonObject], key: str, value: Any) -> int:
    """The index of the first entry with `entry[key] == value`, or -1."""
    if len(items) > _LONG:
        try:
            return indexOf(map(itemgetter(key), items), value)
        except ValueError:
            return -1
        except KeyError:  # An entry without the key.
            pass
    for index, item in enumerate(items):
        if item.get(key) == value:
            return index
    return -1


def replaced(items: list[JsonObject], index: int, entry: JsonObject) -> list[JsonObject]:
    """`items` with another entry at `index`."""
    after = items.copy()
    after[index] = entry
    return after


def upserted(items: list[JsonObject] | None, entry: JsonObject, *, key: str) -> list[JsonObject]:
    """`items` with `entry` in the place of the first one with the same key, or at the end."""
    items = items or []
    index = index_of(items, key, entry[key])
    return [*items, entry] if index < 0 else replaced(items, index, entry)


def removed(items: list[JsonObject], key: str, value: Any) -> list[JsonObject]:
    """`items` without the first entry whose `key` is `value`."""
    index = index_of(items, key, value)
    return items if index < 0 else [*items[:index], *items[index + 1 :]]


def all_removed(items: list[JsonObject], key: str, value: Any) -> list[JsonObject]:
    """`items` without every entry whose `key` is `value`."""
    kept = [entry for entry in items if entry.get(key) != value]
    return items if len(kept) == len(items) else kept


def merge_config(state: JsonObject, action: JsonObject) -> JsonObject:
    """Handler of `*/configChanged`: merge or replace `config.values`; nothing to change without a `config`."""
    config = state.get("config")
    if config is None:
        return state
    values = {**action["config"]} if action.get("replace") else {**config["values"], **action["config"]}
    return {**state, "config": {**config, "values": values}}


def milliseconds(time: str) -> int:
    """An ISO time as milliseconds since the epoch; without a zone it is UTC."""
    moment = datetime.fromisoformat(time)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
"""ISO times that both Python and JavaScript can read. Each of the two reads forms that the other does not."""

_FIRST_YEAR, _LAST_YEAR = 1970, 9000
"""Years in which turns begin."""

_LONGEST = 100 * 365 * 24 * 3600 * 1000
"""Milliseconds. No turn takes a hundred years."""


def is_duration(value: object) -> bool:
    """Whether a value says how many milliseconds a turn took."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LONGEST


def is_time(value: object) -> bool:
    """Whether the reducers of every implementation can read a time, and count a turn's duration from it."""
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return False
    try:
        return _FIRST_YEAR <= datetime.fromisoformat(value).year <= _LAST_YEAR
    except ValueError:
        return False


def iso_time(now: int) -> str:
    """Milliseconds since the epoch as chats write time: `1970-01-01T00:00:09.999Z`."""
    return f"{_iso_second(now // 1000)}.{now % 1000:03d}Z"


@lru_cache(maxsize=4)
def _iso_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def directory_added(state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    """Handler of `*/workingDirectorySet`: a directory that is there already stays where it is."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] in directories:
        return state
    return {**state, "workingDirectories": [*directories, action["directory"]]}


def directory_removed(state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    """Handler of `*/workingDirectoryRemoved`: the list may become empty."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] not in directories:
        return state
    index = directories.index(action["directory"])
    return {**state, "workingDirectories": [*directories[:index], *directories[index + 1 :]]}


__all__ = [
    "Handler",
    "all_removed",
    "amend",
    "apply",
    "assign",
    "assign_optional",
    "directory_added",
    "directory_removed",
    "index_of",
    "is_duration",
    "is_time",
    "iso_time",
    "merge_config",
    "milliseconds",
    "put",
    "removed",
    "replaced",
    "unchanged",
    "upserted",
    "without",
]
