"""Serves the commands of a connection itself: initialize, reconnect, subscribe, unsubscribe, dispatch.

What they show is committed, so nothing shown can be lost.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from ahpkit import __version__
from ahpkit.dialects.base import Dialect, Reading, SentAction
from ahpkit.dialects.states_down import primary_mark
from ahpkit.host.clients.client_notes import ClientNotes
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.commands import HeardNotification
from ahpkit.host.clients.connection import Connection, LiveSessions
from ahpkit.host.clients.dialect_choice import DialectChoice
from ahpkit.host.clients.missed import Missed
from ahpkit.host.clients.turn_windows import TurnWindows
from ahpkit.host.limits import check_subscriptions
from ahpkit.host.policy.methods import anyone, handshake
from ahpkit.host.registration import ChannelHooks, Command, Event
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.repeated_actions import RepeatedActions
from ahpkit.host.spine.store import Origin, Store
from ahpkit.host.spine.told_only import stored_action
from ahpkit.host.states import NO_SESSION
from ahpkit.log.engine import LogEngine
from ahpkit.log.entry import Entry
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.common.actions import StateAction
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
    InvalidParams,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    RpcError,
    SessionNotFound,
)
from ahpkit.protocol.errors import UnsupportedProtocolVersion as UnsupportedVersion
from ahpkit.protocol.meta_keys import CAPABILITIES, HIGHEST, MISSED, SPOKEN
from ahpkit.protocol.root import RootConfigChangedAction
from ahpkit.protocol.session.actions import SessionConfigChangedAction
from ahpkit.protocol.session.enablement import sorted_decisions
from ahpkit.protocol.session.summary import settings_of
from ahpkit.protocol.validation import check_params
from ahpkit.wire.codec import decode_own
from ahpkit.wire.rpc import Params
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)

_BRIDGE = ("vscode.clientConnectionKind", "remote_extension_host")
"""In `_meta` from VS Code: how a window reaches this host, here through VS Code's server."""


