"""Writes, reads and frees a large JSON value piece by piece. No step takes long, and pieces are made only when they are
needed.

A value may contain parts that are made while it is written: `Pieces`, for example from a file, and `Items` of a long
list. It may also contain finished JSON: `msgspec.Raw`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from ahpkit.wire.codec import Json, decode_own, encode

PIECE = 64 * 1024
"""The approximate size of a piece in bytes. Even the worst text of this size is written in a fraction of a
millisecond."""


_FREED = 100
"""The number of entries of a list that are freed in one step."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class Pieces:
    """A JSON value whose bytes come one piece after the other. Raises when it cannot be finished."""

    def __init__(self, make: Callable[[], AsyncIterator[bytes]]) -> None:
        self._make = make

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._make()


class Items:
    """A list whose items are made one after the other."""

    def __init__(self, make: Callable[[], Iterator[Json]]) -> None:
        self.make = make


async def write_pieces(value: Json) -> AsyncIterator[bytes]:
    """`value` as compact JSON, in pieces of about `PIECE` bytes or less."""
    gathered: list[bytes] = []
    size = 0
    for part in _parts(value):
        if isinstance(part, Pieces):
            yield b"".join(gathered)
            gathered, size = [], 0
            async for piece in part:
                yield piece
            continue
        gathered.append(part)
        size += len(part)
        if size >= PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


async def write_parts(value: Json, size: int) -> AsyncIterator[bytes]:
    """`value` as compact JSON, in parts of `size` bytes or a little more; only the last is shorter, and may be empty.

    Other tasks run between two pieces of a part.
    """
    if is_light(value):
        yield encode(value)
        return
    pieces: list[bytes] = []
    made = 0
    async for piece in write_pieces(value):
        pieces.append(piece)
        made += len(piece)
        if made >= size:
            yield b"".join(pieces)
            pieces, made = [], 0
        await asyncio.sleep(0)
    yield b"".join(pieces)


async def read_pieces(data: bytes | msgspec.Raw) -> Json:
    """The JSON value in bytes that `encode` wrote. Other tasks run between two pieces."""
    if len(data) <= PIECE or bytes(memoryview(data)[:1]) not in b"{[":
        return decode_own(data)
    await asyncio.sleep(0)
    if bytes(memoryview(data)[:1]) == b"{":
        members = _MEMBERS.decode(data)
        return dict(zip(members, await _read_each(members.values()), strict=True))
    return await _read_each(_ITEMS.decode(data))


async def _read_each(parts: Iterable[msgspec.Raw]) -> list[Json]:
    values: list[Json] = []
    size = 0
    for part in parts:
        values.append(await read_pieces(part))
        size += len(part)
        if size >= PIECE:
            size = 0
            await asyncio.sleep(0)
    return values


def entries_of(value: Mapping[str, Any] | None) -> list[list[Any]]:
    """Copies of the long lists in an object. They keep the entries in memory when the object is freed, for `free`."""
    members: Iterable[Any] = (value or {}).values()
    return [each.copy() for each in members if isinstance(each, list) and len(cast("list[Any]", each)) > _FREED]


async def free(lists: list[list[Any]]) -> None:
    """Empty lists piece by piece, because freeing many entries at once takes long, too."""
    for entries in lists:
        while entries:
            del entries[-_FREED:]
            await asyncio.sleep(0)


def _parts(value: Json) -> Iterator[bytes | Pieces]:
    """`value` as compact JSON, in parts of any size up to a few times `PIECE`."""
    if isinstance(value, Pieces):
        yield value
    elif isinstance(value, Items):
        yield from _array(value.make())
    elif isinstance(value, msgspec.Raw) or is_light(value):
        yield encode(value)
    elif isinstance(value, dict):
        yield from _object(cast("dict[str, Any]", value))
    elif isinstance(value, list | tuple):
        yield from _array(iter(cast("list[Any]", value)))
    else:
        yield from _text(value if isinstance(value, str) else value.__json__())


def _object(members: dict[str, Any]) -> Iterator[bytes | Pieces]:
    before = b""
    yield b"{"
    for name, value in members.items():
        yield b"%b%b:" % (before, encode(name))
        yield from _parts(value)
        before = b","
    yield b"}"


def _array(items: Iterator[Json]) -> Iterator[bytes | Pieces]:
    """Items that are small together are encoded together, because most lists are long and have short items."""
    before = b""
    together: list[Json] = []
    left = PIECE
    yield b"["
    for item in items:
        left = _left(left, item)
        if left > 0:
            together.append(item)
            continue
        if together:
            yield before + encode(together)[1:-1]
            before = b","
        together, left = [], _left(PIECE, item)
        if left > 0:
            together.append(item)
        else:
            yield before
            yield from _parts(item)
            before, left = b",", PIECE
    if together:
        yield before + encode(together)[1:-1]
    yield b"]"


def _text(text: str) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), PIECE):
        yield encode(text[start : start + PIECE])[1:-1]
    yield b'"'


def is_light(value: Json) -> bool:
    """Whether a value is short enough to be written at once. Stops looking as soon as it is not."""
    return _left(PIECE, value) > 0


def _left(left: int, value: Json) -> int:
    """Approximately how many of these bytes remain after a value; none if the value is made while it is written."""
    todo: list[Any] = [value]
    while todo:
        one = todo.pop()
        kind = one.__class__
        if kind is str:
            left -= len(one)
        elif kind is int or kind is bool or one is None:
            continue
        elif kind is dict:
            left -= 16 * len(one)
            todo += one.values()
        elif kind is list or kind is tuple:
            left -= 8 * len(one)
            if left > 0:
                todo += one
        elif kind is Pieces or kind is Items:
            return 0
        elif hasattr(one, "__len__"):
            left -= len(one)
        if left <= 0:
            return 0
    return left


async def measure(value: Json, *, at_most: int) -> int:
    """The bytes of a value as JSON; counting stops above `at_most`."""
    size = 0
    async for piece in write_pieces(value):
        size += len(piece)
        if size > at_most:
            break
        await asyncio.sleep(0)  # Other tasks run between two pieces.
    return size


__all__ = [
    "PIECE",
    "Items",
    "Pieces",
    "entries_of",
    "free",
    "is_light",
    "measure",
    "read_pieces",
    "write_parts",
    "write_pieces",
]
