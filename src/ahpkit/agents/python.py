"""Runs a Python function as an agent.

    @agent(name="parrot")
    async def parrot(turn: Turn):
        yield f"You said: {turn.prompt}"

The function may be an async generator (each text it yields is streamed), an async function (it drives the turn itself;
text that it returns is added at the end), or plain versions of both. A plain function runs in its own thread and gets a
`TurnView`: it can read the turn, and its answer is what it returns or yields.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ahpkit.agents.tools import Toolbox
from ahpkit.host.agent import FIRST_STAYS, Agent, AgentChat, Chat, Command, StopReason, Turn, TurnContext
from ahpkit.protocol.chat.state import Message, ResponsePart
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import ModelSelection
from ahpkit.protocol.root import SessionModelInfo
from ahpkit.wire.errors import AhpError

AgentFunction = (
    Callable[[Turn], AsyncIterator[str]]
    | Callable[[Turn], Awaitable[str | None]]
    | Callable[["TurnView"], Iterator[str]]
    | Callable[["TurnView"], str | None]
)


@dataclass(frozen=True, slots=True)
class TurnView:
    """A copy of a turn that can be read from another thread. It does not change."""

    id: str
    prompt: str
    message: Message
    context: TurnContext
    model: ModelSelection | None
    history: Sequence[TurnRecord]
    working_directory: Path
    working_directories: Sequence[Path]
    config: Mapping[str, Any]
    resumed: bool
    parts: Sequence[ResponsePart]

    @classmethod
    def of(cls, turn: Turn) -> TurnView:
        chat = turn.chat
        return cls(
            turn.id,
            turn.prompt,
            turn.message,
            turn.context,
            turn.model,
            tuple(chat.history),
            chat.working_directory,
            tuple(chat.working_directories),
            dict(chat.config),
            turn.resumed,
            tuple(turn.parts),
        )


class PythonAgent(Agent):
    """An agent made of one function. Conversations share nothing but the function."""

    directories = FIRST_STAYS

    def __init__(
        self,
        function: AgentFunction,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        models: Sequence[str] = (),
        commands: Sequence[Command] = (),
        tools: Toolbox | None = None,
    ) -> None:
        """`tools` are the tools that the function calls. Clients see them, and no other tool gets their names."""
        self.provider = name
        self.display_name = title or name
        self.description = description or inspect.getdoc(function) or ""
        self.models: Sequence[SessionModelInfo] = [{"id": id, "provider": name, "name": id} for id in models]
        self.tools = () if tools is None else tools.definitions()
        self._commands = commands
        self._function = function

    async def open(self, chat: Chat) -> AgentChat:
        if self._commands:
            chat.commands(self._commands)
        return _PythonChat(self._function)


class _PythonChat(AgentChat):
    def __init__(self, function: AgentFunction) -> None:
        self._function: Any = function

    @property
    def can_rest(self) -> bool:
        return True

    async def run(self, turn: Turn) -> StopReason | None:
        if inspect.isasyncgenfunction(self._function):
            await _stream(turn, self._function(turn))
        elif inspect.iscoroutinefunction(self._function):
            _say(turn, await self._function(turn))
        elif inspect.isgeneratorfunction(self._function):
            await _stream(turn, _in_thread(self._function(TurnView.of(turn))))
        else:
            _say(turn, await asyncio.to_thread(self._function, TurnView.of(turn)))
        return None


def _say(turn: Turn, text: str | None) -> None:
    if text:
        turn.text(text)


async def _stream(turn: Turn, texts: AsyncIterator[str]) -> None:
    try:
        async for text in texts:
            _say(turn, text)
    finally:
        await cast(Any, texts).aclose()


async def _in_thread(texts: Generator[str, None, None]) -> AsyncIterator[str]:
    """Run a plain generator in a thread. When the turn is cancelled, the generator is closed after its present step."""
    step: asyncio.Future[str | None] | None = None
    try:
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(next, texts, None))
            text = await asyncio.shield(step)
            if text is None:
                return
            yield text
    finally:
        if step is not None:
            await asyncio.wait([step])
        await asyncio.to_thread(texts.close)


def agent(
    *,
    name: str,
    title: str | None = None,
    description: str | None = None,
    models: Sequence[str] = (),
    commands: Sequence[Command] = (),
    tools: Toolbox | None = None,
) -> Callable[[AgentFunction], PythonAgent]:
    """Make an agent of the function below; `name` is its provider id, `tools` are those that it calls."""

    def make(function: AgentFunction) -> PythonAgent:
        return PythonAgent(
            function, name=name, title=title, description=description, models=models, commands=commands, tools=tools
        )

    return make


class AgentNotLoaded(AhpError):
    """A reference to an agent in Python code cannot be loaded. The text says why."""


def load_agent(reference: str) -> Agent:
    """The agent at `module:name` or `path/to/file.py:name`. This runs the code, so the reference must be trusted."""
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise AgentNotLoaded(f"{reference!r} is not a reference to an agent: write module:name or file.py:name")
    try:
        found = getattr(_load_module(place), name)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise AgentNotLoaded(f"cannot load the agent {reference}: {error}") from error
    if not isinstance(found, Agent):
        kind = type(found).__name__
        raise AgentNotLoaded(f"{reference} is not an agent but of type {kind}: decorate a function with @agent")
    return found


def _load_module(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    if not Path(place).exists():
        raise ImportError(f"there is no file {Path(place).absolute()}")
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    assert spec is not None
    assert spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


__all__ = ["AgentFunction", "AgentNotLoaded", "PythonAgent", "TurnView", "agent", "load_agent"]
