"""One flat namespace of tool names towards the model, from the host's and the active clients' tools. Pure.

A client tool whose name a host tool already has is offered as `client_<name>`; on the wire it keeps its own name. One
that several clients offer is shown once; a call goes to the client that started the turn if it is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ahpkit.protocol_next.common.state import JsonObject
from ahpkit.protocol_next.session.state import ToolDefinition

_PREFIX = "client_"


def _client_tools(session: JsonObject, preferred: str | None) -> dict[str, tuple[str, ToolDefinition]]:
    """The clients' tools by the name the model sees, each with the client that runs it."""
    taken = {tool["name"] for tool in session.get("serverTools", ())}
    offered: dict[str, tuple[str, ToolDefinition]] = {}
    seen: set[str] = set()
    for client_id, tool in _each_tool(session, preferred):
        name: str = tool["name"]
        if name in seen:
            continue
        seen.add(name)
        while name in taken or name in offered:
            name = _PREFIX + name
        offered[name] = (client_id, tool)
    return offered


def _each_tool(session: JsonObject, preferred: str | None) -> Iterator[tuple[str, ToolDefinition]]:
    clients: list[JsonObject] = session.get("activeClients", [])
    for client in sorted(clients, key=lambda client: client["clientId"] != preferred):
        for tool in client["tools"]:
            yield client["clientId"], tool


def model_tools(session: JsonObject, preferred: str | None = None) -> list[ToolDefinition]:
    """Client tools as they are offered to the model."""
    return [{**tool, "name": name} for name, (_, tool) in _client_tools(session, preferred).items()]


def client_tool(session: JsonObject, model_name: str, preferred: str | None = None) -> tuple[str, str] | None:
    """`(clientId, toolName)` behind a name the model used."""
    found = _client_tools(session, preferred).get(model_name)
    return None if found is None else (found[0], found[1]["name"])


__all__ = ["client_tool", "model_tools"]
