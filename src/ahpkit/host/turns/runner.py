"""Runs the turns of one chat, one after another: opens the agent, runs it, ends the turn, takes the next message.

It reacts only to applied actions, so a turn is handled in the same way whether a client, the queue or the host has
started it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ahpkit.host.agent import Agent, AgentChat, AgentError, LoginNeeded, StopReason
from ahpkit.host.registration import ChatApplied
from ahpkit.host.states import NO_CHAT
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.chat import LiveChat
from ahpkit.host.turns.turn import LiveTurn, error_part
from ahpkit.protocol.chat.actions import (
    ChatAction,
    chat_error,
    chat_input_completed,
    chat_pending_message_removed,
    chat_turn_started,
)
from ahpkit.protocol.chat.state import ChatState, Message, PendingMessage
from ahpkit.protocol.chat.turns import elapsed, open_requests
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)

_CANCEL_PATIENCE = 10.0
"""Seconds for an agent to stop after a turn was cancelled. Then the next turn begins anyway."""

_TURN_ENDS = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error", "chat/truncated"})

_NOT_STORED = "The end of this turn could not be stored. What the agent did is not undone."

_STOP_NOTICES: dict[str, str] = {
    "max_tokens": "The answer was cut off: the model reached its token limit.",
    "max_turn_requests": "The agent stopped: it reached its limit of requests for one turn.",
    "refusal": "The agent declined to continue.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerPorts:
    """What the runner of a chat uses of the host."""

    tasks: Tasks
    tracing: Tracing
    new_id: Callable[[], str]
    dispatch: Callable[[str, ChatAction], None]
    now: Callable[[], int]
    make_turn: Callable[[LiveChat, str, Message, bool], LiveTurn]
    """Makes a turn of a chat from its id and message, and whether it is resumed."""
    prepare_turn: Callable[[LiveTurn], Awaitable[None]]
    """Lets the features add to a turn before its agent gets it."""
    before_end: Callable[[LiveTurn], Awaitable[None]]
    """Lets the features record what the agent did, before clients are told that the turn has ended."""
    turn_over: Callable[[LiveChat], None]
    login_needed: Callable[[Agent, str], None]
    """Tells clients that the agent of a session needs a login."""


class ChatRunner:
    """The turns of one chat."""

    def __init__(
        self, chat: LiveChat, agent: Agent, ports: RunnerPorts, session_ready: Callable[[], Awaitable[None]]
    ) -> None:
        self.chat = chat
        self.agent = agent
        self.turn: LiveTurn | None = None
        self._ports = ports
        self._session_ready = session_ready
        self._agent_chat: AgentChat | None = None
        self._task: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._starting: asyncio.Future[AgentChat] | None = None
        self._closing = False
        self._lost_end = ""
        """The last turn whose end could not be stored."""

    async def open(self) -> AgentChat:
        """The agent's side of this conversation, opened once."""
        async with self._opening:
            if self._agent_chat is None:
                self._agent_chat = await self._start()
            return self._agent_chat

    async def _start(self) -> AgentChat:
        """Raises `AgentError` when the chat is closed before its agent has started."""
        self._starting = asyncio.ensure_future(self.agent.open(self.chat))
        try:
            return await self._starting
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise AgentError("This chat was closed while its agent started.", error_type="host/closed") from None
        finally:
            self._starting = None

    def on_applied(self, applied: ChatApplied) -> None:
        """An action of this chat was applied."""
        action = applied.action
        kind = action["type"]
        if action["type"] == "chat/turnStarted":
            self._begin(action["turnId"], action["message"], applied.client_id)
            self.chat.name_after(action["message"]["text"])
        elif kind == "chat/turnResume" and applied.after is not applied.before:
            self._resume(applied)
        elif kind in _TURN_ENDS:
            self._ended(applied)
        elif self.turn is not None:
            self.turn.on_applied(action, applied.before, applied.client_id)
        if kind == "chat/pendingMessageSet":
            self.take_next()

    def not_stored(self) -> None:
        """An action of this chat was undone, because it could not be stored. A turn that began with it is stopped; one
        that ended with it ends with an error."""
        active = self.chat.state.get("activeTurn")
        if self.turn is not None and (active is None or active["id"] != self.turn.id):
            self._leave(self.turn)
        if active is not None and self.turn is None and active["id"] != self._lost_end:
            self._lost_end = active["id"]  # Try only once, because this end may be refused as well.
            part = error_part({"errorType": "host/not-stored", "message": _NOT_STORED}, resumable=False)
            ended = chat_error(turn_id=active["id"], duration=elapsed(self.chat.state, self._ports.now()), part=part)
            self._ports.dispatch(self.chat.uri, ended)

    def take_next(self) -> None:
        """Start a turn with the first queued message when the chat is idle. A steering message waits for a turn."""
        if queued := self._idle_state().get("queuedMessages"):
            self._start_with(queued[0], "queued")

    def _take_left_over(self) -> None:
        """A turn ended: a steering message that its agent did not take becomes the next message, before the queue."""
        if steering := self._idle_state().get("steeringMessage"):
            self._start_with(steering, "steering")
        else:
            self.take_next()

    def _idle_state(self) -> ChatState:
        state = self.chat.state
        return NO_CHAT if self._closing or state.get("activeTurn") else state

    def _start_with(self, pending: PendingMessage, kind: Literal["queued", "steering"]) -> None:
        """Remove the waiting message and start a turn with it, without another action in between."""
        self._ports.dispatch(self.chat.uri, chat_pending_message_removed(kind=kind, id=pending["id"]))
        started = chat_turn_started(
            turn_id=self._ports.new_id(),
            started_at=iso_time(self._ports.now()),
            message=pending["message"],
            queued_message_id=pending["id"],
        )
        self._ports.dispatch(self.chat.uri, started)

    async def configure(self) -> None:
        """The model, agent or configuration changed."""
        if self._agent_chat is not None:
            chat = self.chat
            await self._agent_chat.configure(model=chat.model, agent=chat.agent, config=chat.config)

    async def work_in(self, directories: Sequence[Path]) -> None:
        """Let the agent work in other directories. Raises if it cannot. Clients are told afterwards."""
        if self._agent_chat is not None:
            await self._agent_chat.work_in(directories)

    async def move(self, session_uri: str, session_ready: Callable[[], Awaitable[None]]) -> None:
        """The chat belongs to another session now. With the next turn, the agent opens the conversation again in that
        session."""
        self.chat.moved(session_uri)
        self._session_ready = session_ready
        agent_chat, self._agent_chat = self._agent_chat, None
        if agent_chat is not None:
            await agent_chat.aclose()

    async def aclose(self, reason: str) -> None:
        """The host stops: a running turn ends with an error that says so. Queued messages stay queued."""
        self._closing = True
        turn = self.turn
        if turn is not None and not turn.over:
            self._fail(turn, AgentError(reason, error_type="host/stopped", resumable=self.agent.resumes))
        if (agent_chat := await self._stop()) is not None:
            await agent_chat.aclose()

    @property
    def can_rest(self) -> bool:
        """Whether nothing is under way in this chat, and the agent's side can be closed without losing anything."""
        idle = self.turn is None and (self._task is None or self._task.done()) and not self._opening.locked()
        return idle and (self._agent_chat is None or self._agent_chat.can_rest)

    async def rest(self) -> None:
        """Close the agent's side; another runner opens it again."""
        if (agent_chat := await self._stop()) is not None:
            await agent_chat.aclose()

    async def dispose(self) -> None:
        """Stop because the chat is gone for good."""
        if (agent_chat := await self._stop()) is not None:
            try:
                await agent_chat.forget()
            finally:
                await agent_chat.aclose()

    async def _stop(self) -> AgentChat | None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CANCEL_PATIENCE)
        if (starting := self._starting) is not None:  # An agent that hangs at its start must not outlive the chat.
            starting.cancel()
            await asyncio.wait([starting], timeout=_CANCEL_PATIENCE)
        agent_chat, self._agent_chat = self._agent_chat, None
        return agent_chat

    @property
    def default_model(self) -> str | None:
        """The id of the model for messages that name no model; None if it is not known."""
        chosen = None if self._agent_chat is None else self._agent_chat.model
        return chosen or self.agent.default_model

    def _resume(self, applied: ChatApplied) -> None:
        """Resume a turn. Its open questions are withdrawn."""
        active = applied.after.get("activeTurn")
        if active is None:
            return
        for request in open_requests(applied.after):
            self._ports.dispatch(self.chat.uri, chat_input_completed(request_id=request["id"], response="cancel"))
        self._begin(active["id"], active["message"], applied.client_id, resumed=True)

    def _begin(self, turn_id: str, message: Message, client_id: str | None, *, resumed: bool = False) -> None:
        turn = self._ports.make_turn(self.chat, turn_id, message, resumed)
        turn.client_id = client_id
        self.turn = turn
        self._task = self._ports.tasks.spawn(self._run(turn, self._task), name=f"turn {turn.id}")

    def _ended(self, applied: ChatApplied) -> None:
        turn = self.turn
        ended = applied.before.get("activeTurn")
        if applied.action["type"] == "chat/truncated" and self._agent_chat is not None:
            self._ports.tasks.spawn(self._agent_chat.truncated(self.chat.history), name="truncate")
        if turn is not None and ended is not None and ended["id"] == turn.id and not applied.after.get("activeTurn"):
            self._leave(turn)
            self._take_left_over()
        else:
            self.take_next()

    def _leave(self, turn: LiveTurn) -> None:
        """End the turn and its task; the runner has no turn now."""
        turn.end()
        self.turn = None
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._ports.turn_over(self.chat)

    async def _run(self, turn: LiveTurn, previous: asyncio.Task[None] | None) -> None:
        if previous is not None and not previous.done():
            await asyncio.wait([previous], timeout=_CANCEL_PATIENCE)
        try:
            await self._session_ready()
            with self._ports.tracing.turn(self.agent.provider, self.chat.uri, turn.message) as turn.trace:
                agent_chat = await self.open()
                await self._ports.prepare_turn(turn)
                stop = await agent_chat.run(turn)
                await self._ports.before_end(turn)
                self._complete(turn, stop)
        except AgentError as error:
            _log.info("the agent %s failed in a turn of %s: %s", self.agent.provider, self.chat.uri, error.message)
            await self._ports.before_end(turn)
            self._fail(turn, error)
        except Exception:  # An agent is anybody's code.
            _log.exception("the agent %s failed in a turn", self.agent.provider)
            await self._ports.before_end(turn)
            self._fail(turn, AgentError("The agent failed unexpectedly. The host's log has the details."))

    def _complete(self, turn: LiveTurn, stop: StopReason | None) -> None:
        if stop in _STOP_NOTICES:
            turn.notice(_STOP_NOTICES[stop])
        if stop == "cancelled":
            turn.cancel()
        else:
            turn.complete()

    def _fail(self, turn: LiveTurn, error: AgentError) -> None:
        turn.fail(error.info(), resumable=error.resumable)
        if isinstance(error, LoginNeeded):
            self._ports.login_needed(self.agent, self.chat.session_uri)


__all__ = ["ChatRunner", "RunnerPorts"]
