"""Gives the environment of this shell to the host in the background, for the agents of one session.

A host in the background was started by one shell and serves many. Variables of a later shell (`PATH`, keys) are kept in
memory only, for the sessions that this shell opens. They reach agents through the same filter as the host's own
variables.

The environment is sent over HTTP and not over the protocol: it contains keys, so it must not be logged, stored or
shown. The host takes it only from programs of its owner on the same machine, which can read its endpoint file. A
program that has only the token is a client. A client with its own `PATH` or `LD_PRELOAD` could choose what runs.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import urllib.request
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ahpkit.client.endpoints import Endpoint, trusted_certificate
from ahpkit.http.router import Router
from ahpkit.transports.auth import is_loopback

MAX_SESSIONS = 1_000
"""The number of sessions whose environment is remembered. The sessions that were told first are forgotten, and get the
host's own environment."""


class Environments:
    """The environments of shells, by the URIs of sessions."""

    def __init__(self, own: Mapping[str, str] = os.environ, *, most: int = MAX_SESSIONS) -> None:
        self._own = own
        self._most = most
        self._of_sessions: dict[str, Mapping[str, str]] = {}

    def tell(self, session: str, variables: Mapping[str, str]) -> None:
        """Give these variables to the agents of a session from now on. Variables that are missing come from the
        host."""
        self._of_sessions.pop(session, None)
        self._of_sessions[session] = dict(variables)
        while len(self._of_sessions) > self._most:
            del self._of_sessions[next(iter(self._of_sessions))]

    def of(self, session: str) -> Mapping[str, str]:
        return {**self._own, **self._of_sessions.get(session, {})}


PATH = "/environment"

_OWNER = "X-Ahpkit-Owner"
"""The HTTP header with the owner's secret."""

_SECONDS = 5.0


def mount(routes: Router, environments: Environments, owner: str) -> None:
    """Add the route that takes environments from programs that know the owner's secret."""

    async def take(request: Request) -> Response:
        if not _may(request, owner):
            return Response("only programs of the host's owner on this machine may do this", 403)
        try:
            said = await request.json()
            session, variables = said["session"], said["variables"]
            environments.tell(str(session), {str(name): str(value) for name, value in variables.items()})
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return Response('expected {"session": URI, "variables": {NAME: VALUE}}', 400)
        return Response(status_code=204)

    routes.mount(PATH, Starlette(routes=[Route("/", take, methods=["POST"])]))


def _may(request: Request, owner: str) -> bool:
    if request.client is None or not is_loopback(request.client.host):
        return False
    return hmac.compare_digest(request.headers.get(_OWNER, "").encode(), owner.encode())


async def send(endpoint: Endpoint, session: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send the environment of this shell to a host, for one session. Returns whether the host took it. Nothing is sent
    to another machine."""
    if not endpoint.background or not endpoint.owner or not endpoint.url.startswith(("ws://", "wss://")):
        return False
    return await asyncio.to_thread(_post, endpoint, {"session": session, "variables": dict(environ)})


def _post(endpoint: Endpoint, body: Mapping[str, Any]) -> bool:
    headers = {"Content-Type": "application/json", _OWNER: endpoint.owner or ""}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    address = "http" + endpoint.url.removeprefix("ws").rstrip("/") + PATH + "/"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        https = urllib.request.HTTPSHandler(context=trusted_certificate(endpoint.url))
        # The request must not go through a proxy, because it contains keys.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
        with opener.open(request, timeout=_SECONDS):
            return True
    except OSError:  # An older host, or one that is ending: agents get the host's own environment.
        return False


__all__ = ["MAX_SESSIONS", "PATH", "Environments", "mount", "send"]
