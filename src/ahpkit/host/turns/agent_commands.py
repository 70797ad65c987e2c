"""Slash commands that agents themselves understand: shows them in state, and offers what is shown as completions."""

from __future__ import annotations

from collections.abc import Sequence

from ahpkit.host.agent import Command
from ahpkit.host.feature import Feature, Registration, Services
from ahpkit.host.turns.completions import slash_items
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.constructors import session_customization_updated
from ahpkit.protocol.session.customizations import ChildCustomization, PluginCustomization

_ID = "agent-commands"


class AgentCommands(Feature):
    """What the agent of a session announced."""

    name = "agent-commands"

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.complete(self._complete)

    def set_commands(self, session_uri: str, commands: Sequence[Command]) -> None:
        """Replace the commands of a session: state shows them as the prompts of one plugin."""
        plugin = _plugin(session_uri, commands)
        self._services.dispatch(session_uri, session_customization_updated(customization=plugin))

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        session: JsonObject = self._services.state(self._services.session_of(chat_uri) or "") or {}
        shown: Sequence[JsonObject] = session.get("customizations") or ()
        children: Sequence[JsonObject] = next((one["children"] for one in shown if one["id"] == _ID), ())
        return slash_items([(child["name"], child.get("description", "")) for child in children], text, offset)


def _plugin(session_uri: str, commands: Sequence[Command]) -> PluginCustomization:
    uri = f"{session_uri}/agent-commands"
    children: list[ChildCustomization] = [
        {
            "type": "prompt",
            "id": f"agent-command:{command.name}",
            "uri": f"{uri}/{command.name}",
            "name": command.name,
            "description": command.description,
        }
        for command in commands
    ]
    return {
        "type": "plugin",
        "id": _ID,
        "uri": uri,
        "name": "Agent commands",
        "load": {"kind": "loaded"},
        "children": children,
    }


__all__ = ["AgentCommands"]
