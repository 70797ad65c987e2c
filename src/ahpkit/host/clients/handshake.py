"""Serves the commands of a connection itself: initialize, reconnect, subscribe, unsubscribe.

They show only committed states, so nothing that was shown can be lost.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from ahpkit import __version__
from ahpkit.dialects.base import MustReconnect
from ahpkit.host.clients.client_actions import ClientActions
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.commands import NotificationRow
from ahpkit.host.clients.connection import Connection, SessionWaker
from ahpkit.host.clients.dialect_choice import ClientNotes, DialectChoice
from ahpkit.host.clients.outlet import Outlet
from ahpkit.host.clients.turn_windows import TurnWindows
from ahpkit.host.limits import check_subscriptions
from ahpkit.host.policy.methods import anyone, handshake
from ahpkit.host.registration import ChannelHooks, Command
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.store import Store
from ahpkit.host.states import NO_STATE
from ahpkit.log.engine import LogEngine
from ahpkit.log.entry import MAX_PAGE, Entry
from ahpkit.log.errors import LogError
from ahpkit.protocol.channels import ROOT_URI, ChannelState, channel_of
from ahpkit.protocol.common.actions import ActionEnvelope
from ahpkit.protocol.common.commands import (
    ClientCapabilities,
    InitializeParams,
    InitializeResult,
    PingParams,
    ReconnectParams,
    ReconnectResult,
    SubscribeParams,
    SubscribeResult,
)
from ahpkit.protocol.common.state import Snapshot
from ahpkit.protocol.errors import (
    InvalidRequest,
    NotFound,
    PermissionDenied,
    SessionNotFound,
)
from ahpkit.protocol.errors import UnsupportedProtocolVersion as UnsupportedVersion
from ahpkit.protocol.meta_keys import CAPABILITIES, HIGHEST, MISSED, SPOKEN
from ahpkit.wire.pieces import Pieces, measure
from ahpkit.wire.rpc import Params

_log = logging.getLogger(__name__)

_PAGE = 128 * 1024
"""Bytes of actions read from the log at a time."""

_PIECE = 256 * 1024
"""Bytes that are sent at a time. A page is longer only if its last action is long."""

_KEPT = 2 * 1024 * 1024
"""Bytes of actions that stay in memory after the first reading: fewer than a client may leave unread."""

_FEW = 4 * 1024
"""Below this many bytes the actions are sent without computing how large the states would be."""


class MissedActions:
    """The actions of some channels after a number and up to another, for one client that comes back.

    They are read from the log before anything is sent. This shows how many bytes they have, and whether all of them can
    be expressed in the client's version. Very many actions are not kept in memory: they are read from the log again, as
    fast as the client reads.
    """

    def __init__(
        self,
        log: LogEngine,
        outlet: Outlet,
        channels: Sequence[str],
        *,
        after: int,
        until: int,
        can_replay: Callable[[Sequence[Entry]], bool],
    ) -> None:
        self._log = log
        self._outlet = outlet
        self._channels = channels
        self._after = after
        self._until = until
        self._can_replay = can_replay

    async def actions(
        self, snapshots: Callable[[], Sequence[Snapshot]], *, at_most: int, prefer: object
    ) -> Pieces | None:
        """The actions for the answer; None if snapshots are shorter, or the only possible answer.

        `prefer` is the client's wish: "actions" whenever the log has them, or "states".
        """
        try:
            return await self._smaller(snapshots, at_most, prefer)
        except MustReconnect:
            return None
        except LogError as error:  # The log was trimmed just now, or the disk cannot be read.
            _log.warning("a client gets snapshots instead of a replay: %s", error)
            return None

    async def _smaller(
        self, snapshots: Callable[[], Sequence[Snapshot]], at_most: int, prefer: object
    ) -> Pieces | None:
        if prefer == "states":
            return None
        bodies, following = await self._page(self._after, _FEW)
        if following is None:
            return Pieces(partial(_joined, bodies))
        if prefer != "actions":
            states = snapshots()
            size = await measure(states, at_most=_PAGE)
            if size <= _PAGE:  # Reading stops as soon as the actions are longer than the states.
                bodies, following = await self._page(self._after, size)
                is_less = following is None and sum(map(len, bodies)) <= size
                return Pieces(partial(_joined, bodies)) if is_less else None
            at_most = min(at_most, await measure(states, at_most=at_most))
        del bodies  # One action may be large.
        return await self._measured(at_most)

    async def _measured(self, at_most: int) -> Pieces | None:
        """The actions, if they are not too many. Raises `MustReconnect` and `LogError`."""
        kept: list[bytes] = []
        size, following = 0, self._after
        while following is not None:
            bodies, following = await self._page(following)
            size += sum(map(len, bodies))
            if size > at_most:
                return None
            kept += bodies
            if size > _KEPT:
                kept = []
            del bodies
        return Pieces(partial(_joined, kept)) if size <= _KEPT else Pieces(self._written)

    async def _page(self, after: int, max_bytes: int = _PAGE) -> tuple[list[bytes], int | None]:
        """Some actions in the form for this client, and the number after which the next page begins."""
        if self._outlet.is_over:
            return [], None
        page = await self._log.read(after, channels=self._channels, max_bytes=max_bytes)
        entries = [entry for entry in page if entry.seq <= self._until]
        if not self._can_replay(entries):
            raise MustReconnect
        bodies = [body for entry in entries if (body := self._outlet.project(entry)) is not None]
        return bodies, page[-1].seq if _is_cut_off(page, max_bytes) and page[-1].seq < self._until else None

    async def _written(self) -> AsyncIterator[bytes]:
        """The actions as a list. While the client reads, only one piece is kept in memory; the rest of a large page is
        read again.
        """
        yield b"["
        before, after, start = b"", self._after, 0
        while True:
            bodies, following = await self._page(after)
            text = b",".join(bodies)
            piece = (before if start == 0 and text else b"") + text[start : start + _PIECE]
            start += _PIECE
            if start >= len(text):
                if following is None:
                    break
                after, start, before = following, 0, b"," if text else before
            del bodies, text
            yield piece
        yield piece + b"]"


def _is_cut_off(page: Sequence[Entry], max_bytes: int) -> bool:
    return len(page) >= MAX_PAGE or sum(len(entry.payload) for entry in page) > max_bytes


async def _joined(bodies: Sequence[bytes]) -> AsyncIterator[bytes]:
    text = b"[%b]" % b",".join(bodies)
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


_BRIDGE = ("vscode.clientConnectionKind", "remote_extension_host")
"""Key and value in `_meta` of a VS Code window that reaches this host through VS Code's server."""


