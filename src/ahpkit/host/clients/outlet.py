"""Sends everything to one client: actions, echoes, rejections, snapshots, replays, notifications, requests and answers.

Everything passes the connection's dialect here, so the rest of the host need not know which protocol version a client
speaks. Writes keep their order and never wait. The unread bytes are limited: a client that stops reading is
disconnected, so it cannot fill the memory. A large answer or a long action is written piece by piece, as fast as the
client reads. Later messages wait behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from ahpkit.dialects.base import Dialect, MustReconnect, SentAction
from ahpkit.host.limits import MAX_REASON
from ahpkit.host.spine.fanout import LATENCIES, Sameness, action_message, action_pieces
from ahpkit.host.spine.store import Origin, action_type, envelope
from ahpkit.log.entry import Entry
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.chat.state import Turn
from ahpkit.protocol.common.state import JsonObject, Snapshot
from ahpkit.protocol.errors import RequestId, RpcError
from ahpkit.wire.peer import Peer
from ahpkit.wire.pieces import PIECE, Items, is_light, write_pieces
from ahpkit.wire.rpc import Params
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.transport import Transport

_log = logging.getLogger(__name__)

_STATES = 20
"""If an answer has more channels, their states are translated while they are written."""

_TURNS = 50
"""Turns of a chat that are projected in one step."""


class Outlet:
    """The way out to one client. Implements `ahpkit.host.spine.fanout.Receiver`.

    A client may leave `budget` bytes unread, plus the size of the largest message that it has not read yet: a snapshot
    can be larger than the budget, and a slow client must still be able to read it.
    """

    __slots__ = (
        "_behind",
        "_budget",
        "_dialect",
        "_largest",
        "_late",
        "_moment",
        "_on_lagging",
        "_on_resync",
        "_peer",
        "_seen",
        "_tasks",
        "_transport",
        "_waiting",
        "_writing",
        "_written",
        "channels",
        "due",
        "frame",
        "lagging",
        "latencies",
        "parts",
        "sameness",
    )

    def __init__(
        self,
        transport: Transport,
        peer: Peer,
        dialect: Dialect,
        *,
        budget: int,
        on_lagging: Callable[[], None],
        on_resync: Callable[[], None],
        tasks: Tasks,
    ) -> None:
        self._transport = transport
        self._peer = peer
        self._budget = budget
        self._largest = 0
        """Bytes of the largest write since the client was last within its budget."""
        self._on_lagging = on_lagging
        self._on_resync = on_resync
        self._written = 0
        self._seen = 0
        """All bytes that were written, and how many of them the client had read at the last call of `moment`."""
        self._moment: asyncio.Task[None] | None = None
        self._tasks = tasks
        self._behind: deque[bytes | AsyncIterator[bytes]] | None = None
        """Frames and messages that wait behind a large answer, or for the answer to `reconnect`; None: everything is
        written at once."""
        self._waiting = 0
        """Bytes of the frames that wait."""
        self._writing: asyncio.Task[None] | None = None
        self.frame = transport.frame
        self.channels: set[str] = set()
        self.parts: list[bytes] = []
        self.latencies: dict[str, float] = {}
        self.due = LATENCIES[-1]
        self._late: list[bytes] = []
        """Actions that the client allowed to be held back. They are written before the next message."""
        self.lagging = False
        self.speak(dialect)

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def speak(self, dialect: Dialect) -> None:
        """Use the dialect that the handshake chose."""
        self._dialect = dialect
        self.sameness = Sameness(self._transport.framing, dialect.stream)

    # -- actions ---------------------------------------------------------------------------------------------------

    def is_same(self, action_type: str) -> bool:
        """Whether this client gets all actions of a type as they are logged; those of unknown type are looked at."""
        return bool(action_type) and self._dialect.is_same(action_type)

    def project(self, entry: Entry) -> bytes | None:
        """The envelope of a logged action in this client's form; None: this client does not get the action. Raises
        `MustReconnect`."""
        dialect, kind, payload = self._dialect, entry.type, entry.payload
        if dialect.is_same(kind):
            return payload
        if not kind and dialect.is_same(kind := action_type(payload)):
            return payload
        try:
            return dialect.action(kind, payload, entry.outgoing)
        except MustReconnect:
            raise
        except Exception as error:  # Clients of other versions still get the action.
            _log.exception("%s of %s cannot be told in version %s", kind, entry.channel, dialect.version)
            raise MustReconnect(f"{kind} cannot be told") from error

    def form(self, action_type: str) -> str | None:
        """The form in which this client gets all actions of a type; None: it depends on the action."""
        return self._dialect.form(action_type) if action_type else None

    def echo(self, entry: Entry) -> None:
        """Send a logged action again, to a client that repeated it."""
        if (body := self.project(entry)) is not None:
            self.send(action_message(body))

    def answer_action(self, uri: str, sent: SentAction, seq: int, origin: Origin, reason: str | None = None) -> None:
        """Send a client its own action back, in its own form; with a reason if it was refused."""
        answer = {**envelope(uri, sent, origin), "serverSeq": seq}
        if reason is not None:
            answer["rejectionReason"] = reason[:MAX_REASON]
        self.send(self._peer.notify("action", self._dialect.rejection(answer)))

    def resync(self) -> None:
        """End the connection because the client cannot get an action. Nothing newer is sent: a newer number would hide
        that the client lacks this action."""
        self._on_resync()
        self.close()

    # -- everything else -------------------------------------------------------------------------------------------

    def snapshot(self, uri: str, state: ChannelState, seq: int) -> Snapshot:
        """A channel's state for an answer. The turns of a long chat are translated while they are written."""
        whole = cast("JsonObject", state)
        turns: Sequence[Turn] = whole.get("turns") or ()
        if len(turns) <= _TURNS:
            return {"resource": uri, "state": self._dialect.state(uri, whole), "fromSeq": seq}
        shown = self._dialect.state(uri, {**whole, "turns": turns[-1:]})
        later = Items(partial(self._project_turns, uri, whole, turns))
        return {"resource": uri, "state": {**shown, "turns": later}, "fromSeq": seq}

    def snapshots(self, states: Mapping[str, ChannelState], seq: int) -> list[Snapshot]:
        """The states of several channels for an answer. When there are many, they are translated while they are
        written."""

        def shown() -> Iterator[Snapshot]:
            return (self.snapshot(uri, state, seq) for uri, state in states.items())

        return [*shown()] if len(states) <= _STATES else cast("list[Snapshot]", Items(shown))

    def _project_turns(self, uri: str, state: JsonObject, turns: Sequence[Turn]) -> Iterator[Turn]:
        for start in range(0, len(turns), _TURNS):
            yield from self._dialect.state(uri, {**state, "turns": turns[start : start + _TURNS]})["turns"]

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if frame := self.notification(method, params):
            self.write(frame)

    def notification(self, method: str, params: Mapping[str, Any]) -> bytes:
        """The frame of a notification: the same bytes for all receivers with this `sameness`. Empty if their version
        lacks the notification."""
        told = self._dialect.notification(method, cast("JsonObject", params))
        return b"" if told is None else self.frame(self._peer.notify(*told))

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Ask the client; returns the id of the request."""
        request_id, message = self._peer.request(*self._dialect.request(method, cast("JsonObject", params)))
        self.send(message)
        return request_id

    def respond(self, id: RequestId, method: str, params: Params, result: object, *, large: bool = False) -> None:
        """Answer a request. A result that may be `large` may hold `ahpkit.wire.pieces.Pieces`."""
        told = self._dialect.result(method, params, result)
        if large and not is_light(told):
            self._answer(method, _message(self._peer.respond_in_pieces(id), write_pieces(told)))
        else:
            self._answer(method, self.frame(self._peer.respond(id, told)))

    def fail(self, id: RequestId, method: str, error: Exception) -> None:
        """Refuse a request."""
        told = self._dialect.error(method, error) if isinstance(error, RpcError) else error
        self._answer(method, self.frame(self._peer.fail(id, told)))

    # -- writing ---------------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Hold all messages back until `reconnect` is answered, because the answer must come first."""
        self._behind = deque()

    def _answer(self, method: str, answer: bytes | AsyncIterator[bytes]) -> None:
        self.flush()
        held = b""
        if method == "reconnect" and self._writing is None:
            held = b"".join(frames for frames in self._behind or () if isinstance(frames, bytes))
            self._behind, self._waiting = None, 0
        if isinstance(answer, bytes):
            self.write(answer + held)
        elif not self.lagging:
            self._write_later(answer)
            if held:
                self.write(held)

    def _write_later(self, message: AsyncIterator[bytes]) -> None:
        """Write a message piece by piece, after everything that already waits."""
        if self._behind is None:
            self._behind = deque()
            self._writing = self._tasks.spawn(self._write_behind(), name="a large message")
            self._seen = -1  # No piece is written yet, so the client cannot have read any.
        self._behind.append(message)

    def send(self, message: bytes) -> None:
        """Frame and write one message."""
        self.write(self.frame(message))

    def hold_back(self, frames: bytes) -> None:
        """Hold actions back until the next write or `flush`. More than `PIECE` bytes are written at once."""
        self._late.append(frames)
        self._waiting += len(frames)
        if sum(map(len, self._late)) > PIECE:
            self.flush()

    def flush(self) -> None:
        """Write the actions that were held back."""
        late, self._late = self._late, []
        if late:
            frames = b"".join(late)
            self._waiting -= len(frames)
            self.write(frames)

    def write(self, frames: bytes) -> None:
        if self._late:
            self.flush()
        if self.lagging:
            return
        self._written += len(frames)
        if self._behind is None:
            self._transport.write(frames)
        else:
            self._behind.append(frames)
            self._waiting += len(frames)
        self._check_unread(len(frames))

    def write_long(self, envelope: bytes) -> None:
        if self._behind is not None and self._writing is None:  # Written together with the answer to `reconnect`.
            self.send(action_message(envelope))
            return
        self.flush()
        if self.lagging:
            return
        size = len(action_message(b"")) + len(envelope)
        self._written += size
        self._waiting += size
        self._write_later(self._long_action(envelope))
        self._check_unread(size)

    async def _long_action(self, envelope: bytes) -> AsyncIterator[bytes]:
        """The pieces of a long action. Pieces that were not written yet count as unread."""
        for piece in action_pieces(envelope):
            self._waiting = max(0, self._waiting - len(piece))  # After `close` this is 0 already.
            yield piece

    def _check_unread(self, size: int) -> None:
        """End the connection if the client has left too many bytes unread. `size` is the size of the last write."""
        unread = self.unread
        if unread <= self._budget:
            self._largest = 0
            return
        self._largest = max(self._largest, size)
        if unread > self._budget + self._largest:
            self.close()
            self._transport.abort()
            self._on_lagging()

    async def _write_behind(self) -> None:
        """Write large messages as fast as the client reads them, and after each one the messages that waited behind
        it."""
        behind = self._behind
        try:
            while behind and not self.is_over:
                first = behind.popleft()
                if isinstance(first, bytes):
                    self._waiting -= len(first)
                    self._transport.write(first)
                else:
                    await self._write_pieces(first)
        except Exception as error:  # A part of the message was sent already, so the client has to reconnect.
            _log.warning("a message could not be finished: %s", error)
            self._on_resync()
            self.close()
        finally:
            self._writing = self._behind = None

    async def _write_pieces(self, message: AsyncIterator[bytes]) -> None:
        """Write one message; a short one in a single frame."""
        gathered: list[bytes] = []
        size, begun = 0, False
        async for piece in message:
            if self.is_over:
                return
            gathered.append(piece)
            size += len(piece)
            if size >= PIECE:
                self._transport.write(self._transport.part(b"".join(gathered), first=not begun, last=False))
                gathered, size, begun = [], 0, True
                del piece
                await self._transport.drain()
                await asyncio.sleep(0)
        rest = b"".join(gathered)
        self._transport.write(self._transport.part(rest, first=False, last=True) if begun else self.frame(rest))
        await self._transport.drain()

    @property
    def unread(self) -> int:
        """Bytes that the client has not read yet."""
        return self._transport.buffered + self._waiting

    def moment(self, patience: float) -> asyncio.Task[None] | None:
        """A task that waits until the client has read most bytes, but not longer than `patience` seconds; None if the
        client has read nothing since the last one.

        All producers that wait for the client at the same time share one task.
        """
        if self._moment is None or self._moment.done():
            before, self._seen = self._seen, self._written - self.unread
            if self._seen <= before:
                return None
            self._moment = self._tasks.spawn(self._drain(patience), name="a moment to read")
        return self._moment

    async def _drain(self, patience: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.room()

    @property
    def is_over(self) -> bool:
        """Whether the connection is closed or failing, so that nothing reaches the client any more."""
        return self.lagging or self._transport.is_over

    async def room(self) -> None:
        """Wait until the client has read its large answers and most other messages."""
        while self._writing is not None:
            await asyncio.wait([self._writing])
        await self._transport.drain()

    def close(self) -> None:
        """Write nothing more, because the connection is over."""
        self.lagging = True
        self._late = []
        if self._behind is not None:
            self._behind.clear()
        self._waiting = 0


async def _message(head: bytes, result: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for piece in result:
        yield piece
    yield b"}"


__all__ = ["Outlet"]
