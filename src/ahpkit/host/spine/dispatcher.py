"""Takes every action of clients and of the host itself: checks it, applies it, and calls the listeners.

The dialect has already checked the shape of a client's action. The dispatcher checks that the channel exists, then asks
the policy, then the features. Then it applies the action, or refuses it with a reason. Listeners are called in order,
for one action at a time. An action that a listener dispatches is applied at once, but the listeners get it only after
the action that caused it.

All actions applied in one step of the event loop are stored together. Work that follows from several of them is done
once, at the end of the step (`before_storing`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from ahpkit.dialects.actions_up import HINTED, with_hints
from ahpkit.dialects.base import SentAction
from ahpkit.host import policy
from ahpkit.host.registration import ActionHooks, AnyApplied, Applied
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.session_index import SessionIndex, WaitingSelections
from ahpkit.host.spine.store import Origin, Store
from ahpkit.log.engine import LogEngine
from ahpkit.protocol.chat.turns import STREAMED_TEXT
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import SessionState
from ahpkit.protocol.validation import check_action

_log = logging.getLogger(__name__)

_STREAMED = STREAMED_TEXT | {"terminal/data"}
"""The most frequent actions. Their constructors make only well-formed actions, so these are not checked again."""


class Dispatcher:
    """Applies actions to the store and calls the listeners."""

    def __init__(
        self,
        store: Store,
        *,
        log: LogEngine,
        kinds: ChannelKinds,
        index: SessionIndex,
        waiting: WaitingSelections,
        hooks: ActionHooks,
    ) -> None:
        self._store = store
        self._log = log
        self._kinds = kinds
        self._index = index
        self._waiting = waiting
        self._hooks = hooks
        self._turn_ids = policy.TurnIds()
        self._listening: list[AnyApplied] | None = None
        """Actions for which the listeners still have to be called; None while no listener runs."""
        self._in_step = False
        """Whether something was applied in this step of the event loop."""
        self._endings: list[Callable[[], None]] = []
        self._closed: str | None = None
        """Why all actions of clients are refused; None: they are not."""

    def apply(self, uri: str, action: StateAction) -> None:
        """Apply an action of the host's own. A malformed action raises here, where it was made."""
        if action["type"] not in _STREAMED:
            check_action(action)
        self.apply_checked(uri, action)

    def apply_checked(self, uri: str, action: StateAction, origin: Origin | None = None) -> None:
        """Apply an action that passed `check`."""
        if not self._in_step:
            self._begin_step()
        if (wake := self._hooks.wake.provided) is not None:
            wake(uri)
        kind = action["type"]
        for amend in self._hooks.amendments(kind):
            action = amend(uri, action)
        if kind in HINTED:
            action = _with_hints(action, self._store.session(uri))
        before, after, at = self._store.apply(uri, action, origin)
        self._call_listeners(Applied(uri, action, origin.client_id if origin else None, before, after, at))

    def before_storing(self, do: Callable[[], None]) -> None:
        """Call `do` at the end of this step. The actions that `do` applies are stored together with those of the
        step."""
        self._endings.append(do)
        if not self._in_step:
            self._begin_step()

    def may_wait(self) -> None:
        """Allow the log to store the actions of this step so far a moment later, in one commit with the actions that
        follow."""
        self._log.may_wait()

    def _begin_step(self) -> None:
        """Schedule the end of the step before the log gets its first action, so that it runs before the log stores."""
        self._in_step = True
        asyncio.get_running_loop().call_soon(self._end_step)

    def _end_step(self) -> None:
        try:
            while self._endings:
                self._endings.pop(0)()
        finally:
            self._in_step = False

    def close(self, reason: str) -> bool:
        """Refuse all actions of clients from now on; returns False if they were refused already."""
        is_open, self._closed = self._closed is None, self._closed or reason
        return is_open

    def dispatch(self, uri: str, action: StateAction, origin: Origin, *, sent: SentAction) -> str | None:
        """Apply a client's action, or return the reason why it is refused. `sent` is the action as the client wrote
        it."""
        try:
            reason = self.check(uri, action, origin.client_id)
            if reason is None and not self._waiting.keep(uri, action, origin, sent):
                self.apply_checked(uri, action, origin)
        except Exception:  # One action must not end the connection.
            _log.exception("a client's action could not be applied to %s", uri)
            return "the host failed to apply this action; its log has the details"
        return reason

    def check(self, uri: str, action: StateAction, client_id: str) -> str | None:
        """Why a client may not dispatch this action now; None: it may."""
        if (reason := self._closed or self._log.failing) is not None:
            return reason
        state = self._store.state(uri)
        if state is None:
            return f"there is no channel {uri}"
        session_uri = self._index.session_of(uri)
        reason = policy.check_action(
            client_id=client_id,
            channel=uri,
            kind=self._kinds.name_of(uri),
            action=action,
            state=state,
            state_of=self._store.state,
            session=None if session_uri is None else self._store.session(session_uri),
            turn_ids=self._turn_ids,
        )
        for refuse in self._hooks.refusals(action["type"]):
            reason = reason or refuse(client_id, uri, action, state)
        return reason

    def _call_listeners(self, applied: AnyApplied) -> None:
        if self._listening is not None:
            self._listening.append(applied)
            return
        self._listening = pending = [applied]
        try:
            for current in pending:  # Listeners may add to this list.
                for listener in self._hooks.listeners(current.action["type"]):
                    try:
                        listener(current)
                    except Exception:  # The action is applied, and the other listeners still have to be called.
                        _log.exception("a listener failed at %s of %s", current.action["type"], current.channel)
        finally:
            self._listening = None


def _with_hints(action: StateAction, session: SessionState | None) -> StateAction:
    hinted = with_hints(cast("JsonObject", action), cast("JsonObject | None", session), by=None)
    return cast("StateAction", hinted)


__all__ = ["Dispatcher"]
