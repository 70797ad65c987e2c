"""Runs a conversation at the terminal: sends what the person types, and shows what others do meanwhile.

Everything shown is read from the chat's state. So turns of other clients, and turns that were missed while the
connection was lost, are shown like the person's own.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

from ahpkit.cli.ask_person import Decisions
from ahpkit.cli.chat_commands import Commands, OtherChat
from ahpkit.cli.connection import say_why_it_waits
from ahpkit.cli.console import Console
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.show_turn import StatusLine, TurnPrinter, terminals
from ahpkit.cli.side_work import Helpers
from ahpkit.client import ActionRejected, Chat, Client, Rejected, Session, Subscription, TurnStream
from ahpkit.client.ask import describe, subagents
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnEvent, TurnFailed, TurnStarted
from ahpkit.client.turn_tracker import TurnTracker
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.turns import is_resumable
from ahpkit.protocol.errors import AhpError
from ahpkit.wire.tasks import Tasks, running, wait_first

_LEAVE = frozenset({":quit", ":exit", ":q", "/quit", "/exit", "exit", "quit"})
"""Lines that end the conversation. Some are words of other programs; `:help` names only the first one."""

_RECENT = 3
"""The number of turns that are shown when an old session is opened again."""

_CANCELLING = 0.5
"""Seconds after which a person is told that Ctrl-C was noticed."""

_TICK = 0.5
"""Seconds between two updates of the status line."""

_PAUSE = 0.02
"""Waiting events are shown for at most this many seconds before the keys are read again."""

_LONG = 10.0
"""If a turn takes longer than this many seconds, the person may be looking elsewhere."""

_COMPLETING = 2.0
"""Seconds that the Tab key waits for the host's completions."""


class ConversationLeft(Exception):
    """The person pressed Ctrl-C a second time."""


