"""Sessions out of a host and into one, as documents. Knows no files and no click.

`ahpkit.host.sessions.session_import` has the format and takes documents in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ahpkit.client import Client, Session
from ahpkit.host.sessions.session_import import EXTENSION, FORMAT, check_export
from ahpkit.wire.codec import encode

Progress = Callable[[str], None]
"""Is told how far the work is."""

_PAGE = 100
"""Turns asked for at a time."""

_PIECE = 4 * 1024 * 1024
"""Bytes of turns sent in one message: well below what a host takes, and often enough to show progress."""


async def export_session(client: Client, uri: str, progress: Progress) -> dict[str, Any]:
    """A session as a document: what `import` takes. Turns that still run are left out."""
    async with await client.session(uri) as session:
        if not session.chats:
            await session.wait_ready()  # An agent's own conversation: it is just being told.
        state = session.state
        default = state.get("defaultChat")
        entries = sorted(state["chats"], key=lambda chat: chat["resource"] != default)
        chats: list[Any] = []
        for entry in entries:
            title, turns = await _fetch(session, entry["resource"], progress, sum(len(chat["turns"]) for chat in chats))
            chats.append({"title": title, "turns": turns})
    return {"format": FORMAT, "title": state["title"], "provider": state["provider"], "chats": chats}


async def _fetch(session: Session, chat: str, progress: Progress, before: int) -> tuple[str, list[Any]]:
    """The title of a chat, and all its finished turns, oldest first."""
    turns: list[Any] = []
    async with await session.chat(chat) as opened:
        title = opened.confirmed["title"]
        async for turn in opened.history(page=_PAGE):
            turns.append(turn)
            if len(turns) % _PAGE == 0:
                progress(f"{before + len(turns)} turns")
    progress(f"{before + len(turns)} turns")
    return title, turns[::-1]


async def import_session(client: Client, document: Any, progress: Progress) -> dict[str, Any]:
    """Make a new session of a document: its URI in `session`, its agent in `provider`. Raises `InvalidParams`."""
    check_export(document)
    total = sum(len(chat["turns"]) for chat in document["chats"])
    staged = 0
    if total:
        for chat, turns in pieces(document, _PIECE):
            staged += len(turns)
            await client.extension_request(f"_{EXTENSION}/stage", {"chat": chat, "turns": turns})
            progress(f"{staged} of {total} turns")
    bare: dict[str, Any] = {**document, "chats": [{"title": chat["title"], "turns": []} for chat in document["chats"]]}
    return await client.extension_request(f"_{EXTENSION}/import", {"document": bare, "staged": staged})


def pieces(document: Mapping[str, Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """The turns of a document by chat, in pieces of about so many bytes; a turn is never cut."""
    for number, chat in enumerate(document["chats"]):
        piece: list[Any] = []
        bytes_left = size
        for turn in chat["turns"]:
            length = len(encode(turn))
            if piece and length > bytes_left:
                yield number, piece
                piece, bytes_left = [], size
            piece.append(turn)
            bytes_left -= length
        if piece:
            yield number, piece


__all__ = ["Progress", "export_session", "import_session", "pieces"]
