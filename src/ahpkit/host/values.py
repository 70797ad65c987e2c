"""Small durable values beside the log, as JSON. Knows no clients: nothing here is ever sent to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ahpkit.protocol.codec import decode_json, encode

_PREFIX = "value/"
"""Apart from what the store keeps under the same log."""


class ValueLog(Protocol):
    def set_value(self, key: str, data: bytes | None) -> None: ...


class DurableValues:
    """Implements `ahpkit.host.feature.Values`."""

    def __init__(self, log: ValueLog) -> None:
        self._log = log
        self._values: dict[str, Any] = {}

    def restore(self, stored: Mapping[str, bytes]) -> None:
        for key, data in stored.items():
            if key.startswith(_PREFIX):
                self._values[key.removeprefix(_PREFIX)] = decode_json(data)

    def get(self, key: str) -> Any | None:
        return self._values.get(key)

    def set(self, key: str, value: Any | None) -> None:
        if value is None:
            if self._values.pop(key, None) is not None:
                self._log.set_value(_PREFIX + key, None)
        else:
            self._values[key] = value
            self._log.set_value(_PREFIX + key, encode(value))

    def items(self, prefix: str) -> Sequence[tuple[str, Any]]:
        return [(key, value) for key, value in self._values.items() if key.startswith(prefix)]


__all__ = ["DurableValues"]
