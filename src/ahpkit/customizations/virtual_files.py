"""Lets models read plugin files that are not on disk: `read_plugin_file`, and the same as MCP resources.

Skills of a client's plugin are offered by URIs that only the host can read, by asking that client. Only files of the
session's plugins can be read, and nothing that is switched off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ahpkit.customizations.client_plugins import CLIENT_LIMITS, ClientSource
from ahpkit.customizations.tree import File, Unreadable
from ahpkit.host.agent import ToolCall, ToolOutcome, Turn
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import Placed, is_enabled, walk
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import Owner, Tool

_OWNER = Owner("host", "plugin-files")

READ_PLUGIN_FILE: ToolDefinition = {
    "name": "read_plugin_file",
    "title": "Read a plugin's file",
    "description": "Read a skill, or a file beside it, that is offered by a URI which is no path on this machine.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The URI of the skill, or of a file beside it."}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True},
}


class VirtualFiles:
    """Implements `ahpkit.host.feature.ToolSource`. `shown(session_uri)`: the session's customizations."""

    def __init__(self, services: Services, shown: Callable[[str], Sequence[JsonObject]], *, timeout: float) -> None:
        self._services = services
        self._shown = shown
        self._timeout = timeout

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        return [(_OWNER, [READ_PLUGIN_FILE])] if any(self._plugins(session_uri)) else []

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        try:
            given: Any = json.loads(tool_input or "{}")
            uri = cast("JsonObject", given).get("uri") if isinstance(given, dict) else None
            data = await self.read(turn.chat.session_uri, str(uri))
        except KeyError as error:
            return ToolOutcome(success=False, error=str(error.args[0]))
        except (ValueError, RecursionError) as error:
            return ToolOutcome(success=False, error=f"the input is no JSON: {error}")
        return ToolOutcome(success=True, content=[{"type": "text", "text": data.decode("utf-8", "replace")}])

    def listed(self, session_uri: str) -> list[JsonObject]:
        """Skills that a model may read this way, as MCP resources."""
        plugins = {plugin["id"] for plugin in self._plugins(session_uri)}
        return [
            {"uri": placed.entry["uri"], "name": placed.entry["name"], **_description(placed.entry)}
            for placed in walk(self._shown(session_uri))
            if placed.container is not None and placed.container["id"] in plugins and _is_offered(placed)
        ]

    async def read(self, session_uri: str, uri: str) -> bytes:
        """The bytes of a file; raises `KeyError` with the reason when there is nothing to read for this session."""
        plugin = next((one for one in self._plugins(session_uri) if uri.startswith(f"{one['uri'].rstrip('/')}/")), None)
        if plugin is None or "/../" in f"{uri}/":
            raise KeyError(f"no plugin of this session has a file {uri[:500]}")
        for placed in walk(self._shown(session_uri)):
            if placed.entry.get("uri") == uri and not placed.effective.enabled:
                raise KeyError(f"{placed.entry['name']} is switched off")
        client = self._services.client(plugin["clientId"])
        if client is None:
            raise KeyError("the client that brought this plugin is not connected")
        source = ClientSource(client, uri=plugin["uri"], name=plugin["name"], timeout=self._timeout)
        try:
            [found] = await source.read([File(uri, uri)], limit=CLIENT_LIMITS.file_bytes)
        except (TimeoutError, ConnectionError):
            raise KeyError("the client that brought this plugin did not answer") from None
        if isinstance(found, Unreadable):
            raise KeyError(f"{uri[:500]} {found.message}")
        return found.data

    def _plugins(self, session_uri: str) -> Iterator[JsonObject]:
        for entry in self._shown(session_uri):
            if "clientId" in entry and is_enabled(entry) and not str(entry["uri"]).startswith("file:"):
                yield entry


def _is_offered(placed: Placed) -> bool:
    return placed.entry["type"] == "skill" and placed.effective.model_invocable


def _description(entry: JsonObject) -> JsonObject:
    return {"description": entry["description"]} if entry.get("description") else {}


__all__ = ["READ_PLUGIN_FILE", "VirtualFiles"]
