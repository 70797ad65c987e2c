"""A server that wants a token: what is shown, who may give one, and logging in with the SDK and the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ahpkit.client import AuthenticationNeeded, Client, LoginFailed, McpNotReady, TurnCompleted, TurnWaiting
from ahpkit.client.oauth import log_in
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.mcp.feature import McpServers
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.meta_keys import KEEP_TOKEN
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.transport import Transport
from mcp_servers.authorization import AuthorizationServer
from mcp_servers.http_server import Guard, http_server, serving
from mcp_servers.running import QUICK
from mcp_servers.test_configured import entry
from support import requirement
from support.bench import Bench, calling, say
from support.process import finish_cli, host_process
from support.raw_client import Json, RawClient


class Place:
    """A guarded MCP server, its authorization server, and a host with a session that has it."""

    def __init__(self, bench: Bench, guard: Guard, authority: AuthorizationServer, url: str) -> None:
        self.bench = bench
        self.guard = guard
        self.authority = authority
        self.url = url

    @contextlib.asynccontextmanager
    async def sdk(self) -> AsyncGenerator[Client]:
        serving: list[asyncio.Task[None]] = []

        async def dial() -> Transport:
            ours, theirs = memory_pair()
            serving.append(asyncio.create_task(self.bench.host.serve(theirs)))
            return ours

        async with Client(dial, client_id="sdk", mcp_apps=True) as client:
            yield client
        await asyncio.wait(serving, timeout=10)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place]:
    async with guarded() as (guard, authority, url):
        work = tmp_path / "work"
        work.mkdir()
        bench = Bench(work)
        servers = [{"name": "tickets", "url": url}]
        customizations = Customizations(CustomizationSettings(default_directory=work, servers=servers))
        bench.features = [customizations, McpServers(customizations.servers, directory=work, limits=QUICK)]
        await bench.start()
        try:
            yield Place(bench, guard, authority, url)
        finally:
            await bench.stop()


@contextlib.asynccontextmanager
async def guarded(**odd: Any) -> AsyncGenerator[tuple[Guard, AuthorizationServer, str]]:
    guard = Guard()
    authority = AuthorizationServer(guard.tokens.add, **odd)

    def at(origin: str) -> Any:
        authority.origin = origin
        return authority.app()

    async with serving(at) as origin, http_server(guard) as url:
        guard.metadata = {"authorization_servers": [origin]}
        yield guard, authority, url


async def browse(page: str) -> None:
    """A browser whose person says yes at once."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        (await browser.get(page)).raise_for_status()


async def waiting(place: Place, client: RawClient) -> tuple[str, str, Json]:
    session, chat = await place.bench.session(client)
    return session, chat, await entry(place.bench, client, session, "authRequired", "tickets")


@requirement("mcp:state:auth-required", "mcp:auth:no-notification", "gen:tool:auth-no-token", "gen:auth:scopes")
@requirement("gen:auth:expires-in-valid", "gen:auth:advertised-only", "gen:auth:only-its-resource")
async def test_a_server_that_wants_a_token_says_so_as_state_and_takes_it_for_its_own_resource_only(
    place: Place,
) -> None:
    client = await place.bench.client()
    session, _, shown = await waiting(place, client)
    state = shown["state"]
    assert (state["reason"], state["resource"]["resource"]) == ("required", place.url)
    assert state["requiredScopes"] == ["files:read"]
    assert state["description"] == "log in first"
    assert state["resource"]["authorization_servers"] == [place.authority.origin]
    assert not [message for message in client.received if message.get("method") == "auth/required"]
    other = await client.refused("authenticate", resource="https://elsewhere.example/mcp", token="t")
    assert other["code"] == -32602
    for seconds in (0, -1, 1.5):
        refused = await client.refused("authenticate", resource=place.url, token="t", expiresIn=seconds)
        assert refused["code"] == -32602
    place.guard.tokens.add("s3cret-token")
    await client.ask("authenticate", resource=place.url, token="s3cret-token", scopes=["other"])
    assert (await entry(place.bench, client, session, "authRequired", "tickets"))["state"] == state
    await client.ask("authenticate", resource=place.url, token="s3cret-token", scopes=["files:read"])
    await entry(place.bench, client, session, "ready", "tickets")
    everything = json.dumps(client.received) + json.dumps(await place.bench.state(client, session))
    assert "s3cret-token" not in everything
    again = await client.refused("authenticate", resource=place.url, token="t")
    assert again["code"] == -32602, "nobody asks for it any more"


