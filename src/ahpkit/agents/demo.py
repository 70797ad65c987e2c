"""The built-in demo agent. It needs no key and no network, and gives the same answer to the same prompt.

It answers in streamed Markdown. On request it shows every part of a host; each part has a slash command (`/help`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ahpkit.agents.acp.access import FileAccess
from ahpkit.agents.demo_commands import announced, quoted, run_command, stream
from ahpkit.agents.demo_tools import READER, demo_tools
from ahpkit.host.agent import FIRST_STAYS, Agent, AgentChat, Chat, StopReason, Turn
from ahpkit.protocol.root import SessionModelInfo
from ahpkit.protocol.session.state import SessionConfigSchema

_MODELS: Sequence[SessionModelInfo] = (
    {"id": "demo-small", "provider": "demo", "name": "Demo Small", "maxContextWindow": 8_000},
    {"id": "demo-large", "provider": "demo", "name": "Demo Large", "maxContextWindow": 128_000, "supportsVision": True},
    {"id": "m1", "provider": "demo", "name": "Demo M1"},
)
"""Public recordings of clients use the model `m1`, so they can be replayed to a host with default settings."""

_TOPICS = ("astronomy", "botany", "chemistry", "geography", "history", "music")

_CONFIG: SessionConfigSchema = {
    "type": "object",
    "properties": {
        "greeting": {
            "type": "string",
            "title": "Greeting",
            "description": "How the demo agent greets you.",
            "enum": ["Hello", "Hallo", "Hola"],
            "default": "Hello",
            "sessionMutable": True,
        },
        "topic": {
            "type": "string",
            "title": "Topic",
            "description": "What the session is about. It cannot be changed later.",
            "enum": list(_TOPICS[:2]),
            "enumDynamic": True,
        },
    },
}
"""One property that can be changed at any time, and one that is set at the start and has more values than are
listed."""


class DemoAgent(Agent):
    """The provider `demo`."""

    provider = "demo"
    display_name = "Demo"
    description = "Shows what a host can do. Needs no key and no network; type /help."
    models = _MODELS
    tools = demo_tools().definitions()
    resumes = True
    directories = FIRST_STAYS
    writes_outside_calls = False

    def __init__(self, *, files: Callable[[Chat], FileAccess] | None = None) -> None:
        """`files` reads files for the agent's tool, under the host's policy. Without it the tool reads files in the
        working directory only."""
        self._files = files

    async def open(self, chat: Chat) -> AgentChat:
        chat.commands(announced())
        return _DemoChat(None if self._files is None else self._files(chat))

    async def session_config(
        self, working_directory: Path | None, values: Mapping[str, Any]
    ) -> SessionConfigSchema | None:
        return _CONFIG

    async def config_completions(
        self, working_directory: Path | None, property: str, query: str
    ) -> Sequence[Mapping[str, str]]:
        topics = _TOPICS if property == "topic" else ()
        return [{"value": topic, "label": topic.title()} for topic in topics if query.lower() in topic]


class _DemoChat(AgentChat):
    def __init__(self, files: FileAccess | None) -> None:
        self._files = files

    @property
    def can_rest(self) -> bool:
        return True

    async def run(self, turn: Turn) -> StopReason | None:
        READER.set(None if self._files is None else self._files.read)
        prompt = turn.prompt.strip()
        if prompt.startswith("/"):
            name, *arguments = prompt[1:].split(maxsplit=1) or [""]
            await run_command(turn, name, "".join(arguments))
        else:
            await stream(turn, _answer(turn, prompt))
        return None


def _answer(turn: Turn, prompt: str) -> str:
    model = turn.model["id"] if turn.model else _MODELS[0]["id"]
    greeting = turn.chat.config.get("greeting", "Hello")
    labels = [f"- {attachment.get('label') or 'something'}" for attachment in turn.message.get("attachments", ())]
    attached = ["", "You attached:", "", *labels] if labels else []
    about = f"I am the demo agent (`{model}`). I need no key and no network; type `/help` to see what I can show you."
    return "\n".join([f"{greeting}! You said:", "", quoted(prompt), *attached, "", about])


__all__ = ["DemoAgent"]
