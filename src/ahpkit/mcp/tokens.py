"""Finds out which token an MCP server needs, keeps the tokens of clients, and renews expired ones.

A challenge is a 401 or 403 (RFC 9728). A server may choose the place to log in at. But its token is always for the
server's own address, whatever the challenge says.

Tokens are kept in memory, by connection, session and resource. They never appear in a state, a log or an error. A login
may include a refresh token (OAuth 2.1). Then the host gets a new token itself when a server refuses the old one, and
nobody is asked. An authorization server may replace the refresh token each time, and treat a second use of the old one
as theft. So a login sends one request at a time, and waits for its answer even if the caller gives up.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

import msgspec

from ahpkit.host.limits import is_sendable
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.meta_keys import RENEWAL
from ahpkit.protocol.session.mcp import McpAuthRequiredReason, McpServerAuthRequiredState

if TYPE_CHECKING:
    import httpx2


_log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds for an answer of the authorization server."""
_ANSWER_LIMIT = 64 * 1024

_PARAMETER = re.compile(r'([A-Za-z_]{1,40})\s*=\s*(?:"((?:[^"\\]|\\.){0,2000})"|([^\s,]{1,2000}))')
_LISTED = 100
_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Challenge:
    """A 401 or 403 and its `WWW-Authenticate`."""

    status: int
    parameters: Mapping[str, str]

    @classmethod
    def read(cls, status: int, header: str) -> Challenge | None:
        """Read a refusal; None for a 403 that no token would change."""
        bearer = re.search(r"(?:^|,)\s*bearer\b(.*)", header[:8000], re.IGNORECASE | re.DOTALL)
        found = (
            {match[1].lower(): match[2] or match[3] or "" for match in _PARAMETER.finditer(bearer[1])} if bearer else {}
        )
        if status == 403 and found.get("error") != "insufficient_scope":
            return None
        return cls(status, found)

    @property
    def scopes(self) -> list[str]:
        return self.parameters.get("scope", "").split()[:_LISTED]

    def reason(self, *, had_token: bool) -> McpAuthRequiredReason:
        if self.status == 403:
            return "insufficientScope"
        return "expired" if had_token else "required"


async def auth_required(
    url: str,
    challenge: Challenge,
    *,
    had_token: bool,
    patience: float = _PATIENCE,
    hide: Callable[[str], str] = str,
) -> McpServerAuthRequiredState:
    """The server's state while it waits for a token. Getting the server's metadata takes at most `patience` seconds.
    `hide` replaces secrets in a text."""
    metadata: JsonObject = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            metadata = _simple(await _metadata(url, challenge.parameters.get("resource_metadata")))
    state: McpServerAuthRequiredState = {
        "kind": "authRequired",
        "reason": challenge.reason(had_token=had_token),
        "resource": cast("Any", _resource(url, metadata, hide)),
    }
    scopes = challenge.scopes or _texts(metadata.get("scopes_supported"))
    if scopes:
        state["requiredScopes"] = scopes
    if description := challenge.parameters.get("error_description"):
        state["description"] = hide(description)[:_WORDS]
    return state


def resource_of(url: str) -> str:
    """The canonical URI of a server: its address without what differs between requests."""
    parts = urlsplit(url)
    return parts._replace(
        scheme=parts.scheme.lower(), netloc=parts.netloc.rpartition("@")[2].lower(), query="", fragment=""
    ).geturl()


def _resource(url: str, metadata: JsonObject, hide: Callable[[str], str]) -> JsonObject:
    """RFC 9728 metadata with all members that AHP needs, even if the server's own metadata lacks some or has wrong
    ones. A secret in the server's address is not part of the resource."""
    from mcp.shared.auth_utils import (
        check_resource_allowed,
    )  # Imported here: it loads a lot, and few sessions have servers.

    own = resource_of(url)
    named = metadata.get("resource")
    allowed = isinstance(named, str) and check_resource_allowed(requested_resource=own, configured_resource=named)
    servers = _texts(metadata.get("authorization_servers")) or [_origin(url)]
    resource = cast("str", named) if allowed else own
    if hide(resource) != resource:
        resource = _without_secret(own, hide)
    return {**metadata, "resource": resource, "authorization_servers": servers}


def _without_secret(resource: str, hide: Callable[[str], str]) -> str:
    """The beginning of a resource: its folders before the first one with a secret."""
    origin, folders = _origin(resource), urlsplit(resource).path.split("/")[1:]
    open_folders = itertools.takewhile(lambda folder: hide(folder) == folder, folders)
    return "/".join([origin, *open_folders])