async def test_a_token_is_its_sessions_own_and_goes_with_its_client(place: Place) -> None:
    client, watcher = await place.bench.client(), await place.bench.client()
    session, _, _ = await waiting(place, client)
    place.guard.tokens.add("mine")
    await client.ask("authenticate", resource=place.url, token="mine")
    await entry(place.bench, client, session, "ready", "tickets")
    other, _, _ = await waiting(place, watcher)
    assert (await entry(place.bench, watcher, other, "authRequired", "tickets"))["state"]["reason"] == "required"


@pytest.mark.parametrize("kept", [False, True])
async def test_an_empty_token_takes_a_login_back_and_the_next_call_asks_for_another(place: Place, kept: bool) -> None:
    outcomes: list[Any] = []
    place.bench.agent.script = calling(outcomes, "tickets_add", {"a": 1, "b": 2})
    client, other = await place.bench.connect(), await place.bench.client()
    await client.initialize(protocolVersions=["1.0.0"])
    session, chat, _ = await waiting(place, client)
    place.guard.tokens.add("first")
    how: Json = {"resource": place.url} | ({"_meta": {KEEP_TOKEN: True}} if kept else {})
    await client.ask("authenticate", **how, token="first")
    await entry(place.bench, client, session, "ready", "tickets")
    await client.ask("_ahpkit/rules/add", decision="allow", kind="server", owner="mcp:tickets", scope="everywhere")
    refused = await other.refused("authenticate", resource=place.url, token="")
    assert refused["code"] == -32602, "it is not this client's login"
    await client.ask("authenticate", **how, token="")
    await client.accepted(chat, {**say("go"), "startedAt": "2026-01-01T00:00:00.000Z"})
    needed = (await client.action("chat/toolCallAuthRequired"))["action"]["auth"]
    assert needed["reason"] == "expired"
    await client.ask("authenticate", **how, token="first")
    await client.action("chat/turnComplete")
    assert outcomes[0].content[0]["text"] == "3"


@requirement("gen:auth:expires-in", "mcp:auth:reason-expired")
async def test_a_login_whose_time_is_over_is_asked_for_at_once_and_a_call_waits_for_the_next(place: Place) -> None:
    outcomes: list[Any] = []
    place.bench.agent.script = calling(outcomes, "tickets_add", {"a": 1, "b": 2})
    client = await place.bench.client(offer=["1.0.0"])
    session, chat, _ = await waiting(place, client)
    place.guard.tokens |= {"first", "second", "third"}
    await client.ask("_ahpkit/rules/add", decision="allow", kind="server", owner="mcp:tickets", scope="everywhere")
    await client.ask("authenticate", resource=place.url, token="first", expiresIn=1)
    await entry(place.bench, client, session, "ready", "tickets")
    shown = await entry(place.bench, client, session, "authRequired", "tickets")
    assert shown["state"]["reason"] == "expired"
    for turn, token in (("t1", "second"), ("t2", "third")):
        before = len(client.received)
        await client.accepted(chat, {**say("go", turn), "startedAt": "2026-01-01T00:00:00.000Z"})
        needed = (await client.action("chat/toolCallAuthRequired", since=before))["action"]["auth"]
        assert needed["reason"] == "expired"
        await client.ask("authenticate", resource=place.url, token=token)
        await client.action("chat/turnComplete", since=before)
        place.guard.tokens.remove(token)
    assert [outcome.content[0]["text"] for outcome in outcomes] == ["3", "3"]


