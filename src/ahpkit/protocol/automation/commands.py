"""Commands on automations."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.automation.state import AutomationTriggerDefinition
from ahpkit.protocol.common.state import URI, JsonObject, RootParams


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
    """The runs come as an action."""


__all__ = [
    "AutomationsParams",
    "FetchAutomationRunsParams",
    "FetchAutomationRunsResult",
    "ListAutomationTriggerDefinitionsParams",
    "ListAutomationTriggerDefinitionsResult",
    "RunAutomationParams",
    "RunAutomationResult",
]