class Conversation:
    """One chat on one console."""

    def __init__(
        self,
        console: Console,
        client: Client,
        session: Session,
        chat: Chat,
        channel: Subscription,
        *,
        first: str = "",
        call: Callable[[str], None] = lambda text: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`channel` is a subscription to the chat's channel. `first` is sent at once. `call` notifies a person who
        looks elsewhere."""
        self._first = first
        self._call = call
        self._now = now
        self._console = console
        self._client = client
        self._heard = 0
        """The number of events of turns that came."""
        self._session = session
        self._chat = chat
        self._channel = channel
        self._commands = Commands(console, client, session, chat, ask_again=self._ask_again, show_turn=self._show_ours)
        self._make_helpers = functools.partial(Helpers, console, client, session)
        self._helpers: Helpers | None = None
        """Follows the sub-agents and terminals of the turn on the screen."""
        self._printer = TurnPrinter(console)
        """Shows the turn on the screen."""
        self._asking = Tasks()
        """The tasks that ask again about postponed decisions."""
        self._decisions = Decisions(console, client, chat, channel)
        self._entry = LineEditor(self._complete)
        self._queued: dict[str, str] = {}
        """Messages that were typed here while a turn ran, by the ids of the queued messages."""
        turns = chat.confirmed["turns"]
        unseen = _RECENT if console.interactive else 0
        self._shown = {turn["id"] for turn in turns[: max(len(turns) - unseen, 0)]}
        self._failed: set[str] = set()
        """The ids of turns that were shown and failed. They may be continued later."""
        self._past_turns = {turn["id"] for turn in turns}
        """The ids of turns that are older than this conversation. They are shown like turns of this person."""

    async def run(self) -> OtherChat | None:
        """Run until the person leaves, or goes to another chat: that chat is returned. Raises `ConversationLeft` if the
        person leaves during a turn."""
        try:
            return await self._run()
        finally:
            self._keep_draft()

    async def _run(self) -> OtherChat | None:
        self._take_draft()
        if self._first:
            self._console.say(f"> {self._first}", "bold")
            await self._send(self._first)
        while True:
            match await wait_first(
                line=self._console.line("> ", self._entry),
                turn=self._channel.wait_for(self._is_behind),
                interrupt=self._console.interrupted(),
            ):
                case "line", None:
                    return None
                case "line", str(line):
                    if line.strip() in _LEAVE:
                        return None
                    if (other := await self._take(line)) is not None:
                        return other
                case "interrupt", _:
                    if not self._entry.text:
                        return None
                    self._entry.clear()
                case _:
                    await self._catch_up()

    # Drafts: what was typed and not sent.

    def _take_draft(self) -> None:
        """Fill the line with the draft of the chat, if there is one."""
        draft = self._chat.confirmed.get("draft", {}).get("text", "")
        if self._console.interactive and draft and not self._entry.text:
            self._entry.before = draft

    def _keep_draft(self) -> None:
        """Store what is in the line as the chat's draft, for this or another client. A line that was sent is not a
        draft."""
        kept = self._chat.confirmed.get("draft", {}).get("text", "")
        text = self._entry.text if self._entry.text.strip() else ""
        if self._console.interactive and text != kept:
            self._chat.write_draft(text or None)

    async def _take(self, line: str) -> OtherChat | None:
        if self._commands.are_meant(line):
            return await self._commands.run(line)
        await self._send(line)
        return None

    async def _complete(self, text: str, offset: int) -> Sequence[CompletionItem]:
        if text.startswith(":"):
            return self._commands.completions(text)
        try:
            async with asyncio.timeout(_COMPLETING):
                return await self._chat.completions(text, offset)
        except (AhpError, TimeoutError):  # A completion that fails needs no message.
            return ()

    # The person's own turns.

    async def _send(self, text: str) -> None:
        if not text.strip():
            return
        if not await self._show_ours(self._chat.send(text)):
            self._entry.before = text

    async def _show_ours(self, turn: TurnStream) -> bool:
        """Show a turn that was begun here. Returns whether the host accepted it."""
        self._shown.add(turn.turn_id)
        try:
            await self._show(turn.turn_id, turn, ours=True)
        except ActionRejected as error:
            read_only = self._chat.confirmed.get("interactivity") in ("read-only", "hidden")
            back = "; :chats lists those in which you can write" if read_only else ""
            self._console.say(f"✗ {error.reason}{back}", "red")
            return False
        turns = self._chat.confirmed["turns"]
        if turns and turns[-1]["id"] == turn.turn_id and is_resumable(turns[-1]) and self._console.interactive:
            self._console.say("  :resume goes on with it", "dim")
        return True

    async def _take_while_busy(self, line: str) -> None:
        """Take a line that was typed while a turn runs: a command, or a message that is queued."""
        if line.strip() in _LEAVE:
            raise ConversationLeft
        if self._commands.are_meant(line):
            await self._commands.run(line)
            return
        dispatch = self._chat.queue(line)
        self._queued[dispatch.action["id"]] = line
        if isinstance(outcome := await dispatch, Rejected):
            self._console.say(f"✗ {outcome.reason}", "red")
            self._entry.before = line
        else:
            self._commands.later.append(line)
            self._console.say("  queued until this turn is over; :steer TEXT tells the agent now", "dim")

    def _cancel(self) -> None:
        """Cancel the turn, and show no more of its text. Messages that were queued here come back to the line, because
        they were meant for the time after an answer."""
        self._printer.stop()
        waiting = {message["id"] for message in self._chat.state.get("queuedMessages", ())}
        back = {id: text for id, text in self._queued.items() if id in waiting}
        for id in back:
            self._chat.unqueue(id)
        self._entry.before = "\n".join([*back.values(), *filter(None, [self._entry.before])])
        with suppress(LookupError):  # The turn ended at this moment.
            self._chat.cancel()

    # Turns of others.

    def _is_behind(self, state: Any) -> bool:
        return self._next(state) is not None

    def _next(self, state: Any) -> str | None:
        """The id of the first turn that was not shown yet, or that failed and was continued elsewhere since; None if
        there is none."""
        found: str | None = state.get("activeTurn", {}).get("id")
        for turn in reversed(state["turns"]):
            went_on = turn["id"] in self._failed and turn["state"] != "error"
            if turn["id"] in self._shown and not went_on:
                break
            found = turn["id"]
        return found

    async def _catch_up(self) -> None:
        while (turn_id := self._next(self._chat.confirmed)) is not None:
            if turn_id in self._shown:
                self._console.say("! the turn that failed goes on", "green")
            self._shown.add(turn_id)
            running = self._chat.confirmed.get("activeTurn", {}).get("id") == turn_id
            turn = (self._chat.follow() if running else None) or self._past(turn_id)
            await self._show(turn_id, turn, past=turn_id in self._past_turns)

    async def _past(self, turn_id: str) -> AsyncIterator[TurnEvent]:
        for event in TurnTracker(turn_id).catch_up(dict(self._chat.confirmed)):
            yield event

    # Showing a turn.

    async def _show(
        self, turn_id: str, turn: AsyncIterable[TurnEvent], *, ours: bool = False, past: bool = False
    ) -> None:
        """Show a turn to its end. The first Ctrl-C cancels the turn; the second one raises `ConversationLeft`."""
        self._failed.discard(turn_id)
        began = self._now()
        shown = self._show_events(turn_id, turn, ours=ours, past=past)
        explaining = say_why_it_waits(self._client, self._console, lambda: self._heard)
        async with Tasks() as self._asking, running(explaining), running(shown) as showing:
            try:
                await self._until_over(showing)
                if self._now() - began > _LONG:
                    self._call("the turn is over")
            finally:
                self._helpers = None

    def _ask_again(self) -> bool:
        if self._helpers is None:
            return False
        if not len(self._asking):
            self._asking.spawn(self._ask_for_pending(self._helpers), name="ask again")
        return True

    async def _ask_for_pending(self, helpers: Helpers) -> None:
        if not await self._decisions.ask_again() + await helpers.ask_again():
            self._console.say("  Nothing waits for you here. In all sessions:  ahpkit inbox", "dim")

    async def _until_over(self, showing: asyncio.Future[None]) -> None:
        cancelled, patience = False, float("inf")
        while True:
            match await wait_first(
                line=self._console.typed("> ", self._entry),
                end=_result(showing),
                interrupt=self._console.interrupted(),
                patience=_lost(patience),
            ):
                case "line", str(line):
                    await self._take_while_busy(line)
                case "end", _:
                    return
                case "interrupt", _:
                    if cancelled:
                        raise ConversationLeft
                    cancelled, patience = True, _CANCELLING
                    self._cancel()
                case _:
                    patience = float("inf")
                    self._console.say("… cancelling; Ctrl-C again leaves", "dim")

    async def _tick(self, status: StatusLine) -> None:
        """Update the status line while a turn runs."""
        try:
            while True:
                self._console.status(status.text(self._now()))
                await asyncio.sleep(_TICK)
        finally:
            self._console.status(None)

    async def _show_events(self, turn_id: str, turn: AsyncIterable[TurnEvent], *, ours: bool, past: bool) -> None:
        printer = self._printer = TurnPrinter(self._console)
        chosen: Any = self._session.selection.get("model", {})
        status = StatusLine(self._session.state["provider"], chosen.get("id"), self._now())
        async with self._make_helpers() as helpers, running(self._tick(status)):
            self._helpers = helpers
            paused = self._now()
            async for event in turn:
                self._heard += 1
                # Keys and Ctrl-C are read now and then, however many events have come already.
                if self._now() - paused > _PAUSE:
                    await asyncio.sleep(0)
                    paused = self._now()
                if self._console.interrupt_waits:
                    printer.stop()
                status.take(event)
                if isinstance(event, TurnFailed):
                    self._failed.add(turn_id)
                if not ours and isinstance(event, TurnStarted):
                    text = event.message["text"]
                    self._console.say(f"{'>' if past else self._mark(text)} {text}", "bold")
                if isinstance(event, (ConfirmationNeeded, InputNeeded)):
                    self._call(describe(event))
                if not await self._decisions.take(event):
                    printer.show(event)
                helpers.look_after(subagents(event))
                helpers.watch(terminals(event))

    def _mark(self, text: str) -> str:
        """The mark before a message: `>` if it was typed here, else `»`."""
        if text not in self._commands.later:
            return "»"
        self._commands.later.remove(text)
        return ">"


async def _result(task: asyncio.Future[None]) -> None:
    await asyncio.shield(task)


async def _lost(patience: float) -> None:
    await (asyncio.Future[None]() if patience == float("inf") else asyncio.sleep(patience))


__all__ = ["Conversation", "ConversationLeft"]
