"""Fills in the placeholders of an MCP server's declaration, so that it can be started. Pure.

Called when a server is handed to an agent or started, never for what clients see. One pass: a value that looks like a
placeholder is not looked up again. What has no value stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ahpkit.customizations.details import ServerDetail

_PLACEHOLDER = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")

_AGENT_PLUGIN_FIELDS = ("args", "env", "cwd")
"""An Agent Plugin may use its two placeholders here and nowhere else, so that no secret ends up in a URL."""

_FIELDS = ("command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "oauth")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What placeholders may stand for. `environment` is what the declaration may read: nothing unless it is trusted."""

    plugin_root: str | None = None
    plugin_data: str | None = None
    workspace: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    start: str | None = None
    """Where it starts unless it says where; None: in its plugin or in the workspace."""

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


def _value(match: re.Match[str], around: Surroundings, allowed: tuple[str, ...] | None) -> str:
    if allowed is not None and match[1] not in allowed:
        return match[0]
    value = around.lookup(match[1])
    return value if value is not None else match[2] if match[2] is not None else match[0]


def _shaped(config: Mapping[str, Any]) -> dict[str, Any]:
    """One form for what is written in several: a command given as a list, a type by another name, numbers in `env`."""
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


__all__ = ["Surroundings", "launch_config"]
