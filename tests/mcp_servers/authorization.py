"""An OAuth 2.1 authorization server for tests: metadata, registration, a page that says yes by itself, tokens."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


def proof(request: Request, form: dict[str, Any]) -> tuple[str, str]:
    """The secret of a client, and how it was sent."""
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return str(form.get("client_secret")), "post"
    name, _, secret = base64.b64decode(sent).decode().partition(":")
    assert "client_secret" not in form, "sent twice"
    assert unquote_plus(name) == form.get("client_id", unquote_plus(name))
    return unquote_plus(secret), "basic"


class AuthorizationServer:
    """Remembers what it was asked. `granted` is told of each token."""

    def __init__(self, granted: Callable[[str], Any] = str, **odd: Any) -> None:
        self.granted = granted
        self.odd = odd
        self.origin = ""
        self.clients: dict[str, list[str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.authorizations: list[dict[str, str]] = []
        self.exchanges: list[dict[str, Any]] = []
        self.renewals: list[dict[str, Any]] = []
        self.refresh_tokens: set[str] = set()
        """Each is good once."""
        self.answers_renewals = 200
        self.came, self.hold = asyncio.Event(), asyncio.Event()
        """A renewal came; renewals wait while `hold` is not set."""
        self.hold.set()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def metadata(self, request: Request) -> Response:
        known = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
        }
        said = {**known, **self.odd.get("metadata", {})}
        return JSONResponse({key: value for key, value in said.items() if value is not None})

    async def register(self, request: Request) -> Response:
        asked = await request.json()
        client_id = f"client-{len(self.clients)}"
        self.clients[client_id] = asked["redirect_uris"]
        return JSONResponse({"client_id": client_id, **asked, **self.odd.get("client", {})}, 201)

    def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.authorizations.append(asked)
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.origin, **self.odd.get("answer", {})}
        said = {key: value for key, value in answer.items() if value is not None}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(said)}", 302)

    async def token(self, request: Request) -> Response:
        form: dict[str, Any] = dict(await request.form())
        if (secret := self.odd.get("secret")) is not None and secret != proof(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        if form["grant_type"] == "refresh_token":
            return await self.renew(form)
        self.exchanges.append(form)
        asked = self.codes.pop(str(form.get("code")), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        fits = asked is not None and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        if asked is None or not fits or form["redirect_uri"] != asked["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return self.grant()

    async def renew(self, form: dict[str, Any]) -> Response:
        self.renewals.append(form)
        self.came.set()
        await self.hold.wait()
        if self.answers_renewals != 200:
            return Response(status_code=self.answers_renewals)
        if form["refresh_token"] not in self.refresh_tokens:
            self.refresh_tokens.clear()  # As OAuth 2.1 wants it: it may have been stolen.
            return JSONResponse({"error": "invalid_grant"}, 400)
        self.refresh_tokens.remove(form["refresh_token"])
        return self.grant()

    def grant(self) -> Response:
        token, refresh_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.granted(token)
        self.refresh_tokens.add(refresh_token)
        given = {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh_token}
        return JSONResponse({**given, **self.odd.get("token", {})})
