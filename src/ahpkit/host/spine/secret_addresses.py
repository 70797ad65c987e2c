"""Removes the secret addresses of canvases from actions and states before they are stored. Pure.

An address contains a secret and is valid for one run of the host. Clients get it, but the log stores the actions and
states without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject

_PLACES: Final[Mapping[str, str]] = {
    "canvas/stateChanged": "canvas",
    "session/canvasInstanceOpened": "instance",
    "session/canvasInstanceUpdated": "changes",
    "session/canvasRequestCompleted": "result",
}
"""The member of an action that may have an address."""


def stored_action(action: StateAction) -> StateAction:
    """An action without its address; the same object if it has none."""
    place = _PLACES.get(action["type"])
    inner = None if place is None else action.get(place)
    if place is None or inner is None or inner.get("url") is None:
        return action
    return cast("StateAction", {**action, place: without(inner, "url")})


def stored_state(state: ChannelState) -> ChannelState:
    """A state without addresses: the state of a session with open canvases, or of a canvas."""
    if "openCanvases" not in state and "instanceId" not in state:
        return state
    whole = cast("JsonObject", state)
    if "openCanvases" not in whole:
        return cast("ChannelState", without(whole, "url"))
    return cast("ChannelState", {**whole, "openCanvases": [without(one, "url") for one in whole["openCanvases"]]})


__all__ = ["stored_action", "stored_state"]
