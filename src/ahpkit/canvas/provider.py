"""What a canvas provider is to the bridge: declarations, three calls, and news. Knows no session state and no wire.

A provider may live in the host, in a process of its own, or behind a client. The first two implement `Provider`; for a
client the bridge itself speaks, over the session's actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call to a provider: `canvas.open`, `canvas.close` or `canvas.action.invoke`."""

    session_id: str
    extension_id: str
    canvas_id: str
    instance_id: str
    input: Any = None
    action_name: str | None = None
    reopen: bool = False
    host: JsonObject = field(default_factory=dict[str, Any])
    """`{"capabilities": {"canvases": bool}}`: whether somebody can show a canvas now."""
    session: JsonObject = field(default_factory=dict[str, Any])
    """`{"workingDirectory": URI}`, where the session has one."""

    def params(self) -> JsonObject:
        """As JSON, with the names of the seed's Plane 1."""
        params: JsonObject = {
            "sessionId": self.session_id,
            "extensionId": self.extension_id,
            "canvasId": self.canvas_id,
            "instanceId": self.instance_id,
            "host": self.host,
            "session": self.session,
        }
        if self.input is not None:
            params["input"] = self.input
        if self.action_name is not None:
            params["actionName"] = self.action_name
        if self.reopen:
            params["reopen"] = True
        return params


class ProviderEvents(Protocol):
    """What a provider tells the bridge."""

    def registry_changed(self, provider: Provider) -> None:
        """Its declarations are others now."""
        ...

    def instance_changed(self, provider: Provider, session_id: str, instance_id: str, changes: JsonObject) -> None:
        """An instance has another title, status, url or availability."""
        ...


class Provider(Protocol):
    """A provider on the host's side. Every call may raise `CanvasError`."""

    extension_id: str
    extension_name: str | None

    @property
    def declarations(self) -> Sequence[ClientCanvasDeclaration]:
        """What it offers now; empty while it is not there."""
        ...

    def attach(self, events: ProviderEvents) -> None: ...

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    async def open(self, call: ProviderCall) -> JsonObject:
        """`{url?, title?, status?}`"""
        ...

    async def close(self, call: ProviderCall) -> None: ...

    async def invoke(self, call: ProviderCall) -> Any: ...


__all__ = ["Provider", "ProviderCall", "ProviderEvents"]
