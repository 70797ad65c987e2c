"""Waits for the answer of a turn in a script, and raises when the turn waits for a person instead.

Who decides about tool calls is fixed before the turn begins. When a call of the turn or of a sub-agent waits and no
callback decides, the wait ends with `TurnWaiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Literal

from ahpkit.client.answers import Approve, Deny, input_text, open_requests
from ahpkit.client.core import Core
from ahpkit.client.errors import UNREADABLE, TurnTimeout, TurnWaiting
from ahpkit.client.events import (
    AuthenticationNeeded,
    ConfirmationNeeded,
    InputNeeded,
    TextDelta,
    ToolCallContent,
    ToolCallRunning,
    TurnEvent,
)
from ahpkit.client.responder import OnConfirmation, OnInput, Responders
from ahpkit.client.subscription import wait_for
from ahpkit.client.turn import TurnStream, check_answer
from ahpkit.protocol.chat.turns import tool_calls, waits_for_person
from ahpkit.protocol.common.state import JsonObject, StringOrMarkdown
from ahpkit.wire.tasks import running

OnApproval = Literal["allow", "deny", "wait"] | OnConfirmation
"""Who decides about tool calls: always yes, always no, other clients, or a function as for `on_confirmation`."""

Waiting = ConfirmationNeeded | InputNeeded | AuthenticationNeeded

_CANCELLING = 2.0
"""Seconds to wait until the host has accepted the cancellation of a turn."""

_LONGEST = 200
"""Characters of a tool's input in an error."""


def confirming(on_approval: OnApproval | str | None) -> OnConfirmation | None:
    """The callback for `on_approval`."""
    match on_approval:
        case "allow":
            return lambda event: Approve(automatic=True)
        case "deny":
            return lambda event: Deny(reason="the program that asked does not let tools run", automatic=True)
        case "wait":
            return lambda event: None
        case str():
            raise ValueError(f"on_approval is {on_approval!r}; it must be 'allow', 'deny', 'wait' or a function")
        case _:
            return on_approval


def subagents(event: TurnEvent) -> dict[str, str]:
    """The chats of sub-agents that the event's tool call has started and that are not done: URI and title."""
    if not isinstance(event, (ToolCallRunning, ToolCallContent)):
        return {}
    call: Any = event.call
    content = call.get("content", ()) if call["status"] == "running" else ()
    return {one["resource"]: one["title"] for one in content if one["type"] == "subagent"}


def describe(waiting: Waiting) -> str:
    """Describes in words what waits for a person."""
    if isinstance(waiting, InputNeeded):
        request: Any = waiting.request
        questions = [_text(question["message"]) for question in request.get("questions", ())]
        return "the agent asks: " + (_text(request.get("message")) or " ".join(questions) or "something")
    call: Any = waiting.call
    title = _text(call.get("confirmationTitle") or call.get("invocationMessage")) or call["displayName"]
    if isinstance(waiting, AuthenticationNeeded):
        return f"a login that {title} needs"
    given = " ".join(input_text(call).split())
    what = "the use of the result of " if waiting.of == "result" else ""
    return f"approval of {what}{title}" + (f" ({given[:_LONGEST]})" if given else "")


def _text(text: StringOrMarkdown | None) -> str:
    return text["markdown"] if isinstance(text, dict) else text or ""


