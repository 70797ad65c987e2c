"""The bridge between agents and canvas providers: registry, instances, routing, recovery. Knows no transport.

Towards clients everything is an action on the session channel; towards agents it is `CanvasRuntime`; towards providers
it is `Provider`, or, for the active client, the request that stands in the session's state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from ahpkit.canvas.errors import (
    INSTANCE_NOT_FOUND,
    INSTANCE_TAKEN,
    LIMIT,
    PROVIDER_UNAVAILABLE,
    CanvasError,
)
from ahpkit.canvas.provider import Provider, ProviderCall
from ahpkit.canvas.registry import (
    check_input,
    client_entries,
    client_extension_id,
    find_action,
    find_canvas,
    server_entries,
)
from ahpkit.canvas.requests import Kind, Requests
from ahpkit.canvas.runtime import SessionCanvases
from ahpkit.host.agent import CanvasRuntime, Chat
from ahpkit.host.feature import Applied, Feature
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)

REQUEST_TIMEOUT = 30.0
"""Seconds a provider gets to answer."""

MAX_INSTANCES = 64
"""Open instances of one session. Nobody looks at more; an agent that opens more is in a loop."""

_UPDATABLE = ("title", "status", "url")


class Canvases(Feature):
    """All canvases of a host. Providers given here serve every session."""

    name = "canvas"

    def __init__(
        self,
        providers: Sequence[Provider] = (),
        *,
        timeout: float = REQUEST_TIMEOUT,
        max_instances: int = MAX_INSTANCES,
    ) -> None:
        self._providers = {provider.extension_id: provider for provider in providers}
        self._timeout = timeout
        self._max_instances = max_instances
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._runtimes: dict[str, SessionCanvases] = {}
        self._closing = False

    # -- life ----------------------------------------------------------------------------------------------------

    @cached_property
    def _requests(self) -> Requests:
        return Requests(self.services, timeout=self._timeout)

    async def start(self) -> None:
        for uri in self.services.session_uris():
            self._after_restart(uri)
        for provider in self._providers.values():
            provider.attach(self)
            await provider.start()

    async def aclose(self) -> None:
        self._closing = True
        self._requests.cancel_all("hostShutdown")
        for provider in self._providers.values():
            try:
                await provider.aclose()
            except Exception:
                _log.exception("the canvas provider %s did not close cleanly", provider.extension_id)

    def add_provider(self, provider: Provider) -> None:
        """A provider joins while the host runs, such as an extension that connected by itself."""
        self._providers[provider.extension_id] = provider
        provider.attach(self)
        self.registry_changed(provider)

    def remove_provider(self, provider: Provider) -> None:
        if self._providers.get(provider.extension_id) is provider:
            del self._providers[provider.extension_id]
            self.registry_changed(provider)

    async def prepare_session(self, session_uri: str) -> None:
        self._publish_registry(session_uri)

    def on_session_disposed(self, session_uri: str) -> None:
        self._requests.forget_session(session_uri)
        self._runtimes.pop(session_uri, None)

    def _after_restart(self, uri: str) -> None:
        """Nothing of the last run answers any more: requests are over, instances stale, URLs dead."""
        state = self._state(uri)
        for request in state.get("canvasRequests", ()):
            action = {"type": "session/canvasRequestCancelled", "requestId": request["requestId"]}
            self.services.dispatch(uri, action | {"reason": "hostShutdown"})
        for instance in state.get("openCanvases", ()):
            self._update(uri, instance, {"availability": "stale", "url": None})

    # -- what happens ----------------------------------------------------------------------------------------------

    def on_applied(self, applied: Applied) -> None:
        action = applied.action
        match action["type"]:
            case "session/activeClientChanged":
                self._active_client_changed(applied)
            case "session/canvasRequestCompleted":
                self._requests.on_completed(action)
            case "session/canvasInstanceCloseRequested":
                if self._instance(applied.channel, action["instanceId"]) is not None:
                    closing = self._close_for_client(applied.channel, action["instanceId"])
                    self.services.spawn(closing, name="close a canvas")
            case _:
                pass

    def registry_changed(self, provider: Provider) -> None:
        """A provider on the host's side declares something else now, joined or left."""
        for uri in self.services.session_uris():
            self._publish_registry(uri)

    def instance_changed(self, provider: Provider, session_id: str, instance_id: str, changes: JsonObject) -> None:
        """A provider pushed a new title, status, url or availability."""
        uri = f"ahp-session:/{session_id}"
        instance = self._instance(uri, instance_id)
        if instance is not None and instance["extensionId"] == provider.extension_id:
            kept = {key: changes[key] for key in _UPDATABLE if key in changes and _is_text(changes[key])}
            if "availability" in changes:
                kept["availability"] = "ready" if changes["availability"] == "ready" else "stale"
            self._update(uri, instance, kept)

    def _active_client_changed(self, applied: Applied) -> None:
        before, after = _active_client_id(applied.before), _active_client_id(applied.after)
        if before is not None and before != after:
            self._provider_left(applied.channel, client_extension_id(before))
        self._publish_registry(applied.channel)

    def _publish_registry(self, uri: str) -> None:
        """Derive the registry anew; tell it when it differs, and look after instances that lost or found a provider."""
        state = self.services.state(uri)
        if state is None or self._closing:
            return
        registry = self._derive(state)
        if registry != state.get("canvasRegistry", []):
            self.services.dispatch(uri, {"type": "session/canvasRegistryChanged", "canvases": registry})
            self._runtime(uri).registry_changed()
        declared = {(one["extensionId"], one["canvasId"]) for one in registry}
        for instance in self._state(uri).get("openCanvases", ()):
            here = (instance["extensionId"], instance["canvasId"]) in declared
            if not here:
                self._lost(uri, instance)
            elif instance["availability"] == "stale":
                self.services.spawn(self._rehydrate(uri, instance), name="rehydrate a canvas")

    def _derive(self, state: JsonObject) -> list[JsonObject]:
        entries: list[JsonObject] = []
        for provider in self._providers.values():
            entries += server_entries(provider.extension_id, provider.extension_name, provider.declarations)
        return entries + client_entries(state.get("activeClient"))

    def _provider_left(self, uri: str, extension_id: str) -> None:
        self._requests.cancel_provider(uri, extension_id)
        for instance in self._state(uri).get("openCanvases", ()):
            if instance["extensionId"] == extension_id:
                self._lost(uri, instance)

    def _lost(self, uri: str, instance: JsonObject) -> None:
        self._requests.cancel_instance(uri, instance["instanceId"], reason="providerDisconnected")
        self._update(uri, instance, {"availability": "stale"})

    def _update(self, uri: str, instance: JsonObject, changes: JsonObject) -> None:
        """Tell just what changed."""
        changed = {key: value for key, value in changes.items() if instance.get(key) != value}
        if changed:
            action = {"type": "session/canvasInstanceUpdated", "instanceId": instance["instanceId"]}
            self.services.dispatch(uri, action | {"changes": changed})

    async def _rehydrate(self, uri: str, instance: JsonObject) -> None:
        """The provider of a stale instance is back: open it again with the input it was opened with."""
        current = self._instance(uri, instance["instanceId"])
        if current is None or current["availability"] == "ready":
            return
        try:
            await self.open(
                uri, instance["canvasId"], instance["instanceId"], instance["extensionId"], instance.get("input")
            )
        except CanvasError as error:
            _log.info("the canvas instance %s stays stale: %s", instance["instanceId"], error)

    async def _close_for_client(self, uri: str, instance_id: str) -> None:
        try:
            await self.close(uri, instance_id)
        except CanvasError as error:
            _log.info("the canvas instance %s was not closed: %s", instance_id, error)

    # -- what agents do --------------------------------------------------------------------------------------------

    def canvas_runtime(self, chat: Chat) -> CanvasRuntime:
        return self._runtime(chat.session_uri)

    def _runtime(self, uri: str) -> SessionCanvases:
        if uri not in self._runtimes:
            self._runtimes[uri] = SessionCanvases(self, uri, self.services)
        return self._runtimes[uri]

    async def open(
        self, uri: str, canvas_id: str, instance_id: str, extension_id: str | None, input: Any
    ) -> tuple[JsonObject, bool]:
        """Open or reopen an instance: what stands in state then, and whether it was open before."""
        async with self._locks[uri, instance_id]:
            declaration = find_canvas(self._state(uri).get("canvasRegistry", []), canvas_id, extension_id)
            before = self._openable(uri, instance_id, declaration)
            check_input(declaration.get("inputSchema"), input)
            call = self._call(uri, declaration, instance_id, input=input, reopen=before is not None)
            result = await self._ask(uri, "open", call)
            instance = self._opened(uri, declaration, call, result)
            self.services.dispatch(uri, {"type": "session/canvasInstanceOpened", "instance": instance})
            self._runtime(uri).instance_opened(instance, reopen=before is not None)
            return instance, before is not None

    def _openable(self, uri: str, instance_id: str, declaration: JsonObject) -> JsonObject | None:
        before = self._instance(uri, instance_id)
        if before is None and len(self._state(uri).get("openCanvases", ())) >= self._max_instances:
            raise CanvasError(
                f"{self._max_instances} instances are open, which is the most a session may have", code=LIMIT
            )
        if before is not None:
            same = all(before[key] == declaration[key] for key in ("canvasId", "extensionId"))
            if not same:
                raise CanvasError(f"{instance_id!r} is an instance of {before['canvasId']!r}", code=INSTANCE_TAKEN)
        return before

    def _opened(self, uri: str, declaration: JsonObject, call: ProviderCall, result: JsonObject) -> JsonObject:
        instance: JsonObject = {
            "instanceId": call.instance_id,
            "canvasId": call.canvas_id,
            "extensionId": call.extension_id,
            "availability": "ready",
        }
        for key in ("extensionName",):
            if key in declaration:
                instance[key] = declaration[key]
        if call.input is not None:
            instance["input"] = call.input
        instance |= {key: result[key] for key in _UPDATABLE if result.get(key) is not None}
        renderer = self._renderer(uri, declaration)
        return instance | ({"renderer": {"clientId": renderer}} if renderer else {})

    async def invoke(self, uri: str, instance_id: str, action_name: str, input: Any) -> JsonObject:
        """Run an action of an open instance: `{kind: action, value?}`."""
        instance = self._required(uri, instance_id)
        declaration = self._declaration(uri, instance)
        if instance["availability"] != "ready" or declaration is None:
            raise CanvasError(f"the provider of {instance_id!r} is gone; open it again", code=PROVIDER_UNAVAILABLE)
        action = find_action(declaration, action_name)
        check_input(action.get("inputSchema"), input)
        call = self._call(uri, declaration, instance_id, input=input, action_name=action_name)
        return await self._ask(uri, "action", call)

    async def close(self, uri: str, instance_id: str) -> None:
        """Close an instance; one without a provider is just removed."""
        async with self._locks[uri, instance_id]:
            instance = self._required(uri, instance_id)
            declaration = self._declaration(uri, instance)
            if declaration is not None and instance["availability"] == "ready":
                await self._ask(uri, "close", self._call(uri, declaration, instance_id))
            self._requests.cancel_instance(uri, instance_id)
            if self._instance(uri, instance_id) is not None:
                action = {"type": "session/canvasInstanceClosed", "instanceId": instance_id}
                self.services.dispatch(uri, action)
        self._locks.pop((uri, instance_id), None)

    # -- routing ---------------------------------------------------------------------------------------------------

    async def _ask(self, uri: str, kind: Kind, call: ProviderCall) -> JsonObject:
        provider = self._providers.get(call.extension_id)
        if provider is not None:
            return await self._requests.ask(uri, kind, call, provider)
        client_id = _active_client_id(self._state(uri))
        if client_id is None or call.extension_id != client_extension_id(client_id):
            raise CanvasError("the provider of this canvas is gone", code=PROVIDER_UNAVAILABLE)
        return await self._requests.ask(uri, kind, call, client_id)

    def _call(self, uri: str, declaration: JsonObject, instance_id: str, **extra: Any) -> ProviderCall:
        state = self._state(uri)
        directory = state.get("summary", {}).get("workingDirectory")
        return ProviderCall(
            session_id=uri.partition(":/")[2],
            extension_id=declaration["extensionId"],
            canvas_id=declaration["canvasId"],
            instance_id=instance_id,
            host={"capabilities": {"canvases": _can_render(state)}},
            session={"workingDirectory": directory} if directory else {},
            **extra,
        )

    def _renderer(self, uri: str, declaration: JsonObject) -> str | None:
        """Who shows it: a client its own canvases, else the active client if it can render."""
        if declaration["source"] == "activeClient":
            return declaration["clientId"]
        state = self._state(uri)
        return state["activeClient"]["clientId"] if _can_render(state) else None

    def _declaration(self, uri: str, instance: JsonObject) -> JsonObject | None:
        for one in self._state(uri).get("canvasRegistry", ()):
            if one["extensionId"] == instance["extensionId"] and one["canvasId"] == instance["canvasId"]:
                return one
        return None

    def _required(self, uri: str, instance_id: str) -> JsonObject:
        instance = self._instance(uri, instance_id)
        if instance is None:
            raise CanvasError(f"no instance {instance_id!r} is open", code=INSTANCE_NOT_FOUND)
        return instance

    def _instance(self, uri: str, instance_id: str) -> JsonObject | None:
        found: Iterable[JsonObject] = self._state(uri).get("openCanvases", ())
        return next((one for one in found if one["instanceId"] == instance_id), None)

    def _state(self, uri: str) -> JsonObject:
        return self.services.state(uri) or {}


def _active_client_id(state: JsonObject) -> str | None:
    active: JsonObject | None = state.get("activeClient")
    return active["clientId"] if active else None


def _can_render(state: JsonObject) -> bool:
    active: JsonObject = state.get("activeClient") or {}
    return active.get("canRenderCanvases") is True


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


__all__ = ["MAX_INSTANCES", "REQUEST_TIMEOUT", "Canvases"]
