"""Computes completion items from the text that is typed so far. Pure.

Offsets on the wire count UTF-16 code units; Python counts characters. All conversions are here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ahpkit.protocol.chat.commands import CompletionItem

_UNIT = 2
"""Bytes of one UTF-16 code unit."""


@dataclass(frozen=True, slots=True)
class Word:
    """What is being typed: no white space in it; `start` and `end` are UTF-16 offsets into the text."""

    before: str
    """The text in front of the word."""
    typed: str
    """The word up to the cursor."""
    start: int
    end: int


def utf16_length(text: str) -> int:
    """Length of `text` in UTF-16 code units."""
    return len(_encoded(text)) // _UNIT


def word_at(text: str, offset: int) -> Word:
    """The word around the cursor; it may be empty."""
    data = _encoded(text)
    left, right = _decoded(data[: offset * _UNIT]), _decoded(data[offset * _UNIT :])
    typed = left.rsplit(maxsplit=1)[-1] if left and not left[-1].isspace() else ""
    rest = right.split(maxsplit=1)[0] if right and not right[0].isspace() else ""
    return Word(left.removesuffix(typed), typed, offset - utf16_length(typed), offset + utf16_length(rest))


def slash_items(commands: Iterable[tuple[str, str]], text: str, offset: int) -> list[CompletionItem]:
    """Commands, given as (name, description), for the beginning of a message: those that contain what is typed.

    Those that begin with it come first; apart from that their order is kept.
    """
    word = word_at(text, offset)
    if word.before.strip() or not word.typed.startswith("/"):
        return []
    wanted = word.typed[1:].casefold()
    found = [(name, about) for name, about in commands if wanted in name.casefold()]
    found.sort(key=lambda command: not command[0].casefold().startswith(wanted))
    return [_item(word, f"/{name}", about) for name, about in found]


def best_first(items: Iterable[CompletionItem], text: str, offset: int) -> list[CompletionItem]:
    """Items of several sources: those that begin with what is typed come first; apart from that their order is kept."""
    typed = word_at(text, offset).typed.casefold()
    return sorted(items, key=lambda item: not item["insertText"].casefold().startswith(typed))


def _item(word: Word, label: str, description: str) -> CompletionItem:
    return {
        "insertText": f"{label} ",
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {"type": "simple", "label": label, "_meta": {"description": description}},
    }


def _encoded(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-16-le", "surrogatepass")


__all__ = ["Word", "best_first", "slash_items", "utf16_length", "word_at"]
