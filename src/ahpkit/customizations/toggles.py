"""Remembers what users switched on and off: for a session, and for the next one in the same workspace."""

from __future__ import annotations

from typing import Any

from ahpkit.customizations.shown import Toggles
from ahpkit.host.feature import Values

_SESSION = "customizations/session/"
_WORKSPACE = "customizations/workspace/"


class ToggleMemory:
    """Durable toggles. With `remember` a new session starts as the last one in its workspace was left."""

    def __init__(self, values: Values, *, remember: bool) -> None:
        self._values = values
        self._remember = remember

    def of_session(self, session_uri: str, workspace: str | None) -> Toggles:
        """What holds for a session: its own, else its workspace's, which it takes over."""
        own = self._values.get(_SESSION + session_uri)
        if own is None and self._remember and workspace is not None:
            own = self._values.get(_WORKSPACE + workspace)
            if own:
                self._values.set(_SESSION + session_uri, own)
        return own or {}

    def set(self, session_uri: str, workspace: str | None, customization_id: str, enabled: bool) -> None:
        self._change(_SESSION + session_uri, customization_id, enabled)
        if self._remember and workspace is not None:
            self._change(_WORKSPACE + workspace, customization_id, enabled)

    def forget_session(self, session_uri: str) -> None:
        self._values.set(_SESSION + session_uri, None)

    def _change(self, key: str, customization_id: str, enabled: bool) -> None:
        known: dict[str, Any] = self._values.get(key) or {}
        self._values.set(key, {**known, customization_id: enabled})


__all__ = ["ToggleMemory"]
