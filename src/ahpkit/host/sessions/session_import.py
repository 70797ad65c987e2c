"""Imports sessions: the extension `ahpkit/sessions`, because the protocol has no command for it.

`x-ahpkit/sessions/import` takes a document of `ahpkit sessions export` and makes a new session of it, with the same
title, chats and finished turns, and with new URIs. If a session is larger than one message, its turns are first sent in
pieces with `x-ahpkit/sessions/stage`. The pieces are kept until the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NotRequired, TypedDict, cast
from weakref import WeakKeyDictionary

from ahpkit.dialects.states_up import migrate_turns
from ahpkit.host.clients.extensions import Extension
from ahpkit.host.feature import ConnectedClient
from ahpkit.host.limits import MAX_CHATS, MAX_IMPORTED_TURNS
from ahpkit.host.sessions.sessions import Sessions
from ahpkit.protocol.chat.state import ToolCallState, Turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import encode
from ahpkit.wire.rpc import Params

EXTENSION = "ahpkit/sessions"
FORMAT = 1
"""Version of the export. A newer version is refused."""

MAX_STAGED = 256 * 1024 * 1024
"""Bytes of one import: as much as a client accepts in one snapshot. No client could open a larger session."""

_MAX_TITLE = 1000
"""Characters: a title is in every list of sessions."""

_FINAL = ("completed", "cancelled")
"""Statuses of tool calls in a finished turn."""


class ExportedChat(TypedDict):
    """One chat of an export."""

    title: str
    turns: list[Turn]


class Export(TypedDict):
    """A session outside of a host."""

    format: Literal[1]
    title: str
    provider: str
    chats: list[ExportedChat]


class StageParams(TypedDict):
    """Further turns of the chat with this index. They follow the turns that were staged before."""

    chat: int
    turns: list[Turn]


class ImportParams(TypedDict):
    """The session, and how many turns of it were staged before."""

    document: Export
    staged: NotRequired[int]


def check_export(document: object) -> None:
    """Raise `InvalidParams`, with the path of the fault, if a document cannot be imported."""
    _check_format(document)
    check(Export, document, at="document")
    export = cast("Export", document)
    _check_titles(export)
    for number, chat in enumerate(export["chats"]):
        _check_turns(chat["turns"], f"document.chats[{number}].turns", set())


def _check_format(document: object) -> None:
    """Check the format first, because in another format everything else may differ."""
    found = cast("JsonObject", document).get("format", FORMAT) if isinstance(document, dict) else FORMAT
    if found != FORMAT:
        raise InvalidParams(f"document.format: only format {FORMAT} can be read, not {found!r}; is ahpkit up to date?")


def _check_titles(document: Export) -> None:
    if len(document["chats"]) > MAX_CHATS:
        raise InvalidParams(f"document.chats: a session may have {MAX_CHATS} chats, not {len(document['chats'])}")
    titled = [("document", document), *((f"document.chats[{n}]", chat) for n, chat in enumerate(document["chats"]))]
    for at, one in titled:
        if not one["title"].strip() or len(one["title"]) > _MAX_TITLE:
            raise InvalidParams(f"{at}.title: expected 1 to {_MAX_TITLE} characters, got {len(one['title'])}")


def _check_turns(turns: list[Turn], at: str, seen: set[str]) -> None:
    """Check what types cannot express: ids are unique, and nothing in a finished turn still runs.

    `seen` has the ids of the chat's other turns; the ids of these turns are added.
    """
    if len(seen) + len(turns) > MAX_IMPORTED_TURNS:
        raise InvalidParams(f"{at}: a chat that is imported may have {MAX_IMPORTED_TURNS} turns")
    for number, turn in enumerate(turns):
        if turn["id"] in seen:
            raise InvalidParams(f"{at}[{number}].id: {turn['id'][:200]!r} is the id of another turn")
        seen.add(turn["id"])
        for index, call in _tool_calls(turn):
            if call["status"] not in _FINAL:
                path = f"{at}[{number}].responseParts[{index}].toolCall.status"
                raise InvalidParams(f"{path}: expected one of {', '.join(_FINAL)}, got {call['status']!r}")


def _tool_calls(turn: Turn) -> Iterator[tuple[int, ToolCallState]]:
    for index, part in enumerate(turn["responseParts"]):
        if part["kind"] == "toolCall":
            yield index, part["toolCall"]


def _migrated(turns: list[Turn]) -> list[Turn]:
    """Turns in the form in which the host keeps them."""
    return cast("list[Turn]", migrate_turns(cast("list[JsonObject]", turns)))


class _Staged:
    """Turns that wait for their document. Each piece is checked when it arrives, so that no step takes long."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._turns: dict[int, list[Turn]] = {}
        self._ids: dict[int, set[str]] = {}
        self.count = 0
        self._bytes = 0

    def add(self, chat: int, turns: list[Turn]) -> None:
        self._bytes += len(encode(turns))
        if self._bytes > self._max_bytes:
            raise InvalidParams(f"turns: the session is larger than {self._max_bytes} bytes")
        _check_turns(turns, "turns", self._ids.setdefault(chat, set()))
        self._turns.setdefault(chat, []).extend(_migrated(turns))
        self.count += len(turns)

    def complete(self, document: Export) -> Export:
        """A checked document, completed with the turns that were staged for it."""
        for number in self._turns:
            if not 0 <= number < len(document["chats"]):
                raise InvalidParams(f"document.chats: turns were staged for chat {number}, which is not there")
        for number, chat in enumerate(document["chats"]):
            _check_turns(chat["turns"], f"document.chats[{number}].turns", self._ids.setdefault(number, set()))
        chats = [
            ExportedChat(title=chat["title"], turns=[*_migrated(chat["turns"]), *self._turns.get(number, ())])
            for number, chat in enumerate(document["chats"])
        ]
        return {**document, "chats": chats}


def register(extend: Callable[..., Extension], sessions: Sessions, *, max_bytes: int = MAX_STAGED) -> None:
    """Let clients import sessions of at most this many bytes. `extend` is `Host.extension`."""
    extension = extend(EXTENSION, version=str(FORMAT))
    waiting: WeakKeyDictionary[ConnectedClient, _Staged] = WeakKeyDictionary()

    @extension.request("stage")
    def stage(client: ConnectedClient, params: Params) -> dict[str, int]:
        check(StageParams, params)
        staged = waiting.setdefault(client, _Staged(max_bytes))
        try:
            staged.add(params["chat"], params["turns"])
        except InvalidParams:
            del waiting[client]
            raise
        return {"staged": staged.count}

    @extension.request("import", changes=True)
    async def import_session(client: ConnectedClient, params: Params) -> dict[str, str]:
        staged = waiting.pop(client, None) or _Staged(max_bytes)
        _check_format(params.get("document"))
        check(ImportParams, params)
        if staged.count != params.get("staged", 0):
            raise InvalidParams(
                f"staged: {staged.count} turns are here; the connection was lost meanwhile, start again"
            )
        _check_titles(params["document"])
        document = staged.complete(params["document"])
        chats = [(chat["title"], chat["turns"]) for chat in document["chats"]]
        uri, provider = await sessions.import_session(document["provider"], document["title"], chats)
        return {"session": uri, "provider": provider}


__all__ = ["EXTENSION", "FORMAT", "Export", "ExportedChat", "ImportParams", "StageParams", "check_export", "register"]
