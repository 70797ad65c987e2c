"""State of automations and of their runs.

Our host runs no automations yet. The types are here so that messages of other peers about them are kept unchanged.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from ahpkit.protocol.chat.messages import Message
from ahpkit.protocol.common.state import (
    URI,
    AgentSelection,
    ConfigSchema,
    ErrorInfo,
    JsonObject,
    ModelSelection,
    UsageInfo,
)
from ahpkit.protocol.session.customizations import ClientPluginCustomization, PluginCustomization
from ahpkit.protocol.type_schemas import CLOSED

AUTOMATIONS_URI = "ahp-automations://"
"""The channel of all automations."""

AutomationTriggerKind = Literal["schedule", "event"]

AutomationRunStatus = Literal["pending", "running", "completed", "failed", "cancelled"]

AutomationRunOriginKind = Literal["manual", "trigger"]

AutomationMisfirePolicy = Literal["skip", "runOnce"] | str

AutomationOperation = Literal["update", "remove", "run"] | str


class AutomationCreateCapability(TypedDict):
    """Clients may create automations."""


class AutomationScheduleCapabilities(TypedDict):
    """Automations may have schedules, and how often they may run."""

    minIntervalMinutes: NotRequired[int | float]


class AutomationRunCancellationCapability(TypedDict):
    """Runs can be cancelled."""


class AutomationCapabilities(TypedDict):
    """What a host can do with automations; absent: it has none."""

    create: NotRequired[AutomationCreateCapability]
    schedules: NotRequired[AutomationScheduleCapabilities]
    runCancellation: NotRequired[AutomationRunCancellationCapability]
    runHistoryLimit: NotRequired[int]
    customizations: NotRequired[JsonObject]


class AutomationTriggerEventDefinition(TypedDict):
    """An event that can start an automation."""

    id: str
    title: str
    description: NotRequired[str]


class AutomationTriggerDefinition(TypedDict):
    """A source of events, and its settings."""

    type: str
    title: str
    description: NotRequired[str]
    events: list[AutomationTriggerEventDefinition]
    configSchema: NotRequired[ConfigSchema]


class AutomationSchedule(TypedDict):
    """A cron expression in a time zone."""

    expression: str
    timeZone: str


class AutomationScheduleTrigger(TypedDict):
    """Starts at certain times."""

    id: str
    kind: Literal["schedule"]
    schedule: AutomationSchedule
    misfirePolicy: NotRequired[AutomationMisfirePolicy]


class AutomationEventTrigger(TypedDict):
    """Starts when something happens."""

    id: str
    kind: Literal["event"]
    type: str
    title: str
    description: NotRequired[str]
    events: list[AutomationTriggerEventDefinition]
    config: NotRequired[JsonObject]


AutomationTrigger = Annotated[AutomationScheduleTrigger | AutomationEventTrigger, CLOSED]


class AutomationSessionTemplate(TypedDict):
    """The properties of the session that a run creates."""

    provider: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectories: NotRequired[list[URI]]
    config: NotRequired[JsonObject]
    customizations: NotRequired[list[ClientPluginCustomization]]


class AutomationAfterRunsCondition(TypedDict):
    """The automation ends after this many runs."""

    kind: Literal["afterRuns"]
    max: int


class AutomationAfterDateCondition(TypedDict):
    """The automation ends at this time."""

    kind: Literal["afterDate"]
    date: str


AutomationDisableCondition = AutomationAfterRunsCondition | AutomationAfterDateCondition


class AutomationDefinition(TypedDict):
    """What an automation does, and when."""

    title: str
    message: Message
    session: AutomationSessionTemplate
    enabled: bool
    triggers: list[AutomationTrigger]
    disableConditions: NotRequired[list[AutomationDisableCondition]]
    _meta: NotRequired[JsonObject]


class AutomationDefinitionPatch(TypedDict):
    """Parts of a definition that change."""

    title: NotRequired[str]
    message: NotRequired[Message]
    session: NotRequired[AutomationSessionTemplate]
    enabled: NotRequired[bool]
    triggers: NotRequired[list[AutomationTrigger]]
    _meta: NotRequired[JsonObject]


class AutomationPendingRunLifecycle(TypedDict):
    """The run waits."""

    status: Literal["pending"]
    createdAt: str


class AutomationRunningRunLifecycle(TypedDict):
    """The run goes on."""

    status: Literal["running"]
    createdAt: str
    startedAt: str


class AutomationCompletedRunLifecycle(TypedDict):
    """The run ended well."""

    status: Literal["completed"]
    createdAt: str
    startedAt: str
    completedAt: str
    usage: NotRequired[UsageInfo]


class AutomationFailedRunLifecycle(TypedDict):
    """The run failed."""

    status: Literal["failed"]
    createdAt: str
    startedAt: NotRequired[str]
    completedAt: str
    error: ErrorInfo


class AutomationCancelledRunLifecycle(TypedDict):
    """The run was cancelled."""

    status: Literal["cancelled"]
    createdAt: str
    startedAt: NotRequired[str]
    completedAt: str


AutomationRunLifecycle = Annotated[
    AutomationPendingRunLifecycle
    | AutomationRunningRunLifecycle
    | AutomationCompletedRunLifecycle
    | AutomationFailedRunLifecycle
    | AutomationCancelledRunLifecycle,
    CLOSED,
]


class AutomationManualRunOrigin(TypedDict):
    """A person started the run."""

    kind: Literal["manual"]


class AutomationTriggeredRunOrigin(TypedDict):
    """A trigger started the run."""

    kind: Literal["trigger"]
    triggerId: str
    scheduledFor: NotRequired[str]
    catchUp: NotRequired[bool]
    event: NotRequired[JsonObject]


AutomationRunOrigin = Annotated[AutomationManualRunOrigin | AutomationTriggeredRunOrigin, CLOSED]


class AutomationRunSummary(TypedDict):
    """A run in an automation's list."""

    resource: URI
    automation: URI
    origin: AutomationRunOrigin
    lifecycle: AutomationRunLifecycle
    primarySession: NotRequired[URI]
    sessionCount: int
    _meta: NotRequired[JsonObject]