@requirement("mcp:auth:reason-expired")
async def test_a_login_that_ends_while_a_slow_server_starts_has_expired(place: Place) -> None:
    client = await place.bench.client(offer=["1.0.0"])
    session, _, _ = await waiting(place, client)
    is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def first() -> None:
        place.guard.before_answer = lambda: is_over
        asyncio.get_running_loop().call_later(1, is_over.set_result, None)  # The host's own timer began before.

    place.guard.tokens.add("first")
    place.guard.before_answer = first
    await client.ask("authenticate", resource=place.url, token="first", expiresIn=1)
    shown = await entry(place.bench, client, session, "authRequired", "tickets")
    assert shown["state"]["reason"] == "expired"


@requirement("mcp:auth:raises-input-needed", "gen:input-needed:tool-authentication-set", "gen:auth:advertised-only")
@requirement("mcp:state:auth-required")
async def test_a_call_that_needs_a_new_token_waits_and_the_session_shows_it(place: Place) -> None:
    outcomes: list[Any] = []
    place.bench.agent.script = calling(outcomes, "tickets_add", {"a": 1, "b": 2})
    client = await place.bench.connect()
    await client.initialize(protocolVersions=["1.0.0"])
    session, chat, _ = await waiting(place, client)
    place.guard.tokens.add("first")
    await client.ask("authenticate", resource=place.url, token="first")
    await entry(place.bench, client, session, "ready", "tickets")
    owner = {"decision": "allow", "kind": "server", "owner": "mcp:tickets", "scope": "everywhere"}
    await client.ask("_ahpkit/rules/add", **owner)
    place.guard.tokens.clear()
    place.guard.weak.add("first")
    await client.accepted(chat, {**say("go"), "startedAt": "2026-01-01T00:00:00.000Z"})
    needed = (await client.action("chat/toolCallAuthRequired"))["action"]["auth"]
    assert needed["reason"] == "insufficientScope"
    assert needed["requiredScopes"] == ["files:write"]
    state = await place.bench.state(client, session)
    [request] = state["inputNeeded"]
    assert request["kind"] == "toolAuthentication"
    assert state["status"] & 24 == 24
    place.guard.tokens.add("second")
    await client.ask("authenticate", resource=place.url, token="second")
    await client.action("chat/toolCallAuthResolved")
    await client.action("chat/turnComplete")
    assert outcomes[0].content[0]["text"] == "3"
    after = await place.bench.state(client, session)
    assert not after.get("inputNeeded")
    assert "second" not in json.dumps(client.received)


@requirement("gen:mcp:stop-unblocks", "gen:mcp:request-keeps-enablement")
async def test_stopping_a_server_ends_the_wait_of_its_calls(place: Place) -> None:
    outcomes: list[Any] = []
    place.bench.agent.script = calling(outcomes, "tickets_add", {"a": 1, "b": 2})
    client = await place.bench.connect()
    await client.initialize(protocolVersions=["1.0.0"])
    session, chat, shown = await waiting(place, client)
    place.guard.tokens.add("first")
    await client.ask("authenticate", resource=place.url, token="first")
    ready = await entry(place.bench, client, session, "ready", "tickets")
    owner = {"decision": "allow", "kind": "server", "owner": "mcp:tickets", "scope": "everywhere"}
    await client.ask("_ahpkit/rules/add", **owner)
    place.guard.tokens.clear()
    await client.accepted(chat, {**say("go"), "startedAt": "2026-01-01T00:00:00.000Z"})
    await client.action("chat/toolCallAuthRequired")
    await client.accepted(session, {"type": "session/mcpServerStopRequested", "id": shown["id"]})
    await client.action("chat/turnComplete")
    assert not outcomes[0].success
    stopped = await entry(place.bench, client, session, "stopped", "tickets")
    assert stopped.get("enablement") == ready.get("enablement")
    assert not (await place.bench.state(client, session)).get("inputNeeded")


