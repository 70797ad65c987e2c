"""Joins and leaves the channels that a client follows, and dispatches actions to them.

A channel is followed while it has holders: subscriptions, session or chat handles, actions that the host has not
answered. A separate task or the handshake of a new connection subscribes to it, whichever comes first. Listeners are
called directly after every change, so they read the state right after that change.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from ahpkit.client.connection import HostConnection, Status
from ahpkit.client.dispatch import Dispatch, Outcome, Rejected
from ahpkit.client.errors import UNREADABLE, ChannelGone
from ahpkit.client.mirror import ActionSettled, Applied, Change, ChannelMirror, Mirror, PendingAction, PlainStates
from ahpkit.dialects.older_host import HostDialect
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError, LocalProtocolError, RpcError, TransportClosed
from ahpkit.wire.tasks import Tasks

_State = TypeVar("_State")

_log = logging.getLogger(__name__)

_MAX_UNREADABLE = 20
"""Unreadable messages for which a channel's state is asked for again, and that are logged."""


class Listener(Protocol):
    """Called for what happens to a channel. The calls are synchronous: the next message waits for them."""

    def on_action(self, envelope: JsonObject) -> None:
        """An action was applied; the channel's confirmed state is the one right after it."""
        ...

    def on_reset(self) -> None:
        """A snapshot became the state: the first one, or one that replaces missed actions."""
        ...

    def on_gone(self, error: AhpError) -> None:
        """The channel was removed, or is no longer followed."""
        ...


class Channel:
    """A followed channel: its states, its listeners, and the number of its holders."""

    def __init__(self, mirror: ChannelMirror) -> None:
        self.uri = mirror.uri
        self.holders = 0
        self.readers = 0
        """How many consumers iterate over the actions, so that missed actions are to be replayed."""
        self.listeners: list[Listener] = []
        self.turns: int | None = None
        """How many turns of a chat to ask for; None: all."""
        self.max_latency_ms: int | None = None
        """How long the host may hold actions back; None: the host decides."""
        self.joining: asyncio.Task[None] | None = None
        self.unreadable = 0
        """How many of its actions could not be read."""
        self.ended: AhpError | None = None
        """Why the channel is no longer followed. Its state does not change any more."""
        self._mirror = mirror
        self._plain = PlainStates()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def confirmed(self) -> JsonObject | None:
        """The host's state as the reducers keep it (streamed text as ropes), for use inside the client."""
        return self._mirror.confirmed

    @property
    def optimistic(self) -> JsonObject | None:
        """The confirmed state with pending actions on top, as the reducers keep it."""
        return self._mirror.optimistic

    def plain_confirmed(self) -> Any:
        """The confirmed state for users: plain JSON."""
        return self._plain.of(self._mirror.confirmed)

    def plain_optimistic(self) -> Any:
        """The optimistic state for users: plain JSON."""
        return self._plain.of(self._mirror.optimistic)

    @property
    def wanted(self) -> JsonObject:
        """The params of `subscribe`."""
        view = {} if self.turns is None else {"view": {"turns": self.turns}}
        delivery = {} if self.max_latency_ms is None else {"delivery": {"maxLatencyMs": self.max_latency_ms}}
        return {"channel": self.uri, **view, **delivery}

    @property
    def seq(self) -> int:
        return self._mirror.seq

    @property
    def joined(self) -> bool:
        """Whether there is a state; while the client is offline it may be outdated."""
        return self._mirror.joined

    @property
    def live(self) -> bool:
        """Whether the host sends us this channel's actions on the present connection."""
        return self._mirror.waiting is None

    async def wait_ready(self) -> None:
        """Wait for the first state; raises if the channel does not exist or was removed."""
        await asyncio.shield(self._ready)
        if self.ended is not None:
            raise self.ended

    def settle(self, error: AhpError | None = None) -> None:
        """End `wait_ready`: the first state arrived, or `error` says why it never will."""
        if self._ready.done():
            return
        if error is None:
            self._ready.set_result(None)
        else:
            self._ready.set_exception(error)
            self._ready.exception()  # Without this asyncio warns when the error is never awaited.