class AutomationEntry(TypedDict):
    """An automation and its newest runs."""

    resource: URI
    definition: AutomationDefinition
    nextRunAt: NotRequired[str]
    runs: list[AutomationRunSummary]
    runsNextCursor: NotRequired[str]
    runCount: NotRequired[int]
    operations: list[AutomationOperation]
    customizations: NotRequired[list[PluginCustomization]]
    createdAt: str
    modifiedAt: str
    _meta: NotRequired[JsonObject]


class AutomationState(TypedDict):
    """State of `ahp-automations://`."""

    entries: list[AutomationEntry]
    _meta: NotRequired[JsonObject]


class AutomationRunState(TypedDict):
    """State of one run."""

    resource: URI
    automation: URI
    origin: AutomationRunOrigin
    lifecycle: AutomationRunLifecycle
    sessions: list[URI]
    primarySession: NotRequired[URI]
    _meta: NotRequired[JsonObject]


__all__ = [
    "AUTOMATIONS_URI",
    "AutomationAfterDateCondition",
    "AutomationAfterRunsCondition",
    "AutomationCancelledRunLifecycle",
    "AutomationCapabilities",
    "AutomationCompletedRunLifecycle",
    "AutomationCreateCapability",
    "AutomationDefinition",
    "AutomationDefinitionPatch",
    "AutomationDisableCondition",
    "AutomationEntry",
    "AutomationEventTrigger",
    "AutomationFailedRunLifecycle",
    "AutomationManualRunOrigin",
    "AutomationMisfirePolicy",
    "AutomationOperation",
    "AutomationPendingRunLifecycle",
    "AutomationRunCancellationCapability",
    "AutomationRunLifecycle",
    "AutomationRunOrigin",
    "AutomationRunOriginKind",
    "AutomationRunState",
    "AutomationRunStatus",
    "AutomationRunSummary",
    "AutomationRunningRunLifecycle",
    "AutomationSchedule",
    "AutomationScheduleCapabilities",
    "AutomationScheduleTrigger",
    "AutomationSessionTemplate",
    "AutomationState",
    "AutomationTrigger",
    "AutomationTriggerDefinition",
    "AutomationTriggerEventDefinition",
    "AutomationTriggerKind",
    "AutomationTriggeredRunOrigin",
]
