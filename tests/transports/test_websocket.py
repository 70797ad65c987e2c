"""What is refused on an open WebSocket, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ahpkit.transports.connect import connect_transport
from ahpkit.transports.websocket import address
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import Transport
from transports.raw import UPGRADE, Raw, masked, raw
from transports.serving import serving


@contextlib.asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[Transport, Raw]]:
    """A connection with the transport at the server's end and bytes at the other."""
    async with serving(**options) as server, raw(server.port) as client:
        await client.upgrade()
        yield await server.accepted.get(), client


async def ending(transport: Transport) -> tuple[int, str]:
    with pytest.raises(TransportClosed) as info:
        await transport.receive()
    return info.value.code, info.value.reason


async def send_in_portions(client: Raw, data: bytes, portion: int) -> None:
    """Send these bytes a few at a time. The server reads between two portions, if it reads at all."""
    for start in range(0, len(data), portion):
        client.send(data[start : start + portion])
        await asyncio.sleep(0)
        await asyncio.sleep(0)


class TestReceiving:
    async def test_a_message_in_fragments_arrives_whole(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x01, b"[1,") + masked(0x89, b"ping") + masked(0x80, b"2]"))
            assert await transport.receive() == b"[1,2]"

    @pytest.mark.parametrize("portion", [1, 2, 3, 7, 8, 100, 1000, 1_000_000])
    async def test_messages_arrive_in_order_however_their_bytes_are_divided(self, portion: int) -> None:
        sizes = [0, 1, 2, 125, 126, 127, 300, *([] if portion < 100 else [65_535, 65_536])]
        short = [(0x81, b"x" * size) for size in sizes]
        frames = [*short, (0x01, b"[1,"), (0x89, b"ping"), (0x80, b"2]"), (0x8A, b""), *reversed(short), (0x81, b"end")]
        expected = [*(text for _, text in short), b"[1,2]", *(text for _, text in reversed(short)), b"end"]
        data = b"".join(masked(*frame) for frame in frames)
        async with opened() as (transport, client), asyncio.TaskGroup() as tasks:
            tasks.create_task(send_in_portions(client, data, portion))
            assert [await transport.receive() for _ in expected] == expected
            assert await client.frame() == (0x8A, b"ping")

    async def test_what_follows_a_short_message_is_checked(self) -> None:
        async with opened(max_size=200) as (transport, client):
            client.send(masked(0x81, b"1") + masked(0x81, b"x" * 200) + masked(0x81, b"x" * 201))
            assert [await transport.receive() for _ in range(2)] == [b"1", b"x" * 200]
            assert (await client.close_frame())[0] == 1009

    @pytest.mark.parametrize("early", [1, 5, 8, 12, 100])
    async def test_what_comes_with_the_request_is_received_too(self, early: int) -> None:
        data = masked(0x81, b"1") + masked(0x01, b"[2,") + masked(0x80, b"3]") + masked(0x81, b"4")
        async with serving() as server, raw(server.port) as client:
            client.request("/", UPGRADE)
            client.send(data[:early])
            await client.reader.readuntil(b"\r\n\r\n")
            client.send(data[early:])
            transport = await server.accepted.get()
            assert [await transport.receive() for _ in range(3)] == [b"1", b"[2,3]", b"4"]

    async def test_nothing_is_received_after_a_wrong_frame(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x81, b"1") + masked(0x83, b"") + masked(0x81, b"2"))
            assert await transport.receive() == b"1"
            assert (await client.close_frame())[0] == 1002
            client.send(masked(0x81, b"3"))
            client.writer.close()
            assert (await ending(transport))[0] == 1002

    async def test_a_message_in_too_many_fragments_is_refused(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x01, b""))
            for _ in range(4):  # Not all at once: each time there is an answer to the ping.
                client.send(masked(0x00, b"") * 1000 + masked(0x89, b""))
                assert await client.frame() == (0x8A, b"")
            client.send(masked(0x00, b"") * 1000)
            assert await client.close_frame() == (1009, "too many fragments")
            client.writer.close()
            assert (await ending(transport))[0] == 1009

    @pytest.mark.parametrize("first", [0x89, 0x8A, 0x00])
    async def test_no_step_reads_thousands_of_control_frames_or_fragments(self, first: int) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x81, b"1") + masked(0x01, b"") + masked(first, b"") * 5000)
            assert await transport.receive() == b"1"
            code, reason = await client.close_frame()
            assert (code, reason) == (1008, "more than 2048 control frames or fragments at once")
            client.writer.close()
            assert await ending(transport) == (code, reason)

    async def test_thousands_of_control_frames_before_the_handshake_end_the_connection(self) -> None:
        async with serving() as server, raw(server.port) as client:
            client.request("/", UPGRADE)
            client.send(masked(0x89, b"") * 5000)
            with contextlib.suppress(ConnectionResetError):
                assert b"101" not in await client.reader.read()
            assert server.accepted.empty()

    async def test_a_message_that_was_cut_off_is_not_received(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x81, b"1") + masked(0x81, b"22")[:-1])
            assert await transport.receive() == b"1"
            client.writer.close()
            assert (await ending(transport))[0] == 1006

    async def test_messages_that_nobody_takes_are_left_in_the_socket(self) -> None:
        async with opened() as (transport, client):
            filler = masked(0x81, b"x" * 500)
            for number in range(20_000):
                client.send(masked(0x81, b"%d" % number) + filler)
            for _ in range(200):  # Time enough for a server that reads all it can get.
                await asyncio.sleep(0)
            assert client.writer.transport.get_write_buffer_size()  # The kernel does not take all of them.
            for number in range(20_000):
                assert await transport.receive() == b"%d" % number
                await transport.receive()

    @pytest.mark.parametrize("frames", [[(0x82, b"{}")], [(0x02, b"{"), (0x80, b"}")]])
    async def test_a_binary_frame_ends_the_connection_with_a_reason(self, frames: list[tuple[int, bytes]]) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x81, b"1") + b"".join(masked(*frame) for frame in frames))
            assert await transport.receive() == b"1"
            code, reason = await client.close_frame()
            assert (code, reason) == (1003, "binary frame: messages are JSON in text frames")
            client.writer.close()
            assert await ending(transport) == (code, reason)

    async def test_a_frame_over_the_limit_is_refused_by_its_head(self) -> None:
        async with opened(max_size=1000) as (transport, client):
            client.send(bytes((0x81, 0xFF)) + (2**40).to_bytes(8, "big") + bytes(4))
            code, reason = await client.close_frame()
            assert code == 1009
            assert "1000 bytes" in reason
            client.writer.close()
            assert await ending(transport) == (code, reason)

    async def test_a_message_over_the_limit_in_fragments_is_refused(self) -> None:
        async with opened(max_size=200) as (_, client):
            client.send(masked(0x01, b"x" * 120) + masked(0x00, b"x" * 120))
            assert (await client.close_frame())[0] == 1009

    async def test_a_frame_without_a_mask_is_refused(self) -> None:
        async with opened() as (_, client):
            client.send(b"\x81\x01a")
            assert (await client.close_frame())[0] == 1002


