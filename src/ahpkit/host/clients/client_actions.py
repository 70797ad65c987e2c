"""Handles the actions that clients dispatch: reads each action, applies it only once, or sends it back with a
reason."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, cast

from ahpkit.dialects.base import Dialect, SentAction
from ahpkit.dialects.states_down import primary_mark
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection, SessionWaker
from ahpkit.host.clients.quick_reading import Dispatched
from ahpkit.host.registration import Event
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.secret_addresses import stored_action
from ahpkit.host.spine.store import Origin, Store
from ahpkit.host.states import NO_SESSION
from ahpkit.log.engine import LogEngine
from ahpkit.log.entry import Entry
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, RpcError
from ahpkit.protocol.root import RootConfigChangedAction
from ahpkit.protocol.session.actions import SessionConfigChangedAction
from ahpkit.protocol.session.enablement import sorted_decisions
from ahpkit.protocol.session.summary import settings_of
from ahpkit.protocol.validation import check_params
from ahpkit.wire.codec import decode_own
from ahpkit.wire.rpc import Params
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)

SlowAction = Callable[[str, Any, Origin, SentAction], Awaitable[str | None]]
"""Dispatches an action that takes a while. Gets the channel, the action, its origin, and the action as the client wrote
it; returns the reason if the action is refused."""

_MAX_CLIENTS = 10_000
"""How many clients are remembered that started to count again. The one that was not seen for longest is forgotten
first."""


_TOLERATED = frozenset(
    {"root/configChanged", "session/configChanged", "session/customizationToggled", "session/activeClientSet"}
)
"""Types of actions from which unknown settings are removed, or which may change nothing."""


class RepeatedActions:
    """Compares the numbers that clients give their actions with what the log has.

    A client that initializes starts counting again, so its earlier numbers are ignored.
    """

    def __init__(self, log: LogEngine) -> None:
        self._log = log
        self._since: dict[str, int] = {}
        """Client → the serverSeq at which it last began to count."""
        self._highest: dict[str, int] = {}
        """Client → the highest number that it used since then."""

    def begin(self, client_id: str) -> None:
        """A client starts counting anew."""
        self._since.pop(client_id, None)
        self._since[client_id] = self._log.head_seq
        self._highest[client_id] = -1
        if len(self._since) > _MAX_CLIENTS:
            oldest = next(iter(self._since))
            del self._since[oldest], self._highest[oldest]

    def is_new(self, origin: Origin) -> bool:
        """True if this action was certainly not applied before. Needs no I/O. If it is False, `find` gives the
        answer."""
        highest = self._highest.get(origin.client_id)
        if highest is None:
            return self._log.is_new(*origin)
        if origin.client_seq <= highest:
            return False
        self._highest[origin.client_id] = origin.client_seq
        return True

    async def find(self, origin: Origin) -> int | None:
        """The serverSeq of the action if it was applied before, or 0 if that was too long ago to know the number;
        otherwise None."""
        seq = await self._log.seen(*origin)
        since = self._since.get(origin.client_id, -1)
        return seq if seq is not None and seq > since else None


class ClientActions:
    """Takes what clients dispatch with `dispatchAction`."""

    def __init__(
        self,
        *,
        clients: Clients,
        store: Store,
        log: LogEngine,
        dispatcher: Dispatcher,
        sessions: SessionWaker,
        slow_actions: Mapping[str, SlowAction],
        offered_again: Event[[str, str]],
        flush: Callable[[], Awaitable[None]],
        tasks: Tasks,
    ) -> None:
        self._clients = clients
        self._store = store
        self._log = log
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._slow_actions = slow_actions
        self._special = _TOLERATED | slow_actions.keys()
        """The types of actions that are not simply dispatched."""
        self._offered_again = offered_again
        self._flush = flush
        self._tasks = tasks
        self._repeated = RepeatedActions(log)

    def begin(self, client_id: str) -> None:
        """A client initializes, and starts to count its actions anew."""
        self._repeated.begin(client_id)

    def hear(self, client: Connection, params: Params) -> Awaitable[None] | None:
        """Handle a `dispatchAction` that `read_dispatched` did not read. Its parameters may be malformed."""
        try:
            check_params("dispatchAction", params)
        except InvalidParams as error:
            self._refuse_malformed(client, params, error.message)
            return None
        return self.take(client, Dispatched(params["channel"], params["clientSeq"], params["action"]))

    def take(self, client: Connection, dispatched: Dispatched) -> Awaitable[None] | None:
        """Apply a client's action, or send it back with the reason."""
        uri, seq, action = dispatched.channel, dispatched.clientSeq, SentAction(dispatched.action)
        origin = Origin(client.client_id, seq)
        if seq != 0 and not self._repeated.is_new(origin):  # Actions that a client does not count are all new.
            return self._dispatch_again(client, uri, action, origin)
        if self._sessions.rests(uri):
            return self._dispatch_awake(client, uri, action, origin)
        return self._dispatch(client, uri, action, origin)

    async def _dispatch_awake(self, client: Connection, uri: str, sent: SentAction, origin: Origin) -> None:
        """Dispatch an action in a session that rests. The session is woken first, because features have to handle the
        action."""
        await self._sessions.awake(uri)
        if (slow := self._dispatch(client, uri, sent, origin)) is not None:
            await slow

    def _refuse_malformed(self, client: Connection, params: Params, reason: str) -> None:
        """Refuse an action whose parameters are malformed. The reason is sent in an envelope with the client's own
        number, because a notification has no answer. Without a usable number nothing can be sent."""
        uri, seq, action = params.get("channel"), params.get("clientSeq"), params.get("action")
        if isinstance(uri, str) and isinstance(seq, int | float) and isinstance(action, dict):
            origin, sent = Origin(client.client_id, cast("int", seq)), cast("SentAction", action)
            self._clients.reject(uri, sent, origin, reason)
        else:
            _log.debug("%s dispatched something that cannot be answered: %s", client.client_id, reason)

    async def _dispatch_again(self, client: Connection, uri: str, sent: SentAction, origin: Origin) -> None:
        """Handle an action whose number the client has used before. If it is the same action, it is echoed again; a
        different action is applied as a new one."""
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
    ) -> Coroutine[object, None, None] | None:
        """Apply an action or refuse it. Returns something to await when that takes a while."""
        try:
            read = client.outlet.dialect.read_action(uri, sent, client.client_facts)
        except RpcError as error:
            reason: str | None = error.message
        else:
            kept: StateAction | None = cast("StateAction", read)  # The dialect has checked its shape.
            if kept["type"] in self._special:
                kept = self._tolerated(client, uri, kept)
                if kept is None or self._says_nothing_new(client, uri, kept):
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
        try:
            reason = await slow(uri, action, origin, sent)
        except Exception:  # The client waits for an answer.
            _log.exception("a client's action could not be applied to %s", uri)
            reason = "the host failed to apply this action; its log has the details"
        if reason is not None:
            self._clients.reject(uri, sent, origin, reason)

    def _tolerated(self, client: Connection, uri: str, action: StateAction) -> StateAction | None:
        """An action without the settings that are not in the schema, and with its decisions sorted; None if no setting
        is left."""
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
        """Whether an active client repeats its present entry. Such an action is not sent to other clients, because
        clients that react to every change would loop."""
        if action["type"] != "session/activeClientSet" or primary_mark(action["activeClient"]):
            return False
        is_repeated = action["activeClient"] in (self._store.session(uri) or NO_SESSION).get("activeClients", ())
        if is_repeated:
            self._offered_again.tell(client.client_id, uri)
        return is_repeated


async def _nothing() -> None:
    """Returns at once."""


def _is_repeat(dialect: Dialect, entry: Entry, uri: str, sent: SentAction) -> bool:
    logged: Any = decode_own(entry.payload)
    try:
        stored = cast("JsonObject", stored_action(cast("StateAction", sent)))
        return logged["channel"] == uri and dialect.is_repeat(stored, logged["action"])
    except (AttributeError, KeyError, TypeError):  # The client's action was not checked yet: it may have any shape.
        return False


__all__ = ["ClientActions", "RepeatedActions", "SlowAction"]