@requirement("mcp:auth:scopes-authoritative", "mcp:auth:affordance-at-tool-call")
async def test_the_sdk_logs_in_where_a_call_waits(place: Place) -> None:
    async def script(turn: Turn) -> None:
        outcome = await turn.call_tool("tickets_add", '{"a": 1, "b": 2}')
        turn.text(str(outcome.content[0].get("text")))

    place.bench.agent.script = script
    async with place.sdk() as client:
        session = await client.create_session()
        server = session.mcp_server("tickets")
        await session.wait(lambda _: server.state["kind"] == "authRequired")
        await server.log_in(open_browser=browse)
        await server.wait_ready()
        asked = place.authority.authorizations[-1]
        assert asked["scope"] == "files:read", "not what the metadata lists besides"
        assert (asked["resource"], asked["code_challenge_method"]) == (place.url, "S256")
        await client.add_rule("allow", owner="mcp:tickets")
        place.guard.weak |= place.guard.tokens
        place.guard.tokens.clear()
        chat = await session.chat()
        with pytest.raises(TurnWaiting, match="waits for somebody: a login that add needs") as caught:
            await chat.ask("go", on_approval="allow")
        needed, turn = caught.value.waiting, chat.follow()
        assert isinstance(needed, AuthenticationNeeded)
        assert turn is not None
        await session.mcp_server(needed.server_id).log_in(open_browser=browse)
        assert isinstance([event async for event in turn][-1], TurnCompleted)
        assert place.authority.authorizations[-1]["scope"] == "files:write"
        assert chat.confirmed["turns"][-1]["responseParts"][-1]["content"] == "3"  # type: ignore[typeddict-item]  # The last part is text.
        assert (await server.tools())[0]["name"] == "add"


async def test_a_login_with_fewer_scopes_than_were_named_is_for_the_server_to_judge(place: Place) -> None:
    """The host left the server waiting without a word: nobody without all that a server knows could log in."""
    place.authority.odd["token"] = {"scope": "profile"}
    async with place.sdk() as client:
        session = await client.create_session()
        server = session.mcp_server("tickets")
        await session.wait(lambda _: server.state["kind"] == "authRequired")
        await server.log_in(open_browser=browse)
        await server.wait_ready()
        assert server.state["kind"] == "ready"


CHALLENGE: Json = {"kind": "authRequired", "reason": "required"}


def challenge(authority: AuthorizationServer, url: str, **more: Any) -> Json:
    return {**CHALLENGE, "resource": {"resource": url, "authorization_servers": [authority.origin]}, **more}


@requirement("gen:mcp:oauth-client")
async def test_a_client_that_is_registered_already_is_used() -> None:
    async with guarded() as (_, authority, url):
        known = challenge(authority, url, oauthClient={"clientId": "known-1"})
        token = await log_in(known, open_browser=browse)
        assert token.text
        assert token.text not in repr(token)
        assert authority.clients == {}
        [asked] = authority.authorizations
        assert asked["client_id"] == "known-1"
        assert "scope" not in asked
        await log_in(challenge(authority, url), open_browser=browse)
        assert len(authority.clients) == 1


NAMES_ITSELF = {"authorization_response_iss_parameter_supported": True}


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "PKCE"),
        ({"metadata": {"code_challenge_methods_supported": None}}, "PKCE"),
        ({"metadata": {"issuer": "https://evil.example"}}, "says nothing about how to log in"),
        ({"metadata": {"code_challenge_methods_supported": 7}}, "PKCE"),
        ({"metadata": {"token_endpoint": "http://evil.example/token"}}, "not reached by https"),
        ({"metadata": {"token_endpoint": "https://[evil/token"}}, "not reached by https"),
        ({"metadata": {"authorization_endpoint": "javascript:alert(1)"}}, "not reached by https"),
        ({"metadata": {"registration_endpoint": "https://a\u0000b/"}}, "cannot be reached"),
        ({"metadata": {"more": "x" * 2_000_000}}, "says nothing about how to log in"),
        (
            {"metadata": {"authorization_response_iss_parameter_supported": True}, "answer": {"iss": None}},
            "another auth",
        ),
        ({"metadata": {"registration_endpoint": None}}, "give a client id"),
        ({"answer": {"iss": "https://evil.example"}}, "another authorization server"),
        ({"answer": {"error": "access_denied", "code": ""}}, "access_denied"),
        ({"answer": {"code": "made-up"}}, "invalid_grant"),
    ],
)
async def test_a_login_that_is_not_safe_or_fails_says_why(odd: Json, reason: str) -> None:
    async with guarded(**odd) as (_, authority, url):
        with pytest.raises(LoginFailed, match=reason):
            await log_in(challenge(authority, url), open_browser=browse)


