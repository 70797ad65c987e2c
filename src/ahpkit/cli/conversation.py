"""A conversation at the terminal: what is typed here, and what others do meanwhile. Knows no click.

What is shown comes from the chat's state, so that turns of other clients, and those missed while the connection was
away, are shown like our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from ahpkit.cli.console import Console
from ahpkit.cli.decisions import Decisions
from ahpkit.cli.helpers import Helpers
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.race import race
from ahpkit.cli.show_turn import TurnPrinter, subagents
from ahpkit.client import ActionRejected, Chat, Subscription
from ahpkit.client.events import TurnEvent, TurnStarted
from ahpkit.client.turn_tracker import TurnTracker

_LEAVE = frozenset({"/quit", "/exit"})

_RECENT = 3
"""Turns of an old session that are shown when it is taken up again."""

_CANCELLING = 0.5
"""Seconds before a person wonders whether Ctrl-C did anything."""


class Left(Exception):
    """The person pressed Ctrl-C a second time."""


class Conversation:
    """One chat on one console."""

    def __init__(self, console: Console, chat: Chat, channel: Subscription, helpers: Callable[[], Helpers]) -> None:
        """`channel` is a subscription of the chat's channel; `helpers` makes what looks after a turn's sub-agents."""
        self._console = console
        self._chat = chat
        self._channel = channel
        self._helpers = helpers
        self._decisions = Decisions(console, chat, channel)
        self._entry = LineEditor()
        turns = chat.confirmed["turns"]
        unseen = _RECENT if console.interactive else 0
        self._shown = {turn["id"] for turn in turns[: max(len(turns) - unseen, 0)]}

    async def run(self) -> None:
        """Until the person leaves. Raises `Left` when they did so in the middle of a turn."""
        while True:
            match await race(
                line=self._console.line("> ", self._entry),
                turn=self._channel.wait_for(self._is_behind),
                interrupt=self._console.interrupted(),
            ):
                case "line", None:
                    return
                case "line", str(line):
                    if line.strip() in _LEAVE:
                        return
                    await self._send(line)
                case "interrupt", _:
                    if not self._entry.text:
                        return
                    self._entry.clear()
                case _:
                    await self._catch_up()

    # Our own turns.

    async def _send(self, text: str) -> None:
        if not text.strip():
            return
        turn = self._chat.send(text)
        self._shown.add(turn.turn_id)
        try:
            await self._show(turn, ours=True)
        except ActionRejected as error:
            self._console.say(f"✗ {error.reason}", "red")
            self._entry.before = text

    # Turns of others.

    def _is_behind(self, state: Any) -> bool:
        return self._next(state) is not None

    def _next(self, state: Any) -> str | None:
        """The first turn that was not shown yet."""
        active: Any = state.get("activeTurn")
        found: str | None = None if active is None or active["id"] in self._shown else active["id"]
        for turn in reversed(state["turns"]):
            if turn["id"] in self._shown:
                break
            found = turn["id"]
        return found

    async def _catch_up(self) -> None:
        while (turn_id := self._next(self._chat.confirmed)) is not None:
            self._shown.add(turn_id)
            running = self._chat.confirmed.get("activeTurn", {}).get("id") == turn_id
            await self._show((self._chat.follow() if running else None) or self._past(turn_id))

    async def _past(self, turn_id: str) -> AsyncIterator[TurnEvent]:
        for event in TurnTracker(turn_id).catch_up(dict(self._chat.confirmed)):
            yield event

    # Showing a turn.

    async def _show(self, turn: AsyncIterable[TurnEvent], *, ours: bool = False) -> None:
        """Show a turn to its end. Ctrl-C cancels it; the second one raises `Left`."""
        showing = asyncio.create_task(self._show_events(turn, ours=ours))
        try:
            if await self._event(showing) == "end":
                return
            with suppress(LookupError):  # It ended just now.
                self._chat.cancel()
            if (event := await self._event(showing, patience=_CANCELLING)) == "patience":
                self._console.say("… cancelling; Ctrl-C again leaves", "dim")
                event = await self._event(showing)
            if event == "interrupt":
                raise Left
        finally:
            showing.cancel()
            await asyncio.wait([showing])

    async def _event(self, showing: asyncio.Task[None], *, patience: float | None = None) -> str:
        """What comes first: the end of the turn, Ctrl-C, or the end of our patience."""
        waiting = {} if patience is None else {"patience": asyncio.sleep(patience)}
        event, _ = await race(end=_result(showing), interrupt=self._console.interrupted(), **waiting)
        return event

    async def _show_events(self, turn: AsyncIterable[TurnEvent], *, ours: bool) -> None:
        printer = TurnPrinter(self._console)
        async with self._helpers() as helpers:
            async for event in turn:
                if not ours and isinstance(event, TurnStarted):
                    self._console.say(f"» {event.message['text']}", "bold")
                if not await self._decisions.take(event):
                    printer.show(event)
                helpers.look_after(subagents(event))


async def _result(task: asyncio.Task[None]) -> None:
    await asyncio.shield(task)


__all__ = ["Conversation", "Left"]
