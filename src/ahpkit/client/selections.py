"""Remembers the model and agent that this client uses in a session. Messages carry them; 0.4 hosts store them."""

from __future__ import annotations

from typing import Any

from ahpkit.client.channels import Channels
from ahpkit.client.dispatch import Accepted, Dispatch
from ahpkit.dialects.generations import CHANGED, SELECTION, Generation, selection_of
from ahpkit.protocol.common.state import JsonObject


class Selections:
    """What this client chose, by session."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._chosen: dict[str, JsonObject] = {}

    def of(self, session: str) -> JsonObject:
        """Model and agent in a session: this client's choice, else what the host keeps for everybody."""
        kept = selection_of(self._channels.optimistic(session))
        chosen = {**kept, **self._chosen.get(session, {})}
        return {key: value for key, value in chosen.items() if key != CHANGED and value is not None}

    def begin(self, session: str, selection: JsonObject) -> None:
        """A session is created with a choice."""
        if selection:
            self._chosen[session] = selection

    def choose(self, session: str, key: str, value: Any | None) -> Dispatch:
        """Use another model or agent from now on; None: none in particular.

        A 0.4 host is told, and tells everybody. Others learn it with the next message.
        """
        if self._channels.dialect.generation == Generation.V0_4:
            self._chosen.get(session, {}).pop(key, None)
            return self._channels.dispatch(session, self._meta_changed(session, key, value))
        self._chosen[session] = {**self._chosen.get(session, {}), key: value}
        dispatch = Dispatch(session, self._meta_changed(session, key, value), 0)
        dispatch.settle(Accepted(0))
        return dispatch

    def _meta_changed(self, session: str, key: str, value: Any | None) -> JsonObject:
        state = self._channels.optimistic(session) or {}
        kept = {name: one for name, one in selection_of(state).items() if name != key}
        selection: JsonObject = {**kept, CHANGED: key} if value is None else {**kept, key: value, CHANGED: key}
        meta: JsonObject = state.get("_meta") or {}
        return {"type": "session/metaChanged", "_meta": {**meta, SELECTION: selection}}


__all__ = ["Selections"]
