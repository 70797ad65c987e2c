from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.changeset.state import Changeset
from ahpkit.protocol.chat.state import ChatSummary
from ahpkit.protocol.common.state import URI, AgentSelection, ErrorInfo, JsonObject, ModelSelection
from ahpkit.protocol.session.state import (
    Customization,
    McpServerState,
    SessionActiveClient,
    ToolDefinition,
)


class SessionReadyAction(TypedDict):
    type: Literal["session/ready"]


class SessionCreationFailedAction(TypedDict):
    type: Literal["session/creationFailed"]
    error: ErrorInfo


class SessionChatAddedAction(TypedDict):
    type: Literal["session/chatAdded"]
    summary: ChatSummary


class SessionChatRemovedAction(TypedDict):
    type: Literal["session/chatRemoved"]
    chat: URI


class SessionChatUpdatedAction(TypedDict):
    type: Literal["session/chatUpdated"]
    chat: URI
    changes: JsonObject  # INLINE {"resource": ["URI", false], "title": ["str", false], "status": ["int", false], "activity": ["str", false], "modifiedAt": ["str", false], "model": ["ModelSelection", false], "agent": ["AgentSelection", false], "origin": ["ChatOrigin", false], "interactivity": ["ChatInteractivity", false], "workingDirectory": ["URI", false]}


class SessionDefaultChatChangedAction(TypedDict):
    type: Literal["session/defaultChatChanged"]
    defaultChat: NotRequired[URI]


class SessionTitleChangedAction(TypedDict):
    type: Literal["session/titleChanged"]
    title: str


class SessionModelChangedAction(TypedDict):
    type: Literal["session/modelChanged"]
    model: ModelSelection


class SessionAgentChangedAction(TypedDict):
    type: Literal["session/agentChanged"]
    agent: NotRequired[AgentSelection]


class SessionIsReadChangedAction(TypedDict):
    type: Literal["session/isReadChanged"]
    isRead: bool


class SessionIsArchivedChangedAction(TypedDict):
    type: Literal["session/isArchivedChanged"]
    isArchived: bool


class SessionActivityChangedAction(TypedDict):
    type: Literal["session/activityChanged"]
    activity: str


class SessionChangesetsChangedAction(TypedDict):
    type: Literal["session/changesetsChanged"]
    changesets: list[Changeset]


class SessionServerToolsChangedAction(TypedDict):
    type: Literal["session/serverToolsChanged"]
    tools: list[ToolDefinition]


class SessionActiveClientChangedAction(TypedDict):
    type: Literal["session/activeClientChanged"]
    activeClient: SessionActiveClient


class SessionActiveClientToolsChangedAction(TypedDict):
    type: Literal["session/activeClientToolsChanged"]
    tools: list[ToolDefinition]


class SessionCustomizationsChangedAction(TypedDict):
    type: Literal["session/customizationsChanged"]
    customizations: list[Customization]


class SessionCustomizationToggledAction(TypedDict):
    type: Literal["session/customizationToggled"]
    id: str
    enabled: bool


class SessionCustomizationUpdatedAction(TypedDict):
    type: Literal["session/customizationUpdated"]
    customization: Customization


class SessionCustomizationRemovedAction(TypedDict):
    type: Literal["session/customizationRemoved"]
    id: str


class SessionMcpServerStateChangedAction(TypedDict):
    type: Literal["session/mcpServerStateChanged"]
    id: str
    state: McpServerState
    channel: NotRequired[URI]


class SessionConfigChangedAction(TypedDict):
    type: Literal["session/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


class SessionMetaChangedAction(TypedDict):
    type: Literal["session/metaChanged"]
    _meta: JsonObject
