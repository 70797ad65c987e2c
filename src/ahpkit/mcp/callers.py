"""The callers of MCP servers: a turn that runs a tool, and a message whose prompts and resources are read.

Each implements `ahpkit.mcp.calls.Caller`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from ahpkit.agents.acp.questions import form_answer, form_questions
from ahpkit.host.agent import AgentError, ToolCall, Turn
from ahpkit.host.feature import Services
from ahpkit.mcp.errors import McpError
from ahpkit.protocol.chat.actions import chat_tool_call_auth_required, chat_tool_call_auth_resolved
from ahpkit.protocol.chat.state import ChatInputQuestion
from ahpkit.protocol.common.state import JsonObject

_MESSAGE = 1000
"""Characters of a progress message."""

_BURST = 20
_EVERY = 0.1
"""Seconds for one more word of progress, when `_BURST` of them came at once."""


class Pace:
    """How often something may happen: some at once, then a steady few. What comes faster is left out."""

    def __init__(self, clock: Callable[[], float], *, burst: int = _BURST, every: float = _EVERY) -> None:
        self._clock = clock
        self._burst = burst
        self._every = every
        self._left = float(burst)
        self._at = clock()

    def allows(self) -> bool:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) / self._every)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class TurnCaller:
    """A turn that runs an MCP tool: progress is shown in the call, questions go to its people."""

    def __init__(self, turn: Turn, call: ToolCall, services: Services) -> None:
        self._turn = turn
        self._call = call
        self._services = services
        self._pace = Pace(asyncio.get_running_loop().time)

    @property
    def session(self) -> str:
        return self._turn.chat.session_uri

    def auth_required(self, state: JsonObject) -> None:
        """The server wants a token first: the call shows it, and so does the session."""
        needed: Any = {key: value for key, value in state.items() if key != "kind"}
        self._dispatch(chat_tool_call_auth_required(turn_id=self._turn.id, tool_call_id=self._call.id, auth=needed))

    def auth_resolved(self) -> None:
        self._dispatch(chat_tool_call_auth_resolved(turn_id=self._turn.id, tool_call_id=self._call.id))

    def _dispatch(self, action: Any) -> None:
        if not self._turn.ended.is_set():
            self._services.dispatch(self._turn.chat.uri, action)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._pace.allows():
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            self._call.content([{"type": "text", "text": f"{message[:_MESSAGE]} ({share})" if message else share}])

    async def elicit(self, params: JsonObject) -> JsonObject:
        words = str(params.get("message", ""))[:4000]
        if params.get("mode") == "url":
            given = await self._turn.ask([], message=words, url=str(params.get("url", "")))
            return {"action": given.response}
        schema = params.get("requestedSchema")
        return form_answer(schema, await self._turn.ask(form_questions(schema), message=words))

    async def sample(self, params: JsonObject) -> JsonObject:
        """Ask the session's own agent, when its people agree."""
        words = _asked_of_model(params)
        question: ChatInputQuestion = {
            "kind": "single-select",
            "id": "sampling",
            "message": f"The MCP server wants to ask the model:\n\n{words}",
            "options": [{"id": "allow", "label": "Allow once"}, {"id": "deny", "label": "Deny"}],
            "required": True,
        }
        given = await self._turn.ask([question])
        picked: Any = given.answers.get("sampling") or {}
        if given.response != "accept" or picked.get("value", {}).get("value") != "allow":
            raise McpError("the user did not allow this server to ask the model")
        try:
            return await self._services.sample(self._turn.chat.session_uri, params)
        except AgentError as error:
            raise McpError(str(error)) from error


def _asked_of_model(params: JsonObject) -> str:
    """What a sampling request says, as a person reads it."""
    messages: list[JsonObject] = params.get("messages") or []
    words: list[str] = [str(params.get("systemPrompt") or "")]
    for message in messages:
        content: Any = message.get("content")
        parts = cast("list[JsonObject]", content if isinstance(content, list) else [content or {}])
        words += [str(part.get("text") or f"({part.get('type')})") for part in parts]
    return "\n".join(filter(None, words))[:4000]


class SilentCaller:
    """Reads prompts and resources for a message that is being sent.

    There is nobody who could answer a server's questions then.
    """

    def __init__(self, session: str) -> None:
        self.session = session

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def auth_required(self, state: JsonObject) -> None: ...

    def auth_resolved(self) -> None: ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask questions only while a tool runs")

    async def sample(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask the model only while a tool runs")


__all__ = ["Pace", "SilentCaller", "TurnCaller"]
