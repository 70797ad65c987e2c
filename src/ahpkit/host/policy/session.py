"""What clients may do to a session: rename, select, configure, toggle, become active, set directories. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.dialects.generations import CHANGED, selection_of
from ahpkit.dialects.states_down import primary_mark
from ahpkit.host.limits import MAX_DIRECTORIES, MAX_OFFERED_BYTES, MAX_PLUGINS, MAX_TITLE, MAX_TOOLS
from ahpkit.host.policy.config import check_change
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, allow, check_names, find
from ahpkit.host.policy.small_channels import check_providers
from ahpkit.protocol.json_schema import check_schema
from ahpkit.protocol.meta_keys import CONFIG_META, MODELS_LATER
from ahpkit.protocol.root import AgentInfo, MultipleWorkingDirectoriesCapability, RootState
from ahpkit.protocol.session import enablement
from ahpkit.protocol.session.actions import (
    SessionActiveClientRemovedAction,
    SessionActiveClientSetAction,
    SessionConfigChangedAction,
    SessionCustomizationToggledAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStopRequestedAction,
    SessionMetaChangedAction,
    SessionTitleChangedAction,
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
from ahpkit.protocol.session.customizations import ClientPluginCustomization, is_host_id
from ahpkit.protocol.session.enablement import SCOPES, PlacedCustomization, walk
from ahpkit.protocol.session.state import (
    SessionActiveClient,
    SessionConfigPropertySchema,
    SessionConfigState,
    SessionState,
    ToolDefinition,
)
from ahpkit.wire.codec import encode

_NO_CAPABILITY: MultipleWorkingDirectoriesCapability = {}


def check_directories(root: RootState | None, session: SessionState) -> str | None:
    """Why a session cannot have several directories; None: its agent supports them."""
    if _capability(root, session) is None:
        return f"sessions of {session.get('provider')} have one working directory"
    return None


def _capability(root: RootState | None, session: SessionState) -> MultipleWorkingDirectoriesCapability | None:
    agent = find(root["agents"] if root else (), "provider", session.get("provider"))
    return agent.get("capabilities", {}).get("multipleWorkingDirectories") if agent else None


def _directory_set(proposed: ProposedAction[SessionWorkingDirectorySetAction, SessionState]) -> str | None:
    directories = proposed.state.get("workingDirectories", [])
    full = len(directories) >= MAX_DIRECTORIES and proposed.action["directory"] not in directories
    reason = f"a session may have {MAX_DIRECTORIES} working directories; remove one first" if full else None
    return check_directories(proposed.root, proposed.state) or reason


def _directory_removed(proposed: ProposedAction[SessionWorkingDirectoryRemovedAction, SessionState]) -> str | None:
    reason = check_directories(proposed.root, proposed.state)
    return reason or _check_primary(proposed, "immutablePrimary", "primaryReplacement")


def _directory_replaced(proposed: ProposedAction[SessionWorkingDirectoryReplacedAction, SessionState]) -> str | None:
    reason = check_directories(proposed.root, proposed.state)
    capability = _capability(proposed.root, proposed.state) or _NO_CAPABILITY
    return reason or (None if capability.get("primaryReplacement") else _check_primary(proposed, "immutablePrimary"))


def _check_primary(
    proposed: ProposedAction[
        SessionWorkingDirectoryRemovedAction | SessionWorkingDirectoryReplacedAction, SessionState
    ],
    *fixing: str,
) -> str | None:
    """Why the first directory has to stay, if one of these capabilities says so."""
    directories = proposed.state.get("workingDirectories", [])
    capability = _capability(proposed.root, proposed.state) or _NO_CAPABILITY
    is_first = directories[:1] == [proposed.action["directory"]]
    return "the first working directory cannot change" if is_first and any(map(capability.get, fixing)) else None


_McpServerAction = (
    SessionMcpServerStartRequestedAction
    | SessionMcpServerStopRequestedAction
    | SessionMcpServerBackgroundRequestedAction
)


def check_title(title: str) -> str | None:
    """Why a session or chat cannot have this title."""
    if not title.strip():
        return "a title must not be empty"
    return None if len(title) <= MAX_TITLE else f"a title may have {MAX_TITLE} characters, this one has {len(title)}"


def check_model(root: RootState | None, provider: str, model_id: str) -> str | None:
    """Why a session of `provider` cannot use this model."""
    agent = find(root["agents"] if root else (), "provider", provider)
    if agent is not None and MODELS_LATER in (agent.get("_meta") or {}):
        return None  # The model is checked once the agent has reported its models.
    if agent is not None and not agent["models"]:
        return f"{provider} has no models to choose from"
    model = find(agent["models"], "id", model_id) if agent else None
    if model is None:
        known = "; known: " + ", ".join(_usable(agent)) if agent else ""
        return f"{provider} has no model {model_id!r}{known}"
    if model.get("policyState") == "disabled":
        return f"model {model_id!r} is disabled by policy"
    return None


def _usable(agent: AgentInfo) -> list[str]:
    return [model["id"] for model in agent["models"] if model.get("policyState") != "disabled"]


def check_agent(session: SessionState | None, uri: str) -> str | None:
    """Why a user cannot select the custom agent with this URI."""
    candidates = [one for one in walk(session) if one.entry["type"] == "agent" and one.entry["uri"] == uri]
    if not candidates:
        return f"this session has no custom agent {uri}"
    reasons = [_check_selectable(agent) for agent in candidates]
    return None if None in reasons else reasons[0]


def check_active_client(session: SessionState | None, client_id: str, claim: SessionActiveClient) -> str | None:
    """Why a client cannot take the active role with this entry; `session` is None while there is none yet."""
    if claim["clientId"] != client_id:
        return "a client can claim the active role only for itself"
    if primary_mark(claim) and (holder := _other_primary(session, client_id)) is not None:
        return f"{holder.get('displayName') or 'another client'} is active in this session"
    if (size := len(encode(claim))) > MAX_OFFERED_BYTES:
        return f"all that a client offers in a session may have {MAX_OFFERED_BYTES} bytes together; this has {size}"
    return (
        _check_tools(claim["tools"])
        or _check_published(session, client_id, claim.get("customizations", []))
        or check_providers(claim.get("canvasProviders", []))
    )


def _title_changed(proposed: ProposedAction[SessionTitleChangedAction, SessionState]) -> str | None:
    return check_title(proposed.action["title"])


def _other_primary(session: SessionState | None, client_id: str) -> SessionActiveClient | None:
    """The client that has the single active role of 0.4, if it is another client."""
    clients = session["activeClients"] if session else []
    return next((client for client in clients if primary_mark(client) and client["clientId"] != client_id), None)


def _selection_changed(proposed: ProposedAction[SessionMetaChangedAction, SessionState]) -> str | None:
    """A 0.4 client chose a model or a custom agent for the session. Clients may not change anything else in `_meta`."""
    chosen = selection_of(proposed.action)
    match chosen.get(CHANGED):
        case "model" if (model := chosen.get("model")) is not None:
            return check_model(proposed.root, proposed.state["provider"], model["id"])
        case "agent":
            agent = chosen.get("agent")
            return check_agent(proposed.state, agent["uri"]) if agent else None
        case _:
            return "session/metaChanged is dispatched by the host, not by clients"


def _check_selectable(agent: PlacedCustomization) -> str | None:
    name = agent.entry["name"]
    if not agent.effective.enabled:
        return f"custom agent {name!r} is disabled"
    return None if agent.effective.user_invocable else f"custom agent {name!r} can only be used by the model"


def _config_changed(proposed: ProposedAction[SessionConfigChangedAction, SessionState]) -> str | None:
    action = proposed.action
    config = _present_config(proposed.state)
    return check_change(config, action["config"], replace=action.get("replace", False), mutable=_session_mutable)


def _present_config(session: SessionState) -> SessionConfigState | None:
    """The configuration with the properties that the agent reported later. They are not in the state's schema, because
    no action can add them."""
    config = session.get("config")
    meta = session.get("_meta") or {}
    if config is None or CONFIG_META not in meta:
        return config
    properties = {**config["schema"]["properties"], **meta[CONFIG_META]["schema"]["properties"]}
    return {**config, "schema": {**config["schema"], "properties": properties}}


def _session_mutable(schema: SessionConfigPropertySchema) -> bool:
    return schema.get("sessionMutable", False) and not schema.get("readOnly", False)


def _active_client_set(proposed: ProposedAction[SessionActiveClientSetAction, SessionState]) -> str | None:
    return check_active_client(proposed.state, proposed.client_id, proposed.action["activeClient"])


def _active_client_removed(proposed: ProposedAction[SessionActiveClientRemovedAction, SessionState]) -> str | None:
    if proposed.action["clientId"] != proposed.client_id:
        return "a client can end only its own active role in a session"
    active = find(proposed.state["activeClients"], "clientId", proposed.client_id)
    return None if active else "only the session's active client may do this"


def _check_tools(tools: list[ToolDefinition]) -> str | None:
    if len(tools) > MAX_TOOLS:
        return f"a client may offer {MAX_TOOLS} tools, not {len(tools)}"
    reasons = [check_names("tool name", (tool["name"] for tool in tools)), *map(_check_tool, tools)]
    return next((reason for reason in reasons if reason), None)


def _check_tool(tool: ToolDefinition) -> str | None:
    for key in ("inputSchema", "outputSchema"):
        if (schema := tool.get(key)) is not None and (reason := check_schema(schema)) is not None:
            return f"the {key} of tool {tool['name'][:200]!r} is refused: {reason}"
    return None


def _check_published(
    session: SessionState | None, client_id: str, plugins: list[ClientPluginCustomization]
) -> str | None:
    """Check the plugins that a client publishes: their ids must be unique in the session, also when the host lists an
    entry later."""
    if len(plugins) > MAX_PLUGINS:
        return f"a client may bring {MAX_PLUGINS} plugins into a session, not {len(plugins)}"
    if other := next((plugin["type"] for plugin in plugins if plugin["type"] != "plugin"), None):
        return f"a client can publish plugins only, not a {other}"
    if own := next((plugin["id"] for plugin in plugins if is_host_id(plugin["id"])), None):
        return f"customization id {own!r} has the form of the host's own ids; choose another one"
    foreign = {placed.entry["id"] for placed in walk(session) if _publisher(placed) != client_id}
    if taken := next((plugin["id"] for plugin in plugins if plugin["id"] in foreign), None):
        return f"this session has another customization with id {taken!r}"
    return check_names("customization id", (plugin["id"] for plugin in plugins))


def _mcp_server_requested(proposed: ProposedAction[_McpServerAction, SessionState]) -> str | None:
    wanted = proposed.action["id"]
    there = enablement.find(proposed.state, wanted)
    if there is None or there.entry["type"] != "mcpServer":
        return f"this session has no MCP server with id {wanted!r}"
    starts = proposed.action["type"] == "session/mcpServerStartRequested"
    return f"{there.entry['name']} is switched off" if starts and not there.effective.enabled else None


def _customization_toggled(proposed: ProposedAction[SessionCustomizationToggledAction, SessionState]) -> str | None:
    """An unknown id is accepted and changes nothing: the customization may just have been removed."""
    kinds = [decision["kind"] for decision in proposed.action["enablement"]]
    if (unknown := next((kind for kind in kinds if kind not in SCOPES), None)) is not None:
        return f"enablement: a decision is for one of {', '.join(SCOPES)}, not for {str(unknown)[:100]!r}"
    return None


def _publisher(placed: PlacedCustomization) -> str | None:
    return (placed.container or placed.entry).get("clientId")


RULES: Mapping[str, Rule] = {
    "session/titleChanged": _title_changed,
    "session/metaChanged": _selection_changed,
    "session/isReadChanged": allow,
    "session/isArchivedChanged": allow,
    "session/configChanged": _config_changed,
    "session/activeClientSet": _active_client_set,
    "session/activeClientRemoved": _active_client_removed,
    "session/mcpServerStartRequested": _mcp_server_requested,
    "session/mcpServerStopRequested": _mcp_server_requested,
    "session/mcpServerBackgroundRequested": _mcp_server_requested,
    "session/customizationToggled": _customization_toggled,
    "session/workingDirectorySet": _directory_set,
    "session/workingDirectoryRemoved": _directory_removed,
    "session/workingDirectoryReplaced": _directory_replaced,
}


__all__ = ["RULES", "check_active_client", "check_agent", "check_directories", "check_model"]
