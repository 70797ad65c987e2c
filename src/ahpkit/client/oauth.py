"""Logs a person in by OAuth 2.1: authorization code flow with PKCE, in the browser, with a redirect to this machine.

    token = await log_in(server.state, open_browser=webbrowser.open)

Needs the authorization server's metadata (RFC 8414 or OpenID Connect) and a client id: the one in the challenge, or one
from dynamic registration (RFC 7591). Asks only for the scopes of the challenge. Stores nothing.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec

from ahpkit.client.core import given
from ahpkit.client.errors import ClientError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.tasks import running

_PATIENCE = 20.0
"""Seconds for an answer of the authorization server, and for a request of the browser."""
_LONGEST = 10**9
"""Seconds. A longer lifetime of a token is ignored."""
_LIMIT = 256 * 1024
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LINE = 16 * 1024
_IN_FORM, _IN_HEADER = "client_secret_post", "client_secret_basic"
"""How a client sends its secret to the token endpoint."""


class LoginFailed(ClientError):
    """There is no token; the text says why."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the authorization server."""

    text: str
    expires_in: int | None = None
    scopes: tuple[str, ...] | None = None
    renewal: Mapping[str, str] | None = None
    """What an ahpkit host needs to renew the token: `tokenEndpoint`, `refreshToken`, `clientId`, `clientSecret`, and
    `authMethod`, which says how the secret is sent."""

    def __repr__(self) -> str:
        return f"Token(…, expires_in={self.expires_in}, scopes={self.scopes})"


