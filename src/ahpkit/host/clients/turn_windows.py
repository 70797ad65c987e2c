"""Tracks which older turns of a long chat each client lacks, and loads them for that client only.

A client that subscribes with `view.turns` gets the newest turns and a cursor. `fetchTurns` loads the page at the cursor
as `chat/turnsLoaded`. Only the client that asked gets this action, with the next number of the sequence
(`Delivery.tell_one`). It is neither logged nor replayed. Before a client gets an action that names a turn outside its
window, the missing turns are loaded into the window.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.registration import Registration
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_CHAT
from ahpkit.log.entry import Entry
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.chat.actions import ChatTurnsLoadedAction, chat_turns_loaded
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import MAX_URI_LENGTH
from ahpkit.wire.codec import decode_json, decode_own, encode

_Named = TypeVar("_Named", bound=Mapping[str, object])
"""An action that may name a turn."""

_PAGE = 50
"""Turns that are loaded at a time: a few screenfuls, and a frame of moderate size."""

_MAX_CLIENTS = 10_000
"""Clients whose windows are remembered. The least recently seen is forgotten first."""

_NAMING = ("chat/truncated", "chat/turnResume")
"""Actions that name a turn of their chat."""

_NAMING_BYTES = tuple(name.encode() for name in _NAMING)


class TurnWindows:
    """The windows of all clients. A client keeps its windows when it comes back."""

    def __init__(self, store: Store, delivery: Delivery, clients: Clients) -> None:
        self._store = store
        self._delivery = delivery
        self._clients = clients
        self._lacking: dict[str, dict[str, str]] = {}
        """Client → chat → the newest turn that the client lacks. A client that is missing here comes from an earlier
        run of the host. It is not known which turns such a client has, so it gets all of them."""

    def register(self, host: Registration) -> None:
        for action_type in _NAMING:
            host.actions.amend(action_type, self._load_named)

    # -- what a client has -----------------------------------------------------------------------------------------

    def begin(self, client_id: str) -> None:
        """A client initialized: forget its windows."""
        self._lacking.pop(client_id, None)
        self._lacking[client_id] = {}
        if len(self._lacking) > _MAX_CLIENTS:
            del self._lacking[next(iter(self._lacking))]

    def shown(self, client: Connection, uri: str, state: ChannelState, turns: int | None) -> ChannelState:
        """The state of a chat for a snapshot, with this many of the newest turns; None: with all turns."""
        if turns is not None and turns < 0:
            raise InvalidParams("view.turns: must not be negative")
        windows = self._lacking.get(client.client_id, {})
        windows.pop(uri, None)
        known = client.client_id in self._lacking and client.outlet.dialect.takes_windows
        start = 0 if turns is None or not known else max(0, len(state.get("turns", ())) - turns)
        if start == 0:
            return state
        chat = cast("ChatState", state)
        windows[uri] = chat["turns"][start - 1]["id"]
        return {**chat, "turns": chat["turns"][start:], "turnsNextCursor": _cursor(uri, windows[uri])}

    def can_replay(self, client_id: str, missed: Sequence[Entry]) -> bool:
        """Whether these actions can be replayed to a client. They cannot if one of them names a turn that the client
        may lack."""
        windows = self._lacking.get(client_id)
        concerned = (entry for entry in missed if windows is None or entry.channel in windows)
        return not any(_names_turn(entry) for entry in concerned)

    # -- loading ---------------------------------------------------------------------------------------------------

    async def fetch(self, client: Connection, uri: str, cursor: str | None) -> None:
        """`fetchTurns`: load the page at a cursor, or the next older page. When this returns, the page was sent."""
        turns = cast("ChatState", self._store.committed(uri) or NO_CHAT)["turns"]
        last = self._lacking.get(client.client_id, {}).get(uri) if cursor is None else _turn_of(uri, cursor)
        if last is None:
            return  # The client has them all.
        end = _index(turns, last) + 1
        if end == 0:
            raise InvalidParams(f"cursor: {(cursor or '')[:200]!r} is not one that this host gave out")
        self._load(client, uri, turns[:end], max(0, end - _PAGE))
        await self._delivery.durable()

    def _load_named(self, uri: str, action: _Named) -> _Named:
        """An action that names a turn will be sent: first send the turn to clients that lack it."""
        turns = (self._store.chat(uri) or NO_CHAT)["turns"]
        named = _index(turns, cast("str | None", action.get("turnId")))
        for client in self._clients.subscribers(uri) if named >= 0 else ():
            windows = self._lacking.get(client.client_id)
            if not client.outlet.dialect.takes_windows:
                continue
            if windows is None:
                self._load(client, uri, turns, 0)
            elif named <= (last := _index(turns, windows.get(uri))):
                self._load(client, uri, turns[: last + 1], named)
        return action

    def _load(self, client: Connection, uri: str, lacking: Sequence[Turn], start: int) -> None:
        """Send the turns that a client lacks, from `start` on."""
        older = lacking[start - 1]["id"] if start > 0 else None
        windows = self._lacking.get(client.client_id, {})
        windows.pop(uri, None)
        if older is not None:
            windows[uri] = older
        cursor = None if older is None else _cursor(uri, older)
        action = chat_turns_loaded(turns=list(lacking[start:]), turns_next_cursor=cursor)
        self._delivery.tell_one(uri, partial(self._tell, client, uri, action))

    def _tell(self, client: Connection, uri: str, action: ChatTurnsLoadedAction, seq: int) -> None:
        if self._clients.get(client.client_id) is client:
            client.notify("action", {"channel": uri, "action": action, "serverSeq": seq})


def _index(turns: Sequence[Turn], turn_id: str | None) -> int:
    """The index of a turn, or -1. Searches from the newest, where most are found."""
    return next((at for at in range(len(turns) - 1, -1, -1) if turns[at]["id"] == turn_id), -1)


def _cursor(uri: str, turn_id: str) -> str:
    return urlsafe_b64encode(encode([uri, turn_id])).decode()


def _turn_of(uri: str, cursor: str) -> str:
    """The newest turn of the page that a cursor names; raises `InvalidParams` for one that is not of this chat."""
    try:
        chat, turn_id = decode_json(urlsafe_b64decode(cursor[:MAX_URI_LENGTH].encode()))
    except Exception:  # A client may send anything as a cursor.
        chat, turn_id = None, None
    if chat != uri or not isinstance(turn_id, str):
        raise InvalidParams(f"cursor: {cursor[:200]!r} is not one that this host gave out for {uri}")
    return turn_id


def _names_turn(entry: Entry) -> bool:
    return any(name in entry.payload for name in _NAMING_BYTES) and (
        decode_own(entry.payload)["action"]["type"] in _NAMING
    )


__all__ = ["TurnWindows"]
