"""Actions and commands of automations (`ahp-automations://`) and of their runs, and the reducers of both.

The registry says who may dispatch an action. Requests of clients change nothing: a scheduler acts on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NotRequired, TypedDict

from ahpkit.protocol.automation.state import (
    AutomationDefinition,
    AutomationDefinitionPatch,
    AutomationEntry,
    AutomationRunLifecycle,
    AutomationTriggerDefinition,
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
from ahpkit.protocol.common.state import URI, JsonObject, RootParams


class AutomationCreateRequestedAction(TypedDict):
    """A client wants an automation; the host answers with `automation/set`."""

    type: Literal["automation/createRequested"]
    resource: URI
    definition: AutomationDefinition


def automation_create_requested(*, resource: URI, definition: AutomationDefinition) -> AutomationCreateRequestedAction:
    """A client wants an automation; the host answers with `automation/set`."""
    return {"type": "automation/createRequested", "resource": resource, "definition": definition}


class AutomationUpdateRequestedAction(TypedDict):
    """A client wants an automation changed."""

    type: Literal["automation/updateRequested"]
    resource: URI
    changes: AutomationDefinitionPatch


def automation_update_requested(
    *, resource: URI, changes: AutomationDefinitionPatch
) -> AutomationUpdateRequestedAction:
    """A client wants an automation changed."""
    return {"type": "automation/updateRequested", "resource": resource, "changes": changes}


class AutomationSetAction(TypedDict):
    """An automation is new, or replaced as a whole."""

    type: Literal["automation/set"]
    automation: AutomationEntry


def automation_set(*, automation: AutomationEntry) -> AutomationSetAction:
    """An automation is new, or replaced as a whole."""
    return {"type": "automation/set", "automation": automation}


class AutomationRemovedAction(TypedDict):
    """An automation is gone."""

    type: Literal["automation/removed"]
    resource: URI


def automation_removed(*, resource: URI) -> AutomationRemovedAction:
    """An automation is gone."""
    return {"type": "automation/removed", "resource": resource}


class AutomationRunLifecycleChangedAction(TypedDict):
    """A run started or ended."""

    type: Literal["automationRun/lifecycleChanged"]
    lifecycle: AutomationRunLifecycle


def automation_run_lifecycle_changed(*, lifecycle: AutomationRunLifecycle) -> AutomationRunLifecycleChangedAction:
    """A run started or ended."""
    return {"type": "automationRun/lifecycleChanged", "lifecycle": lifecycle}


class AutomationRunSessionSetAction(TypedDict):
    """A session of a run is new, or replaced as a whole."""

    type: Literal["automationRun/sessionSet"]
    session: URI


def automation_run_session_set(*, session: URI) -> AutomationRunSessionSetAction:
    """A session of a run is new, or replaced as a whole."""
    return {"type": "automationRun/sessionSet", "session": session}


class AutomationRunSessionRemovedAction(TypedDict):
    """A session of a run is gone."""

    type: Literal["automationRun/sessionRemoved"]
    session: URI


def automation_run_session_removed(*, session: URI) -> AutomationRunSessionRemovedAction:
    """A session of a run is gone."""
    return {"type": "automationRun/sessionRemoved", "session": session}


class AutomationRunPrimarySessionChangedAction(TypedDict):
    """Another session is the run's main one; absent: none."""

    type: Literal["automationRun/primarySessionChanged"]
    primarySession: NotRequired[URI]


def automation_run_primary_session_changed(
    *, primary_session: URI | None = None
) -> AutomationRunPrimarySessionChangedAction:
    """Another session is the run's main one; absent: none."""
    action: AutomationRunPrimarySessionChangedAction = {"type": "automationRun/primarySessionChanged"}
    if primary_session is not None:
        action["primarySession"] = primary_session
    return action


class AutomationRunCancelRequestedAction(TypedDict):
    """A client wants a run cancelled."""

    type: Literal["automationRun/cancelRequested"]


def automation_run_cancel_requested() -> AutomationRunCancelRequestedAction:
    """A client wants a run cancelled."""
    return {"type": "automationRun/cancelRequested"}


AutomationAction = (
    AutomationCreateRequestedAction | AutomationUpdateRequestedAction | AutomationSetAction | AutomationRemovedAction
)


AutomationRunAction = (
    AutomationRunLifecycleChangedAction
    | AutomationRunSessionSetAction
    | AutomationRunSessionRemovedAction
    | AutomationRunPrimarySessionChangedAction
    | AutomationRunCancelRequestedAction
)


class ListAutomationTriggerDefinitionsParams(RootParams):
    """`listAutomationTriggerDefinitions`: which events can start an automation of such a session."""

    provider: NotRequired[str]
    workingDirectories: NotRequired[list[URI]]
    sessionConfig: NotRequired[JsonObject]


class ListAutomationTriggerDefinitionsResult(TypedDict):
    """The events by source."""

    items: list[AutomationTriggerDefinition]


class AutomationsParams(TypedDict):
    """Parameters of methods that are about automations."""

    channel: Literal["ahp-automations://"]
    _meta: NotRequired[JsonObject]


class RunAutomationParams(AutomationsParams):
    """`runAutomation`: start one now; a repeated `requestId` starts it once."""

    automation: URI
    requestId: str


class RunAutomationResult(TypedDict):
    """The run."""

    resource: URI


class FetchAutomationRunsParams(AutomationsParams):
    """`fetchAutomationRuns`: older runs of an automation."""

    automation: URI
    cursor: NotRequired[str]


class FetchAutomationRunsResult(TypedDict):
    """Empty: the runs are sent as an action."""


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
    sessions: list[str] = state["sessions"]
    gone = action["session"]
    if gone not in sessions:
        return state
    index = sessions.index(gone)
    after = {**state, "sessions": [*sessions[:index], *sessions[index + 1 :]]}
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


__all__ = [
    "HANDLERS",
    "RUN_HANDLERS",
    "AutomationAction",
    "AutomationCreateRequestedAction",
    "AutomationRemovedAction",
    "AutomationRunAction",
    "AutomationRunCancelRequestedAction",
    "AutomationRunLifecycleChangedAction",
    "AutomationRunPrimarySessionChangedAction",
    "AutomationRunSessionRemovedAction",
    "AutomationRunSessionSetAction",
    "AutomationSetAction",
    "AutomationUpdateRequestedAction",
    "AutomationsParams",
    "FetchAutomationRunsParams",
    "FetchAutomationRunsResult",
    "ListAutomationTriggerDefinitionsParams",
    "ListAutomationTriggerDefinitionsResult",
    "RunAutomationParams",
    "RunAutomationResult",
    "automation_create_requested",
    "automation_reducer",
    "automation_removed",
    "automation_run_cancel_requested",
    "automation_run_lifecycle_changed",
    "automation_run_primary_session_changed",
    "automation_run_reducer",
    "automation_run_session_removed",
    "automation_run_session_set",
    "automation_set",
    "automation_update_requested",
]
