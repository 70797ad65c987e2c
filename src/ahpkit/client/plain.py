"""Converts states to plain, complete JSON values for users of the SDK. Pure.

While text streams, the reducers keep it in ropes (`ahpkit.protocol.rope`), so that a delta costs the same however long
the text is. A rope is not a `str`, so it is converted here, when somebody reads the state. Following events costs
nothing extra.
"""

from __future__ import annotations

from typing import Any, cast

from ahpkit.protocol.rope import Rope
from ahpkit.protocol.session.summary import current_session

_NOTHING: Any = object()


class PlainStates:
    """Turns the states of one channel into plain JSON. What did not change since the last look is not walked again."""

    def __init__(self) -> None:
        self._last: Any = None
        self._plain: Any = None
        self._shown: Any = None

    def of(self, state: Any) -> Any:
        """The state with strings where it has ropes; the state itself where it has none.

        A session's status and activity are those of its chats.
        """
        if state is not self._last or self._shown is None:
            self._plain = plain(state, self._last, self._plain)
            self._last = state
            self._shown = current_session(self._plain) if _is_session(self._plain) else self._plain
        return self._shown


def _is_session(state: Any) -> bool:
    return isinstance(state, dict) and "chats" in state and "lifecycle" in state


def plain(value: Any, before: Any = _NOTHING, before_plain: Any = None) -> Any:
    """`value` with strings for ropes. Parts that are also in `before` are taken from its plain form."""
    if value is before:
        return before_plain
    if isinstance(value, Rope):
        return str(value)
    if type(value) is dict:
        return _plain_object(cast("dict[str, Any]", value), before, before_plain)
    if type(value) is list:
        return _plain_list(cast("list[Any]", value), before, before_plain)
    return value


def _plain_object(value: dict[str, Any], before: Any, before_plain: Any) -> dict[str, Any]:
    old = cast("dict[str, Any]", before if type(before) is dict else {})
    old_plain = cast("dict[str, Any]", before_plain if type(before_plain) is dict else {})
    made = {key: plain(item, old.get(key, _NOTHING), old_plain.get(key)) for key, item in value.items()}
    return value if all(made[key] is item for key, item in value.items()) else made


def _plain_list(value: list[Any], before: Any, before_plain: Any) -> list[Any]:
    old = cast("list[Any]", before if type(before) is list else [])
    old_plain = cast("list[Any]", before_plain if type(before_plain) is list else [])
    known = len(old)
    made = [
        plain(item, old[index], old_plain[index]) if index < known else plain(item) for index, item in enumerate(value)
    ]
    return value if all(new is item for new, item in zip(made, value, strict=True)) else made


__all__ = ["PlainStates", "plain"]
