"""Serves the page on the host's port: files, the login cookie, devices.

GET  /                        the page
GET  /assets/…                its files; their names change with their content
GET  /in?code=CODE            spend a one-time code: sets the cookie and leads to the page
POST /in                      the same for a code that was typed
GET  /page/me                 what this browser may
GET  /page/devices            who may come in; POST /page/devices/revoke
POST /page/pair               a code for another device
POST /page/link               a link for this machine's browser: for programs that have the token
POST /page/frame              keep a `data:` canvas; GET /page/frame/ID shows it under a policy of its own
POST /page/sign-in            begin to sign in to an MCP server
POST /page/out                forget this browser
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ahpkit.http.router import Access, Router
from ahpkit.transports.auth import Admission, is_loopback
from ahpkit.web import data_canvases
from ahpkit.web.devices import PAIR_SECONDS, RIGHTS, Device, DeviceError, Devices, Right, RightsTransport
from ahpkit.web.signin import Begin, SignInFailed
from ahpkit.wire.transport import Transport

FILES = Path(__file__).parent / "page"
"""The folder of the built page. It is built from `web/` in the repository, and is part of every wheel."""

_DEVICE = "device:"
"""Prefix of the credential of a connection that was admitted by a cookie."""

_NOT_REACHED = "Other devices cannot reach this host: it listens on this machine only, or without TLS."
_TO_BE_REACHED = 'To change that, write host = "0.0.0.0" and tls_authority = true below [host] in its settings.'

_MAX_AGE = 90 * 86_400
_IMMUTABLE = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "manifest-src": "'self'",
    "font-src": "'self'",
    "frame-src": "'self' data: https: http://127.0.0.1:* http://localhost:*",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
"""The content security policy: only the page's own origin, and no inline script. Frames are for canvases, which run in
a sandbox without an origin."""

HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="5"><title>ahpkit</title>
<h1>The host runs. Its page has not been built.</h1>
<p>In a checkout of the repository, run <code>make page</code>; this page then appears by itself.
Until then, <code>ahpkit chat</code> talks to the host in a terminal.</p></html>
"""

Handler = Callable[[Transport], Awaitable[None]]


