"""Pages of canvases, served from the host's own port: one secret address per instance. Knows no canvas.

    /canvas/SECRET/                          the page; its scripts run in an origin of their own, whoever shows it
    /canvas/SECRET/news?after=VERSION        waits for something newer: {"version": 7, "data": …}
    /canvas/SECRET/change?key=KEY&do=JSON    what the user did: {"value": …} or {"error": {"code", "message"}}

Who knows the address may look; it stands in the session's state, which only its clients can read. To change something
the key is needed too, which is in the page and nowhere else: following a link, or a foreign page's request, changes
nothing. Everything is a GET, because the server beside the WebSocket takes no bodies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NotRequired, TypedDict
from urllib.parse import parse_qs, urlsplit

from ahpkit.canvas.errors import INVALID_INPUT, CanvasError
from ahpkit.protocol.codec import decode_json, encode
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import RpcError
from ahpkit.protocol.validation import check
from ahpkit.transports.gate import HttpRequest, HttpResponse

PREFIX = "/canvas/"

POLL_SECONDS = 8.0
"""How long `news` waits. The server gives a request ten seconds in all."""

MAX_WAITING = 32
"""Requests that wait for the news of one page: more windows than anyone has."""

_JSON = "application/json"
_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
"""The page's origin is opaque, so its own requests are foreign ones. The address is the secret; no cookie counts."""

OnChange = Callable[[JsonObject], Awaitable[Any]]
"""Does what the user did on the page: `{"action": …, "input": …}`. Raises `CanvasError`."""


class _Done(TypedDict):
    action: str
    input: NotRequired[dict[str, Any]]


class Page:
    """One page and its data. `publish` shows new data in every window that has it open."""

    def __init__(self, base: str, html: str, on_change: OnChange) -> None:
        self.secret = secrets.token_urlsafe(32)
        self.url = f"{base}{PREFIX}{self.secret}/"
        self._html = html
        self._key = secrets.token_urlsafe(16)
        self._on_change = on_change
        self._version = 0
        self._data = b"null"
        self._changed = asyncio.Event()
        self._waiting = 0

    def publish(self, data: Any) -> None:
        self._data = encode(data)
        self._version += 1
        self.wake()

    def wake(self) -> None:
        """Answer whoever waits."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def show(self) -> HttpResponse:
        nonce = secrets.token_urlsafe(16)
        body = self._html.replace("__NONCE__", nonce).replace("__KEY__", self._key)
        policy = {
            "default-src": "'none'",
            "script-src": f"'nonce-{nonce}'",
            "style-src": f"'nonce-{nonce}'",
            "connect-src": self.url,
            "base-uri": "'none'",
            "form-action": "'none'",
            "sandbox": "allow-scripts allow-forms",
        }
        headers = {"Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items())}
        return HttpResponse(200, body.encode(), "text/html; charset=utf-8", headers)

    async def news(self, query: dict[str, list[str]]) -> HttpResponse:
        after = query.get("after", ["0"])[0]
        if self._waiting >= MAX_WAITING:
            return _json(429, {"error": "too many windows wait for this page"})
        if after == str(self._version):
            await self._wait()
        body = b'{"version":%d,"data":%b}' % (self._version, self._data)
        return HttpResponse(200, body, _JSON, _ANY_ORIGIN)

    async def _wait(self) -> None:
        self._waiting += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait()
        finally:
            self._waiting -= 1

    async def change(self, request: HttpRequest, query: dict[str, list[str]]) -> HttpResponse:
        given = query.get("key", [""])[0]
        if not hmac.compare_digest(given.encode(), self._key.encode()) or not _is_fetch(request):
            return _json(403, {"error": {"code": "forbidden", "message": "only the page itself may do this"}})
        try:
            return _json(200, {"value": await self._on_change(_done(query))})
        except CanvasError as error:
            return _json(400, {"error": {"code": error.code, "message": error.message}})


class Pages:
    """All pages of a host: an `HttpHandler`. A page that is opened before the server listens waits for its address."""

    def __init__(self) -> None:
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
        """A new page at a new address."""
        await self._listening.wait()
        assert self._base is not None
        page = Page(self._base, html, on_change)
        self._pages[page.secret] = page
        return page

    def release(self, page: Page) -> None:
        """The page is gone; its address will never mean anything again."""
        self._pages.pop(page.secret, None)
        page.wake()

    async def __call__(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path.startswith(PREFIX):
            return None
        secret, _, rest = request.path.removeprefix(PREFIX).partition("/")
        page = self._pages.get(secret)
        if page is None:
            return HttpResponse(410, b"this canvas is closed\n", headers=_ANY_ORIGIN)
        query = parse_qs(request.query)
        match rest:
            case "":
                return page.show()
            case "news":
                return await page.news(query)
            case "change":
                return await page.change(request, query)
            case _:
                return None


def _web_url(url: str) -> str:
    parts = urlsplit(url)
    # Renderers load plain http from localhost and 127.0.0.1, and from nowhere else.
    authority = f"localhost:{parts.port}" if parts.hostname == "::1" else parts.netloc
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{authority}"


def _is_fetch(request: HttpRequest) -> bool:
    """A script's request, from the page or from a program: not a link, an image or a form."""
    return request.headers.get("sec-fetch-dest", "empty") == "empty"


def _done(query: dict[str, list[str]]) -> JsonObject:
    try:
        done: Any = decode_json(query.get("do", [""])[0])
        check(_Done, done, at="do")
    except RpcError as error:
        raise CanvasError(error.message, code=INVALID_INPUT) from None
    return done


def _json(status: int, value: Any) -> HttpResponse:
    return HttpResponse(status, encode(value), _JSON, _ANY_ORIGIN)


__all__ = ["MAX_WAITING", "POLL_SECONDS", "PREFIX", "OnChange", "Page", "Pages"]
