"""Searches what was said in all sessions: `x-ahpkit/sessions/search`, because the protocol has no command for it.

A session that rests is read and not woken. One answer looks through a few sessions; a client asks again for the next
ones. So it can show what is found as it comes, and stop when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NotRequired, TypedDict, cast

from ahpkit.host.feature import ConnectedClient
from ahpkit.host.registration import Command
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.spine.store import Store
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.chat.turns import text_of
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import check

_SESSIONS = 20
"""Sessions that one request looks through."""

_TURNS = 50
"""Turns that are looked at in one step of the event loop."""

_LONGEST = 1000
"""Characters of the words: nobody types more into a search box."""


class SearchParams(TypedDict):
    """`before` is `next` of the answer before; without it the newest sessions are looked through."""

    words: str
    before: NotRequired[int]


class FoundTurn(TypedDict):
    """The newest turn of a session in which all words occur."""

    session: str
    chat: str
    turnId: str


class SearchResult(TypedDict):
    """`next` is there while other sessions are left."""

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
        # Sessions are counted from the oldest, so the ones that come meanwhile change no number.
        sessions = self._index.sessions()
        end = max(0, min(params.get("before", len(sessions)), len(sessions)))
        start = max(0, end - _SESSIONS)
        found: list[FoundTurn] = []
        for session in reversed(sessions[start:end]):
            if (one := await self._find(session, words)) is not None:
                found.append(one)
        return {"found": found, "next": start} if start else {"found": found}

    async def _find(self, session: str, words: Sequence[str]) -> FoundTurn | None:
        for chat in self._index.chats(session):
            await self._store.read(chat)
            state = cast("ChatState | None", self._store.committed(chat))
            self._store.unread(chat)
            if state is not None and (turn := await _turn_with(state, words)) is not None:
                return {"session": session, "chat": chat, "turnId": turn["id"]}
        return None


async def _turn_with(state: ChatState, words: Sequence[str]) -> Turn | None:
    active = state.get("activeTurn")
    turns = [*state["turns"], *([cast("Turn", active)] if active else [])]
    for number, turn in enumerate(reversed(turns), 1):
        text = text_of(turn).casefold()
        if all(word in text for word in words):
            return turn
        if number % _TURNS == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    return None


__all__ = ["FoundTurn", "SearchParams", "SearchResult", "SessionSearch"]
