"""The root channel's reducer. The list of sessions is not part of this state: clients fetch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, apply, assign, merge_config
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "root_reducer"]

HANDLERS: Final[Mapping[str, Handler]] = {
    "root/agentsChanged": assign("agents"),
    "root/activeSessionsChanged": assign("activeSessions"),
    "root/terminalsChanged": assign("terminals"),
    "root/configChanged": merge_config,
}


def root_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The root state after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)
