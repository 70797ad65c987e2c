"""Reads MCP server declarations: names and switches for clients, configurations for the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ahpkit.customizations.build import Builder, stable_id
from ahpkit.customizations.coerce import flag
from ahpkit.customizations.details import ServerDetail
from ahpkit.customizations.jsonc import Json, Node
from ahpkit.customizations.text import clean_name
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT

_WRAPPERS = ("mcpServers", "servers")
_NOT_SERVERS = frozenset({"$schema", "inputs", "sandbox", "version", "name", "description", "extensions", "imports"})


def mcp_file(builder: Builder, path: str) -> None:
    """`.mcp.json`, `mcp.json` and their relatives: with a wrapper, or flat."""
    parsed = builder.json(path)
    if parsed is not None:
        servers(builder, path, parsed, parsed.root)


def servers(builder: Builder, path: str, parsed: Json, node: Node) -> None:
    """The servers in `node`, however deep they are wrapped. The first of two with one name counts."""
    node = _unwrapped(node)
    if node.object is None:
        builder.report.warn("mcp-shape", "servers are not an object; none listed", path, parsed.line(node))
        return
    for name, member in _declared(node):
        if (said := builder.servers.get(name)) is not None and said == member.object:
            continue  # One server, named in two places.
        if said is not None:
            message = f"server `{clean_name(name)}` is declared before; this one is not listed"
            builder.report.warn("server-twice", message, path, parsed.line(member))
        else:
            _add(builder, path, parsed, name, member)


def _unwrapped(node: Node) -> Node:
    """Inside `mcpServers` or `servers`; one generation of plugins wraps twice."""
    for _ in range(2):
        inner = next((node.members[key] for key in _WRAPPERS if key in node.members), None)
        if inner is None or (inner.object is not None and _looks_like_server(inner.object)):
            return node
        node = inner
    return node


def _looks_like_server(value: JsonObject) -> bool:
    return isinstance(value.get("command"), (str, list)) or isinstance(value.get("url"), str)


def _declared(node: Node) -> Iterator[tuple[str, Node]]:
    for name, member in node.members.items():
        if name not in _NOT_SERVERS or (member.object is not None and _looks_like_server(member.object)):
            yield name, member


def _add(builder: Builder, path: str, parsed: Json, name: str, member: Node) -> None:
    config = member.object
    problem = "the declaration is not an object" if config is None else _problem(config)
    shown = clean_name(name) or "unnamed"
    if shown != name:
        builder.report.warn("name-cleaned", f"a server's name is shown as `{shown}`", path, parsed.line(member))
    if problem:
        builder.report.warn("server-unusable", f"server `{shown}`: {problem}", path, parsed.line(member))
    child: JsonObject = {
        "type": "mcpServer",
        "name": shown,
        "enabled": config is None or not (flag(config.get("disabled")) is True or flag(config.get("enabled")) is False),
        "state": _state(problem),
        "range": parsed.range(member),
    }
    detail = ServerDetail(name, config or {}, builder.dialect, problem)
    builder.servers[name] = config or {}
    builder.add(child, detail, path=path, key=name)


def _state(problem: str | None) -> JsonObject:
    """The state before anything runs. `starting` is used only when the server really starts."""
    if problem is None:
        return {"kind": "stopped"}
    return {"kind": "error", "error": {"errorType": "configuration", "message": problem}}


def _problem(config: JsonObject) -> str | None:
    """Why a declaration cannot be started, whoever starts it."""
    urls = [config[key] for key in ("url", "serverUrl", "httpUrl") if config.get(key) is not None]
    command, url = config.get("command"), next(iter(urls), None)
    if command is None and url is None:
        return "neither `command` nor `url`"
    if command is not None and not _is_command(command):
        return "`command` is empty or not a string"
    if command is None and not (isinstance(url, str) and url.strip()):
        return "`url` is empty or not a string"
    args = config.get("args")
    return "`args` is not a list" if args is not None and not isinstance(args, list) else None


def _is_command(command: Any) -> bool:
    """A program, or as a list a program with its arguments."""
    words = cast("list[Any]", command) if isinstance(command, list) else [command]
    return bool(words) and all(isinstance(word, str) for word in words) and bool(words[0].strip())


def configured_server(config: JsonObject) -> tuple[JsonObject, ServerDetail]:
    """A server of the host's configuration: its entry in every session, and the details that clients do not see."""
    name: str = config["name"]
    declared = {key: value for key, value in config.items() if key not in ("name", "enabled")}
    entry: JsonObject = {
        "type": "mcpServer",
        "id": stable_id("mcpServer", "configuration", name),
        "uri": f"ahpkit:/mcp-servers/{name}",
        "name": name,
        "enabled": config.get("enabled") is not False,
        "state": {"kind": "stopped"},
    }
    if config.get("direct") is True:
        entry["_meta"] = {DIRECT: True}
    return entry, ServerDetail(name, declared, "workspace", consented=True)


__all__ = ["configured_server", "mcp_file", "servers"]
