"""Whether a tool call that an agent tells of goes through the host's own MCP server, and which tool it means. Pure.

Agents write such calls in their own ways: `mcp__ahp__add`, `ahp__add`, `ahp_add`, `add (ahp MCP Server)`, or the name
of a server and of a tool in the input. A call that is not recognised is shown as the agent's own, beside the host's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ahpkit.agents.untrusted_json import obj, text
from ahpkit.protocol.common.state import JsonObject

SERVER = "ahp"
"""What agents know the host's server by."""

_BEFORE = re.compile(rf"^(?:mcp[_.:/-]{{1,2}})?{SERVER}[_.:/-]{{1,2}}", re.IGNORECASE)
_AFTER = re.compile(rf"\s*\({SERVER} MCP Server\).*$", re.IGNORECASE | re.DOTALL)


def host_tool(said: JsonObject, meta: JsonObject, known: Sequence[str]) -> tuple[str | None, JsonObject]:
    """`(name, arguments)` of the host's tool that a call means; the name is None for the agent's own."""
    given = obj(said.get("rawInput"))
    server = text(given.get("server")) or text(given.get("server_name"))
    tool = text(given.get("tool")) or text(given.get("tool_name"))
    if server == SERVER and tool is not None:
        return _named(tool, _arguments(given.get("arguments")), known)
    for candidate in (text(said.get("name")), *_hidden(meta), text(said.get("title"))):
        name = None if candidate is None else _stripped(candidate)
        if name is not None:
            return _named(name, given, known)
    return None, {}


def _stripped(candidate: str) -> str | None:
    first = candidate.strip().partition("\n")[0]
    for pattern in (_BEFORE, _AFTER):
        stripped = pattern.sub("", first)
        if stripped != first:
            return stripped.split()[0].rstrip(":") if stripped.split() else None
    return None


def _named(name: str, arguments: JsonObject, known: Sequence[str]) -> tuple[str | None, JsonObject]:
    if name == "call_tool":
        name, arguments = str(arguments.get("name")), _arguments(arguments.get("arguments"))
    return (name, arguments) if name in known else (None, {})


def _arguments(value: Any) -> JsonObject:
    return obj(value)


def _hidden(meta: JsonObject, depth: int = 3) -> list[str]:
    """`toolName` at the root of `_meta`, or in the agent's own objects there."""
    below = [name for value in meta.values() for name in _hidden(obj(value), depth - 1)] if depth else []
    own = text(meta.get("toolName"))
    return [*([own] if own else []), *below]


__all__ = ["SERVER", "host_tool"]
