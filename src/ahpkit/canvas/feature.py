"""The feature that offers canvases: the host's providers, and a bridge for every session."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

from ahpkit.canvas.bridge import SessionBridge
from ahpkit.canvas.limits import MAX_INSTANCES, REQUEST_TIMEOUT, check_completion, check_declarations, check_push
from ahpkit.canvas.pages import Pages
from ahpkit.canvas.provider import DuplicateExtension, Provider, ProviderSource
from ahpkit.canvas.registry import CLIENT_PREFIX
from ahpkit.canvas.runtime import CanvasTools
from ahpkit.host.agent import CanvasRuntime, Chat
from ahpkit.host.feature import Feature, Services, Values
from ahpkit.host.registration import Registration, SessionApplied
from ahpkit.protocol.canvas import CanvasReference, CanvasState, canvas_state_changed
from ahpkit.protocol.chat.actions import chat_canvases_changed
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import SessionState

_SHOWN = ("instanceId", "extensionId", "extensionName", "canvasId", "title", "status")


def canvas_uri(session_uri: str, instance_id: str) -> str:
    """The channel of an open instance; the same for as long as the session lives."""
    return f"ahp-canvas:/{hashlib.sha256(f'{session_uri} {instance_id}'.encode()).hexdigest()[:32]}"


def canvas_state(instance: JsonObject) -> CanvasState:
    """An open instance as 1.0.0 shows it. Without a provider it has no address."""
    state = {key: instance[key] for key in _SHOWN if instance.get(key) is not None}
    url: str = instance.get("url") or ""
    usable = instance["availability"] == "ready" and url.startswith(("http://", "https://"))
    return cast("CanvasState", {**state, "url": url} if usable else state)


class ReleasedCanvases:
    """Shows canvases in the form of 1.0.0: a list in the session's default chat, and a read-only channel for each.

    Derived from our own model, which is richer. Clients before 1.0 do not get it.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def sync(self, session_uri: str, before: SessionState) -> None:
        """The instances of a session changed; `before` is its state until now."""
        session = self._services.state(session_uri) or {}
        wanted = {canvas_uri(session_uri, one["instanceId"]): canvas_state(one) for one in _instances(session)}
        for uri, state in wanted.items():
            known = self._services.state(uri)
            if known is None:
                self._services.open_channel(uri, state)
            elif known != state:
                self._services.dispatch(uri, canvas_state_changed(canvas=state))
        self._close(session_uri, before, wanted)
        self._list(session.get("defaultChat", ""), list(wanted))

    def forget(self, session_uri: str) -> None:
        """The session is about to be gone."""
        self._close(session_uri, self._services.state(session_uri) or {}, ())

    def _close(self, session_uri: str, session: Mapping[str, Any], wanted: Collection[str]) -> None:
        for instance in _instances(session):
            uri = canvas_uri(session_uri, instance["instanceId"])
            if uri not in wanted and self._services.state(uri) is not None:
                self._services.close_channel(uri)

    def _list(self, chat_uri: str, uris: Sequence[str]) -> None:
        chat = self._services.state(chat_uri)
        canvases: list[CanvasReference] = [{"resource": uri} for uri in uris]
        if chat is not None and chat.get("canvases", []) != canvases:
            self._services.dispatch(chat_uri, chat_canvases_changed(canvases=canvases or None))


def _instances(session: Mapping[str, Any]) -> Sequence[JsonObject]:
    return session.get("openCanvases") or ()


_REOPEN_AT_ONCE = 8
"""Instances of one extension that are opened again at the same time, so that its own sessions do not overload it."""


