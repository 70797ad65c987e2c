"""Completion items from text and a cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.host.turns.completions import TypedWord, slash_items, utf16_length, word_at
from support import requirement

COMMANDS = [("help", "Show help"), ("halt", "Stop"), ("Ask", "Ask a question")]


def offered(text: str, offset: int) -> list[str]:
    return [item["insertText"] for item in slash_items(COMMANDS, text, offset)]


@requirement("commands:completions:offset-utf16")
def test_a_character_outside_the_basic_plane_counts_twice() -> None:
    assert utf16_length("a😀b") == 4
    assert word_at("😀 /he", 6) == TypedWord("😀 ", "/he", 3, 6)


@pytest.mark.parametrize(
    ("text", "offset", "word"),
    [
        ("", 0, TypedWord("", "", 0, 0)),
        ("/he", 3, TypedWord("", "/he", 0, 3)),
        ("/help me", 2, TypedWord("", "/h", 0, 5)),
        ("look at ", 8, TypedWord("look at ", "", 8, 8)),
        ("a  b", 4, TypedWord("a  ", "b", 3, 4)),
    ],
)
def test_the_word_around_the_cursor(text: str, offset: int, word: TypedWord) -> None:
    assert word_at(text, offset) == word


def test_a_slash_offers_all_commands_in_their_order() -> None:
    assert offered("/", 1) == ["/help ", "/halt ", "/Ask "]


def test_what_is_typed_narrows_the_offer_whatever_the_case() -> None:
    assert offered("/HE", 3) == ["/help "]
    assert offered("/a", 2) == ["/Ask ", "/halt "]
    assert offered("/x", 2) == []


def test_white_space_before_the_command_is_fine() -> None:
    assert offered("  /he", 5) == ["/help "]


@pytest.mark.parametrize(("text", "offset"), [("", 0), ("he", 2), ("see /he", 7), ("/help me", 8), ("/help", 0)])
def test_only_a_command_at_the_start_is_completed(text: str, offset: int) -> None:
    assert offered(text, offset) == []


def test_an_item_replaces_the_whole_word_and_explains_itself() -> None:
    (item,) = slash_items(COMMANDS, "/hexx now", 3)
    assert (item.get("rangeStart"), item.get("rangeEnd")) == (0, 5)
    assert item["attachment"] == {"type": "simple", "label": "/help", "_meta": {"description": "Show help"}}


@given(st.text(), st.data())
def test_the_range_always_lies_in_the_text_and_holds_the_cursor(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, utf16_length(text)))
    word = word_at(text, offset)
    assert 0 <= word.start <= offset <= word.end <= utf16_length(text)
