"""The ASGI application of the port: gate, router, body limit, headers.

Every answer gets the headers that keep browsers strict. Applications find the decision about the request's token in
`request.state.admission`; on a route that is not public, the request is always admitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from email.utils import formatdate
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ahpkit.http.gate import Gate, Head, Refusal
from ahpkit.http.router import NO_STORE, Access, Receive, Route, Router, Scope, Send
from ahpkit.transports.auth import Admission

HEALTH_PATH = "/healthz"

_LONGEST_PATH = 2_048
"""Characters of a path. Longer ones cannot be file names, and the system would raise an error."""


class Front:
    """Answers every HTTP request of a server."""

    def __init__(self, gate: Gate, routes: Router) -> None:
        self._gate = gate
        self._routes = routes
        self._health = Route(HEALTH_PATH, _health, Access.PUBLIC, NO_STORE, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._find(scope["path"])
        answering = _Answering(send, cache=NO_STORE if route is None else route.cache)
        decision = self._decide(head_of(scope), route)
        try:
            if route is None or isinstance(decision, Refusal):
                refusal = decision if isinstance(decision, Refusal) else Refusal(404, "not found")
                await _refuse(refusal, scope, receive, answering)
            else:
                await _run(route, decision, scope, receive, answering)
        except asyncio.CancelledError:
            pass  # The server ends. uvicorn would log it as a failure of the application.

    def _find(self, path: str) -> Route | None:
        """The route of a path. No route has a path that is too long for a file."""
        if len(path) > _LONGEST_PATH or not path.isprintable():
            return None
        return self._health if path == HEALTH_PATH else self._routes.find(path)

    def _decide(self, head: Head, route: Route | None) -> Admission | Refusal:
        refusal = self._gate.refuse_host(head.headers)
        if refusal is not None:
            return refusal
        if route is None or route.access is Access.PUBLIC:
            return self._gate.identify(head)
        admission = self._gate.admit(head)
        if isinstance(admission, Admission) and admission.ambient and route.access is not Access.DEVICE:
            return Refusal(403, "only programs that have the token may ask for this")
        return admission


def head_of(scope: Scope) -> Head:
    """The parts of an ASGI request that the gate checks. Headers that were sent twice are joined."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(scope["method"], scope["query_string"].decode("latin-1"), headers)


async def _run(route: Route, admission: Admission, scope: Scope, receive: Receive, answering: _Answering) -> None:
    scope["root_path"] = scope.get("root_path", "") + route.prefix
    scope.setdefault("state", {})["admission"] = admission
    try:
        await route.app(scope, _Body(scope, receive, route.max_body), answering)
    except HTTPException as error:
        if answering.started:
            raise
        headers = dict(error.headers or {})
        await _refuse(Refusal(error.status_code, error.detail, headers), scope, receive, answering)


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, answering: _Answering) -> None:
    """Send the reason and close the connection, so that the rest of the body is not read."""
    headers = {**refusal.headers, "Connection": "close"}
    await PlainTextResponse(f"{refusal.reason}\n", refusal.status, headers)(scope, receive, answering)


async def _health(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        raise HTTPException(405, "only GET and HEAD", {"Allow": "GET, HEAD"})
    response: Response = JSONResponse({"status": "ok", "name": "ahpkit"})
    await response(scope, receive, send)


class _Answering:
    """`send` of a request: adds the headers that every answer has."""

    def __init__(self, send: Send, *, cache: str) -> None:
        self._send = send
        self._cache = cache
        self.started = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            headers.setdefault("Date", formatdate(usegmt=True))
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Referrer-Policy", "no-referrer")  # A page's URL may hold the token.
            headers.setdefault("Cache-Control", self._cache)
            message["headers"] = headers.raw
        await self._send(message)
        if message.get("more_body"):
            await asyncio.sleep(0)  # uvicorn's `send` does not wait when the peer is gone.


class _Body:
    """`receive` of a request: ends it with 413 when the body is longer than its route allows."""

    def __init__(self, scope: Scope, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._announced: str = Headers(scope=scope).get(
            "content-length", ""
        )  # These are digits, because the server refuses anything else.
        self._size = 0

    async def __call__(self) -> MutableMapping[str, Any]:
        if int(self._announced[:18] or 0) > self._limit:
            raise self._too_long()  # Before the sender is told to go on (100 Continue).
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise self._too_long()
        return message

    def _too_long(self) -> HTTPException:
        return HTTPException(413, f"the body is longer than {self._limit} bytes", {"Connection": "close"})


__all__ = ["Front"]