class TestEnding:
    async def test_a_connection_that_was_refused_while_it_was_written_to_can_be_closed(self) -> None:
        async with serving(max_size=1000) as server:
            transport = await connect_transport(server.url)
            transport.write(transport.frame(b"x" * 17_000_000))
            assert (await ending(transport))[0] == 1009
            await transport.aclose()
            await transport.aclose()
            transport.abort()

    async def test_the_reason_of_who_closed_first_counts(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x88, (4000).to_bytes(2, "big") + b"bye"))
            assert await client.close_frame() == (4000, "bye")
            client.writer.close()
            assert await ending(transport) == (4000, "bye")

    async def test_a_lost_connection_has_no_reason_of_its_own(self) -> None:
        async with opened() as (transport, client):
            client.writer.transport.abort()
            assert await ending(transport) == (1006, "connection lost")

    async def test_a_close_without_words_still_reads_as_one(self) -> None:
        async with opened() as (transport, client):
            client.send(masked(0x88, b""))
            await client.close_frame()
            client.writer.close()
            assert (await ending(transport))[1] == "connection closed"


def test_addresses_read_as_one_writes_them() -> None:
    assert address(("127.0.0.1", 80)) == "127.0.0.1:80"
    assert address(("::1", 80, 0, 0)) == "[::1]:80"
    assert address("/run/x.sock") == "/run/x.sock"
    assert address(b"") == ""
