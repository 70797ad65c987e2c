"""Batches in a stream of server-sent events become single messages; everything else passes as it came."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from ahpkit.mcp.connect import UnbatchedEvents, unbatched

BATCH = b'event: message\nid: 7\ndata: [{"a": 1},\ndata:  {"b": "\xc3\xbc"}]\n\n'
SPLIT = b'event: message\ndata: {"a":1}\n\nevent: message\ndata: {"b":"\xc3\xbc"}\nid: 7\n\n'

UNTOUCHED = [
    b'data: {"a": [1]}\n\n',
    b": ping\n\n",
    b"event: endpoint\ndata: /post\n\n",
    b"data: []\n\n",
    b"data: [not json\n\n",
    b"data: [" + b"1," * 1000 + b"1]\n\n",
    b"data: " + b"[" * 100_000 + b"\n\n",
]


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[begin : begin + size] for begin in range(0, len(data), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


async def read(data: bytes, size: int, *, limit: int = 10_000) -> bytes:
    return b"".join([piece async for piece in UnbatchedEvents(Pieces(data, size), limit)])


@pytest.mark.parametrize("event", UNTOUCHED, ids=lambda event: event[:20].decode())
def test_what_is_no_batch_stays_as_it_is(event: bytes) -> None:
    assert unbatched(event) == event


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_batches_are_split_wherever_the_pieces_end(size: int) -> None:
    stream = UNTOUCHED[0] + BATCH + UNTOUCHED[1] + BATCH.replace(b"\n", b"\r\n") + b"data: unfinished"
    assert await read(stream, size) == UNTOUCHED[0] + SPLIT + UNTOUCHED[1] + SPLIT + b"data: unfinished"


@pytest.mark.parametrize("size", [1, 64, 100_000])
async def test_an_event_that_is_too_long_passes_and_the_next_is_read(size: int) -> None:
    long = b"data: [" + b"1" * 500 + b"]\n\n"
    assert (await read(long + BATCH, size, limit=100)).endswith(SPLIT)


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        (b'{"id": 7, "result": {"a": [%s]}}', b"values"),
        (b'{"method": "notifications/message", "params": [%s]}', None),
    ],
)
async def test_an_event_of_too_many_values_is_an_error_for_its_request_or_nothing(
    message: bytes, taken: bytes | None
) -> None:
    long = b"event: message\ndata: " + message % (b"1," * 60_000 + b"1") + b"\n\n"
    told = await read(long + UNTOUCHED[0], 10_000, limit=1_000_000)
    error, rest = told[: -len(UNTOUCHED[0])], told[-len(UNTOUCHED[0]) :]
    assert rest == UNTOUCHED[0]
    assert error == b"" if taken is None else error.startswith(b"event: message\ndata: {") and taken in error
