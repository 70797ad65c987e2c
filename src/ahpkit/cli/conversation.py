"""A conversation at the terminal: what is typed here, what others do meanwhile, and decisions. Knows no click.

What is shown comes from the chat's state, so that turns of other clients, and those missed while the connection was
away, are shown like our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from ahpkit.cli.console import Console
from ahpkit.cli.decide import ask_approval, ask_questions
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.race import race
from ahpkit.cli.show_turn import TurnPrinter
from ahpkit.client import ActionRejected, Approve, Chat, Decline, Dispatch, Rejected, Subscription
from ahpkit.client.answers import answer_to
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnEvent, TurnStarted
from ahpkit.client.turn_tracker import TurnTracker, find_turn

_LEAVE = frozenset({"/quit", "/exit"})

_WAITING = frozenset({"pending-confirmation", "pending-result-confirmation"})

_RECENT = 3
"""Turns of an old session that are shown when it is taken up again."""

_CANCELLING = 0.5
"""Seconds before a person wonders whether Ctrl-C did anything."""


class Left(Exception):
    """The person pressed Ctrl-C a second time."""


class Conversation:
    """One chat on one console."""

    def __init__(self, console: Console, chat: Chat, channel: Subscription) -> None:
        """`channel` is a subscription of the chat's channel."""
        self._console = console
        self._chat = chat
        self._channel = channel
        self._entry = LineEditor()
        self._on_screen = ""
        """The turn that is shown now, or was shown last."""
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
        async for event in turn:
            match event:
                case TurnStarted(turn_id=turn_id, message=message):
                    self._on_screen = turn_id
                    if not ours:
                        self._console.say(f"» {message['text']}", "bold")
                case ConfirmationNeeded():
                    await self._confirm(event)
                case InputNeeded():
                    await self._answer(event)
                case _:
                    printer.show(event)

    # Decisions: ours, unless somebody else is faster.

    async def _confirm(self, event: ConfirmationNeeded) -> None:
        call_id = event.call["toolCallId"]

        def decided(state: Any) -> bool:
            return not any(
                part["kind"] == "toolCall"
                and part["toolCall"]["toolCallId"] == call_id
                and part["toolCall"]["status"] in _WAITING
                for part in state.get("activeTurn", {}).get("responseParts", ())
            )

        decision = await self._unless(decided, ask_approval(self._console, event))
        if decision is None:
            return
        approved = isinstance(decision, Approve)
        if event.of == "result":
            dispatch = self._chat.confirm_result(call_id, approved=approved)
        elif approved:
            dispatch = self._chat.approve(call_id, option_id=decision.option_id)
        else:
            dispatch = self._chat.deny(call_id, option_id=decision.option_id, reason=decision.reason)
        await self._settle(dispatch)

    async def _answer(self, event: InputNeeded) -> None:
        request = event.request

        def answered(state: Any) -> bool:
            return all(one["id"] != request["id"] for one in state.get("inputRequests", ()))

        async def check(question_id: str, value: Any) -> str | None:
            answer = answer_to(request, question_id, value)
            outcome = await self._chat.draft(request["id"], question_id, answer)
            return outcome.reason if isinstance(outcome, Rejected) else None

        reply = await self._unless(answered, ask_questions(self._console, event, check))
        if reply is None:
            return
        if isinstance(reply, Decline):
            await self._settle(self._chat.decline(request["id"]))
        else:
            await self._settle(self._chat.answer(request["id"], reply.answers))

    async def _unless(self, settled: Callable[[Any], bool], asking: Any) -> Any:
        """What the person says; None when it was settled elsewhere meanwhile, and they are told."""
        name, answer = await race(answer=asking, settled=self._channel.wait_for(settled))
        if name == "settled" and self._goes_on():
            self._console.say("  settled by another client", "dim")
        return answer if name == "answer" else None

    def _goes_on(self) -> bool:
        """Whether the turn on the screen runs, or completed: it did not end in the middle of a question."""
        turn = find_turn(dict(self._chat.confirmed), self._on_screen)
        return turn is not None and turn.get("state") in (None, "complete")

    async def _settle(self, dispatch: Dispatch) -> None:
        outcome = await dispatch
        if isinstance(outcome, Rejected):
            self._console.say(f"✗ {outcome.reason}", "red")


async def _result(task: asyncio.Task[None]) -> None:
    await asyncio.shield(task)


__all__ = ["Conversation", "Left"]
