import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from ahpkit.agents.sse import MAX_ERROR, HttpError, post_events
from support.waiting import BOUND


@asynccontextmanager
async def answering(*pieces: bytes, stay: bool = False) -> AsyncGenerator[str]:
    """A server that answers every request with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if stay:
                await reader.read()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1?x=1"


async def events(url: str, *, timeout: float = 5.0, **headers: str) -> list[str]:
    async with asyncio.timeout(BOUND):
        return [event async for event in post_events(url, headers=headers, body=b"{}", timeout=timeout)]


OK = b"HTTP/1.1 200 OK\r\n\r\n"


async def test_events_are_split_wherever_the_network_cuts_them() -> None:
    async with answering(
        OK + b"data: o", b"ne\r\n\r", b"\n: comment\nevent: x\ndata:two\ndata: lines\n\n", b"data: last"
    ) as url:
        assert await events(url) == ["one", "two\nlines", "last"]


async def test_chunked_bodies_are_joined() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with answering(head + b"8\r\ndata: a\n\r\n", b"1;ext=1\r\n\n\r\n0\r\n\r\n", stay=True) as url:
        assert await events(url) == ["a"]


async def test_a_length_ends_the_body_although_the_connection_stays() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: a\n\n", stay=True) as url:
        assert await events(url) == ["a"]


async def test_any_other_status_is_an_error_with_its_text_bounded() -> None:
    async with answering(b"HTTP/1.1 503 Busy\r\n\r\n", b"later\n" * 100_000) as url:
        with pytest.raises(HttpError) as error:
            await events(url)
    assert error.value.status == 503
    assert error.value.body.startswith("later")
    assert len(error.value.body) <= MAX_ERROR


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not http\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_an_error(answer: bytes) -> None:
    async with answering(answer) as url:
        with pytest.raises(HttpError) as error:
            await events(url)
    assert error.value.status == 0


async def test_silence_is_an_error_after_the_timeout() -> None:
    async with answering(OK, stay=True) as url:
        with pytest.raises(HttpError, match=r"nothing came for 0\.1 seconds"):
            await events(url, timeout=0.1)


async def test_a_header_with_a_line_break_is_not_sent() -> None:
    async with answering(OK) as url:
        with pytest.raises(HttpError, match="line break"):
            await events(url, authorization="a\r\nb: c")


async def test_nobody_listening_is_an_error() -> None:
    with pytest.raises(HttpError) as error:
        await events("http://127.0.0.1:9/v1")
    assert error.value.status == 0
