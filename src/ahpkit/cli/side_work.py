"""Shows what runs beside the chat of a turn: terminals, and chats of sub-agents that need a person."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from ahpkit.cli.ask_person import Decisions
from ahpkit.cli.console import Console
from ahpkit.cli.output import Output
from ahpkit.cli.text import printable
from ahpkit.client import Client, Session
from ahpkit.host.terminals.output import plain
from ahpkit.protocol.errors import AhpError

TERMINAL = "ahp-terminal:"

_LINES = 12
"""Lines of one terminal that are shown in a conversation. They suffice to see how a command is doing."""

_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n|\Z)")


def readable(text: str) -> str:
    """The lines as they look on a screen: without colours, cursor movements and overwritten text."""
    return _OVERWRITTEN.sub("", plain(text)).replace("\r", "")


def as_shown(text: str, *, is_pty: bool) -> str:
    """The output of a terminal for a reader. Output without a pty is plain text, so nothing is removed from it."""
    return readable(text) if is_pty else printable(text)


def has_pty(state: Any) -> bool:
    """Whether a terminal has a pty. It does unless its state says otherwise."""
    return state.get("isPty") is not False


def printed(state: Any) -> str:
    """Everything that a terminal has printed so far."""
    text = "".join(part["value"] if "value" in part else part["output"] for part in state["content"])
    return as_shown(text, is_pty=has_pty(state))


async def watch_terminal(output: Output, client: Client, uri: str) -> None:
    """Show the first lines of a terminal as they come, and say where to see the rest."""
    async with client.subscribe(uri) as terminal:
        is_pty = has_pty(terminal.confirmed)
        *lines, rest = printed(terminal.confirmed).split("\n")
        shown = 0
        while True:
            for line in lines[: _LINES - shown]:
                output.say(f"  │ {line}", "dim")
            shown += len(lines)
            if shown > _LINES:
                output.say(f"  │ … all of it:  ahpkit tail {uri}", "dim")
                return
            action: Any = (await anext(terminal))["action"]
            match action["type"]:
                case "terminal/data":
                    *lines, rest = (rest + as_shown(action["data"], is_pty=is_pty)).split("\n")
                case "terminal/exited":
                    lines, rest = [rest] if rest else [], ""
                case _:
                    lines = []


_log = logging.getLogger(__name__)


class Helpers:
    """Follows the sub-agents and the terminals of one turn until the `async with` ends."""

    def __init__(self, console: Console, client: Client, session: Session) -> None:
        self._console = console
        self._client = client
        self._session = session
        self._following: dict[str, asyncio.Task[None]] = {}
        self._decisions: list[Decisions] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._following.values():
            task.cancel()
        await asyncio.gather(*self._following.values(), return_exceptions=True)

    def look_after(self, chats: Mapping[str, str]) -> None:
        """Follow these chats, given by URI with their titles, except those that are followed already."""
        for uri, title in chats.items():
            if uri not in self._following:
                self._following[uri] = asyncio.create_task(self._follow(uri, title))

    def watch(self, terminals: Iterable[str]) -> None:
        """Show the output of these terminals, except those that are watched already."""
        for uri in terminals:
            if uri not in self._following:
                self._following[uri] = asyncio.create_task(self._watch(uri))

    async def ask_again(self) -> int:
        """Ask again about everything that the sub-agents wait for; returns how much that was."""
        return sum([await one.ask_again() for one in list(self._decisions)])

    async def _watch(self, uri: str) -> None:
        try:
            await watch_terminal(self._console, self._client, uri)
        except AhpError as error:  # The terminal is gone, or prints faster than it can be shown.
            _log.info("%s: %s", uri, error)

    async def _follow(self, uri: str, title: str) -> None:
        try:
            async with await self._session.chat(uri) as chat, self._client.subscribe(uri) as channel:
                await channel.wait_for(lambda state: "activeTurn" in state or state["turns"])
                decisions = Decisions(self._console, self._client, chat, channel, asker=title)
                if (turn := chat.follow()) is not None:
                    self._decisions.append(decisions)
                    async for event in turn:
                        await decisions.take(event)
                    self._decisions.remove(decisions)
        except AhpError as error:  # The chat or the host is gone. The chat on the screen tells the person about it.
            _log.info("%s: %s", uri, error)


__all__ = ["TERMINAL", "Helpers", "as_shown", "has_pty", "printed", "readable"]
