"""Shows canvases in the form of 1.0.0: a list in the session's default chat, and a read-only channel for each.

Derived from our own model, which is richer. Clients before 1.0 are told nothing of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import cast

from ahpkit.host.feature import Services
from ahpkit.protocol.canvas import CanvasReference, CanvasState, canvas_state_changed
from ahpkit.protocol.chat.actions import chat_canvases_changed
from ahpkit.protocol.common.state import JsonObject

_SHOWN = ("instanceId", "extensionId", "extensionName", "canvasId", "title", "status")


def canvas_uri(session_uri: str, instance_id: str) -> str:
    """The channel of an open instance; the same for as long as the session lives."""
    return f"ahp-canvas:/{hashlib.sha256(f'{session_uri} {instance_id}'.encode()).hexdigest()[:32]}"


def canvas_state(instance: JsonObject) -> JsonObject:
    """An open instance as 1.0.0 shows it. Its address goes with its provider."""
    state = {key: instance[key] for key in _SHOWN if instance.get(key) is not None}
    url: str = instance.get("url") or ""
    usable = instance["availability"] == "ready" and url.startswith(("http://", "https://"))
    return {**state, "url": url} if usable else state


class ReleasedCanvases:
    """Keeps lists and channels in step with the open instances of sessions."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def sync(self, session_uri: str, before: JsonObject) -> None:
        """The instances of a session changed; `before` is its state until now."""
        session = self._services.state(session_uri) or {}
        wanted = {canvas_uri(session_uri, one["instanceId"]): canvas_state(one) for one in _instances(session)}
        for uri, state in wanted.items():
            known = self._services.state(uri)
            if known is None:
                self._services.open_channel(uri, state)
            elif known != state:
                self._services.dispatch(uri, canvas_state_changed(canvas=cast("CanvasState", state)))
        self._close(session_uri, before, wanted)
        self._list(session.get("defaultChat", ""), list(wanted))

    def forget(self, session_uri: str) -> None:
        """The session is about to be gone."""
        self._close(session_uri, self._services.state(session_uri) or {}, ())

    def _close(self, session_uri: str, session: JsonObject, wanted: Collection[str]) -> None:
        for instance in _instances(session):
            uri = canvas_uri(session_uri, instance["instanceId"])
            if uri not in wanted and self._services.state(uri) is not None:
                self._services.close_channel(uri)

    def _list(self, chat_uri: str, uris: Sequence[str]) -> None:
        chat = self._services.state(chat_uri)
        canvases: list[CanvasReference] = [{"resource": uri} for uri in uris]
        if chat is not None and chat.get("canvases", []) != canvases:
            self._services.dispatch(chat_uri, chat_canvases_changed(canvases=canvases or None))


def _instances(session: JsonObject) -> Sequence[JsonObject]:
    return session.get("openCanvases") or ()


__all__ = ["ReleasedCanvases", "canvas_state", "canvas_uri"]
