"""The tables of the protocol: every wire type by its name in the specification, every action, command and notification.

A test compares these tables with the types: nothing may be missing or invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Literal

import ahpkit.protocol.annotations as annotations
from ahpkit.protocol import canvas, changeset, resource_watch, root, telemetry, terminal
from ahpkit.protocol.automation import actions as automation
from ahpkit.protocol.automation import state as automation_state
from ahpkit.protocol.chat import actions as chat
from ahpkit.protocol.chat import commands as chat_commands
from ahpkit.protocol.chat import state as chat_state
from ahpkit.protocol.common import actions as common_actions
from ahpkit.protocol.common import commands as common
from ahpkit.protocol.common import messages as common_messages
from ahpkit.protocol.common import state as common_state
from ahpkit.protocol.common.actions import ActionEnvelope
from ahpkit.protocol.common.commands import AuthRequiredParams
from ahpkit.protocol.session import actions as session
from ahpkit.protocol.session import commands as session_commands
from ahpkit.protocol.session import state as session_state

Shape = Any
"""A `TypedDict`, a union of them, or None where the wire says null."""

Direction = Literal["client-to-host", "host-to-client", "both"]


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action: its channel's name, the version that brought it, and whether clients may dispatch it."""

    type: str
    channel: str
    since: str
    client_dispatchable: bool
    shape: Shape


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A method that somebody calls. `channel` is the name of the channel it is about; None: any.

    `since` is the version that brought it; what 0.4.0 has says 0.4.0.
    """

    method: str
    direction: Direction
    kind: Literal["request", "notification"]
    params: Shape
    result: Shape
    channel: str | None
    since: str = "0.4.0"


@dataclass(frozen=True, slots=True)
class NotificationSpec:
    """A notification that a host sends to clients."""

    method: str
    since: str
    params: Shape
    channel: str | None


def _action(action_type: str, since: str, shape: Shape, *, by_client: bool = False) -> ActionSpec:
    return ActionSpec(action_type, action_type.partition("/")[0], since, by_client, shape)


def _request(
    method: str,
    channel: str | None,
    params: Shape,
    result: Shape = None,
    *,
    both: bool = False,
    since: str = "0.4.0",
) -> CommandSpec:
    return CommandSpec(method, "both" if both else "client-to-host", "request", params, result, channel, since)


def _notice(method: str, params: Shape) -> CommandSpec:
    return CommandSpec(method, "client-to-host", "notification", params, None, None)


_ACTIONS = (
    _action("root/agentsChanged", "0.1.0", root.RootAgentsChangedAction),
    _action("root/activeSessionsChanged", "0.1.0", root.RootActiveSessionsChangedAction),
    _action("root/terminalsChanged", "0.1.0", root.RootTerminalsChangedAction),
    _action("root/configChanged", "0.1.0", root.RootConfigChangedAction, by_client=True),
    _action("session/ready", "0.1.0", session.SessionReadyAction),
    _action("session/creationFailed", "0.1.0", session.SessionCreationFailedAction),
    _action("session/chatAdded", "0.4.0", session.SessionChatAddedAction),
    _action("session/chatRemoved", "0.4.0", session.SessionChatRemovedAction),
    _action("session/chatUpdated", "0.4.0", session.SessionChatUpdatedAction),
    _action("session/chatsReordered", "1.0.0", session.SessionChatsReorderedAction),
    _action("session/defaultChatChanged", "0.4.0", session.SessionDefaultChatChangedAction),
    _action("session/titleChanged", "0.1.0", session.SessionTitleChangedAction, by_client=True),
    _action("session/isReadChanged", "0.1.0", session.SessionIsReadChangedAction, by_client=True),
    _action("session/isArchivedChanged", "0.1.0", session.SessionIsArchivedChangedAction, by_client=True),
    _action("session/activityChanged", "0.1.0", session.SessionActivityChangedAction),
    _action("session/changesetsChanged", "0.2.0", session.SessionChangesetsChangedAction),
    _action("session/serverToolsChanged", "0.1.0", session.SessionServerToolsChangedAction),
    _action("session/activeClientSet", "0.5.0", session.SessionActiveClientSetAction, by_client=True),
    _action("session/activeClientRemoved", "0.5.0", session.SessionActiveClientRemovedAction, by_client=True),
    _action("session/workingDirectorySet", "0.7.0", session.SessionWorkingDirectorySetAction, by_client=True),
    _action("session/workingDirectoryRemoved", "0.7.0", session.SessionWorkingDirectoryRemovedAction, by_client=True),
    _action("session/workingDirectoryReplaced", "0.8.0", session.SessionWorkingDirectoryReplacedAction, by_client=True),
    _action("session/inputNeededSet", "0.5.1", session.SessionInputNeededSetAction),
    _action("session/inputNeededRemoved", "0.5.1", session.SessionInputNeededRemovedAction),
    _action("session/customizationsChanged", "0.1.0", session.SessionCustomizationsChangedAction),
    _action("session/customizationToggled", "0.1.0", session.SessionCustomizationToggledAction, by_client=True),
    _action("session/customizationUpdated", "0.1.0", session.SessionCustomizationUpdatedAction),
    _action("session/customizationRemoved", "0.2.0", session.SessionCustomizationRemovedAction),
    _action("session/mcpServerStateChanged", "0.3.0", session.SessionMcpServerStateChangedAction),
    _action("session/mcpServerStartRequested", "0.5.2", session.SessionMcpServerStartRequestedAction, by_client=True),
    _action("session/mcpServerStopRequested", "0.5.2", session.SessionMcpServerStopRequestedAction, by_client=True),
    _action(
        "session/mcpServerBackgroundRequested",
        "1.0.0",
        session.SessionMcpServerBackgroundRequestedAction,
        by_client=True,
    ),
    _action("session/configChanged", "0.1.0", session.SessionConfigChangedAction, by_client=True),
    _action("session/metaChanged", "0.1.0", session.SessionMetaChangedAction),
    _action("session/canvasRegistryChanged", "0.3.0", session.SessionCanvasRegistryChangedAction),
    _action("session/canvasInstanceOpened", "0.3.0", session.SessionCanvasInstanceOpenedAction),
    _action("session/canvasInstanceUpdated", "0.3.0", session.SessionCanvasInstanceUpdatedAction),
    _action("session/canvasInstanceClosed", "0.3.0", session.SessionCanvasInstanceClosedAction),
    _action(
        "session/canvasInstanceCloseRequested",
        "0.3.0",
        session.SessionCanvasInstanceCloseRequestedAction,
        by_client=True,
    ),
    _action("session/canvasRequestCreated", "0.3.0", session.SessionCanvasRequestCreatedAction),
    _action("session/canvasRequestCompleted", "0.3.0", session.SessionCanvasRequestCompletedAction, by_client=True),
    _action("session/canvasRequestCancelled", "0.3.0", session.SessionCanvasRequestCancelledAction),
    _action("chat/turnStarted", "0.4.0", chat.ChatTurnStartedAction, by_client=True),
    _action("chat/delta", "0.4.0", chat.ChatDeltaAction),
    _action("chat/responsePart", "0.4.0", chat.ChatResponsePartAction),
    _action("chat/toolCallStart", "0.4.0", chat.ChatToolCallStartAction),
    _action("chat/toolCallDelta", "0.4.0", chat.ChatToolCallDeltaAction),
    _action("chat/toolCallReady", "0.4.0", chat.ChatToolCallReadyAction),
    _action("chat/toolCallConfirmed", "0.4.0", chat.ChatToolCallConfirmedAction, by_client=True),
    _action("chat/toolCallComplete", "0.4.0", chat.ChatToolCallCompleteAction, by_client=True),
    _action("chat/toolCallResultConfirmed", "0.4.0", chat.ChatToolCallResultConfirmedAction, by_client=True),
    _action("chat/toolCallContentChanged", "0.4.0", chat.ChatToolCallContentChangedAction, by_client=True),
    _action("chat/toolCallAuthRequired", "0.6.0", chat.ChatToolCallAuthRequiredAction),
    _action("chat/toolCallAuthResolved", "0.6.0", chat.ChatToolCallAuthResolvedAction),
    _action("chat/turnComplete", "0.4.0", chat.ChatTurnCompleteAction),
    _action("chat/turnCancelled", "0.4.0", chat.ChatTurnCancelledAction, by_client=True),
    _action("chat/error", "0.4.0", chat.ChatErrorAction),
    _action("chat/turnResume", "0.9.0", chat.ChatTurnResumeAction, by_client=True),
    _action("chat/turnsLoaded", "0.5.1", chat.ChatTurnsLoadedAction),
    _action("chat/activityChanged", "0.5.0", chat.ChatActivityChangedAction),
    _action("chat/draftChanged", "0.5.0", chat.ChatDraftChangedAction, by_client=True),
    _action("chat/workingDirectorySet", "0.7.0", chat.ChatWorkingDirectorySetAction, by_client=True),
    _action("chat/workingDirectoryRemoved", "0.7.0", chat.ChatWorkingDirectoryRemovedAction, by_client=True),
    _action("chat/isReadChanged", "1.0.0", chat.ChatIsReadChangedAction, by_client=True),
    _action("chat/isArchivedChanged", "1.0.0", chat.ChatIsArchivedChangedAction, by_client=True),
    _action("chat/movableChanged", "1.0.0", chat.ChatMovableChangedAction),
    _action("chat/changesetsChanged", "1.0.0", chat.ChatChangesetsChangedAction),
    _action("chat/canvasesChanged", "1.0.0", chat.ChatCanvasesChangedAction),
    _action("chat/backgroundWorkSet", "1.0.0", chat.ChatBackgroundWorkSetAction),
    _action("chat/backgroundWorkRemoved", "1.0.0", chat.ChatBackgroundWorkRemovedAction),
    _action("chat/usage", "0.4.0", chat.ChatUsageAction),
    _action("chat/reasoning", "0.4.0", chat.ChatReasoningAction),
    _action("chat/truncated", "0.4.0", chat.ChatTruncatedAction, by_client=True),
    _action("chat/pendingMessageSet", "0.4.0", chat.ChatPendingMessageSetAction, by_client=True),
    _action("chat/pendingMessageRemoved", "0.4.0", chat.ChatPendingMessageRemovedAction, by_client=True),
    _action("chat/queuedMessagesReordered", "0.4.0", chat.ChatQueuedMessagesReorderedAction, by_client=True),
    _action("chat/inputRequested", "0.4.0", chat.ChatInputRequestedAction),
    _action("chat/inputAnswerChanged", "0.4.0", chat.ChatInputAnswerChangedAction, by_client=True),
    _action("chat/inputCompleted", "0.4.0", chat.ChatInputCompletedAction, by_client=True),
    _action("terminal/data", "0.1.0", terminal.TerminalDataAction),
    _action("terminal/input", "0.1.0", terminal.TerminalInputAction, by_client=True),
    _action("terminal/resized", "0.1.0", terminal.TerminalResizedAction, by_client=True),
    _action("terminal/claimed", "0.1.0", terminal.TerminalClaimedAction, by_client=True),
    _action("terminal/titleChanged", "0.1.0", terminal.TerminalTitleChangedAction, by_client=True),
    _action("terminal/cwdChanged", "0.1.0", terminal.TerminalCwdChangedAction),
    _action("terminal/exited", "0.1.0", terminal.TerminalExitedAction),
    _action("terminal/cleared", "0.1.0", terminal.TerminalClearedAction, by_client=True),
    _action("terminal/commandDetectionAvailable", "0.1.0", terminal.TerminalCommandDetectionAvailableAction),
    _action("terminal/commandExecuted", "0.1.0", terminal.TerminalCommandExecutedAction),
    _action("terminal/commandFinished", "0.1.0", terminal.TerminalCommandFinishedAction),
    _action("changeset/statusChanged", "0.2.0", changeset.ChangesetStatusChangedAction),
    _action("changeset/fileSet", "0.2.0", changeset.ChangesetFileSetAction),
    _action("changeset/fileRemoved", "0.2.0", changeset.ChangesetFileRemovedAction),
    _action("changeset/filesReviewChanged", "0.6.0", changeset.ChangesetFilesReviewChangedAction, by_client=True),
    _action("changeset/contentChanged", "0.4.0", changeset.ChangesetContentChangedAction),
    _action("changeset/operationsChanged", "0.2.0", changeset.ChangesetOperationsChangedAction),
    _action("changeset/operationStatusChanged", "0.3.0", changeset.ChangesetOperationStatusChangedAction),
    _action("changeset/cleared", "0.2.0", changeset.ChangesetClearedAction),
    _action("annotations/set", "0.4.0", annotations.AnnotationsSetAction, by_client=True),
    _action("annotations/updated", "0.4.0", annotations.AnnotationsUpdatedAction, by_client=True),
    _action("annotations/removed", "0.4.0", annotations.AnnotationsRemovedAction, by_client=True),
    _action("annotations/entrySet", "0.4.0", annotations.AnnotationsEntrySetAction, by_client=True),
    _action("annotations/entryRemoved", "0.4.0", annotations.AnnotationsEntryRemovedAction, by_client=True),
    _action("resourceWatch/changed", "0.2.0", resource_watch.ResourceWatchChangedAction),
    _action("canvas/stateChanged", "1.0.0", canvas.CanvasStateChangedAction),
    _action("automation/createRequested", "0.9.0", automation.AutomationCreateRequestedAction, by_client=True),
    _action("automation/updateRequested", "0.9.0", automation.AutomationUpdateRequestedAction, by_client=True),
    _action("automation/set", "0.9.0", automation.AutomationSetAction),
    _action("automation/removed", "0.9.0", automation.AutomationRemovedAction, by_client=True),
    _action("automationRun/lifecycleChanged", "0.9.0", automation.AutomationRunLifecycleChangedAction),
    _action("automationRun/sessionSet", "0.9.0", automation.AutomationRunSessionSetAction),
    _action("automationRun/sessionRemoved", "0.9.0", automation.AutomationRunSessionRemovedAction),
    _action("automationRun/primarySessionChanged", "0.9.0", automation.AutomationRunPrimarySessionChangedAction),
    _action("automationRun/cancelRequested", "0.9.0", automation.AutomationRunCancelRequestedAction, by_client=True),
)

_COMMANDS = (
    _request("initialize", "root", common.InitializeParams, common.InitializeResult),
    _request("ping", "root", common.PingParams),
    _request("reconnect", "root", common.ReconnectParams, common.ReconnectResult),
    _request("subscribe", None, common.SubscribeParams, common.SubscribeResult),
    _notice("unsubscribe", common.UnsubscribeParams),
    _notice("dispatchAction", common.DispatchActionParams),
    _request("authenticate", "root", common.AuthenticateParams, common.AuthenticateResult),
    _request("resourceRead", "root", common.ResourceReadParams, common.ResourceReadResult, both=True),
    _request("resourceWrite", "root", common.ResourceWriteParams, common.ResourceWriteResult, both=True),
    _request("resourceList", "root", common.ResourceListParams, common.ResourceListResult, both=True),
    _request("resourceCopy", "root", common.ResourceCopyParams, common.ResourceCopyResult, both=True),
    _request("resourceDelete", "root", common.ResourceDeleteParams, common.ResourceDeleteResult, both=True),
    _request("resourceMove", "root", common.ResourceMoveParams, common.ResourceMoveResult, both=True),
    _request("resourceResolve", "root", common.ResourceResolveParams, common.ResourceResolveResult, both=True),
    _request("resourceMkdir", "root", common.ResourceMkdirParams, common.ResourceMkdirResult, both=True),
    _request("resourceRequest", "root", common.ResourceRequestParams, common.ResourceRequestResult, both=True),
    _request(
        "createResourceWatch",
        "root",
        resource_watch.CreateResourceWatchParams,
        resource_watch.CreateResourceWatchResult,
        both=True,
    ),
    _request("listSessions", "root", root.ListSessionsParams, root.ListSessionsResult),
    _request(
        "resolveSessionConfig",
        "root",
        root.ResolveSessionConfigParams,
        root.ResolveSessionConfigResult,
    ),
    _request(
        "sessionConfigCompletions",
        "root",
        root.SessionConfigCompletionsParams,
        root.SessionConfigCompletionsResult,
    ),
    _request("createSession", "session", session_commands.CreateSessionParams),
    _request("disposeSession", "session", session_commands.DisposeSessionParams),
    _request("createChat", "session", chat_commands.CreateChatParams),
    _request("disposeChat", "chat", chat_commands.DisposeChatParams),
    _request("fetchTurns", "chat", chat_commands.FetchTurnsParams, chat_commands.FetchTurnsResult),
    _request("moveChat", "chat", chat_commands.MoveChatParams, chat_commands.MoveChatResult, since="1.0.0"),
    _request("completions", "chat", chat_commands.CompletionsParams, chat_commands.CompletionsResult),
    _request("createTerminal", "terminal", terminal.CreateTerminalParams),
    _request("disposeTerminal", "terminal", terminal.DisposeTerminalParams),
    _request(
        "invokeChangesetOperation",
        "changeset",
        changeset.InvokeChangesetOperationParams,
        changeset.InvokeChangesetOperationResult,
    ),
    _request(
        "listAutomationTriggerDefinitions",
        "root",
        automation.ListAutomationTriggerDefinitionsParams,
        automation.ListAutomationTriggerDefinitionsResult,
        since="0.9.0",
    ),
    _request(
        "runAutomation", "automation", automation.RunAutomationParams, automation.RunAutomationResult, since="0.9.0"
    ),
    _request(
        "fetchAutomationRuns",
        "automation",
        automation.FetchAutomationRunsParams,
        automation.FetchAutomationRunsResult,
        since="0.9.0",
    ),
)

_NOTIFICATIONS = (
    NotificationSpec("action", "0.1.0", ActionEnvelope, None),
    NotificationSpec("root/sessionAdded", "0.1.0", root.SessionAddedParams, "root"),
    NotificationSpec("root/sessionRemoved", "0.1.0", root.SessionRemovedParams, "root"),
    NotificationSpec("root/sessionSummaryChanged", "0.1.0", root.SessionSummaryChangedParams, "root"),
    NotificationSpec("root/progress", "0.5.0", root.ProgressParams, "root"),
    NotificationSpec("auth/required", "0.1.0", AuthRequiredParams, None),
    NotificationSpec("otlp/exportLogs", "0.2.0", telemetry.OtlpExportLogsParams, "telemetry"),
    NotificationSpec("otlp/exportTraces", "0.2.0", telemetry.OtlpExportTracesParams, "telemetry"),
    NotificationSpec("otlp/exportMetrics", "0.2.0", telemetry.OtlpExportMetricsParams, "telemetry"),
)

ACTIONS: Mapping[str, ActionSpec] = MappingProxyType({spec.type: spec for spec in _ACTIONS})
"""Action type → what it is."""

COMMANDS: Mapping[str, CommandSpec] = MappingProxyType({spec.method: spec for spec in _COMMANDS})
"""Method → what it is, for requests and for the notifications that clients send."""

NOTIFICATIONS: Mapping[str, NotificationSpec] = MappingProxyType({spec.method: spec for spec in _NOTIFICATIONS})
"""Method → what it is, for the notifications that hosts send."""


_MODULES = (
    common_state,
    common_actions,
    common,
    common_messages,
    root,
    session_state,
    session,
    session_commands,
    chat_state,
    chat,
    chat_commands,
    terminal,
    changeset,
    annotations,
    resource_watch,
    canvas,
    automation_state,
    automation,
    telemetry,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The types that a module exports; not its constants, constructors and reducers."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # States and messages contain the number, which may have unknown bits.
        elif not isinstance(value, (str, FunctionType, Mapping)):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


__all__ = [
    "ACTIONS",
    "COMMANDS",
    "NOTIFICATIONS",
    "TYPES",
    "ActionSpec",
    "CommandSpec",
    "Direction",
    "NotificationSpec",
    "Shape",
]
