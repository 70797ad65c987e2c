"""Stores small JSON values of features and agents beside the log. The values are never sent to clients."""

from __future__ import annotations

from collections.abc import Callable, KeysView, Mapping, Sequence
from typing import Any

from ahpkit.wire.codec import decode_own, encode

PREFIX = "value/"
"""Separates these keys from the keys that the log uses for itself."""


class DurableValues:
    """Values by key. A value that is set is stored with the next commit.

    A key looks like `group/rest`. Each group is kept separately, so that listing one group costs the same however large
    the others are.
    """

    def __init__(self, store: Callable[[str, bytes | None], object]) -> None:
        self._store = store
        self._groups: dict[str, dict[str, Any]] = {}

    def restore(self, stored: Mapping[str, bytes]) -> None:
        for key, data in stored.items():
            if key.startswith(PREFIX):
                own = key.removeprefix(PREFIX)
                self._group(own)[own] = decode_own(data)

    def _group(self, key: str) -> dict[str, Any]:
        name = key.partition("/")[0]
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = {}
        return group

    def get(self, key: str) -> Any | None:
        group = self._groups.get(key.partition("/")[0])
        return None if group is None else group.get(key)

    def set(self, key: str, value: object) -> None:
        """Store JSON data; None removes the key."""
        if value is None:
            if self._group(key).pop(key, None) is not None:
                self._store(PREFIX + key, None)
        else:
            self._group(key)[key] = value
            self._store(PREFIX + key, encode(value))

    def keys(self, group: str) -> KeysView[str]:
        """The keys of one group, such as `client-version/`, oldest first. This is a view, not a copy."""
        return self._group(group).keys()

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]:
        return [(key, value) for key, value in self._group(prefix).items() if key.startswith(prefix)]


__all__ = ["PREFIX", "DurableValues"]
