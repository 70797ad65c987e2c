"""Finds the application that answers a path, and the rules of its route.

A feature brings an ASGI application (Starlette's `Router` and `StaticFiles` are some) and mounts it:

    router.mount("/canvas", pages.app, access=Access.PUBLIC)
    router.mount("/environment", app, max_body=64 * 1024)
    router.mount("/assets", StaticFiles(directory=…), access=Access.PUBLIC, cache="max-age=31536000, immutable")
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI 3 application. It gets only requests of type `http`, because WebSockets do not go through ASGI here."""

NO_STORE = "no-store"
"""The default caching rule, because answers may contain private data."""

MAX_BODY = 1024 * 1024
"""Bytes of a request's body, unless its route allows more."""


class Access(Enum):
    """Who may send requests to a route. The Host header is checked for all of them."""

    TOKEN = "token"
    """Requests with the token; from a browser only if one of our own pages sent them."""
    DEVICE = "device"
    """Also a browser with the cookie of a device; the application checks the device's right."""
    PUBLIC = "public"
    """Everyone: the application protects itself, or has nothing private."""


@dataclass(frozen=True, slots=True)
class Route:
    """An application and its rules."""

    prefix: str
    """The beginning of every path of the route, such as `/canvas`; empty for the root."""
    app: AsgiApp
    access: Access
    cache: str
    """The `Cache-Control` header of answers that have none."""
    max_body: int


class Router:
    """The routes of one server. Where several prefixes fit a path, the longest counts."""

    def __init__(self) -> None:
        self._routes: dict[str, Route] = {}

    def mount(
        self,
        prefix: str,
        app: AsgiApp,
        *,
        access: Access = Access.TOKEN,
        cache: str = NO_STORE,
        max_body: int = MAX_BODY,
    ) -> None:
        """Let `app` answer `prefix` and everything below it.

        As ASGI has it, the application gets the whole path, and the prefix as `root_path`. Raises `ValueError` for a
        prefix that is taken or malformed: it starts with a slash and, except for the root, does not end with one.
        """
        if prefix != "/" and (not prefix.startswith("/") or prefix.endswith("/") or "//" in prefix):
            raise ValueError(f"{prefix!r} is not a prefix: expected '/' or something like '/canvas'")
        key = prefix.rstrip("/")
        if key in self._routes:
            raise ValueError(f"{prefix!r} is mounted already")
        self._routes[key] = Route(key, app, access, cache, max_body)

    def find(self, path: str) -> Route | None:
        """The route of a path."""
        while path:
            if path in self._routes:
                return self._routes[path]
            path = path.rpartition("/")[0]
        return self._routes.get("")


__all__ = ["MAX_BODY", "NO_STORE", "Access", "AsgiApp", "Receive", "Route", "Router", "Scope", "Send"]