class Channels:
    """All followed channels of a client; dispatches its actions and receives those of the host."""

    def __init__(
        self,
        mirror: Mirror,
        connection: HostConnection,
        tasks: Tasks,
        *,
        now: Callable[[], int],
        first_client_seq: int,
        patience: float | None = None,
    ) -> None:
        """`patience`: seconds to wait for the first state of a channel that a program opens; None: without end."""
        self._patience = patience
        self._unreadable = 0
        self._mirror = mirror
        self._connection = connection
        self._tasks = tasks
        self._now = now
        self._numbers = itertools.count(first_client_seq)
        self._channels: dict[str, Channel] = {}
        self._dispatches: dict[int, tuple[Channel, Dispatch]] = {}
        self._sent: set[int] = set()
        connection.listeners.append(self._on_status)

    # Holding.

    def hold(
        self, uri: str, kind: str | None = None, *, turns: int | None = None, max_latency_ms: int | None = None
    ) -> Channel:
        """Follow a channel; `kind` is for URIs that do not say it. Every hold needs a `release`.

        `turns`: this many of a chat's newest turns are enough; `max_latency_ms`: actions may come that late. Both are
        ignored if the channel is followed already. Raises when the client is closed.
        """
        if self._connection.failure is not None:
            raise self._connection.failure
        channel = self._channels.get(uri)
        if channel is None:
            channel = self._channels[uri] = Channel(self._mirror.follow(uri, kind))
            channel.turns, channel.max_latency_ms = turns, max_latency_ms
            self._join(channel)
        channel.holders += 1
        return channel

    async def open(
        self, uri: str, kind: str | None = None, *, turns: int | None = None, max_latency_ms: int | None = None
    ) -> Channel:
        """Hold a channel and wait for its state. Raises `TimeoutError` when the host does not send it."""
        channel = self.hold(uri, kind, turns=turns, max_latency_ms=max_latency_ms)
        try:
            await self.wait_ready(channel)
        except BaseException:
            self.release(channel)
            raise
        return channel

    async def wait_ready(self, channel: Channel) -> None:
        """Wait for the first state of a channel that is held; raises `TimeoutError` when the host does not send it."""
        try:
            async with asyncio.timeout(self._patience):
                await channel.wait_ready()
        except TimeoutError:
            raise TimeoutError(f"{channel.uri}: no answer within {self._patience:g} s") from None

    def release(self, channel: Channel) -> None:
        """Let go of a hold; the last one ends the subscription."""
        channel.holders -= 1
        if channel.holders == 0 and self._channels.get(channel.uri) is channel:
            self._connection.notify("unsubscribe", {"channel": channel.uri})
            self._drop(channel)
            self._end(channel, ChannelGone(channel.uri, "this client no longer follows it"))

    def confirmed(self, uri: str) -> JsonObject | None:
        """The confirmed state of a channel that is followed, else None."""
        channel = self._channels.get(uri)
        return None if channel is None else channel.confirmed

    def optimistic(self, uri: str) -> JsonObject | None:
        """The optimistic state of a channel that is followed, else None."""
        channel = self._channels.get(uri)
        return None if channel is None else channel.optimistic

    def _close(self, error: AhpError) -> None:
        """The client is closed: end all channels. While they end, some listeners release other channels."""
        while self._channels:
            channel = next(iter(self._channels.values()))
            self._drop(channel)
            self._end(channel, error)
        for _, dispatch in self._dispatches.values():
            dispatch.settle(error)
        self._dispatches.clear()

    def _drop(self, channel: Channel) -> list[int]:
        del self._channels[channel.uri]
        if channel.joining is not None:
            channel.joining.cancel()
        return self._mirror.forget(channel.uri)

    def _end(self, channel: Channel, error: AhpError) -> None:
        channel.ended = error
        channel.settle(error)
        for listener in tuple(channel.listeners):
            listener.on_gone(error)

    # Joining.

    def _join(self, channel: Channel) -> None:
        channel.joining = self._tasks.spawn(self._subscribe(channel), name=f"subscribe {channel.uri}")

    async def _subscribe(self, channel: Channel) -> None:
        while True:
            rpc = await self._connection.wait_connected()
            if channel.live:
                return  # The handshake brought the state.
            try:
                result = await rpc.request("subscribe", self.dialect.write("subscribe", channel.wanted))
            except TransportClosed:
                continue  # Again on the next connection.
            except RpcError as error:
                self.gone(channel.uri, error.message)
            else:
                self._subscribed(channel.uri, result)  # No `await` before this: order matters.
            return

    def _subscribed(self, uri: str, result: Any) -> None:
        try:
            snapshot = result.get("snapshot")
            self._joined(uri, None if snapshot is None else {**snapshot, "resource": uri})
        except UNREADABLE as error:
            self.gone(uri, f"the state that the host sent cannot be read: {error!r}")

    def _joined(self, uri: str, snapshot: Mapping[str, Any] | None) -> None:
        channel = self._channels.get(uri)
        if channel is None:
            return
        if snapshot is None:
            self._mirror.without_state(uri)
        else:
            self._mirror.snapshot(snapshot)
        for listener in tuple(channel.listeners):
            listener.on_reset()
        self._resume(uri)

    def _resume(self, uri: str) -> None:
        """Apply the envelopes that waited. Listeners may release the channel at any step."""
        if uri in self._channels:
            self._tell(self._mirror.resume(uri, now=self._now()))
        channel = self._channels.get(uri)
        if channel is not None:
            channel.settle()
            if self._connection.connected:
                self._send(channel)

    def check(self, uri: str) -> None:
        """Ask the host whether a channel still exists; end it if not."""
        channel = self._channels.get(uri)
        if channel is not None:
            self._tasks.spawn(self._check(channel), name=f"check {uri}")

    async def _check(self, channel: Channel) -> None:
        rpc = await self._connection.wait_connected()
        try:
            await rpc.request("subscribe", self.dialect.write("subscribe", channel.wanted))
        except TransportClosed:
            return  # The handshake of the next connection will tell.
        except RpcError as error:
            if self._channels.get(channel.uri) is channel:
                self.gone(channel.uri, error.message)

    def gone(self, uri: str, reason: str) -> None:
        """The host says that a channel does not exist: its listeners get the error, its open actions are rejected."""
        channel = self._channels.get(uri)
        if channel is None:
            return
        error = ChannelGone(uri, reason)
        for client_seq in self._drop(channel):
            self._settled(client_seq, Rejected(str(error)))
        self._end(channel, error)

    # The handshake of a new connection.

    @property
    def dialect(self) -> HostDialect:
        """Translates between the host's version and 1.0.0."""
        return self._mirror.dialect

    def speak(self, dialect: HostDialect) -> None:
        """Use the dialect of the version that the handshake negotiated."""
        self._mirror.dialect = dialect

    def session_of(self, uri: str) -> str | None:
        """The followed session that a chat belongs to."""
        return self._mirror.session_of(uri)

    def begin(self) -> None:
        """A new connection begins: no channel is subscribed to on it yet."""
        self._sent.clear()
        self._mirror.expect(self._channels)

    def followed(self) -> list[str]:
        return list(self._channels)

    def resumable(self) -> tuple[int, list[str]]:
        """From which sequence number to replay which channels."""
        return self._mirror.last_seen(), self._mirror.joined()

    def highest_seen(self) -> int:
        return self._mirror.highest_seen()

    def wants_actions(self) -> bool:
        """Whether a consumer iterates over actions, so that a reconnect needs a replay and not only snapshots."""
        return any(channel.readers for channel in self._channels.values())

    def take_snapshots(self, snapshots: Iterable[Mapping[str, Any]]) -> None:
        for snapshot in snapshots:
            self._joined(snapshot["resource"], snapshot)

    def take_replay(self, actions: Iterable[JsonObject], resumed: Iterable[str]) -> None:
        self._tell(self._mirror.replay(actions, now=self._now()))
        for uri in resumed:
            # A channel that was left and followed again meanwhile has no state yet: it waits for its snapshot.
            if uri in self._channels and self._channels[uri].joined:
                self._resume(uri)

    def _on_status(self, status: Status) -> None:
        if status == "connected":
            self._on_connected()
        elif self._connection.failure is not None:
            self._close(self._connection.failure)

    def _on_connected(self) -> None:
        for channel in tuple(self._channels.values()):
            if not channel.live and (channel.joining is None or channel.joining.done()):
                self._join(channel)
        for uri, pending in self._mirror.unanswered():
            if self._channels[uri].live:
                self._send_action(uri, pending)

    # Actions in both directions.

    def dispatch(self, uri: str, action: JsonObject) -> Dispatch:
        """Show an action's effect at once and send it, now or after the reconnect."""
        channel = self.hold(uri)
        dispatch = Dispatch(uri, action, next(self._numbers))
        self._dispatches[dispatch.client_seq] = channel, dispatch
        self._mirror.dispatch(uri, dispatch.client_seq, action)
        if self._connection.connected and channel.live:
            self._send(channel)
        return dispatch

    def receive(self, envelope: JsonObject) -> None:
        """An `action` notification."""
        self._tell(self._mirror.envelope(envelope, now=self._now()))

    def unreadable(self, method: str, params: JsonObject, error: Exception) -> None:
        """A notification that could not be read. If it was an action, its channel's state is asked for again."""
        self._unreadable += 1
        if self._unreadable <= _MAX_UNREADABLE:
            last = "; more are not logged" if self._unreadable == _MAX_UNREADABLE else ""
            _log.warning("a message of the host cannot be read (%s: %r)%s", method, error, last)
        uri = params.get("channel") if method == "action" else None
        channel = self._channels.get(uri) if isinstance(uri, str) else None
        if channel is None or not channel.joined:
            return
        channel.unreadable += 1
        if channel.unreadable > _MAX_UNREADABLE:
            self.gone(channel.uri, f"the host sends actions that cannot be read: {error!r}")
        elif channel.live:
            self._mirror.doubt(channel.uri)
            self._sent -= self._mirror[channel.uri].pending.keys()  # The host may have answered one of them.
            self._join(channel)

    def _send(self, channel: Channel) -> None:
        for pending in tuple(self._mirror[channel.uri].pending.values()):
            self._send_action(channel.uri, pending)

    def _send_action(self, uri: str, pending: PendingAction) -> None:
        if pending.client_seq not in self._sent:
            self._sent.add(pending.client_seq)
            try:
                written = self._mirror.written(uri, pending.action, now=self._now())
            except LocalProtocolError as error:
                self._tell(self._mirror.refuse(uri, pending.client_seq, str(error)))
                return
            for channel, action in written.before:
                self._notify_action(channel, next(self._numbers), action)
            self._notify_action(uri, pending.client_seq, written.action)

    def _notify_action(self, uri: str, client_seq: int, action: JsonObject) -> None:
        self._connection.notify("dispatchAction", {"channel": uri, "clientSeq": client_seq, "action": action})

    def _tell(self, changes: Iterable[Change]) -> None:
        for change in changes:
            match change:
                case Applied(uri, envelope):
                    for listener in tuple(self._channels[uri].listeners):
                        listener.on_action(envelope)
                case ActionSettled(_, client_seq, outcome):
                    self._settled(client_seq, outcome)

    def _settled(self, client_seq: int, outcome: Outcome) -> None:
        channel, dispatch = self._dispatches.pop(client_seq)
        self._sent.discard(client_seq)
        dispatch.settle(outcome)
        self.release(channel)


class Handle(Generic[_State]):
    """A session or a chat as a program holds it: followed until `aclose`, or until the client ends."""

    def __init__(self, channels: Channels, channel: Channel, *, on_close: Callable[[Channel], None]) -> None:
        self.uri = channel.uri
        self._channel = channel
        self._channels = channels
        self._on_close = on_close
        self._open = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop following it. It continues at the host."""
        if self._open:
            self._open = False
            self._on_close(self._channel)
            self._channels.release(self._channel)

    @property
    def confirmed(self) -> _State:
        """The state as the host has it. Of a session, with the status and activity that follow from its chats."""
        return self._channel.plain_confirmed()

    @property
    def optimistic(self) -> _State:
        """The confirmed state with this client's unanswered actions applied on top."""
        return self._channel.plain_optimistic()

    @property
    def state(self) -> _State:
        """What to show: the optimistic state."""
        return self.optimistic


__all__ = ["Channel", "Channels", "Handle", "Listener"]
