"""The reducers of automations and of their runs. Requests of clients change nothing: a scheduler acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.automation.actions import (
    AutomationRemovedAction,
    AutomationRunSessionRemovedAction,
    AutomationRunSessionSetAction,
    AutomationSetAction,
)
from ahpkit.protocol.common.reducing import (
    Handler,
    apply,
    assign,
    assign_optional,
    removed,
    unchanged,
    upserted,
    without,
)
from ahpkit.protocol.common.state import JsonObject

__all__ = ["HANDLERS", "RUN_HANDLERS", "automation_reducer", "automation_run_reducer"]


def automation_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The automations after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def automation_run_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The run after `action`; the same object when it does not apply."""
    return apply(RUN_HANDLERS, state, action)


def _set(state: JsonObject, action: AutomationSetAction) -> JsonObject:
    return {**state, "entries": upserted(state["entries"], dict(action["automation"]), key="resource")}


def _removed(state: JsonObject, action: AutomationRemovedAction) -> JsonObject:
    kept = removed(state["entries"], "resource", action["resource"])
    return state if kept is state["entries"] else {**state, "entries": kept}


def _session_set(state: JsonObject, action: AutomationRunSessionSetAction) -> JsonObject:
    sessions: list[str] = state["sessions"]
    return state if action["session"] in sessions else {**state, "sessions": [*sessions, action["session"]]}


def _session_removed(state: JsonObject, action: AutomationRunSessionRemovedAction) -> JsonObject:
    """When the run's main session is removed, the run has no main session."""
    gone = action["session"]
    if gone not in state["sessions"]:
        return state
    after = {**state, "sessions": [session for session in state["sessions"] if session != gone]}
    return without(after, "primarySession") if after.get("primarySession") == gone else after


HANDLERS: Final[Mapping[str, Handler]] = {
    "automation/createRequested": unchanged,
    "automation/updateRequested": unchanged,
    "automation/set": _set,
    "automation/removed": _removed,
}

RUN_HANDLERS: Final[Mapping[str, Handler]] = {
    "automationRun/lifecycleChanged": assign("lifecycle"),
    "automationRun/sessionSet": _session_set,
    "automationRun/sessionRemoved": _session_removed,
    "automationRun/primarySessionChanged": assign_optional("primarySession"),
    "automationRun/cancelRequested": unchanged,
}
