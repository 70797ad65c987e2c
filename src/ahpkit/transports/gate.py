"""Who may come in, and what plain HTTP requests on the same port get. Decides by the request head; knows no sockets.

A browser will carry any page's requests to this machine. Three checks keep foreign pages out:

    Host      must name this server: a foreign name that resolves to our address (DNS rebinding) is refused
    Origin    of a WebSocket must be our own page or an allowed one; programs send none
    token     see `ahpkit.transports.auth`
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from ahpkit.transports.auth import Admission, Authenticator, is_loopback

HEALTH_PATH = "/healthz"

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A GET or HEAD request that is not a WebSocket."""

    path: str
    """As sent, without the query."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    admission: Admission
    """What the token it came with is worth. A page may be public: the handler decides."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What to answer. Length, date and the headers that keep browsers strict are added."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


HttpHandler = Callable[[HttpRequest], Awaitable[HttpResponse | None]]
"""Serves pages beside the WebSocket; None means there is no such page."""


class Gate:
    """The checks and answers of one server. `host` is what it is bound to, None for a Unix socket."""

    def __init__(
        self,
        *,
        auth: Authenticator,
        host: str | None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        http: HttpHandler | None = None,
    ) -> None:
        self._auth = auth
        self._host = None if host is None else host.lower()
        self._hosts = {name.lower() for name in hosts}
        self._origins = {origin.lower() for origin in origins}
        self._http = http

    async def decide(self, method: str, target: str, headers: Mapping[str, str]) -> Admission | HttpResponse:
        """A WebSocket that may come in gets its admission, everything else an answer."""
        if method not in ("GET", "HEAD"):
            return HttpResponse(405, b"only GET and HEAD\n", headers={"Allow": "GET, HEAD"})
        path, _, query = target.partition("?")
        refusal = self._refuse_host(headers.get("host", ""))
        if refusal is not None:
            return _forbidden(refusal)
        admission = self._auth.admit(headers, query)
        if headers.get("upgrade", "").lower() == "websocket":
            return self._decide_websocket(admission, headers)
        return await self._answer(HttpRequest(path, query, headers, admission))

    def _decide_websocket(self, admission: Admission, headers: Mapping[str, str]) -> Admission | HttpResponse:
        refusal = self._refuse_origin(headers.get("origin"), headers.get("host", ""))
        if refusal is not None:
            return _forbidden(refusal)
        if not admission.allowed:
            return HttpResponse(401, f"{admission.reason}\n".encode(), headers={"WWW-Authenticate": "Bearer"})
        return admission

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == HEALTH_PATH:
            return HttpResponse(200, b'{"status":"ok","name":"ahpkit"}', "application/json")
        response = await self._http(request) if self._http is not None else None
        return response or HttpResponse(404, b"not found\n")

    def _refuse_host(self, header: str) -> str | None:
        if self._host is None:
            return None  # No name leads to a Unix socket.
        host = _split(f"//{header}")
        if host is None or not host.hostname:
            return "the Host header is missing or malformed"
        if self._is_ours(host.hostname):
            return None
        return f"{host.hostname} is not a name of this server: add it to the allowed hosts, or use the address"

    def _is_ours(self, name: str) -> bool:
        if is_loopback(name) or name == self._host or name in self._hosts:
            return True
        # Bound to every interface, any address may be ours. Rebinding needs a name, so addresses are safe.
        return self._host in ("", "0.0.0.0", "::") and _is_address(name)

    def _refuse_origin(self, header: str | None, host_header: str) -> str | None:
        if header is None or self._is_allowed(header.lower()):
            return None
        origin, host = _split(header), _split(f"//{host_header}")
        if origin is not None and host is not None and _same_server(origin, host):
            return None
        return f"pages of {header} may not connect: add it to the allowed origins"

    def _is_allowed(self, origin: str) -> bool:
        scheme = origin.partition("://")[0]
        return origin in self._origins or f"{scheme}://*" in self._origins


def _same_server(origin: SplitResult, host: SplitResult) -> bool:
    """Whether a page was loaded from where it connects to, a tunnel to us included. All loopback names are one."""
    default = _DEFAULT_PORTS.get(origin.scheme)
    if default is None or (origin.port or default) != (host.port or default):
        return False
    ours, theirs = host.hostname or "", origin.hostname or ""
    return ours == theirs or (is_loopback(ours) and is_loopback(theirs))


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # Raises when it is not one.
    except ValueError:
        return None
    return None if parts.username is not None or parts.path or parts.query or parts.fragment else parts


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _forbidden(reason: str) -> HttpResponse:
    return HttpResponse(403, f"{reason}\n".encode())


__all__ = ["HEALTH_PATH", "Gate", "HttpHandler", "HttpRequest", "HttpResponse"]
