"""The tables of 0.4.0: every wire type by its name in the specification, every action, command and notification.

A test compares these tables with the types: nothing may be missing or invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from ahpkit.dialects.v0_4 import annotations, changeset, common, messages, resource_watch, root, terminal
from ahpkit.dialects.v0_4.chat import actions as chat
from ahpkit.dialects.v0_4.chat import actions as chat_actions
from ahpkit.dialects.v0_4.chat import state as chat_state
from ahpkit.dialects.v0_4.messages import ActionEnvelope, AuthRequiredParams
from ahpkit.dialects.v0_4.session import actions as session
from ahpkit.dialects.v0_4.session import actions as session_actions
from ahpkit.dialects.v0_4.session import state as session_state
from ahpkit.protocol.common import messages as common_messages
from ahpkit.protocol.registry import ActionSpec, CommandSpec, NotificationSpec, Shape

_MODULES = (
    common,
    messages,
    common_messages,
    root,
    session_state,
    session_actions,
    chat_state,
    chat_actions,
    terminal,
    changeset,
    annotations,
    resource_watch,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The types that a module exports; not its constants and reducers."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # states and messages hold the number, with unknown bits
        elif not isinstance(value, (str, FunctionType, Mapping)):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


def _action(action_type: str, since: str, shape: Shape, *, by_client: bool = False) -> ActionSpec:
    return ActionSpec(action_type, action_type.partition("/")[0], since, by_client, shape)


def _request(
    method: str, channel: str | None, params: Shape, result: Shape = None, *, both: bool = False
) -> CommandSpec:
    return CommandSpec(method, "both" if both else "client-to-host", "request", params, result, channel)


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
    _action("session/defaultChatChanged", "0.4.0", session.SessionDefaultChatChangedAction),
    _action("session/titleChanged", "0.1.0", session.SessionTitleChangedAction, by_client=True),
    _action("session/modelChanged", "0.1.0", session.SessionModelChangedAction, by_client=True),
    _action("session/agentChanged", "0.2.0", session.SessionAgentChangedAction, by_client=True),
    _action("session/serverToolsChanged", "0.1.0", session.SessionServerToolsChangedAction),
    _action("session/activeClientChanged", "0.1.0", session.SessionActiveClientChangedAction, by_client=True),
    _action("session/activeClientToolsChanged", "0.1.0", session.SessionActiveClientToolsChangedAction, by_client=True),
    _action("session/customizationsChanged", "0.1.0", session.SessionCustomizationsChangedAction),
    _action("session/customizationToggled", "0.1.0", session.SessionCustomizationToggledAction, by_client=True),
    _action("session/customizationUpdated", "0.1.0", session.SessionCustomizationUpdatedAction),
    _action("session/customizationRemoved", "0.2.0", session.SessionCustomizationRemovedAction),
    _action("session/mcpServerStateChanged", "0.3.0", session.SessionMcpServerStateChangedAction),
    _action("session/isReadChanged", "0.1.0", session.SessionIsReadChangedAction, by_client=True),
    _action("session/isArchivedChanged", "0.1.0", session.SessionIsArchivedChangedAction, by_client=True),
    _action("session/activityChanged", "0.1.0", session.SessionActivityChangedAction),
    _action("session/changesetsChanged", "0.2.0", session.SessionChangesetsChangedAction),
    _action("session/configChanged", "0.1.0", session.SessionConfigChangedAction, by_client=True),
    _action("session/metaChanged", "0.1.0", session.SessionMetaChangedAction),
    _action("session/canvasRegistryChanged", "0.3.0", session.SessionCanvasRegistryChangedAction),
    _action("session/canvasInstanceOpened", "0.3.0", session.SessionCanvasInstanceOpenedAction),
    _action("session/canvasInstanceUpdated", "0.3.0", session.SessionCanvasInstanceUpdatedAction),
    _action("session/canvasInstanceClosed", "0.3.0", session.SessionCanvasInstanceClosedAction),
    _action("session/canvasRequestCreated", "0.3.0", session.SessionCanvasRequestCreatedAction),
    _action("session/canvasRequestCompleted", "0.3.0", session.SessionCanvasRequestCompletedAction, by_client=True),
    _action("session/canvasRequestCancelled", "0.3.0", session.SessionCanvasRequestCancelledAction),
    _action(
        "session/canvasInstanceCloseRequested",
        "0.3.0",
        session.SessionCanvasInstanceCloseRequestedAction,
        by_client=True,
    ),
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
    _action("chat/turnComplete", "0.4.0", chat.ChatTurnCompleteAction),
    _action("chat/turnCancelled", "0.4.0", chat.ChatTurnCancelledAction, by_client=True),
    _action("chat/error", "0.4.0", chat.ChatErrorAction),
    _action("chat/usage", "0.4.0", chat.ChatUsageAction),
    _action("chat/reasoning", "0.4.0", chat.ChatReasoningAction),
    _action("chat/pendingMessageSet", "0.4.0", chat.ChatPendingMessageSetAction, by_client=True),
    _action("chat/pendingMessageRemoved", "0.4.0", chat.ChatPendingMessageRemovedAction, by_client=True),
    _action("chat/queuedMessagesReordered", "0.4.0", chat.ChatQueuedMessagesReorderedAction, by_client=True),
    _action("chat/inputRequested", "0.4.0", chat.ChatInputRequestedAction),
    _action("chat/inputAnswerChanged", "0.4.0", chat.ChatInputAnswerChangedAction, by_client=True),
    _action("chat/inputCompleted", "0.4.0", chat.ChatInputCompletedAction, by_client=True),
    _action("chat/truncated", "0.4.0", chat.ChatTruncatedAction, by_client=True),
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
    _action("changeset/contentChanged", "0.4.0", changeset.ChangesetContentChangedAction),
    _action("changeset/operationsChanged", "0.2.0", changeset.ChangesetOperationsChangedAction),
    _action("changeset/operationStatusChanged", "0.3.0", changeset.ChangesetOperationStatusChangedAction),
    _action("changeset/cleared", "0.2.0", changeset.ChangesetClearedAction),
    _action("annotations/set", "0.3.0", annotations.AnnotationsSetAction, by_client=True),
    _action("annotations/updated", "0.4.0", annotations.AnnotationsUpdatedAction, by_client=True),
    _action("annotations/removed", "0.3.0", annotations.AnnotationsRemovedAction, by_client=True),
    _action("annotations/entrySet", "0.3.0", annotations.AnnotationsEntrySetAction, by_client=True),
    _action("annotations/entryRemoved", "0.3.0", annotations.AnnotationsEntryRemovedAction, by_client=True),
    _action("resourceWatch/changed", "0.2.0", resource_watch.ResourceWatchChangedAction),
)

_COMMANDS = (
    _request("initialize", "root", messages.InitializeParams, messages.InitializeResult),
    _request("ping", "root", messages.PingParams),
    _request("reconnect", "root", messages.ReconnectParams, messages.ReconnectResult),
    _request("subscribe", None, messages.SubscribeParams, messages.SubscribeResult),
    _notice("unsubscribe", messages.UnsubscribeParams),
    _notice("dispatchAction", messages.DispatchActionParams),
    _request("authenticate", "root", messages.AuthenticateParams, messages.AuthenticateResult),
    _request("resourceRead", "root", messages.ResourceReadParams, messages.ResourceReadResult, both=True),
    _request("resourceWrite", "root", messages.ResourceWriteParams, messages.ResourceWriteResult, both=True),
    _request("resourceList", "root", messages.ResourceListParams, messages.ResourceListResult, both=True),
    _request("resourceCopy", "root", messages.ResourceCopyParams, messages.ResourceCopyResult, both=True),
    _request("resourceDelete", "root", messages.ResourceDeleteParams, messages.ResourceDeleteResult, both=True),
    _request("resourceMove", "root", messages.ResourceMoveParams, messages.ResourceMoveResult, both=True),
    _request("resourceResolve", "root", messages.ResourceResolveParams, messages.ResourceResolveResult, both=True),
    _request("resourceMkdir", "root", messages.ResourceMkdirParams, messages.ResourceMkdirResult, both=True),
    _request("resourceRequest", "root", messages.ResourceRequestParams, messages.ResourceRequestResult, both=True),
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
    _request("createSession", "session", session.CreateSessionParams),
    _request("disposeSession", "session", session.DisposeSessionParams),
    _request("createChat", "session", chat.CreateChatParams),
    _request("disposeChat", "chat", chat.DisposeChatParams),
    _request("fetchTurns", "chat", chat.FetchTurnsParams, chat.FetchTurnsResult),
    _request("completions", "chat", chat.CompletionsParams, chat.CompletionsResult),
    _request("createTerminal", "terminal", terminal.CreateTerminalParams),
    _request("disposeTerminal", "terminal", terminal.DisposeTerminalParams),
    _request(
        "invokeChangesetOperation",
        "changeset",
        changeset.InvokeChangesetOperationParams,
        changeset.InvokeChangesetOperationResult,
    ),
)

_NOTIFICATIONS = (
    NotificationSpec("action", "0.1.0", ActionEnvelope, None),
    NotificationSpec("root/sessionAdded", "0.1.0", root.SessionAddedParams, "root"),
    NotificationSpec("root/sessionRemoved", "0.1.0", root.SessionRemovedParams, "root"),
    NotificationSpec("root/sessionSummaryChanged", "0.1.0", root.SessionSummaryChangedParams, "root"),
    NotificationSpec("auth/required", "0.1.0", AuthRequiredParams, None),
    NotificationSpec("otlp/exportLogs", "0.2.0", messages.OtlpExportLogsParams, "telemetry"),
    NotificationSpec("otlp/exportTraces", "0.2.0", messages.OtlpExportTracesParams, "telemetry"),
    NotificationSpec("otlp/exportMetrics", "0.2.0", messages.OtlpExportMetricsParams, "telemetry"),
)

ACTIONS: Mapping[str, ActionSpec] = MappingProxyType({spec.type: spec for spec in _ACTIONS})
"""Action type → what it is."""

COMMANDS: Mapping[str, CommandSpec] = MappingProxyType({spec.method: spec for spec in _COMMANDS})
"""Method → what it is, for requests and for the notifications that clients send."""

NOTIFICATIONS: Mapping[str, NotificationSpec] = MappingProxyType({spec.method: spec for spec in _NOTIFICATIONS})
"""Method → what it is, for the notifications that hosts send."""


__all__ = ["ACTIONS", "COMMANDS", "NOTIFICATIONS", "TYPES"]
