"""Reads MCP server declarations: names and switches for clients, configurations for the host. Fills in placeholders.

Placeholders are filled in when a server is given to an agent or started, but never in data for clients. There is one
pass: a placeholder inside a value is not filled in. A placeholder without a value is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ahpkit.customizations.build import Builder
from ahpkit.customizations.details import ServerDetail
from ahpkit.customizations.jsonc import Json, Node
from ahpkit.customizations.text import clean_name
from ahpkit.customizations.yaml_values import flag
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT
from ahpkit.protocol.session.customizations import stable_id

_WRAPPERS = ("mcpServers", "servers")
_NOT_SERVERS = frozenset({"$schema", "inputs", "sandbox", "version", "name", "description", "extensions", "imports"})


def mcp_file(builder: Builder, path: str) -> None:
    """`.mcp.json`, `mcp.json` and similar files: with a wrapper, or flat."""
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
            continue  # The same server, named in two places.
        if said is not None:
            message = f"server `{clean_name(name)}` is declared before; this one is not listed"
            builder.report.warn("server-twice", message, path, parsed.line(member))
        else:
            _add(builder, path, parsed, name, member)


def _unwrapped(node: Node) -> Node:
    """The content of `mcpServers` or `servers`. One generation of plugins wraps it twice."""
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


_PLACEHOLDER = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")

_AGENT_PLUGIN_FIELDS = ("args", "env", "cwd")
"""The members in which an Agent Plugin may use its two placeholders. Others are excluded, so that no secret ends up in
a URL."""

_FIELDS = ("command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "oauth")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Values for placeholders. `environment` has the variables that the declaration may read: none unless it is
    trusted."""

    plugin_root: str | None = None
    plugin_data: str | None = None
    workspace: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    start: str | None = None
    """The folder in which the server starts if its declaration names none; None: its plugin's folder or the
    workspace."""

    def lookup(self, name: str) -> str | None:
        known = {
            "PLUGIN_ROOT": self.plugin_root,
            "CLAUDE_PLUGIN_ROOT": self.plugin_root,
            "COPILOT_PLUGIN_ROOT": self.plugin_root,
            "PLUGIN_DATA": self.plugin_data,
            "CLAUDE_PLUGIN_DATA": self.plugin_data,
            "COPILOT_PLUGIN_DATA": self.plugin_data,
            "CLAUDE_PROJECT_DIR": self.workspace,
            "workspaceFolder": self.workspace,
        }
        return known[name] if name in known else self.environment.get(name)


def launch_config(detail: ServerDetail, around: Surroundings) -> dict[str, Any]:
    """The declaration with `command` as one word, `args` as a list, and placeholders filled in where they may be."""
    config = _shaped(detail.config)
    portable = detail.dialect == "agent-plugin"
    allowed = ("PLUGIN_ROOT", "PLUGIN_DATA") if portable else None

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: _value(match, around, allowed), text)

    for key in _AGENT_PLUGIN_FIELDS if portable else _FIELDS:
        if key in config:
            config[key] = _mapped(config[key], fill)
    folder = around.start or (around.plugin_root if portable else around.workspace)
    if folder and "command" in config:
        config.setdefault("cwd", folder)
    return config


def filled_in(detail: ServerDetail, around: Surroundings) -> dict[str, str]:
    """The variables of the environment that a declaration names, with their values."""
    names = {match[1] for text in _texts(detail.config) for match in _PLACEHOLDER.finditer(text)}
    return {name: value for name in names if (value := around.environment.get(name)) is not None}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for item in inner:
            yield from _texts(item)


def _value(match: re.Match[str], around: Surroundings, allowed: tuple[str, ...] | None) -> str:
    if allowed is not None and match[1] not in allowed:
        return match[0]
    value = around.lookup(match[1])
    return value if value is not None else match[2] if match[2] is not None else match[0]


def _shaped(config: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration in one common form: a command may be written as a list, a type may have another name, `env` may
    have numbers."""
    shaped = dict(config)
    command = shaped.get("command")
    if isinstance(command, list):
        program, *rest = cast("list[str]", command)
        shaped.update(command=program, args=[*rest, *shaped.get("args", ())])
    if isinstance(shaped.get("args"), list):
        shaped["args"] = [item for item in cast("list[Any]", shaped["args"]) if isinstance(item, str)]
    if isinstance(shaped.get("env"), dict):
        items = cast("dict[str, Any]", shaped["env"]).items()
        shaped["env"] = {key: str(value) for key, value in items if isinstance(value, (str, int, float))}
    for other in ("serverUrl", "httpUrl"):
        if other in shaped:
            shaped.setdefault("url", shaped.pop(other))
    shaped["type"] = _type(shaped)
    return shaped


def _type(config: Mapping[str, Any]) -> str:
    given = config.get("type") or config.get("transport")
    if given in ("streamable-http", "streamableHttp", "http"):
        return "http"
    if given in ("sse", "ws"):
        return str(given)
    return "stdio" if "command" in config else "http"


def _mapped(value: Any, fill: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, list):
        return [_mapped(item, fill) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _mapped(item, fill) for key, item in cast("dict[str, Any]", value).items()}
    return value


__all__ = ["Surroundings", "configured_server", "filled_in", "launch_config", "mcp_file", "servers"]
