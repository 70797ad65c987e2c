"""The door: every action, from a client or from the host itself, becomes state here. Knows no transport or JSON-RPC.

A client's action is checked: its shape, the channel, the policy, the features, in that order. Then it is applied, or
comes back with a reason. What was applied is told to listeners in order, one action at a time: an action
that a listener dispatches is applied at once and told about after the one that caused it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from ahpkit.host import policy
from ahpkit.host.feature import Applied, Feature
from ahpkit.host.store import Origin, Store
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import check_action

_log = logging.getLogger(__name__)

Deferral = Callable[[str, JsonObject, Origin], bool]
"""Takes an action that must wait and says that it did."""

_MAX_COUNTED = 10_000
"""Clients for which a new start is remembered; whoever was not seen for that many others is long gone."""


class Ledger:
    """Recognises an action that a client sends again, so that it is applied once."""

    def __init__(self, seen: Callable[[str, int], int | None]) -> None:
        self._seen = seen
        self._counting_since: dict[str, int] = {}

    def begin(self, client_id: str, head: int) -> None:
        """A client starts counting anew: numbers it used before mean nothing now."""
        self._counting_since[client_id] = head
        if len(self._counting_since) > _MAX_COUNTED:
            del self._counting_since[next(iter(self._counting_since))]

    def find(self, origin: Origin) -> int | None:
        """serverSeq of the action when it was applied before (0: too long ago to tell), else None."""
        seq = self._seen(origin.client_id, origin.client_seq)
        since = self._counting_since.get(origin.client_id, -1)
        return seq if seq is not None and seq > since else None


class Dispatcher:
    """Applies actions to the store and tells the listeners."""

    def __init__(self, store: Store, features: Sequence[Feature], ledger: Ledger) -> None:
        self._store = store
        self.ledger = ledger
        self._refusing = [feature.refuse for feature in features if type(feature).refuse is not Feature.refuse]
        self._listeners: list[Callable[[Applied], None]] = []
        self._telling: deque[Applied] | None = None
        self.session_state: Callable[[str], JsonObject | None] = lambda chat_uri: None
        self.defer: Deferral = lambda uri, action, origin: False
        self.refusing: Callable[[], str | None] = lambda: None
        """A reason to take no action at all just now, such as a full disk."""

    def listen(self, listener: Callable[[Applied], None]) -> None:
        self._listeners.append(listener)

    def apply(self, uri: str, action: JsonObject, origin: Origin | None = None) -> int:
        """Apply without asking: the host's own actions, and clients' that passed `check`."""
        seq, before, after = self._store.apply(uri, action, origin)
        client_id = origin.client_id if origin else None
        self._tell(Applied(uri, action, seq, client_id, before, after))
        return seq

    def dispatch(self, uri: str, action: JsonObject, origin: Origin) -> str | None:
        """Take a client's action; returns the reason when it is refused."""
        try:
            reason = self.check(uri, action, origin.client_id)
            if reason is None and not self.defer(uri, action, origin):
                self.apply(uri, action, origin)
        except Exception:
            _log.exception("a client's action could not be applied to %s", uri)
            return "the host failed to apply this action; its log has the details"
        return reason

    def check(self, uri: str, action: JsonObject, client_id: str) -> str | None:
        """Why a client may not do this now, or None."""
        if (reason := self.refusing()) is not None:
            return reason
        try:
            check_action(action)
        except InvalidParams as error:
            return error.message
        state = self._store.state(uri)
        if state is None:
            return f"there is no channel {uri}"
        reason = policy.check_action(
            client_id=client_id,
            channel=uri,
            action=action,
            state=state,
            state_of=self._store.state,
            session=self.session_state(uri),
        )
        for refuse in self._refusing:
            reason = reason or refuse(client_id, uri, action, state)
        return reason

    def _tell(self, applied: Applied) -> None:
        if self._telling is not None:
            self._telling.append(applied)
            return
        self._telling = deque([applied])
        try:
            while self._telling:
                current = self._telling.popleft()
                for listener in self._listeners:
                    try:
                        listener(current)
                    except Exception:  # The action stands, and the others have to hear of it.
                        _log.exception("a listener failed at %s of %s", current.action["type"], current.channel)
        finally:
            self._telling = None


__all__ = ["Dispatcher", "Ledger"]
