"""Turns typed Python functions into tools of this client, and runs them when a call comes.

@client.tool
async def run_tests(pattern: str, context: ToolContext) -> str:
    "Run the unit tests that match a pattern."
    context.show("collecting …")
    ...
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast, get_type_hints

from ahpkit.authoring.tool_functions import ToolFunction
from ahpkit.protocol.chat.state import ToolCallResult, ToolResultContent
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolAnnotations, ToolDefinition
from ahpkit.wire.codec import encode

Content = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What a tool shows: text, one content object of the wire, or several."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to a tool that has a parameter of this type: which call it is, and how to show progress."""

    session: str
    chat: str
    turn_id: str
    tool_call_id: str
    meta: Mapping[str, Any]
    _show: Callable[[list[ToolResultContent]], None]

    def show(self, content: Content) -> None:
        """Replace what everyone sees while the tool runs. Works from threads too."""
        self._show(_contents(content))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result when text or plain data is not enough."""

    content: Content = ""
    success: bool = True
    message: str | None = None
    """What was done, in the past tense, for the people who follow the chat."""
    structured: Mapping[str, Any] | None = None


class Tool:
    """A registered tool."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> None:
        self._context = _context_parameter(function)
        injected = () if self._context is None else (self._context,)
        self._function = ToolFunction(function, name=name, title=title, injected=injected)
        self.name = self._function.name
        self.definition: ToolDefinition = self._function.definition
        if annotations is not None:
            self.definition = {**self.definition, "annotations": annotations}

    async def run(self, tool_input: str, context: ToolContext) -> ToolCallResult:
        """Run it on the call's input; whatever goes wrong becomes a failed result."""
        try:
            arguments = self._function.arguments(tool_input)
            if self._context is not None:
                arguments[self._context] = context
            return _result(self.name, await _call(self._function.function, arguments))
        except Exception as error:  # A tool is the user's code.
            return failed(f"{self.name} failed", f"{type(error).__name__}: {error}")


def failed(message: str, error: str) -> ToolCallResult:
    """The result of a call that did not work."""
    return {"success": False, "pastTenseMessage": message, "error": {"message": error}}


def _context_parameter(function: Callable[..., Any]) -> str | None:
    hints = get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is ToolContext and name != "return"), None)


async def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Plain functions run in a thread: they may block without stopping the connection."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    result = await asyncio.to_thread(function, **arguments)
    await asyncio.sleep(0)  # From Python 3.14 a quick thread's result can overtake what it showed before.
    return await result if inspect.isawaitable(result) else result


def _result(name: str, returned: Any) -> ToolCallResult:
    given = returned if isinstance(returned, ToolResult) else _wrapped(returned)
    result: ToolCallResult = {"success": given.success, "pastTenseMessage": given.message or f"Ran {name}"}
    if contents := _contents(given.content):
        result["content"] = contents
    if given.structured is not None:
        result["structuredContent"] = dict(given.structured)
    return result


def _wrapped(returned: Any) -> ToolResult:
    """Plain data as a result: text as it is, content objects as they are, everything else as JSON."""
    if returned is None or isinstance(returned, str):
        return ToolResult(returned or "")
    if _is_content(returned):
        return ToolResult(returned)
    text = encode(returned).decode()
    return ToolResult(text, structured=cast("JsonObject", returned) if isinstance(returned, dict) else None)


def _is_content(value: Any) -> TypeGuard[Content]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and "type" in item for item in items)


def _contents(content: Content) -> list[ToolResultContent]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    items: Any = [content] if isinstance(content, Mapping) else content
    return list(items)


__all__ = ["Content", "Tool", "ToolContext", "ToolResult", "failed"]
