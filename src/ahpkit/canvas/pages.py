"""Serves pages of canvases on the host's own port, with one secret address per instance.

    GET  /canvas/SECRET/                        the page; its scripts run in an origin of their own, whoever shows it
    GET  /canvas/SECRET/news?after=VERSION      waits for something newer: {"version": 7, "data": …}
    POST /canvas/SECRET/change                  what the user did, {"key": …, "action": …, "input": …}:
                                                {"value": …} or {"error": {"code", "message"}}

Whoever knows the address may look; clients get it in the session's state. To change something the key is needed too,
which only the page contains: following a link, or a foreign page's request, changes nothing. Each page has a second
address whose page contains no key, for clients that may only look: see `Pages.for_looking`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, NotRequired, TypedDict
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from ahpkit.canvas.errors import INVALID_INPUT, CanvasError
from ahpkit.http.router import Access, Router
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import RpcError
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import decode_json, encode

PREFIX = "/canvas"
"""The beginning of the paths of all pages."""

POLL_SECONDS = 25.0
"""Seconds that a request for `news` waits: less than proxies wait for an answer."""

MAX_WAITING = 32
"""Requests that may wait for the news of one page: more than anyone has windows."""

FRAMED_BY = ("'self'", "http://localhost:*", "http://127.0.0.1:*", "http://*.localhost:*", "vscode-webview:")
"""The sources that may show a canvas in a frame, in addition to the allowed origins: renderers on this machine."""

_ADDRESS = re.compile(rb"/canvas/([A-Za-z0-9_-]{43})/")
"""The address of a page in a message. Both addresses of a page have the same length."""

_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
"""The page's origin is opaque, so its own requests count as foreign. The address is the secret, and cookies are
ignored."""

OnChange = Callable[[JsonObject], Awaitable[Any]]
"""Carries out what the user did on the page: `{"action": …, "input": …}`. Raises `CanvasError`."""


class _Done(TypedDict):
    key: str
    action: str
    input: NotRequired[dict[str, Any]]


class Page:
    """One page and its data. `publish` shows new data in every window that has it open."""

    def __init__(
        self,
        base: str,
        html: str,
        on_change: OnChange,
        *,
        framed_by: Iterable[str],
        poll_seconds: float = POLL_SECONDS,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._poll_seconds = poll_seconds
        self._max_waiting = max_waiting
        self.secret, self.look_secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._base = base
        self.url = self._url(self.secret)
        self._framed_by = " ".join(framed_by)
        self._html = html
        self._key = secrets.token_urlsafe(16)
        self._on_change = on_change
        self._version = 0
        self._data = b"null"
        self._changed = asyncio.Event()
        self._waiting = 0

    def _url(self, secret: str) -> str:
        return f"{self._base}{PREFIX}/{secret}/"

    def _may_change(self, request: Request) -> bool:
        return hmac.compare_digest(request.path_params["secret"], self.secret)

    def publish(self, data: Any) -> None:
        self._data = encode(data)
        self._version += 1
        self.wake()

    def wake(self) -> None:
        """Answer the requests that wait for new data."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def show(self, request: Request) -> Response:
        """The page, with its key at the first of its addresses only."""
        nonce = secrets.token_urlsafe(16)
        key = self._key if self._may_change(request) else ""
        body = self._html.replace("__NONCE__", nonce).replace("__KEY__", key)
        policy = {
            "default-src": "'none'",
            "script-src": f"'nonce-{nonce}'",
            "style-src": f"'nonce-{nonce}'",
            "connect-src": self._url(request.path_params["secret"]),
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": self._framed_by,
            "sandbox": "allow-scripts allow-forms",
        }
        headers = {"Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items())}
        return HTMLResponse(body, headers=headers)

    async def news(self, request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if self._waiting >= self._max_waiting:
            return _json(429, {"error": "too many windows wait for this page"})
        if after == str(self._version):
            await self._wait()
        body = b'{"version":%d,"data":%b}' % (self._version, self._data)
        return Response(body, 200, _ANY_ORIGIN, "application/json")

    async def _wait(self) -> None:
        self._waiting += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    await self._changed.wait()
        finally:
            self._waiting -= 1

    async def change(self, request: Request) -> Response:
        try:
            done = _done(await request.body())
            if not self._may_change(request):
                return _json(403, {"error": {"code": "forbidden", "message": "this device may only look"}})
            if not hmac.compare_digest(done.pop("key").encode(), self._key.encode()) or not _is_fetch(request):
                return _json(403, {"error": {"code": "forbidden", "message": "only the page itself may do this"}})
            return _json(200, {"value": await self._on_change(done)})
        except CanvasError as error:
            return _json(400, {"error": {"code": error.code, "message": error.message}})


class Pages:
    """All pages of a host. A page that is opened before the server listens waits for its address.

    `origins` are the origins whose pages may connect to the host. They may show canvases, too.
    """

    def __init__(
        self,
        *,
        origins: Iterable[str] = (),
        poll_seconds: float = POLL_SECONDS,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._poll_seconds = poll_seconds
        self._max_waiting = max_waiting
        self._framed_by = (*FRAMED_BY, *map(_frame_source, origins))
        self._pages: dict[str, Page] = {}
        self._base: str | None = None
        self._listening = asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self, url: str, *, page_url: str | None = None) -> AsyncGenerator[None]:
        """While the server listens at this WebSocket URL. At the end nobody is left waiting.

        `page_url` is where browsers reach it, when that is elsewhere: behind a proxy, for example.
        """
        self._base = _web_url(url) if page_url is None else page_url.rstrip("/")
        self._listening.set()
        try:
            yield
        finally:
            for page in tuple(self._pages.values()):
                self.release(page)

    async def open(self, html: str, *, on_change: OnChange) -> Page:
        """Make a new page at a new address."""
        await self._listening.wait()
        assert self._base is not None
        page = Page(
            self._base,
            html,
            on_change,
            framed_by=self._framed_by,
            poll_seconds=self._poll_seconds,
            max_waiting=self._max_waiting,
        )
        self._pages |= {page.secret: page, page.look_secret: page}
        return page

    def release(self, page: Page) -> None:
        """Remove a page. Its address is never used again."""
        for secret in (page.secret, page.look_secret):
            self._pages.pop(secret, None)
        page.wake()

    def for_looking(self, message: bytes) -> bytes:
        """A message with the addresses at which nothing can be changed, for clients that may only look."""
        return _ADDRESS.sub(self._look, message) if b"/canvas/" in message else message

    def _look(self, found: re.Match[bytes]) -> bytes:
        page = self._pages.get(found[1].decode())
        return found[0] if page is None else f"{PREFIX}/{page.look_secret}/".encode()

    def mount(self, router: Router) -> None:
        """Serve the pages. Whoever knows the address of a page may see it."""
        routes = [
            Route("/{secret}/", self._answering(Page.show)),
            Route("/{secret}/news", self._answering(Page.news)),
            Route("/{secret}/change", self._answering(Page.change), methods=["POST"]),
        ]
        router.mount(PREFIX, Starlette(routes=routes), access=Access.PUBLIC)

    def _answering(self, answer: Callable[[Page, Request], Awaitable[Response]]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            page = self._pages.get(request.path_params["secret"])
            if page is None:
                return PlainTextResponse("this canvas is closed\n", 410, _ANY_ORIGIN)
            return await answer(page, request)

        return endpoint


def _frame_source(origin: str) -> str:
    """An allowed origin as a source of `frame-ancestors`: `vscode-webview://*` is written `vscode-webview:`."""
    return origin.removesuffix("//*")


def _web_url(url: str) -> str:
    parts = urlsplit(url)
    # Renderers load plain http from localhost and 127.0.0.1, and from nowhere else.
    authority = f"localhost:{parts.port}" if parts.hostname == "::1" else parts.netloc
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{authority}"


def _is_fetch(request: Request) -> bool:
    """A script's request, from the page or from a program: not a link, an image or a form."""
    return request.headers.get("sec-fetch-dest", "empty") == "empty"


def _done(body: bytes) -> JsonObject:
    try:
        done: Any = decode_json(body)
        check(_Done, done, at="the body")
    except RpcError as error:
        raise CanvasError(error.message, code=INVALID_INPUT) from None
    return done


def _json(status: int, value: Any) -> Response:
    return Response(encode(value), status, _ANY_ORIGIN, "application/json")


__all__ = ["FRAMED_BY", "MAX_WAITING", "PREFIX", "OnChange", "Page", "Pages"]
