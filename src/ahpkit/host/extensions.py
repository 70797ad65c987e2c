"""Protocol extensions: methods that begin with `_`, who offers them, who may be called. Knows no transport.

The host's own are registered with `Host.extension`; clients advertise theirs in `capabilities._meta`, agents in
their own capabilities. Nobody is called that did not advertise.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import LocalProtocolError, MethodNotFound

_log = logging.getLogger(__name__)

Handler = Callable[[ConnectedClient, JsonObject], Awaitable[Any] | Any]

RESERVED_META = frozenset({"traceparent", "tracestate", "baggage"})


class Audience(Protocol):
    """Which clients could be asked about a session."""

    def active_client(self, session_uri: str) -> str | None: ...

    def clients(self) -> Iterable[ConnectedClient]: ...

    def subscribers(self, uri: str) -> Iterable[ConnectedClient]: ...


def namespace_of(method: str) -> str:
    """`_example.com/analytics/summary` belongs to `example.com/analytics`."""
    return method.removeprefix("_").rpartition("/")[0]


def check_namespace(name: str) -> None:
    """An extension name has an owner and a feature: `example.com/analytics` or `myproject/analytics`."""
    owner, _, feature = name.partition("/")
    if not owner or not feature or name.startswith("_") or name in RESERVED_META:
        raise LocalProtocolError(
            f"{name!r} is not an extension name; put a namespace before it, such as 'example.com/{name or 'feature'}'"
        )


def advertises(capabilities: Mapping[str, Any], method: str) -> bool:
    """Whether a peer's capability object offers the extension a method belongs to."""
    meta: Mapping[str, Any] = capabilities.get("_meta") or {}
    parts = namespace_of(method).split("/")
    return any("/".join(parts[:end]) in meta for end in range(1, len(parts) + 1))


class Extension:
    """One extension of this host: decorate handlers with `request` and `notification`."""

    def __init__(self, name: str, *, version: str | None, capability: JsonObject) -> None:
        check_namespace(name)
        self.name = name
        self.capability: JsonObject = ({"version": version} if version else {}) | capability
        self.requests: dict[str, Handler] = {}
        self.notifications: dict[str, Handler] = {}

    def request(self, method: str) -> Callable[[Handler], Handler]:
        """Serve `_<name>/<method>`."""
        return self._register(self.requests, method)

    def notification(self, method: str) -> Callable[[Handler], Handler]:
        """Hear `_<name>/<method>`."""
        return self._register(self.notifications, method)

    def _register(self, table: dict[str, Handler], method: str) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            table[f"_{self.name}/{method}"] = handler
            return handler

        return register


class Extensions:
    """The extensions of a host, and the way between agents and the clients that share one."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._extensions: dict[str, Extension] = {}

    def register(self, extension: Extension) -> None:
        if extension.name in self._extensions:
            raise LocalProtocolError(f"the extension {extension.name!r} is registered already")
        self._extensions[extension.name] = extension

    def advertised(self) -> JsonObject:
        """What goes into `_meta` of the initialize result and of root state."""
        return {name: extension.capability for name, extension in self._extensions.items()}

    def client_request(self, method: str) -> Callable[[ConnectedClient, JsonObject], Awaitable[Any]] | None:
        """The handler of a client's extension request, or None."""
        for extension in self._extensions.values():
            if (handler := extension.requests.get(method)) is not None:
                return _awaited(handler)
        return None

    def client_notification(self, client: ConnectedClient, method: str, params: JsonObject) -> None:
        """Hand an extension notification to whoever registered it; unknown ones are ignored."""
        for extension in self._extensions.values():
            if (handler := extension.notifications.get(method)) is not None:
                try:
                    handler(client, params)
                except Exception:
                    _log.exception("the handler of %s failed", method)

    async def forward_request(self, session_uri: str, chat_uri: str, method: str, params: JsonObject) -> Any:
        """Ask a client on an agent's behalf: the active one first, then any that advertised the extension."""
        active = self._audience.active_client(session_uri)
        able = [client for client in self._audience.clients() if advertises(client.capabilities, method)]
        able.sort(key=lambda client: client.client_id != active)
        if not able:
            raise MethodNotFound(f"no connected client offers {method}")
        return await able[0].request(method, {**params, "channel": chat_uri})

    def forward_notification(self, chat_uri: str, method: str, params: JsonObject) -> None:
        """Tell the chat's subscribers that advertised the extension."""
        for client in self._audience.subscribers(chat_uri):
            if advertises(client.capabilities, method):
                client.notify(method, {**params, "channel": chat_uri})


def _awaited(handler: Handler) -> Callable[[ConnectedClient, JsonObject], Awaitable[Any]]:
    async def call(client: ConnectedClient, params: JsonObject) -> Any:
        result = handler(client, params)
        return await result if inspect.isawaitable(result) else result

    return call


__all__ = ["Audience", "Extension", "Extensions", "advertises", "check_namespace", "namespace_of"]