SlowAction = Callable[[str, Any, Origin, SentAction], Awaitable[str | None]]
"""Dispatches an action that takes a while: its channel, the action, its origin, and how it was sent. Returns the reason
when it is refused."""


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
        dispatcher: Dispatcher,
        flush: Callable[[], Awaitable[None]],
        channels: ChannelHooks,
        offered_again: Event[[str, str]],
        tasks: Tasks,
        notes: ClientNotes,
        dialects: DialectChoice,
        adopt: Callable[[str], Awaitable[bool]],
        sessions: LiveSessions,
        reading: Callable[[str], Reading],
        slow_actions: Mapping[str, SlowAction],
        default_directory: Path,
        max_replay: int,
    ) -> None:
        self._clients = clients
        self._windows = windows
        self._store = store
        self._kinds = kinds
        self._log = log
        self._dispatcher = dispatcher
        self._flush = flush
        self._channels = channels
        self._offered_again = offered_again
        self._tasks = tasks
        self._notes = notes
        self._dialects = dialects
        self._adopt = adopt
        """Makes a session of a conversation that an agent stores, if there is one with this URI."""
        self._sessions = sessions
        self._reading = reading
        self._slow_actions = slow_actions
        self._default_directory = default_directory
        self._max_replay = max_replay
        self._repeated = RepeatedActions(log)

    def commands(self) -> Sequence[Command]:
        return (
            Command("ping", self._ping, policy=anyone),
            Command("initialize", self._initialize, ordered=True, large=True, policy=handshake),
            Command("reconnect", self._reconnect, ordered=True, large=True, policy=handshake),
            Command("subscribe", self._subscribe, ordered=True, large=True),
        )

    def notifications(self) -> Mapping[str, HeardNotification]:
        rows = (
            HeardNotification("unsubscribe", self._unsubscribe),
            HeardNotification("dispatchAction", self._dispatch_action),
        )
        return {row.name: row for row in rows}

    # -- handshake -------------------------------------------------------------------------------------------------

    async def _ping(self, client: Connection, params: PingParams) -> None:
        """`ping`. The answer itself is the signal."""

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
        self._repeated.begin(client.client_id)
        root = self._store.committed(ROOT_URI) or {}
        self._windows.begin(client.client_id)
        observed = [uri for uri in wanted if await self._may_observe(client, uri)]
        await self._wake(observed)
        snapshots = [self._snapshot(uri, client) for uri in observed if self._exists(uri)]
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
        wanted = dict.fromkeys(params["subscriptions"])
        _check_subscriptions(len(wanted))
        meta = params.get("_meta", {})
        said: object = meta.get(CAPABILITIES)
        capabilities = cast("ClientCapabilities", said) if isinstance(said, dict) else None
        named: object = meta.get(SPOKEN)
        dialect = self._dialects.again(
            params["clientId"],
            named=named if isinstance(named, str) else None,
            capabilities=capabilities,
            may_be_oldest="channel" in params,  # Clients before 0.9 always send it.
        )
        self._clients.admit(client, params["clientId"], capabilities=capabilities, dialect=dialect)
        for uri in wanted:
            await self._opened(uri)
        observed = [uri for uri in wanted if await self._may_observe(client, uri)]
        await self._wake(observed)
        present = [uri for uri in observed if self._exists(uri)]
        missing = [uri for uri in wanted if uri not in present]
        for uri in present:
            self._sessions.wake(uri)
            self._clients.follow(uri, client)
        states = {uri: self._store.committed(uri) or {} for uri in present}
        until = self._store.committed_head
        client.outlet.hold()  # Actions from here on are sent after the answer.
        self._clients.back(client, resumed=True)

        def snapshots() -> list[Snapshot]:
            return [client.outlet.snapshot(uri, state, until) for uri, state in states.items()]

        actions = await self._missed(client, params, present, until, snapshots)
        if actions is None:
            self._windows.begin(client.client_id)
            return {"type": "snapshot", "snapshots": snapshots()}
        return {"type": "replay", "actions": actions, "missing": missing}

    async def _missed(
        self,
        client: Connection,
        params: ReconnectParams,
        channels: Sequence[str],
        until: int,
        snapshots: Callable[[], Sequence[Snapshot]],
    ) -> Any:
        """The missed actions; None when snapshots are the better answer, or the only one."""
        after, said = params["lastSeenServerSeq"], params.get("_meta", {}).get(HIGHEST)
        highest = max(after, said) if type(said) is int else after
        if not self._notes.shares_history(client.client_id, highest) or not self._store.can_replay(after, channels):
            return None
        can_replay = partial(self._windows.can_replay, client.client_id)
        missed = Missed(self._log, client.outlet, channels, after=after, until=until, can_replay=can_replay)
        prefer = "actions" if _is_vscode(params) else params.get("_meta", {}).get(MISSED)
        return await missed.actions(snapshots, at_most=self._max_replay, prefer=prefer)

    # -- subscriptions ---------------------------------------------------------------------------------------------

    async def _subscribe(self, client: Connection, params: SubscribeParams) -> SubscribeResult:
        uri, held = params["channel"], client.outlet.channels
        _check_subscriptions(len(held) + (uri not in held))
        channel = self._kinds.of(uri)
        if channel is not None and channel.reducer is None and self._serves_stateless(uri):
            self._clients.follow(uri, client)
            return {}
        if not await self._opened(uri):
            raise _no_channel(uri)
        await self._check_observer(client, uri)
        self._clients.set_latency(uri, client, params.get("delivery", {}).get("maxLatencyMs", 0))
        await self._wake([uri])
        if not self._exists(uri):
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
        """The committed state, and a subscription to every later action: both in one step, so that none is missed.

        A session that rests is woken meanwhile.
        """
        self._sessions.wake(uri)
        state = self._windows.shown(client, uri, self._store.committed(uri) or {}, turns)
        self._clients.follow(uri, client)
        return client.outlet.snapshot(uri, state, self._store.committed_head)

    def _unsubscribe(self, client: Connection, params: Params) -> None:
        if isinstance(uri := params.get("channel"), str):
            self._clients.unfollow(uri, client)

    async def _opened(self, uri: str) -> bool:
        """Whether a channel is there, or can be made because somebody wants to see it."""
        if self._exists(uri):
            return True
        for opens in (self._adopt, *self._channels.open):
            if await opens(uri) and self._exists(uri):
                return True
        return False

    def _exists(self, uri: str) -> bool:
        return self._store.shown(uri)

    def _serves_stateless(self, uri: str) -> bool:
        return any(serves(uri) for serves in self._channels.is_stateless)

    # -- actions ---------------------------------------------------------------------------------------------------

    def _dispatch_action(self, client: Connection, params: Params) -> Awaitable[None] | None:
        """Apply a client's action, or send it back with the reason."""
        try:
            check_params("dispatchAction", params)
        except InvalidParams as error:
            self._refuse_malformed(client, params, error.message)
            return None
        uri, seq, action = params["channel"], params["clientSeq"], SentAction(params["action"])
        origin = Origin(client.client_id, seq)
        if seq != 0 and not self._repeated.is_new(origin):  # Actions that a client does not count are all new.
            return self._dispatch_again(client, uri, action, origin)
        if self._sessions.rests(uri):
            return self._dispatch_awake(client, uri, action, origin)
        return self._dispatch(client, uri, action, origin)

    async def _dispatch_awake(self, client: Connection, uri: str, sent: SentAction, origin: Origin) -> None:
        """Dispatch in a session that rests: it is woken first, because features have to hear of the action."""
        await self._sessions.awake(uri)
        if (slow := self._dispatch(client, uri, sent, origin)) is not None:
            await slow

    def _refuse_malformed(self, client: Connection, params: Params, reason: str) -> None:
        """Send the reason in an envelope with the client's own number, if there is one: a notification has no other
        answer."""
        uri, seq, action = params.get("channel"), params.get("clientSeq"), params.get("action")
        if isinstance(uri, str) and isinstance(seq, int | float) and isinstance(action, dict):
            origin, sent = Origin(client.client_id, cast("int", seq)), cast("SentAction", action)
            self._clients.reject(uri, sent, origin, reason)
        else:
            _log.debug("%s dispatched something nobody can answer: %s", client.client_id, reason)

    async def _dispatch_again(self, client: Connection, uri: str, sent: SentAction, origin: Origin) -> None:
        """The client has used this number before. The same action is echoed again; another one is new."""
        done = await self._repeated.find(origin)
        if done is None:
            await (self._dispatch(client, uri, sent, origin) or _nothing())
            return
        self._tasks.spawn(self._answer_again(client, uri, sent, origin, done), name="repeated action")

    async def _answer_again(self, client: Connection, uri: str, sent: SentAction, origin: Origin, done: int) -> None:
        await self._flush()
        logged = await self._log.read(done - 1, channels=None, limit=1) if done else []
        entry = logged[0] if logged and logged[0].seq == done else None
        if entry is None:
            client.outlet.answer_action(uri, sent, done, origin)
        elif _is_repeat(client.outlet.dialect, entry, uri, sent):
            client.outlet.echo(entry)
        else:
            await (self._dispatch(client, uri, sent, origin) or _nothing())

    def _dispatch(
        self, client: Connection, uri: str, sent: SentAction, origin: Origin
    ) -> Coroutine[Any, Any, None] | None:
        """Apply an action or refuse it. Returns something to await when that takes a while."""
        try:
            read = client.outlet.dialect.read_action(uri, sent, self._reading(client.client_id))
        except RpcError as error:
            reason: str | None = error.message
        else:
            kept = self._tolerated(client, uri, cast("StateAction", read))  # The dialect has checked its shape.
            if kept is None or self._says_nothing_new(client, uri, kept):
                if kept is not None:
                    self._offered_again.tell(client.client_id, uri)
                client.outlet.answer_action(uri, sent, self._store.committed_head, origin)
                return None
            if (slow := self._slow_actions.get(kept["type"])) is not None:
                return self._dispatch_slowly(slow, uri, kept, origin, sent)
            reason = self._dispatcher.dispatch(uri, kept, origin, sent=sent)
        if reason is not None:
            self._clients.reject(uri, sent, origin, reason)
        return None

    async def _dispatch_slowly(
        self, slow: SlowAction, uri: str, action: StateAction, origin: Origin, sent: SentAction
    ) -> None:
        if (reason := await slow(uri, action, origin, sent)) is not None:
            self._clients.reject(uri, sent, origin, reason)

    def _tolerated(self, client: Connection, uri: str, action: StateAction) -> StateAction | None:
        """An action without settings that are not in the schema, and with sorted decisions; None when nothing is left
        of it."""
        if action["type"] == "session/customizationToggled":
            return {**action, "enablement": sorted_decisions(action["enablement"])}
        if action["type"] == "root/configChanged" or action["type"] == "session/configChanged":
            return self._without_unknown_settings(client, uri, action)
        return action

    def _without_unknown_settings(
        self, client: Connection, uri: str, action: RootConfigChangedAction | SessionConfigChangedAction
    ) -> RootConfigChangedAction | SessionConfigChangedAction | None:
        """VS Code sends its own settings to every host. They are kept for its connection and change nothing else."""
        if not client.outlet.dialect.tolerates_settings:
            return action
        known = settings_of(self._store.state(uri) or {})
        changes = action["config"]
        unknown = changes.keys() - known.keys()
        if new := unknown - client.settings.keys():
            _log.warning("%s sent settings that %s does not have: %s", client.client_id, uri, ", ".join(sorted(new)))
        if uri == ROOT_URI:
            client.keep_settings(changes, replace=action.get("replace", False))
        kept = action.copy()
        kept["config"] = {key: value for key, value in changes.items() if key in known}
        return kept if kept["config"] else None

    def _says_nothing_new(self, client: Connection, uri: str, action: StateAction) -> bool:
        """Whether an active client repeats its entry. It is not sent to others, because clients that react to every
        change would loop."""
        if action["type"] != "session/activeClientSet" or primary_mark(action["activeClient"]):
            return False
        return action["activeClient"] in (self._store.session(uri) or NO_SESSION).get("activeClients", ())


async def _nothing() -> None:
    """There is nothing to wait for."""


def _is_repeat(dialect: Dialect, entry: Entry, uri: str, sent: SentAction) -> bool:
    logged: Any = decode_own(entry.payload)
    return logged["channel"] == uri and dialect.is_repeat(stored_action(sent), logged["action"])


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


__all__ = ["Handshake"]
