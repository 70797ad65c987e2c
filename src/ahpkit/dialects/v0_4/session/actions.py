"""Actions and commands of sessions of 0.4.0. The registry says which actions a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.changeset import Changeset
from ahpkit.dialects.v0_4.chat.state import ChatSummary, PartialChatSummary
from ahpkit.dialects.v0_4.common import URI, AgentSelection, BaseParams, JsonObject, ModelSelection
from ahpkit.dialects.v0_4.session.state import (
    Customization,
    McpServerState,
    SessionActiveClient,
    SessionCanvasRequest,
    ToolDefinition,
)
from ahpkit.protocol.session.actions import (
    SessionActivityChangedAction,
    SessionCanvasInstanceClosedAction,
    SessionCanvasInstanceCloseRequestedAction,
    SessionCanvasInstanceOpenedAction,
    SessionCanvasInstanceUpdatedAction,
    SessionCanvasRegistryChangedAction,
    SessionCanvasRequestCancelledAction,
    SessionCanvasRequestCompletedAction,
    SessionChatRemovedAction,
    SessionConfigChangedAction,
    SessionCreationFailedAction,
    SessionCustomizationRemovedAction,
    SessionDefaultChatChangedAction,
    SessionIsArchivedChangedAction,
    SessionIsReadChangedAction,
    SessionMetaChangedAction,
    SessionReadyAction,
    SessionServerToolsChangedAction,
    SessionTitleChangedAction,
)


class SessionChatAddedAction(TypedDict):
    """A chat is new, or replaced as a whole."""

    type: Literal["session/chatAdded"]
    summary: ChatSummary


class SessionChatUpdatedAction(TypedDict):
    """Some fields of a chat's summary changed."""

    type: Literal["session/chatUpdated"]
    chat: URI
    changes: PartialChatSummary


class SessionModelChangedAction(TypedDict):
    """Another model was chosen."""

    type: Literal["session/modelChanged"]
    model: ModelSelection


class SessionAgentChangedAction(TypedDict):
    """Another custom agent was chosen; absent: none."""

    type: Literal["session/agentChanged"]
    agent: NotRequired[AgentSelection]


class SessionChangesetsChangedAction(TypedDict):
    """The catalogue of changesets was replaced; absent: there is none."""

    type: Literal["session/changesetsChanged"]
    changesets: NotRequired[list[Changeset]]


class SessionActiveClientChangedAction(TypedDict):
    """A client took the active role; null: no client has it."""

    type: Literal["session/activeClientChanged"]
    activeClient: SessionActiveClient | None


class SessionActiveClientToolsChangedAction(TypedDict):
    """The active client's tools were replaced."""

    type: Literal["session/activeClientToolsChanged"]
    tools: list[ToolDefinition]


class SessionCustomizationsChangedAction(TypedDict):
    """All customizations were replaced."""

    type: Literal["session/customizationsChanged"]
    customizations: list[Customization]


class SessionCustomizationToggledAction(TypedDict):
    """A container or one of its children was switched on or off."""

    type: Literal["session/customizationToggled"]
    id: str
    enabled: bool


class SessionCustomizationUpdatedAction(TypedDict):
    """One top-level customization is new, or replaced as a whole."""

    type: Literal["session/customizationUpdated"]
    customization: Customization


class SessionMcpServerStateChangedAction(TypedDict):
    """An MCP server changed state; without `channel` it has no side channel any more."""

    type: Literal["session/mcpServerStateChanged"]
    id: str
    state: McpServerState
    channel: NotRequired[URI]


class SessionCanvasRequestCreatedAction(TypedDict):
    """A provider is asked something."""

    type: Literal["session/canvasRequestCreated"]
    request: SessionCanvasRequest


SessionAction = (
    SessionReadyAction
    | SessionCreationFailedAction
    | SessionChatAddedAction
    | SessionChatRemovedAction
    | SessionChatUpdatedAction
    | SessionDefaultChatChangedAction
    | SessionTitleChangedAction
    | SessionModelChangedAction
    | SessionAgentChangedAction
    | SessionIsReadChangedAction
    | SessionIsArchivedChangedAction
    | SessionActivityChangedAction
    | SessionChangesetsChangedAction
    | SessionServerToolsChangedAction
    | SessionActiveClientChangedAction
    | SessionActiveClientToolsChangedAction
    | SessionCustomizationsChangedAction
    | SessionCustomizationToggledAction
    | SessionCustomizationUpdatedAction
    | SessionCustomizationRemovedAction
    | SessionMcpServerStateChangedAction
    | SessionConfigChangedAction
    | SessionMetaChangedAction
    | SessionCanvasRegistryChangedAction
    | SessionCanvasInstanceOpenedAction
    | SessionCanvasInstanceUpdatedAction
    | SessionCanvasInstanceClosedAction
    | SessionCanvasInstanceCloseRequestedAction
    | SessionCanvasRequestCreatedAction
    | SessionCanvasRequestCompletedAction
    | SessionCanvasRequestCancelledAction
)


class SessionForkSource(TypedDict):
    """The session to copy, up to and including the response of `turnId`."""

    session: URI
    turnId: str


class CreateSessionParams(BaseParams):
    """`createSession`: `channel` is the URI that the client chooses. Answered with null, at once."""

    provider: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    fork: NotRequired[SessionForkSource]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]


class DisposeSessionParams(BaseParams):
    """`disposeSession`. Answered with null."""


__all__ = [
    "CreateSessionParams",
    "DisposeSessionParams",
    "SessionAction",
    "SessionActiveClientChangedAction",
    "SessionActiveClientToolsChangedAction",
    "SessionActivityChangedAction",
    "SessionAgentChangedAction",
    "SessionCanvasInstanceCloseRequestedAction",
    "SessionCanvasInstanceClosedAction",
    "SessionCanvasInstanceOpenedAction",
    "SessionCanvasInstanceUpdatedAction",
    "SessionCanvasRegistryChangedAction",
    "SessionCanvasRequestCancelledAction",
    "SessionCanvasRequestCompletedAction",
    "SessionCanvasRequestCreatedAction",
    "SessionChangesetsChangedAction",
    "SessionChatAddedAction",
    "SessionChatRemovedAction",
    "SessionChatUpdatedAction",
    "SessionConfigChangedAction",
    "SessionCreationFailedAction",
    "SessionCustomizationRemovedAction",
    "SessionCustomizationToggledAction",
    "SessionCustomizationUpdatedAction",
    "SessionCustomizationsChangedAction",
    "SessionDefaultChatChangedAction",
    "SessionForkSource",
    "SessionIsArchivedChangedAction",
    "SessionIsReadChangedAction",
    "SessionMcpServerStateChangedAction",
    "SessionMetaChangedAction",
    "SessionModelChangedAction",
    "SessionReadyAction",
    "SessionServerToolsChangedAction",
    "SessionTitleChangedAction",
]
