"""Makes actions on automations and their runs, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.automation.actions import (
    AutomationCreateRequestedAction,
    AutomationRemovedAction,
    AutomationRunCancelRequestedAction,
    AutomationRunLifecycleChangedAction,
    AutomationRunPrimarySessionChangedAction,
    AutomationRunSessionRemovedAction,
    AutomationRunSessionSetAction,
    AutomationSetAction,
    AutomationUpdateRequestedAction,
)
from ahpkit.protocol.automation.state import (
    AutomationDefinition,
    AutomationDefinitionPatch,
    AutomationEntry,
    AutomationRunLifecycle,
)
from ahpkit.protocol.common.state import URI

__all__ = [
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


def automation_create_requested(*, resource: URI, definition: AutomationDefinition) -> AutomationCreateRequestedAction:
    """A client wants an automation; the host answers with `automation/set`."""
    return {"type": "automation/createRequested", "resource": resource, "definition": definition}


def automation_update_requested(
    *, resource: URI, changes: AutomationDefinitionPatch
) -> AutomationUpdateRequestedAction:
    """A client wants an automation changed."""
    return {"type": "automation/updateRequested", "resource": resource, "changes": changes}


def automation_set(*, automation: AutomationEntry) -> AutomationSetAction:
    """An automation is new, or replaced as a whole."""
    return {"type": "automation/set", "automation": automation}


def automation_removed(*, resource: URI) -> AutomationRemovedAction:
    """An automation is gone."""
    return {"type": "automation/removed", "resource": resource}


def automation_run_lifecycle_changed(*, lifecycle: AutomationRunLifecycle) -> AutomationRunLifecycleChangedAction:
    """A run started or ended."""
    return {"type": "automationRun/lifecycleChanged", "lifecycle": lifecycle}


def automation_run_session_set(*, session: URI) -> AutomationRunSessionSetAction:
    """A run has another session."""
    return {"type": "automationRun/sessionSet", "session": session}


def automation_run_session_removed(*, session: URI) -> AutomationRunSessionRemovedAction:
    """A session of a run is gone."""
    return {"type": "automationRun/sessionRemoved", "session": session}


def automation_run_primary_session_changed(
    *, primary_session: URI | None = None
) -> AutomationRunPrimarySessionChangedAction:
    """Another session is the run's main one; absent: none."""
    action: AutomationRunPrimarySessionChangedAction = {"type": "automationRun/primarySessionChanged"}
    if primary_session is not None:
        action["primarySession"] = primary_session
    return action


def automation_run_cancel_requested() -> AutomationRunCancelRequestedAction:
    """A client wants a run cancelled."""
    return {"type": "automationRun/cancelRequested"}