class Handshake:
    """Binds connections to the sequence of actions."""

    def __init__(
        self,
        *,
        clients: Clients,
        windows: TurnWindows,
        store: Store,
        kinds: ChannelKinds,
        log: LogEngine,
        actions: ClientActions,
        channels: ChannelHooks,
        notes: ClientNotes,
        dialects: DialectChoice,
        adopt: Callable[[str], Awaitable[bool]],
        sessions: SessionWaker,
        default_directory: Path,
        max_replay: int,
    ) -> None:
        self._clients = clients
        self._windows = windows
        self._store = store
        self._kinds = kinds
        self._log = log
        self._actions = actions
        self._channels = channels
        self._notes = notes
        self._dialects = dialects
        self._adopt = adopt
        """Makes a session of the agent's conversation that is listed under this URI; False if there is none."""
        self._sessions = sessions
        self._default_directory = default_directory
        self._max_replay = max_replay

    def commands(self) -> Sequence[Command]:
        return (
            Command("ping", self._ping, policy=anyone),
            Command("initialize", self._initialize, ordered=True, large=True, policy=handshake),
            Command("reconnect", self._reconnect, ordered=True, large=True, policy=handshake),
            Command("subscribe", self._subscribe, ordered=True, large=True),
        )

    def notifications(self) -> Mapping[str, NotificationRow]:
        rows = (
            NotificationRow("unsubscribe", self._unsubscribe),
            NotificationRow("dispatchAction", self._actions.hear),
        )
        return {row.name: row for row in rows}

    # -- handshake -------------------------------------------------------------------------------------------------

    async def _ping(self, client: Connection, params: PingParams) -> None:
        """`ping`: answers at once, with nothing."""

    async def _initialize(self, client: Connection, params: InitializeParams) -> InitializeResult:
        capabilities, info = params.get("capabilities", ClientCapabilities()), params.get("clientInfo")
        try:
            dialect = self._dialects.choose(params["clientId"], params["protocolVersions"], capabilities, info)
        except UnsupportedVersion as error:
            client.close(error.message)
            raise
        wanted = dict.fromkeys(params.get("initialSubscriptions", ()))
        _check_subscriptions(len(wanted))
        self._clients.admit(client, params["clientId"], capabilities=capabilities, dialect=dialect, info=info)
        _log.info("%s speaks %s: %s", client.client_id, dialect.version, info["name"] if info else "it gives no name")
        self._actions.begin(client.client_id)
        root = self._store.committed(ROOT_URI) or NO_STATE
        self._windows.begin(client.client_id)
        states = self._with_states(client, wanted)
        observed = [uri for uri in states if await self._may_observe(client, uri)]
        await self._wake(observed)
        shown = {uri: self._followed(uri, client) for uri in observed if self._exists(uri)}
        snapshots = client.outlet.snapshots(shown, self._store.committed_head)
        self._clients.back(client, resumed=False)
        result: InitializeResult = {
            "protocolVersion": dialect.version,
            "serverInfo": {"name": "ahpkit", "version": __version__},
            "serverSeq": self._store.committed_head,
            "snapshots": snapshots,
            "completionTriggerCharacters": ["/", "@", "#"],
            "_meta": root.get("_meta", {}),
        }
        if not _is_bridged(params):
            result["defaultDirectory"] = self._default_directory.as_uri()
        if (telemetry := self._channels.telemetry.provided) is not None:
            result["telemetry"] = telemetry
        return result

    async def _reconnect(self, client: Connection, params: ReconnectParams) -> ReconnectResult:
        wanted = list(dict.fromkeys(params["subscriptions"]))
        _check_subscriptions(len(wanted))
        meta = params.get("_meta", {})
        announced: object = meta.get(CAPABILITIES)
        capabilities = cast("ClientCapabilities", announced) if isinstance(announced, dict) else None
        named: object = meta.get(SPOKEN)
        dialect = self._dialects.again(
            params["clientId"],
            named=named if isinstance(named, str) else None,
            capabilities=capabilities,
            may_be_oldest="channel" in params,  # Clients before 0.9 always send it.
        )
        self._clients.admit(client, params["clientId"], capabilities=capabilities, dialect=dialect)
        wanted = self._with_states(client, wanted)
        for uri in wanted:
            await self._opened(uri)
        observed = [uri for uri in wanted if await self._may_observe(client, uri)]
        await self._wake(observed)
        present = [uri for uri in observed if self._exists(uri)]
        missing = [uri for uri in wanted if uri not in present]
        for uri in present:
            self._sessions.wake(uri)
            self._clients.follow(uri, client)
        states = {uri: self._store.committed(uri) or NO_STATE for uri in present}
        until = self._store.committed_head
        client.outlet.hold()  # Actions that are committed from here on are sent after the answer.
        self._clients.back(client, resumed=True)

        snapshots = partial(client.outlet.snapshots, states, until)
        actions = await self._missed(client, params, present, until, snapshots)
        if actions is None:
            self._windows.begin(client.client_id)
            return {"type": "snapshot", "snapshots": snapshots()}
        return {"type": "replay", "actions": cast("list[ActionEnvelope]", actions), "missing": missing}

    async def _missed(
        self,
        client: Connection,
        params: ReconnectParams,
        channels: Sequence[str],
        until: int,
        snapshots: Callable[[], Sequence[Snapshot]],
    ) -> Pieces | None:
        """The actions that the client missed; None if snapshots are shorter, or the only possible answer."""
        after, seen = params["lastSeenServerSeq"], params.get("_meta", {}).get(HIGHEST)
        highest = max(after, seen) if type(seen) is int else after
        if not self._notes.shares_history(client.client_id, highest) or not self._store.can_replay(after, channels):
            return None
        can_replay = partial(self._windows.can_replay, client.client_id)
        missed = MissedActions(self._log, client.outlet, channels, after=after, until=until, can_replay=can_replay)
        prefer = "actions" if _is_vscode(params) else params.get("_meta", {}).get(MISSED)
        return await missed.actions(snapshots, at_most=self._max_replay, prefer=prefer)

    # -- subscriptions ---------------------------------------------------------------------------------------------

    async def _subscribe(self, client: Connection, params: SubscribeParams) -> SubscribeResult:
        uri, held = params["channel"], client.outlet.channels
        _check_subscriptions(len(held) + (uri not in held))
        if self._serves_stateless(uri):
            self._clients.follow(uri, client)
            return {}
        if not await self._opened(uri):
            raise _no_channel(uri)
        await self._check_observer(client, uri)
        self._clients.set_latency(uri, client, params.get("delivery", {}).get("maxLatencyMs", 0))
        await self._wake([uri])
        if not await self._opened(uri):  # The last other subscriber may have left meanwhile.
            raise _no_channel(uri)
        return {"snapshot": self._snapshot(uri, client, params.get("view", {}).get("turns"))}

    async def _check_observer(self, client: Connection, uri: str) -> None:
        for guard in self._channels.guard:
            await guard(client.client_id, uri)

    async def _may_observe(self, client: Connection, uri: str) -> bool:
        try:
            await self._check_observer(client, uri)
        except PermissionDenied:
            return False
        return True

    async def _wake(self, uris: Iterable[str]) -> None:
        """Read the sessions of channels before they are shown, because that may take a while."""
        for uri in uris:
            await self._sessions.wake_gently(uri)

    def _snapshot(self, uri: str, client: Connection, turns: int | None = None) -> Snapshot:
        return client.outlet.snapshot(uri, self._followed(uri, client, turns), self._store.committed_head)

    def _followed(self, uri: str, client: Connection, turns: int | None = None) -> ChannelState:
        """The committed state of a channel, with a subscription to every later action.

        Both happen in one step, so that no action is missed. Before that, a session that rests is woken.
        """
        self._sessions.wake(uri)
        state = self._windows.shown(client, uri, self._store.committed(uri) or NO_STATE, turns)
        self._clients.follow(uri, client)
        return state

    def _unsubscribe(self, client: Connection, params: Params) -> None:
        if isinstance(uri := params.get("channel"), str):
            self._clients.unfollow(uri, client)

    async def _opened(self, uri: str) -> bool:
        """Whether a channel exists, or a feature can create it for a subscriber."""
        if self._exists(uri):
            return True
        for opens in (self._adopt, *self._channels.open):
            if await opens(uri) and self._exists(uri):
                return True
        return False

    def _exists(self, uri: str) -> bool:
        return self._store.shown(uri)

    def _with_states(self, client: Connection, wanted: Iterable[str]) -> list[str]:
        """Subscribe to the channels that have no state, and return the others."""
        stateless = {uri for uri in wanted if self._serves_stateless(uri)}
        for uri in stateless:
            self._clients.follow(uri, client)
        return [uri for uri in wanted if uri not in stateless]

    def _serves_stateless(self, uri: str) -> bool:
        channel = self._kinds.of(uri)
        if channel is None or channel.reducer is not None:
            return False
        return any(serves(uri) for serves in self._channels.is_stateless)


def _check_subscriptions(count: int) -> None:
    if (reason := check_subscriptions(count)) is not None:
        raise InvalidRequest(reason)


def _no_channel(uri: str) -> NotFound | SessionNotFound:
    channel = channel_of(uri)
    if channel is not None and channel.name == "session":
        return SessionNotFound(f"there is no session {uri}")
    return NotFound(f"there is no channel {uri}")


def _is_vscode(params: ReconnectParams) -> bool:
    """Whether the client is VS Code. It shows turns that come as actions, but not turns that a snapshot adds to an open
    chat."""
    return _BRIDGE[0] in params.get("_meta", {})


def _is_bridged(params: InitializeParams) -> bool:
    """Whether a VS Code window connects through its server's bridge. Such a window (1.139) compares the default
    directory with its folders before it translates them, finds no match, and would create sessions without a directory.
    """
    key, value = _BRIDGE
    return params.get("_meta", {}).get(key) == value


__all__ = ["Handshake", "MissedActions"]
