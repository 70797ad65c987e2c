"""Large values, written and read piece by piece."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.pieces import PIECE, Items, read_pieces, write_pieces

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)
LONG = "a\u00e4\n" * PIECE
LARGE: dict[str, Any] = {
    "texts": {"texts": [LONG, "short", LONG]},
    "objects": [{"id": number, "parts": [{"text": "x" * 500}]} for number in range(2000)],
    "one object": {"deep": [[[LONG]]]},
    "one text": LONG,
    "few": [1, 2.5, None, True, {}],
}


async def written(value: Any) -> bytes:
    return b"".join([piece async for piece in write_pieces(value)])


@given(VALUES, st.integers(0, 3))
def test_a_value_is_written_and_read_as_in_one_piece(value: Any, copies: int) -> None:
    large = [value, *[{"again": value, "long": LONG}] * copies]
    data = encode(large)
    assert asyncio.run(written(large)) == data
    assert asyncio.run(read_pieces(data)) == decode_own(data)


async def test_short_items_are_written_together_in_pieces_of_bounded_size() -> None:
    many = [{"id": number, "title": "x" * 300} for number in range(2000)]
    mixed = [*many, LONG, *many, Items(lambda: iter(many))]
    pieces = [piece async for piece in write_pieces(mixed)]
    assert b"".join(pieces) == encode([*many, LONG, *many, many])
    assert max(map(len, pieces)) < 4 * PIECE
    assert len(pieces) < 100


async def test_json_that_is_written_already_is_taken_as_it_is() -> None:
    many = [{"id": number, "title": "x" * 300} for number in range(2000)]
    made = [Raw(encode(one)) for one in (*many, LONG)]
    pieces = [piece async for piece in write_pieces({"raw": made, "made": Items(lambda: iter(made))})]
    assert b"".join(pieces) == encode({"raw": [*many, LONG], "made": [*many, LONG]})
    assert len(pieces) < 100


def test_everything_in_a_large_value_is_read() -> None:
    assert asyncio.run(read_pieces(encode(LARGE))) == LARGE
    assert asyncio.run(read_pieces(encode(LONG))) == LONG


async def test_others_are_served_while_a_large_value_is_read() -> None:
    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turns = 0
    counting = asyncio.create_task(count())
    await read_pieces(encode(LARGE))
    counting.cancel()
    assert turns >= 10
