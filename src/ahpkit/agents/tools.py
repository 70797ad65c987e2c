"""Tools as typed Python functions: their definitions for the model, approval, running, the result.

    tools = Toolbox()

    @tools.tool
    def add(a: int, b: int) -> int:
        "Add two numbers."
        return a + b

    outcome = await tools.call(turn, "add", {"a": 1, "b": 2})

A tool asks for approval unless it is registered with `approval=False`. Tools of others (clients, MCP servers, canvases)
are called by the names in `turn.context.tools`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_type_hints, overload

from ahpkit.authoring.tool_functions import ToolFunction, ToolInputError
from ahpkit.host.agent import ToolCall, ToolOutcome, Turn
from ahpkit.protocol.chat.state import ConfirmationOption, ToolResultContent
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import CALL_TOOL, FIND_TOOL, asked_for, found_text, input_object

_log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_INJECTED = {Turn, ToolCall}
"""Parameters of these types are filled in by us and not shown to the model."""


class ToolError(Exception):
    """A tool failed in a way that the model and the user should read about."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function, its definition for the model, and whether a person must approve it first."""

    function: ToolFunction
    injected: dict[str, type]
    approval: bool


class Toolbox:
    """The tools of an agent."""

    def __init__(self, *, options: Sequence[ConfirmationOption] = (), editable: bool = False) -> None:
        """`options` are offered with every approval; `editable` lets the person change the input first."""
        self._tools: dict[str, Tool] = {}
        self._options = options
        self._editable = editable

    @overload
    def tool(self, function: F) -> F: ...

    @overload
    def tool(self, *, name: str | None = None, title: str | None = None, approval: bool = True) -> Callable[[F], F]: ...

    def tool(
        self, function: F | None = None, *, name: str | None = None, title: str | None = None, approval: bool = True
    ) -> F | Callable[[F], F]:
        """Register a function. Parameters typed `Turn` or `ToolCall` are filled in when it is called."""

        def register(function: F) -> F:
            hints = get_type_hints(function)
            injected = {key: hint for key, hint in hints.items() if hint in _INJECTED}
            made = ToolFunction(function, name=name, title=title, injected=injected)
            self._tools[made.name] = Tool(made, injected, approval)
            return function

        return register if function is None else register(function)

    def definitions(self, turn: Turn | None = None) -> list[ToolDefinition]:
        """The definitions for the model: these tools and, if a turn is given, the tools of others."""
        own = [tool.function.definition for tool in self._tools.values()]
        others = [] if turn is None else turn.context.listed or turn.context.tools
        return own + [tool for tool in others if tool["name"] not in self._tools]

    async def call(
        self, turn: Turn, name: str, tool_input: str | Mapping[str, Any], *, id: str | None = None
    ) -> ToolOutcome:
        """Run the tool that the model asked for, and show it in the turn. A failure is an outcome, not an exception.

        The input is an object, or the text that the model wrote.
        """
        tool_input = tool_input if isinstance(tool_input, str) else json.dumps(tool_input, ensure_ascii=False)
        tool = self._tools.get(name)
        if tool is not None:
            return await self._run(turn, tool, tool_input, id)
        if any(one["name"] == name for one in (*turn.context.tools, *turn.context.gone)):
            return await turn.call_tool(name, tool_input, id=id)
        if name in (FIND_TOOL, CALL_TOOL):
            return await self._find_or_call(turn, name, tool_input, id)
        known = ", ".join(one["name"] for one in self.definitions(turn))
        return ToolOutcome(success=False, error=f"there is no tool {name!r}; there are: {known or 'none'}")

    async def _find_or_call(self, turn: Turn, name: str, tool_input: str, id: str | None) -> ToolOutcome:
        """Find a tool, or call one, when the list of tools is too long to be given to the model."""
        try:
            arguments = input_object(tool_input)
            if name == FIND_TOOL:
                return outcome_of(found_text([*self.definitions(), *turn.context.tools], arguments))
            meant, wanted = asked_for(arguments)
        except ValueError as error:
            return ToolOutcome(success=False, error=str(error))
        if meant in (FIND_TOOL, CALL_TOOL):
            return ToolOutcome(success=False, error=f"{meant} is called by its own name")
        return await self.call(turn, meant, wanted, id=id)

    async def _run(self, turn: Turn, tool: Tool, tool_input: str, id: str | None) -> ToolOutcome:
        definition = tool.function.definition
        call = turn.tool_call(definition["name"], display_name=definition.get("title"), id=id)

        async def run(given: str) -> ToolOutcome:
            return await _execute(tool, given, {Turn: turn, ToolCall: call})

        return await call.perform(
            run, tool_input=tool_input, options=self._options, editable=self._editable, asks=tool.approval
        )


async def _execute(tool: Tool, tool_input: str, ours: dict[type, object]) -> ToolOutcome:
    name, function = tool.function.name, tool.function.function
    try:
        arguments = tool.function.arguments(tool_input)
        arguments |= {parameter: ours[kind] for parameter, kind in tool.injected.items()}
        if inspect.iscoroutinefunction(function):
            return outcome_of(await function(**arguments))
        return outcome_of(await asyncio.to_thread(function, **arguments))
    except (ToolError, ToolInputError) as error:
        return ToolOutcome(success=False, error=str(error))
    except Exception:  # A tool may raise anything.
        _log.exception("the tool %s failed", name)
        return ToolOutcome(success=False, error=f"{name} failed unexpectedly; the host's log has the details")


def outcome_of(result: Any) -> ToolOutcome:
    """The return value of a tool function as an outcome. Text stays text; an object is given as text and as data."""
    if isinstance(result, ToolOutcome):
        return result
    if result is None:
        return ToolOutcome(success=True)
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    content: list[ToolResultContent] = [{"type": "text", "text": text}]
    structured = cast("dict[str, Any]", result) if isinstance(result, dict) else None
    return ToolOutcome(success=True, content=content, structured_content=structured)


def text_of(outcome: ToolOutcome) -> str:
    """An outcome as text for a model or a person: its texts, or the error."""
    if not outcome.success:
        return outcome.error or "the tool failed"
    return "\n".join(outcome.texts)


__all__ = ["Tool", "ToolError", "Toolbox", "outcome_of", "text_of"]
