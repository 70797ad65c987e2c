"""A chat served by an ACP agent: one process and one session for it, started, restarted and given up as needed.

Each chat has its own process, so a fault in one (a crash, a hang, a flood) does not affect others. A process that has
nothing to do is ended after a while when the agent can take the conversation up again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ahpkit.agents.acp.connection import EXITED, SESSION_ID, AcpConnection
from ahpkit.agents.acp.content import transcript
from ahpkit.agents.acp.session import AcpSession, SessionSetup
from ahpkit.agents.turn_input import changed_instructions, given_after, instructions
from ahpkit.host.agent import AgentChat, AgentError, Chat, LoginNeeded, McpServerOffer, StopReason, Turn, TurnContext
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.extensions import announced, announces
from ahpkit.wire.backoff import backoff
from ahpkit.wire.errors import MethodNotFound

STARTS = 3
"""How many times a process is started for one turn if it dies while it starts."""

_ANNOUNCED_MODES = "saidModes"
"""Key of a chat's memory: the modes without questions for which a notice was shown."""

_GIVEN = "told"
"""Key of a chat's memory: the instructions that its ACP session got."""

_LOOK = 0.05
"""The shortest time, in seconds, between two checks whether a client follows an idle chat."""

_log = logging.getLogger(__name__)


def pause_after(failures: int) -> float:
    """Seconds to wait before a process is started again that died this many times in a row."""
    return backoff(failures, random.random)


