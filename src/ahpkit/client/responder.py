"""Asks the program's callbacks about tool calls and questions of a chat, once each.

It follows the state and not the actions, so it also asks about what already waited when the chat was opened or when the
client reconnected.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

from ahpkit.client.answers import (
    Approve,
    Decision,
    Reply,
    by_program,
    confirmed,
    decision_of,
    input_completed,
    open_requests,
    reply_of,
    result_confirmed,
)
from ahpkit.client.channels import Channel, Channels
from ahpkit.client.dispatch import Outcome, Rejected
from ahpkit.client.events import ConfirmationNeeded, InputNeeded
from ahpkit.client.mirror import plain
from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, tool_calls, waits_for_person
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError
from ahpkit.wire.tasks import Tasks

OnConfirmation = Callable[[ConfirmationNeeded], Awaitable[Decision | bool | None] | Decision | bool | None]
"""Decides about a tool call: True, False, `Approve`, `Deny`, or None to leave it to others. Plain or async."""

OnInput = Callable[[InputNeeded], Awaitable[Reply | dict[str, Any] | None] | Reply | dict[str, Any] | None]
"""Answers questions: a dict of values by question id, `Answer`, `Decline`, or None to leave it to others."""

OnFailure = Callable[[Exception], None]
"""Called with the exception of a callback, or with the error that it returned something other than a decision."""

_log = logging.getLogger(__name__)

_WAITING = {"pending-confirmation": "call", "pending-result-confirmation": "result"}


class Responder:
    """Asks the callbacks about one chat, until `close`."""

    def __init__(
        self,
        channels: Channels,
        tasks: Tasks,
        channel: Channel,
        *,
        on_confirmation: OnConfirmation | None,
        on_input: OnInput | None,
        turn_id: str | None = None,
        on_failure: OnFailure | None = None,
    ) -> None:
        """With a `turn_id`, asks only about that turn. Without `on_failure`, failures are logged."""
        self._channels = channels
        self._tasks = tasks
        self._channel = channel
        self._on_confirmation = on_confirmation
        self._on_input = on_input
        self._turn_id = turn_id
        self._on_failure = on_failure
        self.elsewhere: set[str] = set()
        """Turns that have their own responder."""
        self._asked: set[tuple[str, str]] = set()
        channel.listeners.append(self)
        self.on_reset()

    def close(self) -> None:
        if self in self._channel.listeners:
            self._channel.listeners.remove(self)

    def on_action(self, envelope: JsonObject) -> None:
        if envelope["action"]["type"] not in STREAMING_ACTIONS:
            self.on_reset()

    def on_reset(self) -> None:
        """Ask about everything that waits and that the callbacks were not asked about; forget what no longer waits."""
        waiting = dict(self._waiting(self._channel.confirmed or {}))
        new = waiting.keys() - self._asked
        self._asked = set(waiting)
        for key, ask in waiting.items():
            if key in new:
                self._tasks.spawn(self._if_it_waits(key, ask), name=f"ask about {key[1]}")

    async def _if_it_waits(self, key: tuple[str, str], ask: Callable[[], Any]) -> None:
        """Ask only if the call still waits a moment later: a call that a rule denies is shown as waiting just before it
        is denied."""
        if key not in self._asked:
            return
        try:
            await ask()
        except Exception as error:
            if self._on_failure is None:
                raise
            self._on_failure(error)

    def on_gone(self, error: AhpError) -> None:
        self.close()

    def _waiting(self, state: JsonObject) -> Iterator[tuple[tuple[str, str], Callable[[], Any]]]:
        turn = state.get("activeTurn")
        if turn is None or self._turn_id not in (None, turn["id"]) or turn["id"] in self.elsewhere:
            return
        if self._on_confirmation is not None:
            for call in tool_calls(turn):
                if waits_for_person(call):
                    yield (call["status"], call["toolCallId"]), self._confirmer(turn["id"], call)
        if self._on_input is not None:
            for request in open_requests(state):
                yield ("input", request["id"]), self._questioner(request)

    def _confirmer(self, turn_id: str, call: Any) -> Callable[[], Any]:
        async def ask() -> None:
            of = _WAITING[call["status"]]
            returned = await _called(self._on_confirmation, ConfirmationNeeded(plain(call), of=cast("Any", of)))
            decision = decision_of(returned)
            if decision is None:
                return
            if of == "call":
                action = confirmed(turn_id, call["toolCallId"], decision)
            else:
                action = result_confirmed(turn_id, call["toolCallId"], approved=isinstance(decision, Approve))
            self._dispatch(by_program(action, call) if decision.automatic else action)

        return ask

    def _questioner(self, request: Any) -> Callable[[], Any]:
        async def ask() -> None:
            reply = reply_of(await _called(self._on_input, InputNeeded(request)))
            if reply is not None:
                self._dispatch(input_completed(request, reply))

        return ask

    def _dispatch(self, action: JsonObject) -> None:
        def log_refusal(outcome: Outcome | None) -> None:
            if isinstance(outcome, Rejected):
                _log.warning("%s: what a callback decided was refused: %s", self._channel.uri, outcome.reason)

        self._channels.dispatch(self._channel.uri, action).then(log_refusal)


class Responders:
    """The responders of the client's callbacks: one for each chat, also when a chat has several handles."""

    def __init__(
        self,
        channels: Channels,
        tasks: Tasks,
        on_confirmation: OnConfirmation | None,
        on_input: OnInput | None,
        on_failure: OnFailure | None = None,
    ) -> None:
        self._channels = channels
        self._tasks = tasks
        self._on_failure = on_failure
        self.on_confirmation = on_confirmation
        self.on_input = on_input
        self._attended: dict[str, tuple[Responder, int]] = {}

    def attend(self, chat: Channel) -> None:
        """Answer for a chat. Every call needs a `leave`."""
        known = self._attended.get(chat.uri)
        responder, handles = known or (self._respond(chat, self.on_confirmation, self.on_input), 0)
        self._attended[chat.uri] = responder, handles + 1

    def leave(self, chat: Channel) -> None:
        responder, handles = self._attended.pop(chat.uri)
        if handles > 1:
            self._attended[chat.uri] = responder, handles - 1
        else:
            responder.close()

    def attend_turn(
        self,
        chat: Channel,
        turn_id: str,
        on_confirmation: OnConfirmation | None,
        on_input: OnInput | None,
        on_failure: OnFailure | None = None,
    ) -> Callable[[], None]:
        """Use other callbacks for one turn. For a callback that is None, the client's own is used. Call the result to
        stop."""
        elsewhere = self._attended[chat.uri][0].elsewhere
        elsewhere.add(turn_id)
        own = self._respond(
            chat, on_confirmation or self.on_confirmation, on_input or self.on_input, turn_id, on_failure
        )

        def stop() -> None:
            elsewhere.discard(turn_id)
            own.close()

        return stop

    def _respond(
        self,
        chat: Channel,
        on_confirmation: OnConfirmation | None,
        on_input: OnInput | None,
        turn_id: str | None = None,
        on_failure: OnFailure | None = None,
    ) -> Responder:
        return Responder(
            self._channels,
            self._tasks,
            chat,
            on_confirmation=on_confirmation,
            on_input=on_input,
            turn_id=turn_id,
            on_failure=on_failure or self._on_failure,
        )


async def _called(callback: Any, event: Any) -> Any:
    result = callback(event)
    return await result if inspect.isawaitable(result) else result


__all__ = ["OnConfirmation", "OnFailure", "OnInput", "Responder", "Responders"]
