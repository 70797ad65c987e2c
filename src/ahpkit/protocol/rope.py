"""Rope: immutable text with cheap append, for parts that are still being streamed.

A delta must cost the same in a ten-byte and in a ten-megabyte part. A rope keeps a few chunks whose lengths at least
halve from left to right; an append merges only the short chunks at the end, like the carry of a binary counter. So a
rope of n characters has at most log2(n) + 1 chunks, and a character is copied at most that often in its life.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Rope"]


class Rope:
    """Text that grows at its end. Equal to, and hashed like, the `str` with the same characters."""

    __slots__ = ("_length", "chunks")

    def __init__(self, chunks: tuple[str, ...] = ()) -> None:
        self.chunks: Final = chunks
        self._length: Final = sum(map(len, chunks))

    @classmethod
    def of(cls, text: str | Rope) -> Rope:
        """The rope of `text`; a rope is returned as it is."""
        return text if isinstance(text, Rope) else cls().add(text)

    def add(self, text: str) -> Rope:
        """This text followed by `text`, as a new rope."""
        if not text:
            return self
        chunks, kept, tail = self.chunks, len(self.chunks), len(text)
        while kept and len(chunks[kept - 1]) < 2 * tail:
            kept -= 1
            tail += len(chunks[kept])
        return Rope((*chunks[:kept], "".join((*chunks[kept:], text))))

    def __str__(self) -> str:
        return "".join(self.chunks)

    def __json__(self) -> str:
        """What the codec writes for it."""
        return str(self)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rope | str):
            return len(self) == len(other) and str(self) == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Rope({str(self)!r})"