class PageServer:
    """The page of one host. `name` makes the name of its cookie unique: all ports of a machine share their cookies.

    `for_looking` gives the form of a message for browsers that may not do everything: see `RightsTransport`.
    """

    def __init__(
        self,
        devices: Devices,
        *,
        name: str,
        files: Path = FILES,
        authority: Path | None = None,
        sign_in: Begin | None = None,
        for_looking: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """`sign_in` begins to sign in to an MCP server of a session; None: this host cannot."""
        self._devices = devices
        self._for_looking = for_looking
        self._cookie = f"ahpkit_{name}"
        self._name = name
        self._files = files
        self._authority = authority
        self._url: str | None = None
        self._public_url: str | None = None
        self._begin_sign_in = sign_in
        self._open: dict[str, set[Transport]] = {}
        self._data_canvases = data_canvases.DataCanvases()
        devices.on_revoked.append(self._drop)

    def listening(self, url: str, *, page_url: str | None = None) -> None:
        """Set where browsers find the page: a separate name below localhost, or the address at which other devices
        reach the host."""
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port
        scheme = "https" if parts.scheme == "wss" else "http"
        local = is_loopback(host)
        authority = f"ahpkit-{self._name}.localhost:{port}" if local else parts.netloc
        public = None if page_url is None else page_url.rstrip("/")
        own = f"{scheme}://{authority}"
        self._public_url = public or (None if local or scheme == "http" else own)
        # Over TLS only the name in the certificate will do.
        self._url = own if scheme == "http" else (public or own)

    @property
    def url(self) -> str:
        assert self._url is not None, "the server does not listen yet"
        return self._url

    def link(self) -> str:
        """The page with a one-time code for a browser of this machine's user."""
        return f"{self.url}/in?code={self._devices.new_code(right='everything', name='')}"

    # Connections

    def check(self, headers: Mapping[str, str], query: str) -> Admission | None:
        """A `Check` for the authenticator: the cookie of a known device."""
        if (secret := self._secret(headers)) is None:
            return None
        device = self._devices.known(secret)
        if device is None:
            return Admission(False, reason="this browser is not known, or was revoked; run: ahpkit open")
        self._devices.seen(device)
        return Admission(True, credential=_DEVICE + device.id, ambient=True)

    def guard(self, handler: Handler) -> Handler:
        """`handler` for connections with the token; for those of a device, within its right and until it is revoked."""

        async def guarded(transport: Transport) -> None:
            credential = transport.peer.credential or ""
            if not credential.startswith(_DEVICE):
                return await handler(transport)
            device_id = credential.removeprefix(_DEVICE)
            limited = RightsTransport(transport, lambda: self._right(device_id), for_looking=self._for_looking)
            self._open.setdefault(device_id, set()).add(transport)
            try:
                return await handler(limited)
            finally:
                self._open.get(device_id, set[Transport]()).discard(transport)

        return guarded

    def _right(self, device_id: str) -> Right:
        device = self._devices.get(device_id)
        return "watch" if device is None else device.right

    def _drop(self, device_id: str) -> None:
        for transport in self._open.pop(device_id, set[Transport]()):
            transport.abort()

    def _secret(self, headers: Mapping[str, str]) -> str | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return None
        return None if found is None else found.value

    # HTTP

    def mount(self, router: Router) -> None:
        private = [
            Route("/me", self._me),
            Route("/devices", self._list),
            Route("/devices/revoke", self._revoke, methods=["POST"]),
            Route("/pair", self._pair, methods=["POST"]),
            Route("/link", self._link, methods=["POST"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/frame", self._keep_frame, methods=["POST"]),
            Route("/frame/{id}", self._frame),
            Route("/out", self._out, methods=["POST"]),
        ]
        public = [
            Route("/in", self._typed, methods=["POST"]),
            Route("/in", self._enter),
            Route("/authority.crt", self._certificate),
            Route("/{path:path}", self._file),
        ]
        router.mount("/page", _app(private), access=Access.DEVICE)
        router.mount("/", _app(public), access=Access.PUBLIC, cache=_REVALIDATE)

    async def _file(self, request: Request) -> Response:
        name = request.path_params["path"] or "index.html"
        found = (self._files / name).resolve()
        if not found.is_relative_to(self._files.resolve()) or not found.is_file():
            if name == "index.html":
                return Response(_MISSING, 200, HEADERS | {"Cache-Control": "no-store"}, "text/html")
            return PlainTextResponse("not found\n", 404)
        cache = _IMMUTABLE if name.startswith("assets/") else _REVALIDATE
        kind = "application/manifest+json" if name.endswith(".webmanifest") else None
        headers = HEADERS | {"Cache-Control": cache}
        packed = found.with_name(f"{found.name}.gz")
        if packed.is_file():  # Made with the page: `tools/page.py`.
            headers["Vary"] = "Accept-Encoding"
            if "gzip" in request.headers.get("Accept-Encoding", ""):
                return FileResponse(packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=kind)
        return FileResponse(found, headers=headers, media_type=kind)

    async def _certificate(self, request: Request) -> Response:
        """The certificate of this machine's authority, for devices to install. There is nothing secret in it."""
        if self._authority is None or not self._authority.is_file():
            return PlainTextResponse("this host has no authority of its own\n", 404)
        return FileResponse(self._authority, media_type="application/x-x509-ca-cert")

    async def _enter(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response()
        try:
            secret = self._spend(request, request.query_params.get("code", ""))
        except DeviceError:
            return self._index(403)
        answer = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        return self._with_cookie(answer, request, secret)

    async def _typed(self, request: Request) -> Response:
        body = await _body(request)
        try:
            secret = self._spend(request, str(body.get("code", "")).upper())
        except DeviceError as error:
            raise HTTPException(403, str(error)) from None
        return self._with_cookie(JSONResponse({}), request, secret)

    def _spend(self, request: Request, code: str) -> str | None:
        """Spend a code, unless the browser already has at least that right."""
        secret = self._secret(request.headers)
        existing = None if secret is None else self._devices.known(secret)
        return self._devices.redeem(code, name=_browser(request.headers.get("user-agent", "")), existing=existing)

    def _with_cookie(self, answer: Response, request: Request, secret: str | None) -> Response:
        if secret is not None:
            answer.headers.append("Set-Cookie", self._set_cookie(request, secret, _MAX_AGE))
        return answer

    def _set_cookie(self, request: Request, value: str, max_age: int) -> str:
        secure = "; Secure" if request.url.scheme == "https" else ""
        return f"{self._cookie}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Strict{secure}"

    def _index(self, status: int) -> Response:
        """The page itself, which says what is wrong with the link."""
        path = self._files / "index.html"
        headers = HEADERS | {"Cache-Control": "no-store"}
        if not path.is_file():
            text = "This link was used already, or it has expired. Run: ahpkit open\n"
            return PlainTextResponse(text, status, headers)
        return Response(path.read_bytes(), status, headers, "text/html")

    async def _me(self, request: Request) -> Response:
        device = self._device(request)
        pairing = {"possible": True} if self._public_url else {"possible": False, "reason": _NOT_REACHED}
        right = "everything" if device is None else device.right
        return JSONResponse({"right": right, "device": device and device.id, "pairing": pairing})

    async def _list(self, request: Request) -> Response:
        here = self._device(request)
        self._may_everything(here)
        return JSONResponse({"devices": [_shown(device, here) for device in self._devices.all()]})

    async def _revoke(self, request: Request) -> Response:
        self._may_everything(self._device(request))
        try:
            self._devices.revoke(str((await _body(request)).get("id", "")))
        except DeviceError as error:
            raise HTTPException(404, str(error)) from None
        return JSONResponse({})

    async def _pair(self, request: Request) -> Response:
        self._may_everything(self._device(request))
        if self._public_url is None:
            raise HTTPException(409, f"{_NOT_REACHED} {_TO_BE_REACHED}")
        body = await _body(request)
        right: Any = body.get("right", "answer")
        if right not in RIGHTS:
            raise HTTPException(400, f"right: expected one of {', '.join(RIGHTS)}")
        name = str(body.get("name", ""))[:60]
        code = self._devices.new_code(right=right, name=name, seconds=PAIR_SECONDS, typed=True)
        until = datetime.now(UTC).timestamp() + PAIR_SECONDS
        url = f"{self._public_url}/in?code={code}"
        expires = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return JSONResponse({"url": url, "code": f"{code[:5]}-{code[5:]}", "expiresAt": expires})

    async def _link(self, request: Request) -> Response:
        """Make a link. Only programs with the token may do this: a page must not be able to make links for other
        browsers."""
        if self._device(request) is not None:
            raise HTTPException(403, "only a program with the token may ask for a link")
        return JSONResponse({"url": self.link()})

    async def _sign_in(self, request: Request) -> Response:
        """The address where a person signs in. It redirects to this machine, so it works only in a browser here."""
        self._may_everything(self._device(request))
        name = request.url.hostname or ""
        if self._begin_sign_in is None or not (is_loopback(name) or name.endswith(".localhost")):
            raise HTTPException(409, "Sign in on the machine where the host runs: open its page there.")
        body = await _body(request)
        try:
            url = await self._begin_sign_in(str(body.get("session", "")), str(body.get("server", "")))
        except SignInFailed as error:
            raise HTTPException(409, str(error)) from None
        return JSONResponse({"url": url})

    async def _keep_frame(self, request: Request) -> Response:
        try:
            id = self._data_canvases.keep(str((await _body(request)).get("data", "")))
        except ValueError as error:
            raise HTTPException(400, f"data: {error}") from None
        return JSONResponse({"path": f"/page/frame/{id}"})

    async def _frame(self, request: Request) -> Response:
        if (found := self._data_canvases.get(request.path_params["id"])) is None:
            return PlainTextResponse("not found\n", 404)
        kind, content = found
        return Response(content, headers=data_canvases.HEADERS | {"Content-Type": kind})

    async def _out(self, request: Request) -> Response:
        if (device := self._device(request)) is not None:
            self._devices.revoke(device.id)
        return JSONResponse({}, headers={"Set-Cookie": self._set_cookie(request, "", 0)})

    def _device(self, request: Request) -> Device | None:
        """The device that asks; None for a request with the token, or where none is needed."""
        admission: Admission = request.state.admission
        credential = admission.credential or ""
        if not credential.startswith(_DEVICE):
            return None
        if (device := self._devices.get(credential.removeprefix(_DEVICE))) is None:
            raise HTTPException(401, "this browser was revoked")
        return device

    def _may_everything(self, device: Device | None) -> None:
        if device is not None and device.right != "everything":
            raise HTTPException(403, f"this device may {device.right} only")


def page_name(token: str | None) -> str:
    """A host name that other programs of this machine do not know. It stays the same after a restart."""
    return hashlib.sha256(b"ahpkit page\0" + (token or "").encode()).hexdigest()[:8]


def _app(routes: list[Route]) -> Any:
    return Starlette(routes=routes, exception_handlers={HTTPException: _plain})


def _plain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


async def _body(request: Request) -> dict[str, Any]:
    try:
        value: Any = await request.json()
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(value, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]  # A dict of JSON.


_BROWSERS = ("Firefox", "Edg", "Chrome", "Safari")
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux")


def _browser(agent: str) -> str:
    """A name a person recognises: "Firefox on Linux"."""
    browser = next((name for name in _BROWSERS if name in agent), "Browser")
    system = next((name for name in _SYSTEMS if name in agent), "")
    name = {"Edg": "Edge"}.get(browser, browser)
    return f"{name} on {system}" if system else name


def _shown(device: Device, here: Device | None) -> dict[str, Any]:
    return {
        "id": device.id,
        "name": device.name,
        "right": device.right,
        "createdAt": _iso(device.created_at),
        "lastSeenAt": _iso(device.last_seen_at),
        "current": here is not None and here.id == device.id,
    }


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


__all__ = ["FILES", "HEADERS", "PageServer", "page_name"]