async def log_in(
    challenge: Mapping[str, Any],
    *,
    open_browser: Callable[[str], Any],
    client_id: str | None = None,
    client_secret: str | None = None,
    timeout: float = 300.0,
) -> Token:
    """Get a token for the challenge in a server's `authRequired` state or in a call's `auth`. Raises `LoginFailed`.

    `open_browser` is called with the URL of the login page. `client_id` names a registered client; by default it is the
    one of the challenge, or else a client is registered.
    """
    import httpx2  # Imported here, because only a login needs it.

    async with httpx2.AsyncClient(timeout=_PATIENCE, follow_redirects=False) as http:
        try:
            async with asyncio.timeout(timeout):
                return await _Login(http, challenge, client_id, client_secret).run(open_browser)
        except TimeoutError:
            raise LoginFailed(f"nobody logged in within {timeout:g} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise LoginFailed(f"the authorization server cannot be reached: {error}") from error


class _Login:
    """One login, step by step."""

    def __init__(
        self, http: Any, challenge: Mapping[str, Any], client_id: str | None, client_secret: str | None
    ) -> None:
        resource = cast("JsonObject", challenge["resource"])
        known = cast("JsonObject", challenge.get("oauthClient") or {})
        self._http = http
        self._resource: str = resource["resource"]
        self._issuers: list[str] = resource.get("authorization_servers") or []
        self._scopes: list[str] = challenge.get("requiredScopes") or []
        self._client_id = client_id or known.get("clientId")
        self._client_secret = client_secret or known.get("clientSecret")
        self._registered_method: Any = None
        """`token_endpoint_auth_method` in the answer to the registration: how to send the secret."""

    async def run(self, open_browser: Callable[[str], Any]) -> Token:
        metadata = await self._metadata()
        verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
        async with _redirect(state) as (address, answer):
            if self._client_id is None:
                await self._register(metadata, address)
            async with running(_open(open_browser, self._page(metadata, address, verifier, state))) as opening:
                await asyncio.wait({opening, answer}, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    await opening
                code = _code(await answer, metadata)
            return await self._exchange(metadata, address, code, verifier)

    async def _metadata(self) -> JsonObject:
        """The authorization server's metadata, from the first well-known URL that has it."""
        if not self._issuers:
            raise LoginFailed("the server does not name an authorization server")
        issuer = _safe(self._issuers[0], "the authorization server", named_by=self._resource)
        for place in _well_known(issuer):
            found = await self._get(place)
            if found is not None and str(found.get("issuer", "")).rstrip("/") == issuer.rstrip("/"):
                return _usable(found)
        raise LoginFailed(f"{issuer} says nothing about how to log in (RFC 8414)")

    async def _register(self, metadata: JsonObject, address: str) -> None:
        endpoint = metadata.get("registration_endpoint")
        if not isinstance(endpoint, str):
            raise LoginFailed("the authorization server does not register clients by itself: give a client id")
        asked = {
            "client_name": "ahpkit",
            "redirect_uris": [address],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        if self._scopes:
            asked["scope"] = " ".join(self._scopes)
        safe = _safe(endpoint, "the registration endpoint", named_by=metadata["issuer"])
        answer = await self._post(safe, json=asked)
        self._client_id = _text(answer, "client_id", "registered no client")
        secret = answer.get("client_secret")
        self._client_secret = secret if isinstance(secret, str) else None
        self._registered_method = answer.get("token_endpoint_auth_method")

    def _page(self, metadata: JsonObject, address: str, verifier: str, state: str) -> str:
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": address,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": state,
            "resource": self._resource,
        }
        if self._scopes:
            query["scope"] = " ".join(self._scopes)
        endpoint: str = metadata["authorization_endpoint"]
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def _exchange(self, metadata: JsonObject, address: str, code: str, verifier: str) -> Token:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": address,
            "client_id": self._client_id,
            "code_verifier": verifier,
            "resource": self._resource,
        }
        answer = await self._post(metadata["token_endpoint"], **self._with_secret(metadata, form))
        if str(answer.get("token_type", "bearer")).lower() != "bearer":
            raise LoginFailed("the authorization server gave a token that is not a bearer token")
        expires, scope = answer.get("expires_in"), answer.get("scope")
        return Token(
            _text(answer, "access_token", "gave no token"),
            int(expires) if isinstance(expires, int | float) and 1 <= expires <= _LONGEST else None,
            tuple(scope.split()) if isinstance(scope, str) else None,
            self._renewal(metadata, answer),
        )

    def _auth_method(self, metadata: JsonObject) -> str | None:
        """How the secret is sent, if there is one. The default is a header (RFC 8414)."""
        if self._client_secret is None:
            return None
        if self._registered_method in (_IN_FORM, _IN_HEADER):
            return self._registered_method
        supported: Any = metadata.get("token_endpoint_auth_methods_supported")
        if not isinstance(supported, list):
            return _IN_HEADER
        return _IN_HEADER if _IN_HEADER in supported and _IN_FORM not in supported else _IN_FORM

    def _with_secret(self, metadata: JsonObject, form: JsonObject) -> JsonObject:
        """The arguments of a request to the token endpoint, with the secret in the form or in a header."""
        method, secret = self._auth_method(metadata), self._client_secret
        if secret is None:
            return {"data": form}
        if method == _IN_FORM:
            return {"data": {**form, "client_secret": secret}}
        return {"data": form, "auth": (quote(str(self._client_id), safe=""), quote(secret, safe=""))}

    def _renewal(self, metadata: JsonObject, answer: JsonObject) -> Mapping[str, str] | None:
        refresh_token = answer.get("refresh_token")
        if not isinstance(refresh_token, str) or not refresh_token:
            return None
        return given(
            tokenEndpoint=metadata["token_endpoint"],
            refreshToken=refresh_token,
            clientId=self._client_id,
            clientSecret=self._client_secret,
            authMethod=self._auth_method(metadata),
        )

    async def _get(self, place: str) -> JsonObject | None:
        status, answer = await self._answer("GET", place)
        return answer if status == 200 else None

    async def _post(self, place: str, **body: Any) -> JsonObject:
        status, answer = await self._answer("POST", place, **body)
        if status not in (200, 201) or answer is None:
            said = answer or {}
            why = said.get("error_description") or said.get("error") or f"HTTP {status}"
            raise LoginFailed(f"the authorization server refused: {str(why)[:500]}")
        return answer

    async def _answer(self, method: str, place: str, **body: Any) -> tuple[int, JsonObject | None]:
        """The status of an answer and the JSON object in it. Reading ends at `_LIMIT` bytes; then there is no
        object."""
        data = bytearray()
        async with self._http.stream(method, place, headers={"accept": "application/json"}, **body) as response:
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _LIMIT:
                    return response.status_code, None
        return response.status_code, _object(bytes(data))


async def _open(open_browser: Callable[[str], Any], page: str) -> None:
    """Open the page in the background, because some browsers block the caller until they are closed."""
    opened = await asyncio.to_thread(open_browser, page)
    if asyncio.iscoroutine(opened):
        await opened


def _well_known(issuer: str) -> list[str]:
    """URLs of the metadata: RFC 8414 puts the well-known part before the path, OpenID Connect after it."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*places, f"{origin}{path}/.well-known/openid-configuration"] if path else places


def _usable(metadata: JsonObject) -> JsonObject:
    for key in ("authorization_endpoint", "token_endpoint"):
        _safe(_text(metadata, key, f"names no {key}"), key, named_by=metadata["issuer"])
    methods: Any = metadata.get("code_challenge_methods_supported")
    if not isinstance(methods, list) or "S256" not in methods:
        raise LoginFailed("the authorization server does not support PKCE with S256: logging in would not be safe")
    return metadata


def _safe(url: str, what: str, *, named_by: str) -> str:
    """Return an address that is reached by https. Plain http is for this machine: only an address on this machine may
    name it, because others could have this program send requests to programs that only listen here."""
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_here(url) and _is_here(named_by))
    except ValueError:
        safe = False
    if not safe:
        raise LoginFailed(f"{what} is not reached by https: {url[:200]}")
    return url


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in _LOOPBACK


def _text(answer: JsonObject, key: str, problem: str) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or not value:
        raise LoginFailed(f"the authorization server {problem}")
    return value


def _object(content: bytes) -> JsonObject | None:
    try:
        found: Any = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None


def _code(query: Mapping[str, str], metadata: JsonObject) -> str:
    """The authorization code in the redirect. Raises when another authorization server sent the browser: its `iss`
    differs, or is missing although the metadata promises it."""
    issuer: str = metadata["issuer"]
    unnamed = "" if metadata.get("authorization_response_iss_parameter_supported") is True else issuer
    if query.get("iss", unnamed).rstrip("/") != issuer.rstrip("/"):
        raise LoginFailed("the answer came from another authorization server")
    if "error" in query:
        raise LoginFailed(f"not logged in: {query.get('error_description') or query['error']}"[:500])
    if not query.get("code"):
        raise LoginFailed("the browser came back without a code")
    return query["code"]


_BACK = b"You can close this page. The program that you came from says whether you are logged in."
_STRANGE = b"This program does not wait for this login. Nothing happened."


@asynccontextmanager
async def _redirect(state: str) -> AsyncGenerator[tuple[str, asyncio.Future[dict[str, str]]]]:
    """Serves an address on this machine for the redirect; yields the address and a future for the redirect's query.

    Any page can send a browser here. Only an answer with the right `state` is accepted; others are ignored.
    """
    answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    def take(target: str) -> tuple[bytes, bytes]:
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path != "/callback":
            return b"404 Not Found", b""
        if not secrets.compare_digest(query.get("state", "").encode(), state.encode()):
            return b"400 Bad Request", _STRANGE
        if not answer.done():
            answer.set_result(query)
        return b"200 OK", _BACK

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                line = await reader.readuntil(b"\r\n")
                while (await reader.readuntil(b"\r\n")) != b"\r\n":
                    pass
            status, text = take(line.split(b" ")[1].decode("ascii", "replace"))
            head = b"content-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
            writer.write(b"HTTP/1.1 " + status + b"\r\n" + head + text)
            await writer.drain()
        except (TimeoutError, OSError, ValueError, IndexError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LINE)
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/callback", answer
        finally:
            answer.cancel()


__all__ = ["LoginFailed", "Token", "log_in"]
