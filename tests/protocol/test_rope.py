"""Streamed text: a rope is its characters, and appending costs the same however long it is."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.rope import Rope


@given(st.lists(st.text()))
def test_a_rope_is_the_text_that_was_added(pieces: list[str]) -> None:
    rope = Rope()
    for piece in pieces:
        rope = rope.add(piece)
    text = "".join(pieces)
    assert str(rope) == text
    assert len(rope) == len(text)
    assert rope == text
    assert hash(rope) == hash(text)


def test_adding_leaves_the_rope_as_it_was() -> None:
    rope = Rope.of("a")
    assert (str(rope.add("b")), str(rope.add("c")), str(rope)) == ("ab", "ac", "a")


def test_ropes_are_compared_by_their_text() -> None:
    assert Rope.of("ab").add("c") == Rope.of("a").add("bc")
    assert Rope.of("ab") != Rope.of("ba")
    assert Rope.of("a") != "b"
    assert Rope.of("1") != 1


def test_the_rope_of_a_rope_is_itself() -> None:
    rope = Rope.of("a")
    assert Rope.of(rope) is rope
    assert rope.add("") is rope


def test_an_empty_rope_is_false_like_an_empty_string() -> None:
    assert not Rope.of("")
    assert Rope.of("a")


def test_a_rope_shows_its_text() -> None:
    assert repr(Rope.of("a").add("b")) == "Rope('ab')"


def test_only_text_can_be_added() -> None:
    with pytest.raises(TypeError):
        Rope.of("a").add(["b"])  # pyright: ignore[reportArgumentType]  # Wrong on purpose.
    with pytest.raises(TypeError):
        Rope.of(7)  # pyright: ignore[reportArgumentType]  # Wrong on purpose.


@given(st.lists(st.integers(min_value=1, max_value=400), max_size=300))
def test_chunks_at_least_halve_so_that_there_are_few(lengths: list[int]) -> None:
    rope = Rope()
    for length in lengths:
        rope = rope.add("x" * length)
    sizes = [len(chunk) for chunk in rope.chunks]
    assert all(right * 2 <= left for left, right in pairwise(sizes))
    assert len(sizes) <= len(rope).bit_length()


def test_an_append_copies_nothing_of_the_long_part() -> None:
    long = Rope.of("x" * 1_000_000)
    rope = long
    for _ in range(1000):
        rope = rope.add("word ")
    assert rope.chunks[0] is long.chunks[0]
    assert len(rope) == 1_005_000
