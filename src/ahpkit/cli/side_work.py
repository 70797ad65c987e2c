"""Shows what a turn runs beside its chat: terminals, and chats of sub-agents that need a person."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Self

from ahpkit.cli.console import Console
from ahpkit.cli.open_decisions import Decisions
from ahpkit.cli.terminals import watch_terminal
from ahpkit.client import Client, Session
from ahpkit.protocol.errors import AhpError

_log = logging.getLogger(__name__)


class Helpers:
    """Looks after the sub-agents and the terminals of one turn while the `async with` lasts."""

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
        """Follow chats, by URI with their titles, that are not followed yet."""
        for uri, title in chats.items():
            if uri not in self._following:
                self._following[uri] = asyncio.create_task(self._follow(uri, title))

    def watch(self, terminals: Iterable[str]) -> None:
        """Show what terminals print, those that are not watched yet."""
        for uri in terminals:
            if uri not in self._following:
                self._following[uri] = asyncio.create_task(self._watch(uri))

    async def ask_again(self) -> int:
        """Ask once more for what the sub-agents wait for; how much that was."""
        return sum([await one.ask_again() for one in list(self._decisions)])

    async def _watch(self, uri: str) -> None:
        try:
            await watch_terminal(self._console, self._client, uri)
        except AhpError as error:  # It is gone, or prints faster than anybody reads.
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
        except AhpError as error:  # It is gone, or so is the host; the chat on the screen tells.
            _log.info("%s: %s", uri, error)


__all__ = ["Helpers"]