@pytest.mark.parametrize(
    "odd",
    [
        {"answer": {"iss": None}},
        {"metadata": NAMES_ITSELF},
        {"token": {"expires_in": 10**12}},
    ],
)
async def test_a_login_that_is_only_unusual_is_taken(odd: Json) -> None:
    async with guarded(**odd) as (guard, authority, url):
        token = await log_in(challenge(authority, url), open_browser=browse)
        assert token.text in guard.tokens
        assert token.expires_in == (None if "token" in odd else 3600)


async def test_a_page_that_sends_a_browser_to_the_redirect_changes_nothing() -> None:
    """Only the answer with the state of this login counts, however many others come before it."""
    strangers: list[int] = []

    async def interrupted(page: str) -> None:
        address = parse_qs(urlsplit(page).query)["redirect_uri"][0]
        async with httpx2.AsyncClient() as browser:
            for query in ("code=evil&state=evil", "error=access_denied", "code=x&state=%C3%A9%FF", ""):
                strangers.append((await browser.get(f"{address}?{query}")).status_code)
        await browse(page)

    async with guarded() as (_, authority, url):
        assert (await log_in(challenge(authority, url), open_browser=interrupted)).text
    assert strangers == [400] * 4


async def test_a_browser_that_comes_back_from_another_login_is_not_taken_for_this_one() -> None:
    async def visited(page: str) -> None:
        with pytest.raises(httpx2.HTTPStatusError):
            await browse(page)

    async with guarded(answer={"state": "another"}) as (_, authority, url):
        with pytest.raises(LoginFailed, match="nobody logged in"):
            await log_in(challenge(authority, url), open_browser=visited, timeout=2)
        assert authority.authorizations, "the browser was there"


async def test_a_person_who_does_not_come_back_ends_the_wait() -> None:
    async with guarded() as (_, authority, url):
        with pytest.raises(LoginFailed, match="nobody logged in"):
            await log_in(challenge(authority, url), open_browser=lambda page: None, timeout=0.2)
        with pytest.raises(LoginFailed, match="does not name an authorization server"):
            await log_in({**CHALLENGE, "resource": {"resource": url}}, open_browser=browse)


async def test_a_server_elsewhere_cannot_send_a_login_to_programs_of_this_machine() -> None:
    async with guarded() as (_, authority, _):
        elsewhere = challenge(authority, "https://mcp.example/mcp")
        with pytest.raises(LoginFailed, match="the authorization server is not reached by https"):
            await log_in(elsewhere, open_browser=browse)


