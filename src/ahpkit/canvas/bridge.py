"""Manages the canvases of one session: its registry, its instances, and what agents do with them.

Towards clients everything is an action on the session's channel; towards agents it is `CanvasRuntime`; towards
providers it is `Provider`, or, for the active client, the request in the session's state.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

from ahpkit.authoring.canvas import call_context, can_render
from ahpkit.canvas.errors import INSTANCE_NOT_FOUND, INSTANCE_TAKEN, LIMIT, PROVIDER_UNAVAILABLE, CanvasError
from ahpkit.canvas.limits import check_id, own_changes, own_input
from ahpkit.canvas.provider import Provider, ProviderGone
from ahpkit.canvas.registry import (
    CLIENT_PREFIX,
    Key,
    active_client_ids,
    check_input,
    client_entries,
    find_action,
    find_canvas,
    is_heir,
    key_of,
    new_instance,
    renderer_of,
    server_entries,
)
from ahpkit.canvas.requests import Requests
from ahpkit.canvas.runtime import SessionCanvases
from ahpkit.host.feature import Services
from ahpkit.host.states import NO_SESSION
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import (
    SessionAction,
    SessionCanvasRequestCompletedAction,
    session_canvas_instance_closed,
    session_canvas_instance_opened,
    session_canvas_instance_updated,
    session_canvas_registry_changed,
    session_canvas_request_cancelled,
)
from ahpkit.protocol.session.canvases import (
    CanvasRequestKind,
    SessionCanvasDeclaration,
    SessionOpenCanvas,
    SessionOpenCanvasUpdate,
)
from ahpkit.protocol.session.state import SessionState

_log = logging.getLogger(__name__)


class SessionBridge:
    """One session. `providers` are the present providers of the host; the canvases of clients are in the session's
    state.

    `reopening` bounds how many instances of an extension are opened again at the same time, in all sessions.
    """

    def __init__(
        self,
        uri: str,
        services: Services,
        providers: Mapping[str, Provider],
        *,
        timeout: float,
        max_instances: int,
        reopening: Callable[[str], asyncio.Semaphore],
    ) -> None:
        self.uri = uri
        self.runtime = SessionCanvases(self, services)
        self._services = services
        self._providers = providers
        self._timeout = timeout
        self._max_instances = max_instances
        self._reopening = reopening
        self._requests = Requests(uri, services, timeout=timeout)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._opening: set[str] = set()
        self._declared: dict[Key, int] = {}
        """When each declaration appeared. A declaration that left and came back counts as a new one."""
        self._appearances = itertools.count(1)
        self._away = {client for client in active_client_ids(self.state) if services.client(client) is None}
        """Active clients without a connection. Their entry stays for a while, but nobody answers for their canvases."""
        self._closing = False

    # -- what stands in the state ----------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        return self._services.session(self.uri) or NO_SESSION

    @property
    def registry(self) -> Sequence[JsonObject]:
        return cast("Sequence[JsonObject]", self.state.get("canvasRegistry", ()))

    @property
    def instances(self) -> Sequence[JsonObject]:
        return cast("Sequence[JsonObject]", self.state.get("openCanvases", ()))

    def _instance(self, instance_id: str) -> JsonObject | None:
        return next((one for one in self.instances if one["instanceId"] == instance_id), None)

    def _required(self, instance_id: str) -> JsonObject:
        instance = self._instance(instance_id)
        if instance is None:
            raise CanvasError(f"no instance {instance_id!r} is open", code=INSTANCE_NOT_FOUND)
        return instance

    def _declaration(self, instance: JsonObject) -> JsonObject | None:
        return next((one for one in self.registry if key_of(one) == key_of(instance)), None)

    def _dispatch(self, action: SessionAction) -> None:
        self._services.dispatch(self.uri, action)

    def _show(self, instance: JsonObject) -> None:
        self._dispatch(session_canvas_instance_opened(instance=cast("SessionOpenCanvas", instance)))

    def _update(self, instance: JsonObject, changed_to: JsonObject) -> bool:
        """Dispatch only what changed."""
        changed = {key: value for key, value in changed_to.items() if instance.get(key) != value}
        if changed:
            changes = cast("SessionOpenCanvasUpdate", changed)
            self._dispatch(session_canvas_instance_updated(instance_id=instance["instanceId"], changes=changes))
        return bool(changed)

    # -- life ------------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """The host was restarted.

        Nothing that was asked in the last run will be answered, and no client is connected yet.
        """
        for request in self.state.get("canvasRequests", ()):
            cancelled = session_canvas_request_cancelled(request_id=request["requestId"], reason="hostShutdown")
            self._dispatch(cancelled)
        kept = [one for one in self.registry if one["source"] != "activeClient"]
        if len(kept) < len(self.registry):
            canvases = cast("list[SessionCanvasDeclaration]", kept)
            self._dispatch(session_canvas_registry_changed(canvases=canvases))
        for instance in self.instances:
            self._update(instance, {"availability": "stale", "url": None})
        self._unpin(None)

    def shut_down(self) -> None:
        self._closing = True
        self._requests.cancel_all()

    def dispose(self) -> None:
        """The session is about to be gone: providers may drop what they hold for it."""
        self._closing = True
        self._requests.forget()
        for instance in self.instances:
            provider = self._providers.get(instance["extensionId"])
            if provider is not None:
                self._services.spawn(self._drop(provider, self._call(instance)), name="drop a canvas")

    async def _drop(self, provider: Provider, call: JsonObject) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await provider.close(call)
        except (CanvasError, ProviderGone, TimeoutError) as error:
            _log.info("the canvas instance %s of a disposed session was not closed: %s", call["instanceId"], error)

    # -- providers and renderers come and go -----------------------------------------------------------------------

    def publish(self) -> None:
        """Derive the registry again; publish it when it differs, and handle instances that lost or regained their
        provider."""
        if self._closing:
            return
        registry = [
            entry
            for provider in self._providers.values()
            if self._is_of_use(provider)
            for entry in server_entries(provider.extension_id, provider.extension_name, provider.declarations)
        ] + [
            entry
            for client in self.state.get("activeClients", ())
            if client["clientId"] not in self._away
            for entry in client_entries(client)
        ]
        if registry != list(self.registry):
            canvases = cast("list[SessionCanvasDeclaration]", registry)
            self._dispatch(session_canvas_registry_changed(canvases=canvases))
            self.runtime.registry_changed()
            self._services.tools_changed(self.uri)
        before = self._declared
        self._declared = {key: before.get(key) or next(self._appearances) for key in map(key_of, registry)}
        self._requests.cancel_undeclared(self._declared)
        for instance in self.instances:
            if key_of(instance) not in self._declared:
                self._update(instance, {"availability": "stale", "url": None})
            new = (entry for entry in registry if key_of(entry) not in before and self._provides(entry, instance))
            provider = next(new, None)
            if provider is not None and instance["availability"] == "stale":
                self._rehydrate_soon(instance, provider["extensionId"])

    def _provides(self, declaration: JsonObject, instance: JsonObject) -> bool:
        """Whether an instance belongs to a declared canvas. An instance of a client that is gone can be taken over by
        another client that declares the same canvas."""
        key = key_of(instance)
        return key_of(declaration) == key or (key not in self._declared and is_heir(declaration, instance))

    def _is_of_use(self, provider: Provider) -> bool:
        """Whether to declare a canvas. A canvas that only has a page is declared if a client can show it, or shows it
        already."""
        if not provider.needs_renderer or can_render(self.state):
            return True
        return any(instance["extensionId"] == provider.extension_id for instance in self.instances)

    def client_gone(self, client_id: str) -> None:
        """A client lost its connection."""
        if client_id in active_client_ids(self.state):
            self._away.add(client_id)
            self.publish()
            self._unpin(client_id)

    def client_back(self, client_id: str) -> None:
        """A client is connected again and resumed its subscriptions."""
        if client_id in self._away:
            self._away.discard(client_id)
            self.publish()

    def active_clients_changed(self, before: SessionState, after: SessionState, client_id: str) -> None:
        """A client came or went, or offers something else."""
        self._away.discard(client_id)
        self.publish()
        for gone in active_client_ids(before) - active_client_ids(after):
            self._unpin(gone)
        if can_render(before) != can_render(after):
            self.runtime.capabilities_changed(can_render(after))

    def _unpin(self, client_id: str | None) -> None:
        """A renderer left; None: all renderers left.

        From now on any client may show and close the instances that it showed, except instances of its own canvases.
        """
        for instance in self.instances:
            renderer = instance.get("renderer", {}).get("clientId")
            pinned = renderer is not None and client_id in (None, renderer)
            if pinned and not instance["extensionId"].startswith(CLIENT_PREFIX):
                bare = {key: value for key, value in instance.items() if key != "renderer"}
                self._show(bare)

    def instance_changed(self, provider: Provider, instance_id: str, changes: Mapping[str, Any]) -> None:
        """A provider pushed a new title, status, url or availability of an instance whose canvas it declares."""
        instance = self._instance(instance_id)
        if instance is None or instance["extensionId"] != provider.extension_id or self._closing:
            return
        if self._declaration(instance) is None:
            return
        if self._update(instance, own_changes(changes)):
            self.runtime.instance_opened(self._required(instance_id), reopen=False)

    def on_pushed(self, instance_id: str) -> None:
        """A client pushed a new title, status or url of a canvas that it provides."""
        self.runtime.instance_opened(self._required(instance_id), reopen=False)

    def _rehydrate_soon(self, instance: JsonObject, extension_id: str) -> None:
        self._services.spawn(self._rehydrate(instance["instanceId"], extension_id), name="rehydrate a canvas")

    async def _rehydrate(self, instance_id: str, extension_id: str) -> None:
        """A stale instance has a provider again: open it there, with the input it was opened with."""
        async with self._reopening(extension_id):
            now = self._instance(instance_id)
            if now is None or now["availability"] == "ready" or self._closing:
                return
            try:
                await self.open(now["canvasId"], instance_id, extension_id, None)
            except CanvasError as error:
                _log.info("the canvas instance %s stays stale: %s", instance_id, error)

    # -- requests --------------------------------------------------------------------------------------------------

    def on_completed(self, action: SessionCanvasRequestCompletedAction) -> None:
        self._requests.on_completed(action)

    def on_close_requested(self, instance_id: str) -> None:
        """A client asks to close an instance. Nothing happens if it is not open."""
        if self._instance(instance_id) is not None:
            self._services.spawn(self._close_for_client(instance_id), name="close a canvas")

    async def _close_for_client(self, instance_id: str) -> None:
        try:
            await self.close(instance_id)
        except CanvasError as error:
            _log.info("the canvas instance %s was not closed: %s", instance_id, error)

    def _alone(self, instance_id: str) -> asyncio.Lock:
        """A lock, so that an instance is opened or closed by one call at a time. The lock exists while somebody
        holds or awaits it."""
        return self._locks.setdefault(instance_id, asyncio.Lock())

    async def open(
        self, canvas_id: str, instance_id: str, extension_id: str | None, input: Any
    ) -> tuple[JsonObject, bool]:
        """Open or reopen an instance. Returns its entry in the state, and whether it was open before.

        Without input a reopen has the input of the last time.
        """
        given = own_input(input)
        async with self._alone(check_id(instance_id)):
            declaration = find_canvas(self.registry, canvas_id, extension_id)
            before = self._openable(instance_id, declaration)
            if given is None and before is not None:
                given = before.get("input")
            check_input(declaration.get("inputSchema"), given)
            reopen = before is not None
            call = self._call({**declaration, "instanceId": instance_id}, input=given, reopen=reopen or None)
            instance = await self._opened(declaration, call)
            self.runtime.instance_opened(instance, reopen=reopen)
            return instance, reopen

    async def _opened(self, declaration: JsonObject, call: JsonObject) -> JsonObject:
        """Let the provider open the instance, and dispatch that it is open."""
        key, instance_id = key_of(declaration), call["instanceId"]
        appeared = self._declared.get(key)
        self._opening.add(instance_id)
        try:
            result = await self._ask("open", call, declaration)
        finally:
            self._opening.discard(instance_id)
        # Between its answer and now the provider may have left, and may even be back without knowing the instance.
        now = self._declared.get(key)
        renderer = self._renderer(declaration)
        instance = new_instance(declaration, call, result, available=now == appeared, renderer=renderer)
        self._show(instance)
        if now not in (None, appeared):
            self._rehydrate_soon(instance, instance["extensionId"])
        return instance

    def _openable(self, instance_id: str, declaration: JsonObject) -> JsonObject | None:
        """The instance if it is open; raises when the id belongs to another canvas, or when too many are open."""
        before = self._instance(instance_id)
        if before is None:
            taken = {one["instanceId"] for one in self.instances} | self._opening
            if len(taken) >= self._max_instances:
                raise CanvasError(
                    f"a session may have {self._max_instances} open canvas instances; close one first", code=LIMIT
                )
        elif not self._provides(declaration, before):
            raise CanvasError(
                f"{instance_id!r} is an instance of {before['canvasId']!r} of {before['extensionId']!r}",
                code=INSTANCE_TAKEN,
            )
        return before

    def _renderer(self, declaration: JsonObject) -> str | None:
        """The client that shows an instance: for a client's own canvas that client, otherwise the first active client
        that can render."""
        if declaration["source"] == "activeClient":
            return declaration["clientId"]
        return renderer_of(self.state)

    async def invoke(self, instance_id: str, action_name: str, input: Any) -> JsonObject:
        """Run an action of an open instance: `{kind: action, value?}`."""
        given = own_input(input)
        instance = self._required(instance_id)
        declaration = self._declaration(instance)
        if declaration is None or instance["availability"] != "ready":
            raise CanvasError(f"the provider of {instance_id!r} is gone; open it again", code=PROVIDER_UNAVAILABLE)
        action = find_action(declaration, action_name)
        check_input(action.get("inputSchema"), given)
        return await self._ask("action", self._call(instance, actionName=action_name, input=given), declaration)

    async def close(self, instance_id: str) -> None:
        """Close an instance. An instance without a provider is only removed from the state."""
        async with self._alone(instance_id):
            instance = self._required(instance_id)
            declaration = self._declaration(instance)
            if declaration is not None and instance["availability"] == "ready":
                await self._ask("close", self._call(instance), declaration)
            self._requests.cancel_instance(instance_id)
            self._dispatch(session_canvas_instance_closed(instance_id=instance_id))
            self.publish()  # A built-in canvas that nobody can show was declared only while it was open.
            self._services.tools_changed(self.uri)

    def _call(self, subject: JsonObject, **extra: Any) -> JsonObject:
        identity = {key: subject[key] for key in ("extensionId", "canvasId", "instanceId")}
        given = {key: value for key, value in extra.items() if value is not None}
        return {**call_context(self.uri, self.state), **identity, **given}

    async def _ask(self, kind: CanvasRequestKind, call: JsonObject, declaration: JsonObject) -> JsonObject:
        target = declaration.get("clientId") or self._providers.get(declaration["extensionId"])
        if target is None or self._closing:
            raise CanvasError(f"the provider {declaration['extensionId']!r} is gone", code=PROVIDER_UNAVAILABLE)
        result = await self._requests.ask(kind, call, target)
        if not self.state:
            raise CanvasError("the session is gone", code=PROVIDER_UNAVAILABLE)
        return result


__all__ = ["SessionBridge"]