class AcpChat(AgentChat):
    """`setup` is called at each start, because a login may have changed the result."""

    def __init__(
        self,
        chat: Chat,
        setup: Callable[[], SessionSetup],
        *,
        on_started: Callable[[AcpSession], None],
        on_closed: Callable[[AcpChat], None],
        announced_modes: set[str] | None = None,
        pause: Callable[[int], float] = pause_after,
    ) -> None:
        """`announced_modes` are the modes for which a notice was shown; all chats of an agent share them."""
        self._chat = chat
        self._setup = setup
        self._on_started = on_started
        self._on_closed = on_closed
        self._pause = pause
        self._session: AcpSession | None = None
        self._failures = 0
        self._announced_modes = set[str]() if announced_modes is None else announced_modes
        self._repeats = False
        """Whether the agent has resumed a conversation and needs its instructions again."""
        self._must_tell_history = False
        self._refused = False
        """Whether the process has refused a turn because nobody is logged in."""
        self._model: str | None = None
        """The model with which the agent begins if nobody chooses one."""
        self._turns = asyncio.Lock()
        self._idle: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the process of a new conversation at once, so that a user sees what the agent offers, or why it
        fails."""
        if SESSION_ID not in self._chat.memory:
            async with self._turns:
                await self._ready(await self._chat.mcp_servers())
                self._watch_idle()

    async def run(self, turn: Turn) -> StopReason | None:
        async with self._turns:
            self._stop_idle_watch()
            try:
                return await self._run(turn)
            finally:
                if self._session is not None and self._session.closed:
                    await self._drop()
                self._watch_idle()

    async def _run(self, turn: Turn) -> StopReason:
        try:
            session = await self._ready_for(turn)
            await self._select(session, turn)
            self._tell_mode(session, turn)
            reason = await session.prompt(turn, self._words_before(turn))
        except AgentError as error:
            error.resumable = True  # Whatever failed, the conversation can be resumed and prompted again.
            self._failures += error.error_type == EXITED
            self._refused = isinstance(error, LoginNeeded)
            if self._failures > 1:
                pause = backoff(self._failures, lambda: 1.0)
                turn.notice(f"It ended {self._failures} times in a row: its next start may wait up to {pause:g} s.")
            raise
        self._failures = 0
        return reason

    async def _ready_for(self, turn: Turn) -> AcpSession:
        if self._refused:  # A new process sees a key that was set since, or a login by the agent's own program.
            self._refused = False
            await self._drop()
        starting = self._session is None or self._session.closed
        if starting:
            turn.activity(f"Starting {self._setup().config.display_name}")
        try:
            return await self._ready(await self._servers(turn.context))
        finally:
            if starting:
                turn.activity(None)

    async def _servers(self, context: TurnContext) -> Sequence[McpServerOffer]:
        """The host's own MCP server, always the same one; if there is none, the servers as they are declared."""
        return await self._chat.mcp_servers() or context.mcp_servers

    def _words_before(self, turn: Turn) -> list[str]:
        """The text that the agent gets before the message: a history that it does not have, and new instructions."""
        words: list[str] = []
        if self._must_tell_history:
            self._must_tell_history = False
            words.append(transcript([*self._chat.history, *_interrupted(turn)]))
            if len(self._chat.history) > len(self._chat.background):
                turn.notice(
                    "The agent could not take this conversation up again, so it was given the earlier messages as text."
                )
        words.append(self._news(turn.context))
        return words

    def _news(self, context: TurnContext) -> str:
        """The text about instructions that are new, and about earlier ones that no longer hold."""
        memory, repeats = self._chat.memory, self._repeats
        given = [(str(one[0]), str(one[1])) for one in memory.get(_GIVEN) or ()]
        words = changed_instructions(given, context) or (instructions(context) if repeats else "")
        self._repeats = False
        if (now := [list(one) for one in given_after(given, context)]) != memory.get(_GIVEN, []):
            self._chat.remember({**memory, _GIVEN: now})
        return words

    async def _select(self, session: AcpSession, turn: Turn) -> None:
        try:
            await session.select(model=turn.model or self._default_model(), config=self._chat.config)
        except AgentError as error:
            if session.closed:
                raise
            turn.notice(error.message)

    def _tell_mode(self, session: AcpSession, turn: Turn) -> None:
        """Say once per session that the agent runs its own tools without asking."""
        mode, announcement = session.free_mode, f"{self._chat.session_uri} {session.free_mode}"
        if mode is None:
            return
        memory = self._chat.memory
        known = announcement in self._announced_modes or mode in memory.get(_ANNOUNCED_MODES, ())
        self._announced_modes.add(announcement)
        if mode not in memory.get(_ANNOUNCED_MODES, ()):  # Remembered across restarts, so that it is said only once.
            self._chat.remember({**memory, _ANNOUNCED_MODES: [*memory.get(_ANNOUNCED_MODES, ()), mode]})
        if not known:
            free = f"In its mode “{mode}” this agent runs tools of its own without asking."
            turn.notice(f"{free} Approvals and rules of this host apply to what it calls through the host.")

    def _default_model(self) -> ModelSelection | None:
        model = self._setup().config.default_model
        return {"id": model} if model else None

    @property
    def model(self) -> str | None:
        return self._setup().config.default_model or self._model

    async def configure(
        self, *, model: ModelSelection | None, agent: AgentSelection | None, config: Mapping[str, Any]
    ) -> None:
        if self._session is not None and not self._session.closed:
            await self._session.select(model=model or self._default_model(), config=config)

    async def truncated(self, turns: Sequence[TurnRecord]) -> None:
        """ACP cannot cut a history: the next turn begins a new session with the transcript of what is left."""
        self._chat.remember({})
        async with self._turns:
            await self._drop()

    async def restart(self) -> None:
        """Use a new process from the next turn on; a running turn goes on as it is."""
        async with self._turns:
            await self._drop()

    async def authenticate(self, method: str) -> None:
        """Log in through the running process, if there is one."""
        if self._session is not None and not self._session.closed:
            await self._session.authenticate(method)
            self._refused = False

    @property
    def connection(self) -> AcpConnection | None:
        """Send a notification to the process, if it runs."""
        return None if self._session is None or self._session.closed else self._session.connection

    @property
    def can_rest(self) -> bool:
        """Its process has ended, because nobody used it for `idle_timeout`."""
        return self._session is None

    async def extension_request(self, method: str, params: JsonObject) -> Any:
        return await (await self._extended(method)).extension_request(method, params)

    async def extension_notification(self, method: str, params: JsonObject) -> None:
        (await self._extended(method)).extension_notification(method, params)

    async def _extended(self, method: str) -> AcpSession:
        """The session of an agent that announced an extension. The session is started if necessary."""
        if self._session is None or self._session.closed:
            async with self._turns:
                await self._ready(await self._chat.mcp_servers())
                self._watch_idle()
        assert self._session is not None
        if not announces(announced(self._session.connection.capabilities), method):
            raise MethodNotFound(f"{method}: {self._setup().config.display_name} does not offer it")
        return self._session

    async def forget(self) -> None:
        if self._session is not None:
            await self._session.delete()

    async def aclose(self) -> None:
        self._stop_idle_watch()
        await self._drop()
        self._on_closed(self)

    # The process.

    async def _ready(self, servers: Sequence[McpServerOffer]) -> AcpSession:
        """A session with these MCP servers. ACP accepts servers only when a session is opened."""
        session = self._session
        if session is not None and not session.closed and list(session.servers) != list(servers):
            if not session.prompted:
                self._chat.remember({SESSION_ID: await session.new(servers)})  # Nothing was said to it yet.
            elif session.connection.restores:
                await self._drop()
        if session is not None and session.closed:
            await self._drop()
        if self._session is None:
            self._session = await self._start(servers)
        return self._session

    async def _start(self, servers: Sequence[McpServerOffer]) -> AcpSession:
        for _ in range(STARTS - 1):
            try:
                return await self._try_start(servers)
            except AgentError as error:
                if error.error_type != EXITED:
                    raise
                self._failures += 1
                _log.warning("%s", error.message)
        return await self._try_start(servers)

    async def _try_start(self, servers: Sequence[McpServerOffer]) -> AcpSession:
        await asyncio.sleep(self._pause(self._failures))
        session = AcpSession(self._chat, self._setup())
        try:
            await session.start()
            self._on_started(session)
            await self._take_up(session, servers)
            self._model = self._model or session.model
        except BaseException:
            await session.aclose()
            raise
        return session

    async def _take_up(self, session: AcpSession, servers: Sequence[McpServerOffer]) -> None:
        self._repeats = True
        id = self._chat.memory.get(SESSION_ID)
        if isinstance(id, str) and await session.restore(id, servers):
            session.prompted = True
            return
        if id is None and await self._fork(session, servers):
            return
        self._chat.remember({SESSION_ID: await session.new(servers)})
        self._must_tell_history = bool(self._chat.history)

    async def _fork(self, session: AcpSession, servers: Sequence[McpServerOffer]) -> bool:
        """Continue from the conversation from which this chat was forked, if the agent can do that."""
        source = self._chat.forked_memory.get(SESSION_ID)
        forked = await session.fork(source, servers) if isinstance(source, str) else None
        if forked is None:
            return False
        self._chat.remember({**self._chat.forked_memory, SESSION_ID: forked})
        session.prompted = True
        return True

    async def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()

    def _watch_idle(self) -> None:
        session = self._session
        if session is not None and (session.connection.restores or not session.prompted):
            self._stop_idle_watch()
            self._idle = asyncio.create_task(self._end_when_idle(), name="acp idle")

    def _stop_idle_watch(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _end_when_idle(self) -> None:
        with suppress(asyncio.CancelledError):
            await self._until_unused()
            async with self._turns:
                await self._drop()

    async def _until_unused(self) -> None:
        """Wait until there was no turn for `idle_timeout`, or no client followed the chat for `unwatched_timeout`."""
        config, clock = self._setup().config, asyncio.get_running_loop().time
        since = left = clock()
        while (now := clock()) - since < config.idle_timeout:
            left = now if self._chat.watched else left
            if now - left >= config.unwatched_timeout:
                return
            look = max(config.unwatched_timeout / 4, _LOOK)
            await asyncio.sleep(min(config.idle_timeout - (now - since), look))


def _interrupted(turn: Turn) -> list[TurnRecord]:
    """What a resumed turn had answered before it was interrupted, for an agent that continues it in a new
    conversation."""
    if not turn.resumed or not turn.parts:
        return []
    return [{"id": turn.id, "message": turn.message, "responseParts": list(turn.parts), "state": "error"}]


__all__ = ["STARTS", "AcpChat"]
