"""Reads the challenge of a server that needs a token (401, 403, RFC 9728).

A server names the place to log in at, but never the place its token is for: that is its own address.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import msgspec

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.mcp import McpAuthRequiredReason, McpServerAuthRequiredState

if TYPE_CHECKING:
    import httpx2

_PARAMETER = re.compile(r'([A-Za-z_]{1,40})\s*=\s*(?:"((?:[^"\\]|\\.){0,2000})"|([^\s,]{1,2000}))')
_METADATA_LIMIT = 64 * 1024
_PATIENCE = 10.0
_LISTED = 100
_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Challenge:
    """A 401 or 403 and its `WWW-Authenticate`."""

    status: int
    parameters: Mapping[str, str]

    @classmethod
    def read(cls, status: int, header: str) -> Challenge | None:
        """What a refusal asks for; None for a 403 that no token would change."""
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
    url: str, challenge: Challenge, *, had_token: bool, patience: float = _PATIENCE
) -> McpServerAuthRequiredState:
    """The server's state while it waits for a token. Its own metadata is waited for `patience` seconds."""
    metadata: JsonObject = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            metadata = _simple(await _metadata(url, challenge.parameters.get("resource_metadata")))
    state: McpServerAuthRequiredState = {
        "kind": "authRequired",
        "reason": challenge.reason(had_token=had_token),
        "resource": cast("Any", _resource(url, metadata)),
    }
    scopes = challenge.scopes or _texts(metadata.get("scopes_supported"))
    if scopes:
        state["requiredScopes"] = scopes
    if description := challenge.parameters.get("error_description"):
        state["description"] = description[:_WORDS]
    return state


def resource_of(url: str) -> str:
    """The canonical URI of a server: its address without what differs between requests."""
    parts = urlsplit(url)
    return parts._replace(
        scheme=parts.scheme.lower(), netloc=parts.netloc.rpartition("@")[2].lower(), query="", fragment=""
    ).geturl()


def _resource(url: str, metadata: JsonObject) -> JsonObject:
    """RFC 9728 metadata with the members that AHP needs, whatever the server left out or made up."""
    from mcp.shared.auth_utils import check_resource_allowed  # Here: it loads a lot, and few sessions have servers.

    own = resource_of(url)
    named = metadata.get("resource")
    allowed = isinstance(named, str) and check_resource_allowed(requested_resource=own, configured_resource=named)
    servers = _texts(metadata.get("authorization_servers")) or [_origin(url)]
    return {**metadata, "resource": named if allowed else own, "authorization_servers": servers}


def _simple(metadata: JsonObject) -> JsonObject:
    """The members that are texts, lists of texts, or yes and no: there are no others in RFC 9728."""
    lists = {key: _texts(value) for key, value in metadata.items() if isinstance(value, list)}
    others = {key: value for key, value in metadata.items() if isinstance(value, str | bool)}
    return {**others, **lists}


async def _metadata(url: str, named: str | None) -> JsonObject:
    """The server's own description of what protects it. Only its own host is asked, so that a server cannot send the
    host elsewhere."""
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
                if len(data) > _METADATA_LIMIT:
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


__all__ = ["Challenge", "auth_required", "resource_of"]