class Canvases(Feature):
    """Providers given here, and those the sources bring, serve every session."""

    name = "canvas"

    def __init__(
        self,
        providers: Sequence[Provider] = (),
        *,
        sources: Sequence[ProviderSource] = (),
        pages: Pages | None = None,
        timeout: float = REQUEST_TIMEOUT,
        max_instances: int = MAX_INSTANCES,
    ) -> None:
        self._providers: dict[str, Provider] = {}
        self._sources = sources
        self._pages = pages
        self._timeout = timeout
        self._max_instances = max_instances
        self._bridges: dict[str, SessionBridge] = {}
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        for provider in providers:
            self._register(provider)

    # -- life ------------------------------------------------------------------------------------------------------

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        self._released = ReleasedCanvases(services)
        if self._pages is not None:
            host.routes.add(self._pages.mount)
        host.recover.add(self._recover)
        host.sessions.prepare.add(self._prepare_session)
        host.sessions.disposed.add(self._session_disposed)
        host.sessions.rested.add(self._rested)
        host.clients.gone.add(self._client_gone)
        host.clients.back.add(self._client_back)
        host.clients.offered_again.add(self._client_repeated)
        host.turns.canvases.provide(self._runtime)
        host.tools.add(CanvasTools(lambda uri: self._bridge(uri).runtime, self._has_canvases))
        host.actions.refuse(self._refuse, "session/canvas", "session/activeClientSet")
        host.actions.listen(self._on_applied, "session/canvas", "session/activeClient")

    def _recover(self) -> None:
        for uri in self.services.unsettled():
            if self.services.session_of(uri) is None:
                self._bridge(uri).recover()

    async def start(self) -> None:
        for provider in self._providers.values():
            provider.attach(self)
        for bridge in self._bridges.values():
            bridge.publish()
        for source in self._sources:
            self.services.spawn(source.run(self), name=f"canvas {type(source).__name__}")

    def stopping(self) -> None:
        for bridge in self._bridges.values():
            bridge.shut_down()

    async def _prepare_session(self, session_uri: str) -> None:
        self._bridge(session_uri).publish()

    def _rested(self, session_uri: str) -> None:
        self._bridges.pop(session_uri, None)

    def _session_disposed(self, session_uri: str) -> None:
        self._released.forget(session_uri)
        bridge = self._bridges.pop(session_uri, None)
        if bridge is not None:
            bridge.dispose()

    def _bridge(self, uri: str) -> SessionBridge:
        if uri not in self._bridges:
            self._bridges[uri] = SessionBridge(
                uri,
                self.services,
                self._providers,
                timeout=self._timeout,
                max_instances=self._max_instances,
                reopening=self._reopening,
            )
        return self._bridges[uri]

    def _has_canvases(self, uri: str) -> bool:
        """Whether a canvas of a session can be opened or is open, also one whose provider is gone."""
        bridge = self._bridge(uri)
        return bool(bridge.registry or bridge.instances)

    def _reopening(self, extension_id: str) -> asyncio.Semaphore:
        """Limits how many canvases of an extension are opened again at once; exists while somebody uses it."""
        return self._semaphores.setdefault(extension_id, asyncio.Semaphore(_REOPEN_AT_ONCE))

    # -- providers -------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Values:
        return self.services.values

    def add_provider(self, provider: Provider) -> None:
        """A provider joins while the host runs, such as an extension that connected by itself."""
        self._register(provider)
        provider.attach(self)
        self.registry_changed()

    def remove_provider(self, provider: Provider) -> None:
        if self._providers.get(provider.extension_id) is provider:
            del self._providers[provider.extension_id]
            self.registry_changed()

    def registry_changed(self) -> None:
        for bridge in self._bridges.values():
            bridge.publish()

    def instance_changed(self, provider: Provider, session_id: str, instance_id: str, changes: JsonObject) -> None:
        bridge = self._bridges.get(f"ahp-session:/{session_id}")
        if bridge is not None:
            bridge.instance_changed(provider, instance_id, changes)

    def _register(self, provider: Provider) -> None:
        id = provider.extension_id
        if not id or id.startswith(CLIENT_PREFIX):
            raise ValueError(f"{id!r} cannot be the id of a canvas extension: it is empty or that of a client")
        if id in self._providers:
            raise DuplicateExtension(id)
        self._providers[id] = provider

    # -- sessions --------------------------------------------------------------------------------------------------

    def _client_gone(self, client_id: str) -> None:
        for bridge in self._bridges.values():
            bridge.client_gone(client_id)

    def _client_back(self, client_id: str, resumed: bool) -> None:
        """A client that did not resume has no canvases until it declares them again."""
        client = self.services.client(client_id)
        for uri, bridge in self._bridges.items():
            if not resumed:
                bridge.client_gone(client_id)
            elif client is not None and client.follows(uri):
                bridge.client_back(client_id)

    def _client_repeated(self, client_id: str, session_uri: str) -> None:
        bridge = self._bridges.get(session_uri)
        if bridge is not None:
            bridge.client_back(client_id)

    def _runtime(self, chat: Chat) -> CanvasRuntime:
        return self._bridge(chat.session_uri).runtime

    def _refuse(self, client_id: str, channel: str, action: JsonObject, state: JsonObject) -> str | None:
        match action["type"]:
            case "session/canvasRequestCompleted":
                return check_completion(action)
            case "session/canvasInstanceUpdated":
                return check_push(action["changes"])
            case "session/activeClientSet":
                return check_declarations(action["activeClient"].get("canvasProviders", []))
            case _:
                return None

    def _on_applied(self, applied: SessionApplied) -> None:
        bridge = self._bridges.get(applied.channel)
        if bridge is None:
            return
        action = applied.action
        if action["type"].startswith("session/canvasInstance") and applied.after is not applied.before:
            self._released.sync(applied.channel, applied.before)
        match action["type"]:
            case "session/activeClientSet":
                bridge.active_clients_changed(applied.before, applied.after, action["activeClient"]["clientId"])
            case "session/activeClientRemoved":
                bridge.active_clients_changed(applied.before, applied.after, action["clientId"])
            case "session/canvasRequestCompleted":
                bridge.on_completed(action)
            case "session/canvasInstanceCloseRequested":
                bridge.on_close_requested(action["instanceId"])
            case "session/canvasInstanceUpdated" if applied.client_id and applied.after is not applied.before:
                bridge.on_pushed(action["instanceId"])
            case _:
                pass


__all__ = ["Canvases", "ReleasedCanvases", "canvas_uri"]