@requirement("mcp:auth:client-authenticates")
async def test_the_command_logs_in_and_the_server_stays_logged_in(tmp_path: Path) -> None:
    async with guarded() as (guard, authority, url):
        config = tmp_path / "host.toml"
        config.write_text(f'[[mcp.servers]]\nname = "tickets"\nurl = "{url}"\n')
        options = ("--durability", "memory", "--root", str(tmp_path), "--config", str(config))
        async with host_process(tmp_path, *options) as host:
            code, _, errors = await finish_cli(["mcp", "login", "tickets"], tmp_path)
            assert (code, "no session in this directory" in errors) == (1, True)
            client = await host.client()
            await client.ask("createSession", "ahp-session:/s1", workingDirectories=[tmp_path.as_uri()])
            state = await client.ask("subscribe", "ahp-session:/s1")
            if "authRequired" not in json.dumps(state):
                await client.action(lambda said: "authRequired" in json.dumps(said["action"]))
            browser = tmp_path / "browser"
            program = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
            browser.write_text(f"#!/bin/sh\nexec python3 -c '{program}' \"$1\"\n")
            browser.chmod(0o700)
            authority.odd["answer"] = {"error": "\x1b[2Jall\u202e well", "code": ""}
            code, _, errors = await finish_cli(["mcp", "login", "tickets"], tmp_path, BROWSER=f"{browser} %s")
            assert (code, errors) == (1, "Error: not logged in: ␛[2Jall\\u202e well\n")
            authority.odd.clear()
            code, output, errors = await finish_cli(
                ["mcp", "login", "tickets", "--json"], tmp_path, BROWSER=f"{browser} %s"
            )
            assert code == 0, errors
            assert json.loads(output)["state"] == {"kind": "ready"}
            code, output, errors = await finish_cli(["mcp", "call", "tickets", "add", '{"a": 2, "b": 3}'], tmp_path)
            assert (code, output) == (0, "5\n"), errors
            [token] = guard.tokens
            assert token not in host.errors
            guard.tokens.clear()
            code, output, errors = await finish_cli(["mcp", "call", "tickets", "add", '{"a": 2, "b": 4}'], tmp_path)
            assert (code, output) == (0, "6\n"), errors
            assert [one["resource"] for one in authority.renewals] == [url]
            assert not [token for token in (*guard.tokens, *authority.refresh_tokens) if token in host.errors]
            code, _, errors = await finish_cli(["mcp", "login", "tickets"], tmp_path)
            assert (code, "does not ask for a token now" in errors) == (1, True)

            guard.tokens.clear()
            authority.refresh_tokens.clear()
            await finish_cli(["prompt", "--no-wait", "--session", "s1", '/tool tickets_add {"a": 2, "b": 5}'], tmp_path)
            approval, _ = await listed(tmp_path, "approval")
            assert (await finish_cli(["approve", "s1"], tmp_path))[0] == 0
            login, words = await listed(tmp_path, "login")
            assert (login["id"], login["server"]) == (approval["id"], "tickets")
            assert words.endswith("  ahpkit mcp login tickets --session s1\n")
            code, _, errors = await finish_cli(
                ["mcp", "login", "tickets", "--session", "s1"], tmp_path, BROWSER=f"{browser} %s"
            )
            assert code == 0, errors
            while "returned:\n\n```\n7\n```" not in (await finish_cli(["sessions", "show", "s1"], tmp_path))[1]:
                pass
            assert (await finish_cli(["inbox"], tmp_path))[1] == "Nothing waits for you.\n"
            await client.aclose()
        assert len(authority.authorizations) == 3


async def listed(home: Path, kind: str) -> tuple[Json, str]:
    """The one thing in the inbox, once it is of this kind: as data, and as shown to a person."""
    while True:
        found = json.loads((await finish_cli(["inbox", "--json"], home))[1])
        if [one["kind"] for one in found] == [kind]:
            return found[0], (await finish_cli(["inbox"], home))[1]


async def test_what_the_sdk_cannot_do_it_says(place: Place) -> None:
    async with place.sdk() as client:
        session = await client.create_session()
        server = session.mcp_server("tickets")
        await session.wait(lambda _: server.state["kind"] == "authRequired")
        with pytest.raises(McpNotReady, match="wants you to log in"):
            await server.tools()
        with pytest.raises(LookupError, match="it has: tickets"):
            session.mcp_server("nothing")
        with pytest.raises(InvalidParams):
            await client.authenticate("https://elsewhere.example", "t")


async def test_the_secret_of_an_oauth_client_is_shown_to_nobody(tmp_path: Path) -> None:
    async with guarded() as (_, _, url):
        work = tmp_path / "work"
        work.mkdir()
        bench = Bench(work)
        server = {"name": "tickets", "url": url, "oauth": {"clientId": "known", "clientSecret": "${SECRET}"}}
        settings = CustomizationSettings(default_directory=work, servers=[server], environment={"SECRET": "hunter2"})
        customizations = Customizations(settings)
        bench.features = [customizations, McpServers(customizations.servers, directory=work, limits=QUICK)]
        await bench.start()
        try:
            client = await bench.client()
            session, _ = await bench.session(client)
            shown = await entry(bench, client, session, "authRequired", "tickets")
            assert shown["state"]["oauthClient"] == {"clientId": "known"}
            everything = json.dumps(client.received) + json.dumps(await bench.state(client, session))
            assert "hunter2" not in everything
            assert "clientSecret" not in everything
        finally:
            await bench.stop()
