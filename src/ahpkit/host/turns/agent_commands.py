"""Slash commands that agents themselves understand: offers them as completions and shows them in state."""

from __future__ import annotations

from collections.abc import Sequence

from ahpkit.host.agent import Command
from ahpkit.host.feature import Feature, Registration, Services
from ahpkit.host.turns.completions import slash_items
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.session.constructors import session_customization_updated
from ahpkit.protocol.session.customizations import ChildCustomization, PluginCustomization


class AgentCommands(Feature):
    """Keeps what each chat's agent announced."""

    name = "agent-commands"

    def __init__(self) -> None:
        self._commands: dict[str, Sequence[Command]] = {}
        self._session_of: dict[str, str] = {}

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.complete(self._complete)
        host.on_session_disposed(self._session_disposed)

    def set_commands(self, chat_uri: str, session_uri: str, commands: Sequence[Command]) -> None:
        """Replace a chat's commands; state shows them as the prompts of one plugin per session."""
        self._commands[chat_uri] = commands
        self._session_of[chat_uri] = session_uri
        plugin = _plugin(session_uri, commands)
        self._services.dispatch(session_uri, session_customization_updated(customization=plugin))

    def _session_disposed(self, session_uri: str) -> None:
        for chat_uri in [chat for chat, session in self._session_of.items() if session == session_uri]:
            del self._commands[chat_uri], self._session_of[chat_uri]

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        commands = self._commands.get(chat_uri, ())
        return slash_items([(command.name, command.description) for command in commands], text, offset)


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
        "id": "agent-commands",
        "uri": uri,
        "name": "Agent commands",
        "load": {"kind": "loaded"},
        "children": children,
    }


__all__ = ["AgentCommands"]
