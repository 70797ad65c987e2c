"""Asks for the approvals and answers that a chat waits for, until this person or another client gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ahpkit.cli.ask_person import ask_approval, ask_questions, verdict
from ahpkit.cli.console import Console
from ahpkit.client import Approve, Chat, Client, Decline, Deny, Dispatch, Rejected, Subscription
from ahpkit.client.answers import answer_to, open_requests
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnEvent
from ahpkit.client.turn_tracker import TurnTracker
from ahpkit.protocol.chat.turns import find_tool_call, find_turn
from ahpkit.protocol.errors import AhpError
from ahpkit.wire.tasks import running, wait_first

_WAITING = frozenset({"pending-confirmation", "pending-result-confirmation"})

_READING = 5.0
"""Seconds to wait for the text of a file that an edit changes."""

_LONGEST = 1_000_000
"""Characters of a file. The changed lines of a longer file are not computed, because that takes too long."""

Settled = Callable[[Any], bool]
"""Tells from the chat's state whether the decision is no longer needed."""


class Decisions:
    """Asks the person at the console for the decisions that one chat waits for. The console shows one question at a
    time, from all chats together."""

    def __init__(self, console: Console, client: Client, chat: Chat, channel: Subscription, *, asker: str = "") -> None:
        """`channel` is a subscription to the chat's channel. `asker` names the chat in questions, if it is not the one
        on the screen."""
        self._console = console
        self._client = client
        self._asker = asker
        self._chat = chat
        self._channel = channel

    async def take(self, event: TurnEvent) -> bool:
        """Ask if an event needs a decision. Returns whether it does."""
        match event:
            case ConfirmationNeeded():
                await self._confirm(event)
            case InputNeeded():
                await self._answer(event)
            case _:
                return False
        return True

    async def ask_again(self) -> int:
        """Ask again about everything that waits for a decision, also about postponed questions; returns how many there
        are."""
        turn_id = self._chat.confirmed.get("activeTurn", {}).get("id", "")
        happened = TurnTracker(turn_id).catch_up(dict(self._chat.confirmed))
        waiting = [event for event in happened if isinstance(event, (ConfirmationNeeded, InputNeeded))]
        for event in waiting:
            await self.take(event)
        return len(waiting)

    async def _confirm(self, event: ConfirmationNeeded) -> None:
        call_id = event.call["toolCallId"]
        decision = await self._unless(_is_decided(call_id), lambda: self._ask_approval(event))
        if decision is None:
            return
        approved = isinstance(decision, Approve)
        if event.of == "result":
            await self._dispatch(lambda: self._chat.confirm_result(call_id, approved=approved))
        elif approved:
            given = {"option_id": decision.option_id, "edited_input": decision.edited_input}
            await self._dispatch(lambda: self._chat.approve(call_id, **given))
        else:
            options = {"option_id": decision.option_id, "reason": decision.reason}
            await self._dispatch(lambda: self._chat.deny(call_id, **options))

    async def _ask_approval(self, event: ConfirmationNeeded) -> Approve | Deny | None:
        """Ask for an approval. If a judge is still assessing the call, show the assessment when it comes."""
        judged: Any = event.call.get("riskAssessment")
        if not judged or judged["status"] == "complete":
            return await ask_approval(self._console, event, self._read)
        async with running(self._tell_verdict(event.call["toolCallId"])):
            return await ask_approval(self._console, event, self._read)

    async def _tell_verdict(self, call_id: str) -> None:
        def risk(state: Any) -> Any:
            call: Any = find_tool_call(state.get("activeTurn"), call_id)
            return {} if call is None else call.get("riskAssessment", {})

        state = await self._channel.wait_for(lambda state: risk(state).get("status") == "complete")
        self._console.say(f"  {verdict(risk(state))}", "yellow")

    async def _read(self, uri: str) -> str | None:
        try:
            found = await self._client.request("resourceRead", {"uri": uri, "encoding": "utf-8"}, timeout=_READING)
        except (AhpError, TimeoutError):  # The decision does not depend on the assessment.
            return None
        return found["data"] if found["encoding"] == "utf-8" and len(found["data"]) <= _LONGEST else None

    async def _answer(self, event: InputNeeded) -> None:
        """Ask the questions of an event. Each answer is sent at once, so that other clients see it and the host checks
        it."""
        request = event.request

        async def check(question_id: str, value: Any) -> str | None:
            answer = answer_to(request, question_id, value)
            reason = await self._refusal(lambda: self._chat.draft(request["id"], question_id, answer))
            # The question is shown right above, and its id means nothing to a person, so the id is cut off.
            return None if reason is None else reason.removeprefix(f"the answer to question {question_id!r} ")

        refused = True
        while refused:
            answered = _is_answered(request["id"])
            reply = await self._unless(answered, lambda: ask_questions(self._console, event, check))
            if reply is None:
                return
            if isinstance(reply, Decline):
                refused = await self._dispatch(lambda: self._chat.decline(request["id"]))
            else:
                refused = await self._dispatch(lambda reply=reply: self._chat.answer(request["id"], reply.answers))

    async def _unless(self, settled: Settled, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The person's decision. None if another client decided first; the person is told so if the question was shown
        already."""
        if settled(self._channel.confirmed):
            return None
        turn_id = self._chat.confirmed.get("activeTurn", {}).get("id", "")
        asked = asyncio.Event()
        name, answer = await wait_first(answer=self._ask(ask, asked), settled=self._channel.wait_for(settled))
        if name == "answer":
            return answer
        if asked.is_set() and self._went_on(turn_id):
            self._console.say("  settled by another client", "dim")
        return None

    async def _ask(self, ask: Callable[[], Coroutine[Any, Any, Any]], asked: asyncio.Event) -> Any:
        async with self._console.asking():
            asked.set()
            if self._asker:
                self._console.say(f"{self._asker} asks:", "dim")
            return await ask()

    def _went_on(self, turn_id: str) -> bool:
        """Whether the turn still runs or has completed, so that it did not end in the middle of a question."""
        turn = find_turn(self._chat.confirmed, turn_id)
        return turn is not None and turn.get("state") in (None, "complete")

    async def _dispatch(self, decide: Callable[[], Dispatch]) -> bool:
        """Send a decision to the host. Returns whether the host refused it; then the person is told why."""
        reason = await self._refusal(decide)
        if reason is not None:
            self._console.say(f"✗ {reason}", "red")
        return reason is not None

    async def _refusal(self, decide: Callable[[], Dispatch]) -> str | None:
        try:
            outcome = await decide()
        except LookupError:  # Another client decided at the same moment.
            return "it is settled already"
        return outcome.reason if isinstance(outcome, Rejected) else None


def _is_decided(call_id: str) -> Settled:
    def decided(state: Any) -> bool:
        call = find_tool_call(state.get("activeTurn"), call_id)
        return call is None or call["status"] not in _WAITING

    return decided


def _is_answered(request_id: str) -> Settled:
    return lambda state: all(one["id"] != request_id for one in open_requests(state))


__all__ = ["Decisions"]
