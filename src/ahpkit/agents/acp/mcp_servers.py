"""Declares a turn's MCP servers to an ACP agent, and recognises its calls of the host's own server. Pure.

A server is declared if the agent supports its transport.

Agents write calls of the host's server in their own ways: `mcp__ahp__add`, `ahp__add`, `ahp_add`, `add (ahp MCP
Server)`, or the name of a server and of a tool in the input. A call that is not recognised is shown as the agent's own,
beside the host's.

If a call is recognised, perhaps nobody is asked about it, and a model could put the name of a tool into the title of a
call that does something else. So the whole name has to match, the call must not be of a kind that our tools never have
(`execute`, `edit`), and the tool must accept its input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ahpkit.agents.untrusted_json import obj, objects, strings, text
from ahpkit.host.agent import McpServerOffer
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition


def mcp_servers(offers: Iterable[McpServerOffer], capabilities: JsonObject) -> list[JsonObject]:
    """The servers that the agent can use. `capabilities` are the agent's `mcpCapabilities`."""
    servers = [_server(offer, capabilities) for offer in offers]
    return [server for server in servers if server is not None]


def _server(offer: McpServerOffer, capabilities: JsonObject) -> JsonObject | None:
    config = dict(offer.config)
    url = text(config.get("url"))
    if url is not None:
        kind = "sse" if config.get("type") == "sse" else "http"
        remote: JsonObject = {"type": kind, "name": offer.name, "url": url, "headers": _pairs(config.get("headers"))}
        return remote if capabilities.get(kind) else None
    web = obj(config.get("http"))
    if web and capabilities.get("http"):
        return {"type": "http", "name": offer.name, "url": web["url"], "headers": _pairs(web.get("headers"))}
    if text(config.get("command")) is None:
        return None
    return {
        "name": offer.name,
        "command": config["command"],
        "args": strings(config.get("args")),
        "env": _pairs(config.get("env")),
    }


def secrets_of(offers: Iterable[McpServerOffer]) -> set[str]:
    """The secrets that the agent gets with these servers: values of variables and headers, and what was filled in."""
    found: set[str] = set()
    for offer in offers:
        places = (offer.config.get("env"), offer.config.get("headers"), obj(offer.config.get("http")).get("headers"))
        values = [str(value) for place in places for value in obj(place).values()]
        found.update(values, (value.partition(" ")[2] for value in values), offer.filled.values())
    return found


def _pairs(entries: object) -> list[JsonObject]:
    return [{"name": name, "value": str(value)} for name, value in obj(entries).items()]


SERVER = "ahp"
"""The name under which agents know the host's server."""

_NAME = r"([A-Za-z0-9_-]+)"
_FORMS = (
    re.compile(rf"(?:mcp(?:__|_|\.|:|/))?{SERVER}(?:__|_|\.|:|/|-){_NAME}", re.IGNORECASE),
    re.compile(rf"{_NAME} \({SERVER} MCP Server\)(?:: .*)?", re.IGNORECASE | re.DOTALL),
)
_KINDS = (None, "other", "fetch", "search", "read", "think")
"""The kinds that agents give to calls of MCP tools. Kinds of calls that run a command or change files are not here."""
_COMMANDS = frozenset({"command", "commands", "cmd", "script", "code"})


class HostTool(NamedTuple):
    """The host's tool that a call is for."""

    name: str
    arguments: JsonObject | None
    """The arguments; None until the agent has sent them."""


def host_tool(call: JsonObject, meta: JsonObject, tools: Sequence[ToolDefinition]) -> HostTool | None:
    """The host's tool that a call is for; None if the call is for one of the agent's own tools."""
    named = _named(call, meta)
    return None if named is None else _known(_called(named), {tool["name"]: tool for tool in tools})


def is_search(call: JsonObject, meta: JsonObject) -> bool:
    """Whether a call only searches the host's tools. Nobody needs to be asked about that."""
    named = _named(call, meta)
    return named is not None and named.name == "find_tool" and (named.arguments or {}).keys() <= {"query"}


def is_call_without_tool(call: JsonObject, meta: JsonObject) -> bool:
    """Whether a call goes through `call_tool` and the agent has not yet named the tool."""
    named = _named(call, meta)
    return named is not None and named.name == "call_tool" and not named.arguments


def _named(call: JsonObject, meta: JsonObject) -> HostTool | None:
    """The tool of the host's server that a call names, even if there is no such tool."""
    if call.get("kind") not in _KINDS:
        return None
    given = obj(call["rawInput"]) if call.get("rawInput") else _written_out(call.get("content"))
    named = _in_input(given or {})
    if named is not None:
        return named
    candidates = (text(call.get("name")), *_hidden(meta), text(call.get("title")))
    names = [name for candidate in candidates if candidate and (name := _written(candidate.strip()))]
    return HostTool(names[0], given) if names else None


def _written_out(content: Any) -> JsonObject | None:
    """The input of a call, read from the call's text, where some agents show it first."""
    shown = objects(content)
    words = text(obj(shown[0].get("content")).get("text")) if len(shown) == 1 else None
    try:
        return obj(json.loads(words)) or None if words else None
    except (ValueError, RecursionError):
        return None


def _in_input(given: JsonObject) -> HostTool | None:
    """`{"server": "ahp", "tool": "add", "arguments": {…}}`."""
    server = text(given.get("server")) or text(given.get("server_name"))
    tool = text(given.get("tool")) or text(given.get("tool_name"))
    return HostTool(tool, obj(given.get("arguments"))) if server == SERVER and tool is not None else None


def _written(candidate: str) -> str | None:
    found = (form.fullmatch(candidate) for form in _FORMS)
    return next((match[1] for match in found if match), None)


def _called(named: HostTool) -> HostTool:
    """The tool that a call of `call_tool` names; any other call is returned unchanged."""
    if named.name != "call_tool":
        return named
    inner = named.arguments or {}
    return HostTool(text(inner.get("name")) or "", obj(inner.get("arguments")) if named.arguments else None)


def _known(named: HostTool, tools: Mapping[str, ToolDefinition]) -> HostTool | None:
    tool = tools.get(named.name)
    return named if tool is not None and _takes(tool, named.arguments or {}) else None


def _takes(tool: ToolDefinition, arguments: JsonObject) -> bool:
    """Whether the input has only members that the tool declares. If it declares none, a command does not fit."""
    schema: Any = tool.get("inputSchema") or {}
    declared = obj(schema.get("properties")).keys()
    strange = arguments.keys() - declared
    strict = bool(declared) or schema.get("additionalProperties") is False
    return not strange if strict else strange.isdisjoint(_COMMANDS)


def _hidden(meta: JsonObject, depth: int = 3) -> list[str]:
    """`toolName` at the root of `_meta`, or in the agent's own objects there."""
    below = [name for value in meta.values() for name in _hidden(obj(value), depth - 1)] if depth else []
    own = text(meta.get("toolName"))
    return [*([own] if own else []), *below]


__all__ = ["SERVER", "HostTool", "host_tool", "is_call_without_tool", "is_search", "mcp_servers", "secrets_of"]
