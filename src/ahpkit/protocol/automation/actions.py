"""Actions on `ahp-automations://` and on runs. `ahpkit.protocol.registry` says which of them a client may dispatch."""

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


class AutomationUpdateRequestedAction(TypedDict):
    """A client wants an automation changed."""

    type: Literal["automation/updateRequested"]
    resource: URI
    changes: AutomationDefinitionPatch


class AutomationSetAction(TypedDict):
    """An automation is new, or replaced as a whole."""

    type: Literal["automation/set"]
    automation: AutomationEntry


class AutomationRemovedAction(TypedDict):
    """An automation is gone."""

    type: Literal["automation/removed"]
    resource: URI


class AutomationRunLifecycleChangedAction(TypedDict):
    """A run started or ended."""

    type: Literal["automationRun/lifecycleChanged"]
    lifecycle: AutomationRunLifecycle


class AutomationRunSessionSetAction(TypedDict):
    """A run has another session."""

    type: Literal["automationRun/sessionSet"]
    session: URI


class AutomationRunSessionRemovedAction(TypedDict):
    """A session of a run is gone."""

    type: Literal["automationRun/sessionRemoved"]
    session: URI


class AutomationRunPrimarySessionChangedAction(TypedDict):
    """Another session is the run's main one; absent: none."""

    type: Literal["automationRun/primarySessionChanged"]
    primarySession: NotRequired[URI]


class AutomationRunCancelRequestedAction(TypedDict):
    """A client wants a run cancelled."""

    type: Literal["automationRun/cancelRequested"]


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
]
