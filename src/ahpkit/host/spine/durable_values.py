"""Small durable values beside the log, as JSON: what features and agents keep. Nothing here is sent to a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ahpkit.wire.codec import decode_json, encode

PREFIX = "value/"
"""Keeps these keys apart from what the log stores for itself."""


class DurableValues:
    """Values by key. A value that is set is stored with the next commit."""

    def __init__(self, store: Callable[[str, bytes | None], object]) -> None:
        self._store = store
        self._values: dict[str, Any] = {}

    def restore(self, stored: Mapping[str, bytes]) -> None:
        for key, data in stored.items():
            if key.startswith(PREFIX):
                self._values[key.removeprefix(PREFIX)] = decode_json(data)

    def get(self, key: str) -> Any | None:
        return self._values.get(key)

    def set(self, key: str, value: Any | None) -> None:
        """Store JSON data; None removes the key."""
        if value is None:
            if self._values.pop(key, None) is not None:
                self._store(PREFIX + key, None)
        else:
            self._values[key] = value
            self._store(PREFIX + key, encode(value))

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]:
        return [(key, value) for key, value in self._values.items() if key.startswith(prefix)]


__all__ = ["PREFIX", "DurableValues"]
