"""Routes behind the gate, over real sockets: who gets an answer, how long a body may be, what every answer says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ahpkit.http.router import Access, Receive, Router, Scope, Send
from ahpkit.transports.auth import Authenticator
from support.http import get, post, request
from transports.raw import raw
from transports.serving import serving

TOKEN = "the-right-token"


async def page(request: Request) -> Response:
    return HTMLResponse("<p>" * 100_000, headers={"Cache-Control": "max-age=60"})


async def who(request: Request) -> Response:
    return JSONResponse({"allowed": request.state.admission.allowed, "path": request.url.path})


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


async def boom(request: Request) -> Response:
    raise RuntimeError("internal secret")


async def count(scope: Scope, receive: Receive, send: Send) -> None:
    """An application without a framework: how many bytes came."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await PlainTextResponse(str(size))(scope, receive, send)


def routes() -> Router:
    router = Router()
    pages = Starlette(routes=[Route("/page", page), Route("/who", who), Route("/boom", boom)])
    private = Starlette(routes=[Route("/who", who), Route("/echo", echo, methods=["POST"])])
    router.mount("/public", pages, access=Access.PUBLIC)
    router.mount("/private", private, max_body=1000)
    router.mount("/count", count, max_body=1000, access=Access.PUBLIC, cache="max-age=5")
    return router


@contextlib.asynccontextmanager
async def running() -> AsyncGenerator[str]:
    async with serving(auth=Authenticator(TOKEN), routes=routes()) as server:
        yield f"http://127.0.0.1:{server.port}"


BEARER = {"Authorization": f"Bearer {TOKEN}"}


class TestHealth:
    async def test_it_needs_no_token(self) -> None:
        async with running() as base:
            answer = await get(f"{base}/healthz?x=1")
            assert (answer.status, answer.json()) == (200, {"status": "ok", "name": "ahpkit"})
            assert answer.headers["content-type"] == "application/json"
            assert "server" not in answer.headers

    async def test_other_methods_are_refused(self) -> None:
        async with running() as base:
            answer = await post(f"{base}/healthz", {})
            assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")

    async def test_a_foreign_name_for_this_machine_is_refused(self) -> None:
        async with running() as base:
            assert (await get(f"{base}/healthz", Host="evil.example")).status == 403


class TestAccess:
    async def test_a_route_needs_the_token_unless_it_is_public(self) -> None:
        async with running() as base:
            refused = await get(f"{base}/private/who")
            assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert (await get(f"{base}/private/who?token=wrong")).status == 401
            for query, headers in (("", BEARER), (f"?token={TOKEN}", {}), (f"?tkn={TOKEN}", {})):
                answer = await get(f"{base}/private/who{query}", **headers)
                assert answer.json() == {"allowed": True, "path": "/private/who"}

    async def test_a_public_route_sees_what_the_token_is_worth(self) -> None:
        async with running() as base:
            assert (await get(f"{base}/public/who")).json()["allowed"] is False
            assert (await get(f"{base}/public/who", **BEARER)).json()["allowed"] is True

    async def test_a_foreign_page_is_refused_even_with_the_token(self) -> None:
        async with running() as base:
            foreign = await post(f"{base}/private/echo", {}, Origin="http://evil.example", **BEARER)
            assert (foreign.status, "evil.example" in foreign.text) == (403, True)
            assert (await post(f"{base}/private/echo", {}, Origin=base, **BEARER)).status == 200

    async def test_a_refusal_keeps_no_connection_and_reads_no_body(self) -> None:
        async with serving(auth=Authenticator(TOKEN), routes=routes()) as server, raw(server.port) as client:
            client.request("/private/echo", {"Content-Length": "1000000"}, method="POST")
            head = await client.reader.readuntil(b"\r\n\r\n")
            assert b" 401 " in head
            assert b"connection: close" in head.lower()
            await client.reader.read()  # To the end: the server has closed.

    async def test_what_is_not_mounted_is_not_found(self) -> None:
        async with running() as base:
            for path in ("/", "/other", "/publicity", "/public/other"):
                assert (await get(base + path)).status == 404


class TestAnswers:
    async def test_every_answer_keeps_browsers_strict(self) -> None:
        async with running() as base:
            for path in ("/healthz", "/public/page", "/private/who", "/other", "/public/boom"):
                headers = (await get(base + path)).headers
                if path != "/public/boom":
                    assert headers["x-content-type-options"] == "nosniff"
                    assert headers["referrer-policy"] == "no-referrer"
                    assert "date" in headers
                assert "server" not in headers

    async def test_answers_are_not_stored_unless_the_route_or_the_application_says_so(self) -> None:
        async with running() as base:
            assert (await get(f"{base}/public/who")).headers["cache-control"] == "no-store"
            assert (await get(f"{base}/public/page")).headers["cache-control"] == "max-age=60"
            assert (await get(f"{base}/count")).headers["cache-control"] == "max-age=5"

    async def test_head_has_the_length_and_no_body(self) -> None:
        async with running() as base:
            answer = await request("HEAD", f"{base}/public/page")
            assert (answer.status, answer.headers["content-length"], answer.text) == (200, "300000", "")

    async def test_a_connection_serves_several_requests(self) -> None:
        async with serving(routes=routes()) as server, raw(server.port) as client:
            for _ in range(3):
                client.request("/healthz", {})
                assert b" 200 " in await client.reader.readuntil(b"}")

    async def test_a_failing_application_tells_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        async with running() as base:
            answer = await get(f"{base}/public/boom")
            assert (answer.status, "secret" in answer.text) == (500, False)
        assert "internal secret" in caplog.text

    async def test_an_answer_can_be_streamed(self) -> None:
        go = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            await go.wait()
            yield b"second"

        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            await StreamingResponse(pieces())(scope, receive, send)

        router = Router()
        router.mount("/", stream, access=Access.PUBLIC)
        async with serving(routes=router) as server, raw(server.port) as client:
            client.request("/", {"Connection": "close"})
            await client.reader.readuntil(b"first")  # While the rest is not even made.
            go.set()
            assert b"second" in await client.reader.read()


class TestBodies:
    async def test_a_body_reaches_the_application(self) -> None:
        async with running() as base:
            assert (await post(f"{base}/private/echo", b"x" * 1000, **BEARER)).text == "x" * 1000

    @pytest.mark.parametrize("path", ["/private/echo", "/count"])
    async def test_a_body_that_says_it_is_too_long_is_refused_before_it_is_sent(self, path: str) -> None:
        async with serving(routes=routes()) as server, raw(server.port) as client:
            client.request(path, {"Content-Length": "1001", "Expect": "100-continue"}, method="POST")
            answer = await client.reader.read()
            assert b" 413 " in answer.split(b"\r\n")[0]
            assert b"longer than 1000 bytes" in answer

    @pytest.mark.parametrize("path", ["/private/echo", "/count"])
    async def test_a_body_of_unknown_length_is_refused_once_it_is_too_long(self, path: str) -> None:
        async with serving(routes=routes()) as server, raw(server.port) as client:
            client.request(path, {"Transfer-Encoding": "chunked"}, method="POST")
            client.send(b"258\r\n" + b"x" * 600 + b"\r\n" + b"258\r\n" + b"x" * 600 + b"\r\n")
            assert b" 413 " in (await client.reader.read()).split(b"\r\n")[0]

    async def test_a_length_with_too_many_digits_is_refused(self) -> None:
        async with serving(routes=routes()) as server, raw(server.port) as client:
            client.request("/count", {"Content-Length": "9" * 5000}, method="POST")
            assert (await client.reader.read()).split(b" ")[1] in (b"400", b"413")