class Answering:
    """One turn that a script waits for, including its sub-agents."""

    def __init__(
        self,
        core: Core,
        turn: TurnStream,
        *,
        on_confirmation: OnConfirmation | None,
        on_input: OnInput | None,
        others_log_in: bool,
    ) -> None:
        """Without a callback this client decides nothing. `others_log_in`: if a call needs a login, wait for another
        client."""
        self._core = core
        self._turn = turn
        self._decides: tuple[type[Waiting], ...] = (
            *((ConfirmationNeeded,) if on_confirmation is not None else ()),
            *((InputNeeded,) if on_input is not None else ()),
            *((AuthenticationNeeded,) if others_log_in else ()),
        )
        self._responders = Responders(core.channels, core.tasks, on_confirmation, on_input, self.fail)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owned = AsyncExitStack()
        """Closes everything that was opened for this turn."""
        self._subagents: set[str] = set()
        self._watching: set[asyncio.Future[Any]] = set()
        self._last: Waiting | None = None

    def fail(self, error: Exception) -> None:
        """A callback has failed, so nobody decides: end the wait with its error."""
        if not self._failed.done():
            self._failed.set_exception(error)

    async def text(self, timeout: float | None, cancel: Callable[[], Any]) -> str:
        """Wait for the whole answer. Raises `TurnError`, or its subclasses `TurnWaiting` and `TurnTimeout`."""
        try:
            async with self._owned, asyncio.timeout(timeout):
                return await self._text()
        except TimeoutError:
            await _cancelled(cancel)
            raise TurnTimeout(timeout or 0, None if self._last is None else describe(self._last)) from None
        finally:
            self._failed.cancel()

    async def _text(self) -> str:
        parts: list[str] = []
        while (event := await self._next()) is not None:
            check_answer(event)
            match event:
                case TextDelta(text=text):
                    parts.append(text)
                case ConfirmationNeeded() | InputNeeded() | AuthenticationNeeded():
                    self._check(event)
                case _:
                    if self._is_settled_by(event):
                        self._last = None
                    for uri in subagents(event):
                        await self._watch_subagent(uri)
        return "".join(parts)

    async def _next(self) -> TurnEvent | None:
        """The next event of the turn. Raises if a sub-agent waits for a decision that this client does not make."""
        async with running(self._event()) as coming:
            while not coming.done():
                waited = {coming, self._failed, *self._watching}
                done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if self._failed in done:
                    self._failed.result()
                for watched in done & self._watching:
                    self._watching.discard(watched)
                    for waiting in waiting_in(watched.result() if not watched.exception() else {}):
                        self._check(waiting)
            return coming.result()

    async def _event(self) -> TurnEvent | None:
        return await anext(self._turn, None)

    def _check(self, waiting: Waiting) -> None:
        self._last = waiting
        if not isinstance(waiting, self._decides):
            raise TurnWaiting(waiting, describe(waiting))

    def _is_settled_by(self, event: TurnEvent) -> bool:
        """Whether the call that waited last was approved: its tool is running now."""
        if self._last is None or isinstance(self._last, InputNeeded) or not isinstance(event, ToolCallRunning):
            return False
        return event.call["toolCallId"] == self._last.call["toolCallId"]

    async def _watch_subagent(self, uri: str) -> None:
        if uri in self._subagents:
            return
        self._subagents.add(uri)
        channel = await self._core.channels.open(uri, "chat")
        self._owned.callback(self._core.channels.release, channel)
        self._responders.attend(channel)
        self._owned.callback(self._responders.leave, channel)
        self._watching.add(await self._owned.enter_async_context(running(wait_for(channel, self._is_stuck))))

    def _is_stuck(self, state: Any) -> bool:
        return any(not isinstance(one, self._decides) for one in waiting_in(state))


def waiting_in(state: Any) -> Sequence[Waiting]:
    """Everything in a chat's state that waits for a person: questions, approvals, logins."""
    turn: JsonObject = state.get("activeTurn") or {"responseParts": []}
    found: list[Waiting] = [InputNeeded(request) for request in open_requests(state)]
    for call in tool_calls(turn):
        if waits_for_person(call):
            found.append(ConfirmationNeeded(call, of="call" if call["status"] == "pending-confirmation" else "result"))
        elif call["status"] == "auth-required":
            found.append(AuthenticationNeeded(call))
    return found


async def _cancelled(cancel: Callable[[], Any]) -> None:
    with suppress(*UNREADABLE, TimeoutError):  # The turn ended just now, or the client is offline.
        async with asyncio.timeout(_CANCELLING):
            await cancel()


__all__ = ["Answering", "OnApproval", "Waiting", "confirming", "describe", "subagents", "waiting_in"]
