"""Peers that are slow, silent or gone, over real sockets."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse

from ahpkit.http.connection import Limits
from ahpkit.http.router import Access, Receive, Router, Scope, Send
from ahpkit.transports.connect import connect_transport
from support.waiting import BOUND
from transports.raw import UPGRADE, masked, raw
from transports.serving import serving

LONG = 1000.0


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(await Request(scope, receive).body())(scope, receive, send)


def only(app: object) -> Router:
    router = Router()
    router.mount("/", app, access=Access.PUBLIC)  # type: ignore[arg-type]  # A plain function.
    return router


class TestDeadlines:
    @pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: local"])
    async def test_a_head_that_does_not_come_ends_the_connection(self, start: bytes) -> None:
        async with serving(limits=Limits(head=0.05, body=LONG, unread=LONG)) as server, raw(server.port) as client:
            client.send(start)
            assert await client.reader.read() == b""

    async def test_a_second_head_that_does_not_come_ends_the_connection(self) -> None:
        async with serving(limits=Limits(head=0.05, idle=1000)) as server, raw(server.port) as client:
            client.request("/healthz", {})
            await client.reader.readuntil(b"}")
            client.send(b"GET / HT")
            assert await client.reader.read() == b""

    async def test_a_body_that_stops_ends_the_connection(self) -> None:
        limits = Limits(head=LONG, body=0.05, unread=LONG)
        async with serving(limits=limits, routes=only(echo)) as server, raw(server.port) as client:
            client.request("/", {"Content-Length": "10"}, method="POST")
            client.send(b"12345")
            assert await client.reader.read() == b""

    async def test_a_body_that_comes_byte_by_byte_without_end_ends_the_connection(self) -> None:
        limits = Limits(head=LONG, body=LONG, whole_body=0.05, unread=LONG, idle=1000)
        async with (
            serving(limits=limits, routes=only(echo)) as server,
            raw(server.port) as good,
            raw(server.port) as bad,
        ):
            good.request("/", {"Content-Length": "3"}, method="POST")
            good.send(b"123")
            await good.reader.readuntil(b"123")
            bad.request("/", {"Content-Length": "1000000"}, method="POST")
            ended = asyncio.create_task(bad.reader.read())
            async with asyncio.timeout(BOUND):
                while not ended.done():
                    bad.send(b"x")
                    await asyncio.wait([ended], timeout=0.01)
            assert isinstance(ended.exception(), ConnectionError) or ended.result() == b""
            good.request("/", {"Content-Length": "3"}, method="POST")  # The time of its first body is over as well.
            good.send(b"456")
            await good.reader.readuntil(b"456")

    async def test_a_body_in_pieces_is_waited_for(self) -> None:
        async with serving(routes=only(echo), limits=Limits(body=LONG)) as server, raw(server.port) as client:
            client.request("/", {"Content-Length": "10", "Connection": "close"}, method="POST")
            for piece in (b"12345", b"678", b"90"):
                client.send(piece)
                await client.writer.drain()
            assert (await client.reader.read()).endswith(b"1234567890")

    async def test_an_answer_that_is_not_read_ends_the_connection(self) -> None:
        ended = asyncio.Event()

        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            async def pieces():
                while True:
                    yield b"x" * 10_000

            try:
                await StreamingResponse(pieces())(scope, receive, send)
            finally:
                ended.set()

        limits = Limits(unread=0.05)
        async with serving(routes=only(endless), limits=limits) as server, raw(server.port) as client:
            client.request("/", {})
            await ended.wait()

    async def test_a_slow_application_is_not_cut_off(self) -> None:
        go = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await go.wait()
            await PlainTextResponse("late")(scope, receive, send)

        limits = Limits(head=0.05, body=0.05, unread=0.05)
        async with serving(routes=only(slow), limits=limits) as server, raw(server.port) as client:
            client.request("/", {"Connection": "close"})
            asyncio.get_running_loop().call_later(0.2, go.set)
            assert (await client.reader.read()).endswith(b"late")


class TestUpgrade:
    async def test_nothing_of_http_is_left_on_a_websocket(self) -> None:
        """Neither its deadlines, which would cut it off, nor its count of connections."""
        limits = Limits(head=0.05, body=0.05, unread=0.05, idle=0, connections=2)
        async with serving(limits=limits) as server:
            clients = [await connect_transport(server.url) for _ in range(5)]
            ends = [await server.accepted.get() for _ in clients]
            async with raw(server.port) as silent:  # The deadline of a connection that came later has passed.
                assert await silent.reader.read() == b""
            for client, end in zip(clients, ends, strict=True):
                client.write(client.frame(b"1"))
                assert await end.receive() == b"1"
                await client.aclose()

    async def test_frames_that_come_with_the_request_are_not_lost(self) -> None:
        async with serving() as server, raw(server.port) as client:
            client.request("/", UPGRADE)
            client.send(masked(0x81, b"early"))
            transport = await server.accepted.get()
            assert await transport.receive() == b"early"

    async def test_a_websocket_is_asked_for_with_get(self) -> None:
        async with serving() as server, raw(server.port) as client:
            status, headers, _ = await client.http("/", method="POST", **UPGRADE)
            assert (status, headers["allow"]) == (405, "GET")


class TestMany:
    async def test_over_the_limit_requests_are_told_so_and_websockets_are_served(self) -> None:
        async with serving(limits=Limits(connections=2)) as server, raw(server.port), raw(server.port) as second:
            second.request("/healthz", {"Connection": "close"})
            assert b" 503 " in await second.reader.read()
            client = await connect_transport(server.url)
            await server.accepted.get()
            await client.aclose()


class TestEnd:
    async def test_an_answer_on_its_way_is_finished(self) -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            asked.set()
            await go.wait()
            await PlainTextResponse("finished")(scope, receive, send)

        async with serving(routes=only(slow)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asked.wait()
            asyncio.get_running_loop().call_soon(go.set)
        assert (await reader.read()).endswith(b"finished")
        writer.close()
        await writer.wait_closed()

    async def test_an_answer_without_end_is_cut_off(self, caplog: pytest.LogCaptureFixture) -> None:
        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            async def pieces():
                yield b"begin"
                await asyncio.Event().wait()

            await StreamingResponse(pieces())(scope, receive, send)

        async with serving(routes=only(endless)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"begin")
        assert b"\r\n0\r\n" not in await reader.read()  # What would end it regularly.
        writer.close()
        await writer.wait_closed()
        assert "Exception in ASGI" not in caplog.text
