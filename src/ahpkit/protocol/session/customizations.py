"""Customizations of a session: containers (plugins, directories) and their children.

Plugins and MCP servers carry the decisions about them, most specific first; the first one counts and without any they
are enabled. Directories and other children have one `enabled`. `session/enablement.py` answers what is in force.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, Icon, JsonObject, TextRange
from ahpkit.protocol.session.mcp import McpServerCustomizationApps, McpServerState
from ahpkit.protocol.type_schemas import CLOSED

_TYPES = ("plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer")
_TOP_LEVEL = re.compile(r"(?:plugin|directory|mcpServer)-[0-9a-f]{20}")
_ANY = re.compile(rf"(?:{'|'.join(_TYPES)})-[0-9a-f]{{20}}")


def stable_id(kind: str, *parts: str) -> str:
    """An opaque id for a customization. It does not depend on the contents, so that a switch survives an edit."""
    text = "\0".join((kind, *parts))
    return f"{kind}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def is_top_level_id(id: str) -> bool:
    """Whether `stable_id` made this id for an entry of a session's list. So the host recognises its own entries, also
    after a restart."""
    return _TOP_LEVEL.fullmatch(id) is not None


def is_host_id(id: str) -> bool:
    """Whether an id has the form of `stable_id`: an entry with this id may come into the session at any time."""
    return _ANY.fullmatch(id) is not None


CustomizationType = Literal["plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer"] | str

ChildCustomizationType = Literal["agent", "skill", "prompt", "rule", "hook", "mcpServer"] | str

CustomizationEnablementKind = Literal["session", "workspace", "global"] | str

CustomizationLoadStatus = Literal["loading", "loaded", "degraded", "error"]


class CustomizationLoadingState(TypedDict):
    """The host is reading the container."""

    kind: Literal["loading"]


class CustomizationLoadedState(TypedDict):
    """The container is read."""

    kind: Literal["loaded"]


class CustomizationDegradedState(TypedDict):
    """Read in part; `message` says what is missing."""

    kind: Literal["degraded"]
    message: str


class CustomizationErrorState(TypedDict):
    """Not read; `message` says why."""

    kind: Literal["error"]
    message: str


CustomizationLoadState = Annotated[
    CustomizationLoadingState | CustomizationLoadedState | CustomizationDegradedState | CustomizationErrorState, CLOSED
]


class SessionEnablement(TypedDict):
    """A decision for one session."""

    kind: Literal["session"]
    enabled: bool


class WorkspaceEnablement(TypedDict):
    """A decision for everything in a directory."""

    kind: Literal["workspace"]
    uri: URI
    enabled: bool


class GlobalEnablement(TypedDict):
    """A decision for all sessions."""

    kind: Literal["global"]
    enabled: bool


CustomizationEnablement = SessionEnablement | WorkspaceEnablement | GlobalEnablement


class CustomizationBase(TypedDict):
    """What all customizations have. `id` is unique in the session, `uri` says where it comes from."""

    id: str
    uri: URI
    name: str
    icons: NotRequired[list[Icon]]
    range: NotRequired[TextRange]
    _meta: NotRequired[JsonObject]


class ContainerCustomizationBase(CustomizationBase):
    """What holds children. No `children`: not read yet; an empty list: nothing in it."""

    clientId: NotRequired[str]
    load: NotRequired[CustomizationLoadState]
    children: NotRequired[list[ChildCustomization]]


class PluginCustomization(ContainerCustomizationBase):
    """An Open Plugins plugin."""

    type: Literal["plugin"]
    enablement: NotRequired[list[CustomizationEnablement]]
    version: NotRequired[str]


class ClientPluginCustomization(PluginCustomization):
    """A plugin that a client publishes; a new `nonce` says that it changed. It decides for bundled children by name."""

    nonce: NotRequired[str]
    childEnablement: NotRequired[dict[str, list[CustomizationEnablement]]]


class DirectoryCustomization(ContainerCustomizationBase):
    """A directory the host watches for one kind of children."""

    type: Literal["directory"]
    enabled: bool
    contents: ChildCustomizationType
    writable: bool


class ChildCustomizationBase(CustomizationBase):
    """What every child but an MCP server has."""

    enabled: NotRequired[bool]


class AgentCustomization(ChildCustomizationBase):
    """A custom agent."""

    type: Literal["agent"]
    description: NotRequired[str]
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    disableModelInvocation: NotRequired[bool]
    disableUserInvocation: NotRequired[bool]


class SkillCustomization(ChildCustomizationBase):
    """A skill or slash command."""

    type: Literal["skill"]
    description: NotRequired[str]
    disableModelInvocation: NotRequired[bool]
    disableUserInvocation: NotRequired[bool]


class PromptCustomization(ChildCustomizationBase):
    """A prompt."""

    type: Literal["prompt"]
    description: NotRequired[str]


class RuleCustomization(ChildCustomizationBase):
    """A rule or instruction."""

    type: Literal["rule"]
    description: NotRequired[str]
    alwaysApply: NotRequired[bool]
    globs: NotRequired[list[str]]


class HookCustomization(ChildCustomizationBase):
    """A hook; what it runs stays on the host."""

    type: Literal["hook"]
    event: NotRequired[str]
    matcher: NotRequired[str]


class McpServerCustomization(CustomizationBase):
    """An MCP server: a child, or at the top level when the host itself configures it."""

    type: Literal["mcpServer"]
    enablement: NotRequired[list[CustomizationEnablement]]
    state: McpServerState
    channel: NotRequired[URI]
    mcpApp: NotRequired[McpServerCustomizationApps]


ChildCustomization = (
    AgentCustomization
    | SkillCustomization
    | PromptCustomization
    | RuleCustomization
    | HookCustomization
    | McpServerCustomization
)

Customization = PluginCustomization | DirectoryCustomization | McpServerCustomization


__all__ = [
    "AgentCustomization",
    "ChildCustomization",
    "ChildCustomizationBase",
    "ChildCustomizationType",
    "ClientPluginCustomization",
    "ContainerCustomizationBase",
    "Customization",
    "CustomizationBase",
    "CustomizationDegradedState",
    "CustomizationEnablement",
    "CustomizationEnablementKind",
    "CustomizationErrorState",
    "CustomizationLoadState",
    "CustomizationLoadStatus",
    "CustomizationLoadedState",
    "CustomizationLoadingState",
    "CustomizationType",
    "DirectoryCustomization",
    "GlobalEnablement",
    "HookCustomization",
    "McpServerCustomization",
    "PluginCustomization",
    "PromptCustomization",
    "RuleCustomization",
    "SessionEnablement",
    "SkillCustomization",
    "WorkspaceEnablement",
    "is_host_id",
    "is_top_level_id",
    "stable_id",
]
