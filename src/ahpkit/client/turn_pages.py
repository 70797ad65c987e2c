"""Cuts pages out of the part of a chat's history that the client has. Pure."""

from __future__ import annotations

from typing import TypedDict

from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.errors import NotFound

_LARGEST = 200
"""Turns in one page: a screenful many times over."""


class TurnPage(TypedDict):
    """Finished turns, oldest first."""

    turns: list[Turn]
    hasMore: bool
    """Whether there are older ones."""


def page_of(chat: ChatState, before: str | None, limit: int | None) -> tuple[TurnPage, str | None]:
    """The page, and the cursor to load older turns with first when too few of them are here.

    Raises `NotFound` when there is no such turn, here or at the host.
    """
    turns, cursor = chat["turns"], chat.get("turnsNextCursor")
    end = len(turns) if before is None else next((at for at, turn in enumerate(turns) if turn["id"] == before), -1)
    if end < 0 and cursor is None:
        raise NotFound(f"before: the chat has no finished turn {before!r}")
    start = end - min(limit or _LARGEST, _LARGEST)
    if cursor is not None and (end < 0 or start < 0):
        return {"turns": [], "hasMore": True}, cursor
    start = max(0, start)
    return {"turns": turns[start:end], "hasMore": start > 0 or cursor is not None}, None


__all__ = ["TurnPage", "page_of"]
