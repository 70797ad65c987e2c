"""Tokens that end: renewed by the host with the refresh token of the login, or asked for again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ahpkit.client.oauth import log_in
from ahpkit.mcp.connect import ServerConfig
from ahpkit.mcp.server import McpServer
from ahpkit.mcp.tokens import Login, Renewal, Tokens
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.meta_keys import RENEWAL
from mcp_servers.authorization import AuthorizationServer
from mcp_servers.http_server import Guard
from mcp_servers.running import Answers, Port, running, text_of
from mcp_servers.test_configured import entry
from mcp_servers.test_login import Place, browse, challenge, guarded, place, waiting
from support.raw_client import Json

__all__ = ["place"]


@contextlib.asynccontextmanager
async def logged_in() -> AsyncGenerator[tuple[McpServer, Port, Guard, AuthorizationServer]]:
    """A running server with the token of a login."""
    async with guarded() as (guard, authority, url):
        token = await log_in(challenge(authority, url), open_browser=browse)
        port = Port()
        login = Login(token.text, expires_in=token.expires_in, renewal=Renewal.read(token.renewal))
        port.tokens.give("client", "s", url, login)
        async with running(ServerConfig(name="web", url=url), port) as server:
            yield server, port, guard, authority
        port.tokens.drop_all()


def adding(server: McpServer, number: int) -> asyncio.Task[Any]:
    return asyncio.create_task(server.call_tool("add", {"a": number, "b": 1}, Answers()))


async def test_a_token_that_ends_is_renewed_once_and_nobody_is_asked() -> None:
    async with logged_in() as (server, port, guard, authority):
        for round in (1, 2):  # The second one needs the refresh token that came with the first renewal.
            guard.tokens.clear()
            answers = await asyncio.gather(*(adding(server, number) for number in range(5)))
            assert [text_of(answer) for answer in answers] == ["1", "2", "3", "4", "5"]
            assert len(authority.renewals) == round
        assert "authRequired" not in port.kinds
        first, second = authority.renewals
        assert first["refresh_token"] != second["refresh_token"]
        assert (first["client_id"], first["resource"]) == ("client-0", server.resource)
        assert len(authority.authorizations) == 1


async def test_a_token_whose_time_is_over_is_not_sent_and_renewed_at_the_next_call() -> None:
    async with guarded() as (guard, authority, url):
        token = await log_in(challenge(authority, url), open_browser=browse)
        port, login = Port(), Login(token.text, renewal=Renewal.read(token.renewal))
        port.tokens.give("client", "s", url, login)
        async with running(ServerConfig(name="web", url=url), port) as server:
            guard.seen.clear()
            login.expire()
            assert text_of(await adding(server, 1)) == "2"
            assert f"Bearer {token.text}" not in guard.seen
            assert len(authority.renewals) == 1
            assert "authRequired" not in port.kinds
        port.tokens.drop_all()


SUPPORTED = "token_endpoint_auth_methods_supported"
SECRETS: dict[str, tuple[Json, Json, str]] = {
    "the server says nothing": ({}, {}, "basic"),
    "only in a header": ({SUPPORTED: ["client_secret_basic", "private_key_jwt"]}, {}, "basic"),
    "only in the form": ({SUPPORTED: ["none", "client_secret_post"]}, {}, "post"),
    "registered for a header": (
        {SUPPORTED: ["client_secret_post", "client_secret_basic"]},
        {"client_secret": "new", "token_endpoint_auth_method": "client_secret_basic"},
        "basic",
    ),
    "registered for the form": (
        {},
        {"client_secret": "new", "token_endpoint_auth_method": "client_secret_post"},
        "post",
    ),
}
"""What the authorization server says of itself, what it answers to a registration, and how it wants a secret."""


@pytest.mark.parametrize("case", SECRETS)
async def test_the_secret_of_a_client_is_sent_as_the_authorization_server_wants_it(case: str) -> None:
    metadata, registered, way = SECRETS[case]
    secret = registered.get("client_secret", "p:+ %ä/?")
    odd = {"metadata": metadata, "client": registered, "secret": (secret, way)}
    async with guarded(**odd) as (_, authority, url):
        known: Json = {} if registered else {"client_id": "a:client id", "client_secret": secret}
        token = await log_in(challenge(authority, url), open_browser=browse, **known)
        renewal = Renewal.read(token.renewal)
        assert renewal is not None
        login = Login(token.text, renewal=renewal)
        login.expire()
        assert await login.renew(url)
        login.forget()
        assert secret not in repr(token)


async def test_a_refused_renewal_asks_for_a_login_and_is_not_repeated() -> None:
    async with logged_in() as (server, port, guard, authority):
        guard.tokens.clear()
        authority.refresh_tokens.clear()
        call = adding(server, 1)
        await port.until(lambda: server.state["kind"] == "authRequired")
        assert server.state["reason"] == "expired"
        guard.tokens.add("by hand")
        port.tokens.give("client", "s", server.resource, Login("by hand"))
        server.token_given()
        assert text_of(await call) == "2"
        guard.tokens.clear()
        call = adding(server, 2)
        await port.until(lambda: server.state["kind"] == "authRequired")
        call.cancel()
        assert len(authority.renewals) == 1


async def test_a_server_that_refuses_renewed_tokens_too_is_not_asked_without_end() -> None:
    async with logged_in() as (server, port, guard, authority):
        guard.tokens.clear()
        authority.granted = str
        call = adding(server, 1)
        await port.until(lambda: server.state["kind"] == "authRequired")
        call.cancel()
        assert len(authority.renewals) == 1


async def test_an_authorization_server_that_is_away_is_asked_again_when_the_server_is_started_again() -> None:
    async with guarded() as (guard, authority, url):
        token = await log_in(challenge(authority, url), open_browser=browse)
        port = Port()
        port.tokens.give("client", "s", url, Login(token.text, renewal=Renewal.read(token.renewal)))
        guard.tokens.clear()
        authority.answers_renewals = 503
        async with running(ServerConfig(name="web", url=url), port, wait=False) as server:
            await port.until(lambda: server.state["kind"] == "authRequired")
        authority.answers_renewals = 200
        async with running(ServerConfig(name="web", url=url), port) as server:
            assert text_of(await adding(server, 1)) == "2"
        port.tokens.drop_all()


async def test_a_caller_who_gives_up_does_not_lose_the_next_refresh_token() -> None:
    async with logged_in() as (server, port, guard, authority):
        guard.tokens.clear()
        authority.hold.clear()
        call = adding(server, 1)
        async with asyncio.timeout(20):
            await authority.came.wait()
        call.cancel()
        await asyncio.wait({call})
        authority.hold.set()
        assert text_of(await adding(server, 2)) == "3"
        assert len(authority.renewals) == 1
        assert "authRequired" not in port.kinds


async def test_a_login_of_the_sdk_is_renewed_by_the_host_and_shown_to_nobody(place: Place) -> None:
    watcher = await place.bench.client()
    session_uri, _, _ = await waiting(place, watcher)
    async with place.sdk() as client:
        session = await client.session(session_uri)
        server = session.mcp_server("tickets")
        await server.log_in(open_browser=browse)
        await server.wait_ready()
        refresh_tokens = set(place.authority.refresh_tokens)
        place.guard.tokens.clear()
        result = await server.call("add", {"a": 1, "b": 1})
        assert result["content"][0]["text"] == "2"
        assert len(place.authority.renewals) == 1
        refresh_tokens |= place.authority.refresh_tokens
    said = json.dumps(watcher.received) + json.dumps(await place.bench.state(watcher, session_uri))
    assert len(refresh_tokens) == 2
    assert not [token for token in (*refresh_tokens, *place.guard.tokens) if token in said]


@pytest.mark.parametrize(
    "given",
    [
        "refresh",
        {},
        {"tokenEndpoint": "https://login.example", "refreshToken": "", "clientId": "c"},
        {"tokenEndpoint": "http://login.example", "refreshToken": "r", "clientId": "c"},
        {"tokenEndpoint": "https://[x", "refreshToken": "r", "clientId": "c"},
        {"tokenEndpoint": "file:///etc/passwd", "refreshToken": "r", "clientId": "c"},
        {"tokenEndpoint": "https://login.example", "refreshToken": "r", "clientId": "c", "clientSecret": 1},
    ],
)
async def test_a_renewal_that_cannot_be_used_is_refused_in_words(place: Place, given: Any) -> None:
    with pytest.raises(InvalidParams, match=RENEWAL):
        Renewal.read(given)
    client = await place.bench.client()
    session, _, _ = await waiting(place, client)
    place.guard.tokens.add("good")
    refused = await client.refused("authenticate", resource=place.url, token="good", _meta={RENEWAL: given})
    assert refused["code"] == -32602
    await entry(place.bench, client, session, "authRequired", "tickets")


@pytest.mark.parametrize(
    "answer",
    [{"access_token": 7}, {"access_token": "two words"}, {"access_token": "a\nb"}, {"token_type": "mac"}],
)
async def test_an_answer_without_a_usable_token_is_a_refusal(answer: Any) -> None:
    async with guarded(token=answer) as (_, authority, url):
        authority.refresh_tokens.add("r")
        login = Login("", renewal=Renewal(f"{authority.origin}/token", "r", "c"))
        assert not await login.renew(url)
        assert login.renewal is None


def test_what_is_kept_is_not_printed() -> None:
    login = Login("t0ken", renewal=Renewal("https://login.example", "refresh", "client", "s3cret"))
    tokens = Tokens()
    tokens.give("a", "s", "r", login)
    said = f"{tokens!r} {login!r} {login.renewal!r}"
    assert not [word for word in ("t0ken", "refresh", "s3cret") if word in said]