def _simple(metadata: JsonObject) -> JsonObject:
    """The members that are strings, lists of strings, or booleans. RFC 9728 has no others."""
    lists = {key: _texts(value) for key, value in metadata.items() if isinstance(value, list)}
    others = {key: value for key, value in metadata.items() if isinstance(value, str | bool)}
    return {**others, **lists}


async def _metadata(url: str, named: str | None) -> JsonObject:
    """The server's own metadata about its authorization. It is requested only from the server's own address, so that a
    server cannot direct the host to other machines."""
    import httpx2
    from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls

    places = build_protected_resource_metadata_discovery_urls(named, url)
    async with httpx2.AsyncClient(timeout=_PATIENCE, follow_redirects=False) as client:
        for place in places:
            if _origin(place) == _origin(url) and (found := await _fetched(client, place)):
                return found
    return {}


async def _fetched(client: httpx2.AsyncClient, place: str) -> JsonObject:
    import httpx2

    from ahpkit.mcp.connect import PLAIN, is_encoded

    try:
        async with client.stream("GET", place, headers={"accept": "application/json", **PLAIN}) as response:
            if response.status_code != 200 or is_encoded(response):
                return {}
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _ANSWER_LIMIT:
                    return {}
        found = msgspec.json.decode(data)
    except (httpx2.HTTPError, msgspec.MsgspecError):
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def _texts(value: Any) -> list[str]:
    found = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in found if isinstance(item, str)][:_LISTED]


_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, repr=False)
class Renewal:
    """The data for requesting a new token."""

    endpoint: str
    refresh_token: str
    client_id: str
    client_secret: str | None = None
    in_header: bool = False
    """Whether the secret is sent in a header (`client_secret_basic`)."""

    @classmethod
    def read(cls, given: Any) -> Renewal | None:
        """Read the value that a client sent under `ahpkit/renewal`; raises `InvalidParams` if it cannot be used."""
        if given is None:
            return None
        fields: Mapping[str, Any] = cast("JsonObject", given) if isinstance(given, dict) else {}
        texts = [fields.get(key) for key in ("tokenEndpoint", "refreshToken", "clientId")]
        endpoint, refresh_token, client_id = (text if isinstance(text, str) else "" for text in texts)
        secret: Any = fields.get("clientSecret")
        if not (refresh_token and client_id) or not isinstance(secret, str | None):
            raise InvalidParams(f"_meta.{RENEWAL}: tokenEndpoint, refreshToken and clientId are needed, as texts")
        if not _is_safe(endpoint):
            raise InvalidParams(f"_meta.{RENEWAL}: the token endpoint is not reached by https")
        return cls(endpoint, refresh_token, client_id, secret, fields.get("authMethod") == "client_secret_basic")

    @property
    def auth(self) -> tuple[str, str] | None:
        """The user and the password of the request, if it has them."""
        if self.client_secret is None or not self.in_header:
            return None
        return quote(self.client_id, safe=""), quote(self.client_secret, safe="")

    def form(self, resource: str) -> dict[str, str]:
        asked = {
            "grant_type": "refresh_token",
            "refresh_token": self.refresh_token,
            "client_id": self.client_id,
            "resource": resource,
        }
        if self.client_secret is None or self.in_header:
            return asked
        return {**asked, "client_secret": self.client_secret}


