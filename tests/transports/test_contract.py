"""What every transport promises, on both of its ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import ABNORMAL_CLOSURE, Transport
from support.waiting import BOUND

Pair = tuple[Transport, Transport]
OpenPair = Callable[[], AbstractAsyncContextManager[Pair]]


async def receive(transport: Transport) -> bytes:
    async with asyncio.timeout(BOUND):
        return await transport.receive()


async def closing(transport: Transport) -> TransportClosed:
    """Read to the end and return how it ended."""
    with pytest.raises(TransportClosed) as info:
        while True:
            await receive(transport)
    return info.value


def send(transport: Transport, *messages: bytes) -> None:
    transport.write(b"".join(transport.frame(message) for message in messages))


def fill(transport: Transport) -> None:
    """Write more than the other side, which does not read, and the kernel between them can take."""
    send(transport, *[b'"' + b"x" * 100_000 + b'"'] * 60)


async def test_messages_arrive_whole_and_in_order_however_frames_are_joined(ends: Pair) -> None:
    near, far = ends
    messages = [b'{"n":%d}' % n for n in range(1000)]
    send(near, *messages[:1])
    send(near, *messages[1:700])
    send(near, *messages[700:])
    assert [await receive(far) for _ in messages] == messages


@pytest.mark.parametrize("size", [125, 126, 65_535, 65_536, 5_000_000])
async def test_messages_of_any_size_arrive_unchanged(ends: Pair, size: int) -> None:
    near, far = ends
    message = b'"' + b"x" * (size - 2) + b'"'
    send(near, message, b"1")
    assert await receive(far) == message
    assert await receive(far) == b"1"


async def test_unicode_arrives_unchanged(ends: Pair) -> None:
    near, far = ends
    message = '"zażółć 日本語 👩‍🚀 \u2028 \\n"'.encode()
    send(near, message)
    assert await receive(far) == message


async def test_both_directions_work_at_once(ends: Pair) -> None:
    near, far = ends

    async def talk(transport: Transport) -> list[bytes]:
        heard: list[bytes] = []
        for n in range(200):
            send(transport, b"%d" % n)
            heard.append(await receive(transport))
        return heard

    heard = await asyncio.gather(talk(near), talk(far))
    assert heard == [[b"%d" % n for n in range(200)]] * 2


async def test_a_receive_that_was_waiting_gets_the_message(ends: Pair) -> None:
    near, far = ends
    waiting = asyncio.create_task(receive(far))
    await asyncio.sleep(0)
    send(near, b"1")
    assert await waiting == b"1"


async def test_a_cancelled_receive_loses_nothing(ends: Pair) -> None:
    near, far = ends
    heard: list[bytes] = []
    for n in range(20):
        waiting = asyncio.create_task(receive(far))
        await asyncio.sleep(0)
        send(near, b"%d" % n)
        for _ in range(n % 4):
            await asyncio.sleep(0)
        waiting.cancel()
        try:
            heard.append(await waiting)
        except asyncio.CancelledError:
            heard.append(await receive(far))
    assert heard == [b"%d" % n for n in range(20)]


async def test_a_close_lets_the_other_side_read_everything_and_tells_it_why(ends: Pair, kind: str) -> None:
    near, far = ends
    send(near, b"1", b"2")
    closer = asyncio.create_task(near.aclose(code=4001, reason="that is enough"))
    assert [await receive(far), await receive(far)] == [b"1", b"2"]
    closed = await closing(far)
    await closer
    if kind == "stdio":  # A pipe has no words for it.
        assert (closed.code, closed.reason) == (ABNORMAL_CLOSURE, "end of input")
    else:
        assert (closed.code, closed.reason) == (4001, "that is enough")


async def test_after_its_own_close_receive_raises_with_the_reason_it_gave(ends: Pair) -> None:
    near, far = ends
    send(far, b"1")
    await near.aclose(code=4002, reason="leaving")
    for _ in range(2):
        with pytest.raises(TransportClosed) as info:
            await receive(near)
        assert (info.value.code, info.value.reason) == (4002, "leaving")


async def test_receive_keeps_raising_after_the_other_side_has_closed(ends: Pair) -> None:
    near, far = ends
    await asyncio.gather(near.aclose(reason="done"), closing(far))
    first, second = await closing(far), await closing(far)
    assert (first.code, first.reason) == (second.code, second.reason)


async def test_a_close_wakes_a_waiting_receive_on_the_same_side(ends: Pair) -> None:
    near, far = ends
    waiting = asyncio.create_task(closing(near))
    await asyncio.sleep(0)
    await asyncio.gather(near.aclose(reason="over"), closing(far))
    assert (await waiting).reason == "over"


async def test_a_long_reason_is_cut_not_refused(ends: Pair, kind: str) -> None:
    near, far = ends
    closed, _ = await asyncio.gather(closing(far), near.aclose(reason="ä" * 500))
    assert kind == "stdio" or closed.reason.startswith("ä" * 61)


async def test_closing_twice_or_after_the_other_side_does_nothing(ends: Pair) -> None:
    near, far = ends
    await asyncio.gather(near.aclose(reason="first"), closing(far))
    await near.aclose(reason="second")
    await far.aclose(reason="third")
    assert (await closing(near)).reason == "first"


async def test_an_abort_ends_both_sides_at_once(ends: Pair) -> None:
    near, far = ends
    waiting = asyncio.create_task(closing(near))
    await asyncio.sleep(0)
    near.abort()
    assert (await waiting).code == ABNORMAL_CLOSURE
    assert (await closing(far)).code == ABNORMAL_CLOSURE


async def test_what_is_written_after_the_end_is_dropped(ends: Pair) -> None:
    near, far = ends
    await asyncio.gather(near.aclose(), closing(far))
    for transport in ends:
        for _ in range(10):
            send(transport, b'"late"')
    assert near.buffered == 0


async def test_buffered_counts_what_the_other_side_does_not_take(ends: Pair) -> None:
    near, far = ends
    assert near.buffered == 0
    fill(near)
    assert near.buffered > 1_000_000
    await receive(far)  # It has begun to flow, and stops again.
    assert near.buffered > 1_000_000
    assert far.buffered == 0


async def test_an_abort_frees_what_was_buffered(ends: Pair) -> None:
    near, _ = ends
    fill(near)
    near.abort()
    assert near.buffered == 0


async def test_drain_waits_until_the_other_side_reads(ends: Pair) -> None:
    near, far = ends
    async with asyncio.timeout(BOUND):
        fill(near)
        draining = asyncio.create_task(near.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        reading = asyncio.create_task(closing(far))
        await draining
    assert near.buffered < 1_000_000
    near.abort()
    await reading


async def test_drain_ends_with_the_connection(ends: Pair) -> None:
    near, _ = ends
    async with asyncio.timeout(BOUND):
        fill(near)
        draining = asyncio.create_task(near.drain())
        await asyncio.sleep(0)
        near.abort()
        await draining
        await near.drain()


@pytest.mark.parametrize("close_timeout", [0.1])
async def test_closing_on_a_reader_that_stopped_takes_bounded_time(open_pair: OpenPair) -> None:
    async with asyncio.timeout(BOUND), open_pair() as pair:
        for transport in pair:
            fill(transport)
        for transport in pair:
            await transport.aclose()


async def test_the_peer_is_described(ends: Pair, kind: str) -> None:
    near, far = ends
    expected = "websocket" if kind == "tls" else kind
    assert (near.peer.kind, far.peer.kind) == (expected, expected)
    assert near.peer.address
    assert near.peer.credential is None
