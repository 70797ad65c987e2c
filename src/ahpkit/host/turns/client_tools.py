"""One flat namespace of tool names towards the model, from the host's and the active client's tools. Pure.

A client tool whose name a host tool already has is offered as `client_<name>`; on the wire it keeps its own name.
"""

from __future__ import annotations

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition

_PREFIX = "client_"


def _client_tools(session: JsonObject) -> dict[str, ToolDefinition]:
    """The active client's tools by the name the model sees."""
    taken = {tool["name"] for tool in session.get("serverTools", ())}
    offered: dict[str, ToolDefinition] = {}
    active: JsonObject = session.get("activeClient") or {"tools": []}
    for tool in active["tools"]:
        name: str = tool["name"]
        while name in taken or name in offered:
            name = _PREFIX + name
        offered[name] = tool
    return offered


def model_tools(session: JsonObject) -> list[ToolDefinition]:
    """Client tools as they are offered to the model."""
    return [{**tool, "name": name} for name, tool in _client_tools(session).items()]


def client_tool(session: JsonObject, model_name: str) -> tuple[str, str] | None:
    """`(clientId, toolName)` behind a name the model used."""
    tool = _client_tools(session).get(model_name)
    return (session["activeClient"]["clientId"], tool["name"]) if tool is not None else None


__all__ = ["client_tool", "model_tools"]