class Login:
    """The result of one `authenticate`: a token, and perhaps the data for renewing it."""

    def __init__(
        self,
        token: str,
        *,
        expires_in: float | None = None,
        renewal: Renewal | None = None,
        on_expiry: Callable[[], object] = lambda: None,
    ) -> None:
        """`on_expiry` is called when the token has expired and a person has to log in again."""
        self.token = token
        """Empty once it has expired."""
        self.renewal = renewal
        self._on_expiry = on_expiry
        self._renewing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expire_in(expires_in)

    def __repr__(self) -> str:
        return "Login(…)"

    def forget(self) -> None:
        """Drop the token, because nobody needs it any more."""
        self.token, self.renewal = "", None
        for ending in (self._timer, self._renewing):
            if ending is not None:
                ending.cancel()

    def expire(self) -> None:
        self.token = ""

    async def renew(self, resource: str) -> bool:
        """Renew the token; returns whether there is a valid one now. Concurrent callers wait for the same answer."""
        if not self.token and self.renewal is not None:
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew(self.renewal, resource), name="renew a token")
            await asyncio.wait({self._renewing})
        return bool(self.token)

    async def _renew(self, renewal: Renewal, resource: str) -> None:
        answer = await _posted(renewal, resource)
        if answer is None:
            return  # It was not reached. The next start of the server tries again.
        token, refresh_token = answer.get("access_token"), answer.get("refresh_token")
        bearer = str(answer.get("token_type", "bearer")).lower() == "bearer"
        if not bearer or not isinstance(token, str) or not token or not is_sendable(token):
            _log.info("a token for %s was not renewed: the authorization server refused", resource)
            self.renewal = None
            return
        if isinstance(refresh_token, str) and refresh_token:
            renewal = replace(renewal, refresh_token=refresh_token)
        self.token, self.renewal = token, renewal
        expires: Any = answer.get("expires_in")
        self._expire_in(expires if isinstance(expires, int | float) and expires >= 1 else None)

    def _expire_in(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._time_is_over)

    def _time_is_over(self) -> None:
        self.expire()
        if self.renewal is None:
            self._on_expiry()


async def _posted(renewal: Renewal, resource: str) -> JsonObject | None:
    """The answer of the authorization server; empty if it refuses, None if it cannot be reached now."""
    import httpx2  # Imported here: it loads a lot, and few sessions need it.

    from ahpkit.mcp.connect import PLAIN, is_encoded

    data = bytearray()
    headers = {"accept": "application/json", **PLAIN}
    try:
        async with (
            asyncio.timeout(_PATIENCE),
            httpx2.AsyncClient(follow_redirects=False) as client,
            client.stream(
                "POST", renewal.endpoint, data=renewal.form(resource), headers=headers, auth=renewal.auth
            ) as response,
        ):
            if response.status_code == 429 or response.status_code >= 500:
                return None
            if response.status_code != 200 or is_encoded(response):
                return {}
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _ANSWER_LIMIT:
                    return {}
        found: Any = msgspec.json.decode(data)
    except (httpx2.HTTPError, TimeoutError, OSError):
        return None
    except (msgspec.MsgspecError, httpx2.InvalidURL, ValueError):
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


class Tokens:
    """Tokens that clients pushed, each for one resource in one session, as long as the client is connected."""

    def __init__(self) -> None:
        self._logins: dict[tuple[str, str, str], Login] = {}

    def give(self, client_id: str, session: str, resource: str, login: Login) -> None:
        """Keep a token. It replaces an earlier one of the same client."""
        self._forget(lambda key, known: key == (client_id, session, resource))  # The newest is at the end.
        self._logins[client_id, session, resource] = login

    def take_back(self, client_id: str, resource: str) -> bool:
        """Drop a client's tokens for a resource, in all sessions. Returns whether there was one."""
        before = len(self._logins)
        self._forget(lambda key, known: (key[0], key[2]) == (client_id, resource))
        return len(self._logins) < before

    def find(self, session: str, resource: str) -> str | None:
        """The newest token for a resource in a session."""
        return next((login.token for login in self._of(session, resource) if login.token), None)

    async def renew(self, session: str, resource: str) -> bool:
        """Renew an expired login; returns whether there is a new token."""
        for login in self._of(session, resource):
            if await login.renew(resource):
                return True
        return False

    def drop(self, resource: str, token: str) -> None:
        """Drop a token that was refused, so that it is not sent again."""
        for key, login in self._logins.items():
            if key[2] == resource and login.token == token:
                login.expire()
        self._forget(lambda key, login: not login.token and login.renewal is None)

    def drop_client(self, client_id: str) -> None:
        self._forget(lambda key, login: key[0] == client_id)

    def drop_session(self, session: str) -> None:
        self._forget(lambda key, login: key[1] == session)

    def drop_all(self) -> None:
        self._forget(lambda key, login: True)

    def _of(self, session: str, resource: str) -> list[Login]:
        """The newest first."""
        return [login for key, login in reversed(self._logins.items()) if key[1:] == (session, resource)]

    def _forget(self, gone: Callable[[tuple[str, str, str], Login], bool]) -> None:
        left = {key: login for key, login in self._logins.items() if not gone(key, login)}
        for login in set(self._logins.values()) - set(left.values()):
            login.forget()
        self._logins = left

    def __repr__(self) -> str:
        return f"<{len(self._logins)} tokens>"


__all__ = ["Challenge", "Login", "Renewal", "Tokens", "auth_required", "resource_of"]
