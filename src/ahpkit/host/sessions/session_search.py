"""Searches what was said in all sessions: `x-ahpkit/sessions/search`, because the protocol has no command for it.

A session that rests is read and not woken. One answer looks through a few sessions; a client asks again for the next
ones. So it can show what is found as it comes, and stop when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, NotRequired, TypedDict, cast

from ahpkit.host.feature import ConnectedClient
from ahpkit.host.registration import Command
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_CHAT
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.chat.turns import text_of
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import check

_SESSIONS = 20
"""Sessions that one answer looks through."""

_ENOUGH = 4 * 1024 * 1024
"""Characters after which an answer ends with the session that it looks through."""

_PIECE = 64 * 1024
"""Characters that are looked at in one step of the event loop."""

_LONGEST = 1000
"""Characters of the words. Nobody types more into a search box."""

_AROUND = 60
"""Characters before and after the first word that are shown."""


class SearchParams(TypedDict):
    """`before` is `next` of the answer before; without it the newest sessions are looked through."""

    words: str
    before: NotRequired[int]


class FoundTurn(TypedDict):
    """The newest turn of a session in which all words occur."""

    session: str
    chat: str
    turnId: str
    text: str
    """The text around the first word, on one line."""


class SearchResult(TypedDict):
    """`next` is present while other sessions are left."""

    found: list[FoundTurn]
    next: NotRequired[int]


class SessionSearch:
    """Looks through the committed states of all chats."""

    def __init__(self, index: SessionIndex, store: Store) -> None:
        self._index = index
        self._store = store

    def commands(self) -> Sequence[Command]:
        return (Command("_ahpkit/sessions/search", self._search),)

    async def _search(self, client: ConnectedClient, params: JsonObject) -> SearchResult:
        check(SearchParams, params)
        words = params["words"].casefold().split()
        if not words or len(params["words"]) > _LONGEST:
            raise InvalidParams(f"words: give at least one word, and at most {_LONGEST} characters")
        # Sessions are counted from the oldest: new ones change no number, and one that is deleted hides no other.
        sessions = self._index.sessions()
        place = max(0, min(params.get("before", len(sessions)), len(sessions)))
        last = max(0, place - _SESSIONS)
        reader = _Reader(words)
        found: list[FoundTurn] = []
        while place > last and reader.characters < _ENOUGH:
            place -= 1
            if (one := await self._find(sessions[place], reader)) is not None:
                found.append(one)
        return {"found": found, "next": place} if place else {"found": found}

    async def _find(self, session: str, reader: _Reader) -> FoundTurn | None:
        for chat in self._index.chats(session):
            async with self._store.reading(chat):
                hit = await reader.newest(cast("ChatState | None", self._store.committed(chat)) or NO_CHAT)
            if hit is not None:
                return {"session": session, "chat": chat, "turnId": hit.turn["id"], "text": hit.text}
        return None


class _Hit(NamedTuple):
    turn: Turn
    text: str


class _Reader:
    """Searches words in texts of any length, piece by piece, so that other tasks run meanwhile."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._overlap = max(map(len, words))
        self._in_step = 0
        self.characters = 0
        """The number of characters that were searched so far."""

    async def newest(self, chat: ChatState) -> _Hit | None:
        """The newest turn in which all words occur."""
        running = chat.get("activeTurn")
        newest_first = chain([cast("Turn", running)] if running else [], reversed(chat["turns"]))
        for turn in newest_first:
            text = text_of(turn)
            if (place := await self._place(text)) is not None:
                return _Hit(turn, _around(text, place))
        return None

    async def _place(self, text: str) -> int | None:
        """The place where the first word begins, if the text contains all words."""
        missing, place = set(self._words), 0
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE + self._overlap]
            folded = piece.casefold()
            if self._words[0] in missing and (at := folded.find(self._words[0])) >= 0:
                # Some letters are longer when they are folded.
                place = start + bisect_left(range(len(piece)), at, key=lambda end: len(piece[:end].casefold()))
            missing = {word for word in missing if word not in folded}
            await self._looked_at(len(piece))
            if not missing:
                return place
        return None

    async def _looked_at(self, characters: int) -> None:
        self.characters += characters
        self._in_step += characters
        if self._in_step >= _PIECE:
            self._in_step = 0
            await asyncio.sleep(0)


def _around(text: str, place: int) -> str:
    start, end = max(0, place - _AROUND), place + 2 * _AROUND
    if start:
        start = max(start, text.find(" ", start, place))  # With a whole word, if there is one.
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


__all__ = ["FoundTurn", "SearchParams", "SearchResult", "SessionSearch"]
