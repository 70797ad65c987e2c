"""Actions on `ahp-automations://` and on runs, each with its constructor. The registry says who may dispatch them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.automation.state import (
    AutomationDefinition,
    AutomationDefinitionPatch,
    AutomationEntry,
    AutomationRunLifecycle,
)
from ahpkit.protocol.common.state import URI


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
    """A run has another session."""

    type: Literal["automationRun/sessionSet"]
    session: URI


def automation_run_session_set(*, session: URI) -> AutomationRunSessionSetAction:
    """A run has another session."""
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


__all__ = [
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
    "automation_create_requested",
    "automation_removed",
    "automation_run_cancel_requested",
    "automation_run_lifecycle_changed",
    "automation_run_primary_session_changed",
    "automation_run_session_removed",
    "automation_run_session_set",
    "automation_set",
    "automation_update_requested",
]
