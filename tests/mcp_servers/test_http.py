"""Servers behind a URL: both forms of HTTP, tokens, redirects, and what a hostile one may not do."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncGenerator
from typing import Any, Literal, cast

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ahpkit.mcp.calls import Limits
from ahpkit.mcp.connect import ServerConfig
from ahpkit.mcp.errors import McpError, McpRefused, McpUnavailable
from ahpkit.mcp.server import McpServer
from ahpkit.mcp.tokens import Challenge, Login, Tokens, auth_required, resource_of
from ahpkit.protocol.common.state import JsonObject
from mcp_servers.http_server import Guard, http_server, serving
from mcp_servers.running import Answers, Port, running, text_of
from support import requirement


def at(url: str, **fields: Any) -> ServerConfig:
    return ServerConfig(name="web", url=url, **fields)


@pytest.mark.parametrize("sse", [False, True], ids=["streamable", "sse"])
async def test_a_server_behind_a_url(sse: bool) -> None:
    async with http_server(sse=sse) as url, running(at(url, sse=sse), Port()) as server:
        assert text_of(await server.call_tool("add", {"a": 2, "b": 3}, Answers())) == "5"
        caller = Answers()
        assert "Ann" in text_of(await server.call_tool("ask", {}, caller))


async def test_nobody_there_is_an_error() -> None:
    port = Port()
    async with running(at("http://127.0.0.1:9/mcp"), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        assert "web" in server.state["error"]["message"]


async def test_a_server_that_goes_away_is_an_error_and_comes_back() -> None:
    port = Port()
    async with http_server() as url:
        async with running(at(url), port) as server:
            pass
    assert port.kinds == ["starting", "ready", "stopped"]
    assert not server.ready


@requirement("mcp:auth:shape")
@requirement("mcp:auth:reason-required")
@requirement("mcp:auth:resource-uri")
@requirement("mcp:auth:authorization-servers")
@requirement("mcp:auth:scopes-from-challenge")
@requirement("mcp:state:error-not-for-auth")
async def test_a_401_asks_for_a_token_and_a_token_lets_in() -> None:
    port, guard = Port(), Guard()
    async with http_server(guard) as url, running(at(url), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "authRequired")
        state = server.state
        assert state["reason"] == "required"
        assert state["resource"]["resource"] == url
        assert state["resource"]["authorization_servers"] == ["https://login.example"]
        assert state["requiredScopes"] == ["files:read"]
        assert state["description"] == "log in first"
        guard.tokens.add("good")
        port.tokens.give("client", "s", url, Login("good"))
        server.token_given()
        await port.until(lambda: server.ready)
        assert text_of(await server.call_tool("add", {"a": 1, "b": 1}, Answers())) == "2"
    assert "error" not in port.kinds
    assert "good" not in str(port.states)


async def test_a_refused_token_is_not_sent_again() -> None:
    port, guard = Port(), Guard()
    async with http_server(guard) as url, running(at(url), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "authRequired")
        port.tokens.give("client", "s", url, Login("bad"))
        server.token_given()
        await port.until(lambda: port.kinds.count("authRequired") == 2)
        assert server.state["reason"] == "required"
        assert port.tokens.find("s", url) is None


@requirement("mcp:auth:scopes-from-challenge")
async def test_scopes_come_from_the_metadata_when_the_challenge_names_none() -> None:
    port = Port()
    async with http_server(Guard(scope="")) as url, running(at(url), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "authRequired")
        assert server.state["requiredScopes"] == ["files:read", "files:write"]


@requirement("mcp:auth:reason-expired")
async def test_a_login_that_was_taken_back_is_over_also_when_an_answer_came_after_that() -> None:
    port, guard = Port(), Guard()
    guard.tokens.add("first")
    async with http_server(guard) as url:
        port.tokens.give("client", "s", url, Login("first"))
        async with running(at(url), port) as server:
            port.tokens.take_back("client", url)
            guard.tokens.add("")  # What was sent before is still answered.
            await server.call_tool("add", {"a": 1, "b": 1}, Answers())
            guard.tokens.clear()
            call = asyncio.create_task(server.call_tool("add", {"a": 1, "b": 1}, Answers()))
            await port.until(lambda: server.state["kind"] == "authRequired")
            assert server.state["reason"] == "expired"
            call.cancel()


@requirement("mcp:auth:reason-expired")
@requirement("mcp:auth:reason-insufficient-scope")
async def test_a_call_waits_for_a_new_token_and_goes_on() -> None:
    port, guard = Port(), Guard()
    async with http_server(guard) as url:
        guard.tokens.add("first")
        port.tokens.give("client", "s", url, Login("first"))
        async with running(at(url), port) as server:
            guard.tokens.clear()
            call = asyncio.create_task(server.call_tool("add", {"a": 1, "b": 1}, Answers()))
            await port.until(lambda: server.state["kind"] == "authRequired")
            assert server.state["reason"] == "expired"
            guard.weak.add("weak")
            port.tokens.give("client", "s", url, Login("weak"))
            server.token_given()
            await port.until(lambda: server.state.get("reason") == "insufficientScope")
            assert server.state["requiredScopes"] == ["files:write"]
            guard.tokens.add("second")
            port.tokens.give("client", "s", url, Login("second"))
            server.token_given()
            assert text_of(await call) == "2"
            assert server.ready


class ByMethod(Guard):
    """Wants a token for some requests only, and counts those that come. `held` waits before it fails."""

    def __init__(self) -> None:
        super().__init__()
        self.wants: bytes | None = None
        self.came: list[bytes] = []
        self.held, self.release = asyncio.Event(), asyncio.Event()

    def __call__(self, app: Any) -> Any:
        async def looked_at(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            request = Request(scope, receive)
            body = await request.body()
            self.came.append(body)
            if b"held" in body:
                self.held.set()
                await self.release.wait()
                await Response(status_code=500)(scope, receive, send)
                return
            token = (request.headers.get("authorization") or "").removeprefix("Bearer ")
            if self.wants is not None and self.wants in body and token not in self.tokens:
                await self._refusal(token)(scope, receive, send)
                return
            parts = iter([{"type": "http.request", "body": body}])

            async def again() -> Any:
                return next(parts, None) or await receive()

            await app(scope, again, send)

        return looked_at


async def test_a_call_that_fails_while_another_waits_for_a_token_fails_and_is_not_repeated() -> None:
    port, guard = Port(), ByMethod()
    async with http_server(guard) as url, running(at(url), port) as server:
        held = asyncio.create_task(server.call_tool("held", {}, Answers()))
        await guard.held.wait()
        guard.wants = b'"add"'
        waits = asyncio.create_task(server.call_tool("add", {"a": 1, "b": 1}, Answers()))
        await port.until(lambda: server.state["kind"] == "authRequired")
        guard.release.set()
        with pytest.raises(McpError):
            await held
        guard.tokens.add("good")
        port.tokens.give("client", "s", url, Login("good"))
        server.token_given()
        assert text_of(await waits) == "2"
    assert sum(b"held" in body for body in guard.came) == 1


async def test_a_list_that_needs_a_new_token_is_shown_at_once_and_read_again() -> None:
    port, guard = Port(), ByMethod()
    async with http_server(guard) as url, running(at(url), port) as server:
        guard.wants = b'"tools/list"'
        await server.call_tool("grow", {"name": "added"}, Answers())
        await port.until(lambda: server.state["kind"] == "authRequired")
        guard.tokens.add("good")
        port.tokens.give("client", "s", url, Login("good"))
        server.token_given()
        await port.until(lambda: server.ready and "added" in [tool["name"] for tool in server.lists.tools])


async def test_a_part_that_needs_a_token_does_not_explain_a_later_crash() -> None:
    """Prompts that are refused are left out. When the server goes away afterwards, that is what is shown."""
    port, guard = Port(), ByMethod()
    guard.wants = b'"prompts/list"'
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(http_server(guard))
        limits = Limits(delays=())
        server = await stack.enter_async_context(running(at(url), port, limits=limits))
        assert "every prompt" in server.lists.left_out
        way = cast("Any", server)._way
        way.give_up("it went away")
        await port.until(lambda: server.state["kind"] in ("error", "authRequired"))
        assert server.state["kind"] == "error"
        assert "it went away" in server.state["error"]["message"]


async def test_a_server_cannot_ask_for_somebody_elses_token() -> None:
    guard, port = Guard(metadata={"resource": "https://bank.example/api"}), Port()
    async with http_server(guard) as url, running(at(url), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "authRequired")
        assert server.state["resource"]["resource"] == url


async def test_a_redirect_to_another_host_gets_nothing() -> None:
    elsewhere = Guard()
    async with http_server(elsewhere) as target:
        async with http_server(redirect=target) as url:
            port = Port()
            port.tokens.give("client", "s", url, Login("secret"))
            limits = Limits(delays=())
            async with running(at(url, headers={"x-key": "k"}), port, limits=limits, wait=False) as server:
                await port.until(lambda: server.state["kind"] in ("error", "authRequired"))
                assert server.state["kind"] == "error"
    assert elsewhere.seen == []


async def test_an_answer_that_is_too_long_is_refused() -> None:
    async with http_server() as url:
        async with running(at(url), Port(), limits=Limits(message=50_000, delays=(0.01,) * 5)) as server:
            with pytest.raises(McpError):
                await _big(server)


async def _big(server: McpServer) -> None:
    await server.call_tool("big", {"size": 1_000_000}, Answers())


async def test_stopping_while_it_waits_for_a_token_ends_the_wait() -> None:
    port, guard = Port(), Guard()
    async with http_server(guard) as url:
        guard.tokens.add("first")
        port.tokens.give("client", "s", url, Login("first"))
        async with running(at(url), port) as server:
            guard.tokens.clear()
            call = asyncio.create_task(server.call_tool("add", {"a": 1, "b": 1}, Answers()))
            await port.until(lambda: server.state["kind"] == "authRequired")
        with pytest.raises((McpUnavailable, asyncio.CancelledError)):
            await call


def test_challenges_are_read() -> None:
    header = 'Basic realm="x", Bearer error="insufficient_scope", scope="a b", error_description="say \\"please\\""'
    challenge = Challenge.read(403, header)
    assert challenge is not None
    assert challenge.scopes == ["a", "b"]
    assert challenge.reason(had_token=True) == "insufficientScope"
    assert Challenge.read(403, "") is None
    assert Challenge.read(401, "") is not None


def test_a_resource_is_an_address_without_the_rest() -> None:
    assert resource_of("HTTPS://me:pw@Host.example/Mcp?key=1#x") == "https://host.example/Mcp"


def test_tokens_belong_to_a_connection_and_are_not_shown() -> None:
    tokens = Tokens()
    tokens.give("a", "s", "r", Login("one"))
    tokens.give("b", "s", "r", Login("two"))
    assert tokens.find("s", "r") == "two"
    assert "two" not in repr(tokens)
    tokens.drop_client("b")
    assert tokens.find("s", "r") == "one"
    tokens.drop("r", "one")
    assert tokens.find("s", "r") is None
    tokens.give("a", "s", "r", Login("three"))
    tokens.give("a", "s", "r", Login(""))
    assert tokens.find("s", "r") is None


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_compressed_answer_is_refused_before_it_is_unpacked(kind: str) -> None:
    """A few bytes may become gigabytes."""
    bomb = Response(gzip.compress(b"x" * 50_000_000), media_type=kind, headers={"content-encoding": "gzip"})
    app = Starlette(routes=[Route("/mcp", bomb, methods=["GET", "POST"])])
    port = Port()
    async with (
        serving(lambda origin: app) as origin,
        running(ServerConfig(name="bomb", url=f"{origin}/mcp"), port, limits=Limits(delays=()), wait=False) as server,
    ):
        await port.until(lambda: server.state["kind"] == "error")
        assert "compressed" in server.state["error"]["message"]


@pytest.mark.parametrize("sse", [False, True], ids=["streamable", "sse"])
@pytest.mark.parametrize("status", [200, 307, 400, 403, 404, 500])
async def test_an_error_names_no_part_of_the_address_that_may_be_a_secret(status: int, sse: bool) -> None:
    answer = Response(status_code=status, headers={"location": "http://ada:hunter2@127.0.0.1:9/?key=hunter2"})
    app = Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST"])])
    port = Port()
    async with serving(lambda origin: app) as origin:
        config = at(f"{origin}/mcp?key=hunter2", sse=sse)
        async with running(config, port, limits=Limits(delays=()), wait=False) as server:
            await port.until(lambda: server.state["kind"] == "error")
            assert server.state["error"]["message"] != "web: "
            assert "hunter2" not in str(server.state)


@pytest.mark.parametrize("body", [b"{not json", b"null", b"", b'{"jsonrpc": "2.0", "id": 1, "result": null}'])
async def test_an_answer_that_is_no_message_is_an_error_in_one_line(body: bytes) -> None:
    app = Starlette(routes=[Route("/mcp", Response(body, media_type="application/json"), methods=["GET", "POST"])])
    port = Port()
    async with (
        serving(lambda origin: app) as origin,
        running(ServerConfig(name="odd", url=f"{origin}/mcp"), port, limits=Limits(delays=()), wait=False) as server,
    ):
        await port.until(lambda: server.state["kind"] == "error")
        message: str = server.state["error"]["message"]
        assert ("parse" in message, "\n" in message, "pydantic" in message) == (True, False, False)


async def test_odd_metadata_is_not_passed_on() -> None:
    odd: dict[str, Any] = {
        "authorization_servers": "x",
        "scopes_supported": {"a": 1},
        "jwks_uri": [1],
        "nested": {"a": {}},
    }
    guard = Guard(scope="", metadata=odd)
    async with http_server(guard) as url:
        state = await auth_required(url, Challenge(401, {}), had_token=False)
    allowed = {"resource": url, "authorization_servers": [url.removesuffix("/mcp")], "jwks_uri": []}
    assert state["resource"] == allowed
    assert "requiredScopes" not in state


async def test_metadata_that_never_comes_is_not_waited_for_without_end() -> None:
    async def never(request: Request) -> Response:
        await asyncio.sleep(3600)
        raise AssertionError

    async with serving(lambda origin: Starlette(routes=[Route("/{path:path}", never)])) as origin:
        state = await auth_required(f"{origin}/mcp", Challenge(401, {}), had_token=False, patience=0.2)
    assert state["resource"]["resource"] == f"{origin}/mcp"


async def test_a_server_that_is_left_while_it_begins_to_listen_for_changes_stops() -> None:
    async with http_server(sse=True) as url:
        for _ in range(3):
            async with asyncio.timeout(60), running(at(url, sse=True), Port()) as server:
                assert text_of(await server.call_tool("add", {"a": 1, "b": 2}, Answers())) == "3"


class Forgetful:
    """A server over HTTP that may forget its sessions, as one does that was started anew."""

    def __init__(self) -> None:
        self.session = 0
        self.greetings = 0
        self.ran = 0
        self.is_odd = False
        """It answers calls with a list."""
        self.forgets: Literal["never", "once", "always"] = "never"

    async def __call__(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        method = message["method"]
        if method == "initialize":
            self.greetings += 1
            about = {"name": "forgetful", "version": "1"}
            hello: JsonObject = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
            return self._answer(message, hello, {"mcp-session-id": str(self.session)})
        if method == "server/discover":
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
        if method == "tools/call" and self.forgets != "never":
            self.session += 1
            self.forgets = "always" if self.forgets == "always" else "never"
        if request.headers.get("mcp-session-id") != str(self.session):
            return Response(status_code=404)
        if "id" not in message:
            return Response(status_code=202)
        if method == "tools/list":
            return self._answer(message, {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]})
        if self.is_odd:
            return JSONResponse([])
        self.ran += 1
        return self._answer(message, {"content": [{"type": "text", "text": str(self.ran)}]})

    def _answer(self, message: JsonObject, result: JsonObject, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


async def test_a_server_that_forgot_its_session_is_greeted_anew_and_the_call_is_made_once() -> None:
    server_side, port = Forgetful(), Port()
    app = Starlette(routes=[Route("/mcp", server_side.__call__, methods=["GET", "POST", "DELETE"])])
    limits = Limits(start=20.0, call=20.0, delays=(0.01, 0.01), relist=0.01)
    async with (
        serving(lambda origin: app) as origin,
        running(ServerConfig(name="forgetful", url=f"{origin}/mcp"), port, limits=limits) as server,
    ):
        assert text_of(await server.call_tool("count", {}, Answers())) == "1"
        server_side.forgets = "once"
        assert text_of(await server.call_tool("count", {}, Answers())) == "2"
        assert (server_side.greetings, server_side.ran, server.ready) == (2, 2, True)
        server_side.is_odd = True
        with pytest.raises(McpRefused, match=r"^Failed to parse JSON response$"):
            await server.call_tool("count", {}, Answers())
        server_side.forgets = "always"
        with pytest.raises((McpRefused, McpUnavailable)):
            await server.call_tool("count", {}, Answers())
        assert server_side.ran == 2


class Batching(Forgetful):
    """A server of MCP 2025-03-26: what it sends comes in batches."""

    def _answer(self, message: JsonObject, result: JsonObject, headers: dict[str, str] | None = None) -> Response:
        said = {"method": "notifications/message", "params": {"level": "info", "data": "beside it"}}
        batch = [{"jsonrpc": "2.0", **said}, {"jsonrpc": "2.0", "id": message["id"], "result": result}]
        event = f"event: message\r\nid: 7\r\ndata: {json.dumps(batch)}\r\n\r\n".encode()

        async def pieces() -> AsyncGenerator[bytes]:
            for begin in range(0, len(event), 50):
                yield event[begin : begin + 50]

        return StreamingResponse(pieces(), media_type="text/event-stream", headers=headers)


async def test_batches_in_a_stream_of_events_are_answers_too() -> None:
    app = Starlette(routes=[Route("/mcp", Batching().__call__, methods=["GET", "POST", "DELETE"])])
    async with (
        serving(lambda origin: app) as origin,
        running(ServerConfig(name="batches", url=f"{origin}/mcp"), Port()) as server,
    ):
        assert text_of(await server.call_tool("count", {}, Answers())) == "1"


class Endless(Forgetful):
    """A server whose first call brings more values than are read; as one answer, or as an event."""

    def __init__(self, *, events: bool) -> None:
        super().__init__()
        self._events = events

    def _answer(self, message: JsonObject, result: JsonObject, headers: dict[str, str] | None = None) -> Response:
        if message["method"] == "tools/call" and self.ran == 1:
            result = {"content": [{"type": "text", "text": "x"}] * 60_000}
        answer = super()._answer(message, result, headers)
        if not self._events:
            return answer
        event = b"data: " + bytes(answer.body) + b"\n\n"
        return Response(event, media_type="text/event-stream", headers=headers)


@pytest.mark.parametrize("events", [False, True])
async def test_an_answer_of_too_many_values_fails_its_call_and_the_server_goes_on(events: bool) -> None:
    app = Starlette(routes=[Route("/mcp", Endless(events=events).__call__, methods=["GET", "POST", "DELETE"])])
    async with (
        serving(lambda origin: app) as origin,
        running(ServerConfig(name="endless", url=f"{origin}/mcp"), Port()) as server,
    ):
        with pytest.raises(McpRefused, match="one message may hold 50000 values"):
            await server.call_tool("count", {}, Answers())
        assert text_of(await server.call_tool("count", {}, Answers())) == "2"


class OldServer:
    """A server that speaks only the older form of HTTP. `odd` says how it takes the next call."""

    def __init__(self) -> None:
        self.streams: list[asyncio.Queue[bytes | None]] = []
        self.odd = ""

    def app(self, origin: str) -> Starlette:
        return Starlette(routes=[Route("/sse", self.listen), Route("/post", self.take, methods=["POST"])])

    async def listen(self, request: Request) -> Response:
        stream: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.streams.append(stream)
        stream.put_nowait(b"event: endpoint\ndata: /post\n\n")

        async def events() -> AsyncGenerator[bytes]:
            while (event := await stream.get()) is not None:
                yield event

        return StreamingResponse(events(), media_type="text/event-stream")

    async def take(self, request: Request) -> Response:
        message = await request.json()
        odd, method = self.odd, message.get("method")
        if method == "tools/call" and odd:
            self.odd = ""
            if odd == "it drops the connection":
                self.streams[-1].put_nowait(None)
            return Response(status_code=500 if odd == "it refuses the message" else 202)
        hello: JsonObject = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
        results: dict[str, Any] = {
            "initialize": {**hello, "serverInfo": {"name": "old", "version": "1"}},
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        error = {"error": {"code": -32601, "message": "no"}}
        answer = {"result": results[method]} if method in results else error
        if "id" in message:
            said = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
            self.streams[-1].put_nowait(f"event: message\ndata: {said}\n\n".encode())
        return Response(status_code=202)


@pytest.mark.parametrize("odd", ["it drops the connection", "it refuses the message", "its connection ends at rest"])
async def test_a_server_of_the_older_form_whose_connection_ends_is_connected_anew(odd: str) -> None:
    """Its answers come on that connection, so it stayed ready and every call failed."""
    old, port = OldServer(), Port()
    async with serving(old.app) as origin:
        config = ServerConfig(name="old", url=f"{origin}/sse", sse=True)
        async with running(config, port) as server:
            assert text_of(await server.call_tool("add", {}, Answers())) == "done"
            if odd == "its connection ends at rest":
                old.streams[-1].put_nowait(None)
            else:
                old.odd = odd
                with pytest.raises(McpUnavailable, match="ended during the call"):
                    await server.call_tool("add", {}, Answers())
            await port.until(lambda: port.kinds.count("ready") == 2)
            assert text_of(await server.call_tool("add", {}, Answers())) == "done"
            assert len(old.streams) == 2
