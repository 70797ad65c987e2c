"""Runs one ACP session in one agent process: sends prompts, and receives updates and requests.

Updates are passed on in the order in which they arrive. A prompt is finished when its answer is read: it contains
everything that came before the answer, and nothing that came after it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.propagate import extract

from ahpkit.agents.acp.access import FileAccess, TerminalAccess
from ahpkit.agents.acp.callbacks import Callbacks
from ahpkit.agents.acp.config import AcpAgentConfig
from ahpkit.agents.acp.connection import EXITED, REQUEST_CANCELLED, AcpConnection
from ahpkit.agents.acp.content import blocks, text_in_pieces
from ahpkit.agents.acp.limits import MAX_PIECE
from ahpkit.agents.acp.mapping import SessionMapper
from ahpkit.agents.acp.mcp_servers import mcp_servers, secrets_of
from ahpkit.agents.acp.meta import with_meta_around
from ahpkit.agents.acp.options import Change, SessionOptions
from ahpkit.agents.acp.turn import TurnMapper
from ahpkit.agents.turn_input import GO_ON
from ahpkit.agents.untrusted_json import obj, text
from ahpkit.host.agent import AgentError, Chat, History, McpServerOffer, StopReason, Turn
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject, ModelSelection
from ahpkit.wire.errors import InternalError, InvalidParams, TransportClosed
from ahpkit.wire.trace_context import carried, passed_on

MAX_EARLY = 64
"""Updates that are kept if they arrive before the answer that names their session."""

_PATIENCE = 2.0
"""Seconds for the last requests: closing the session, and a steering message at the end of a turn."""

_EXTENSION = 60.0
"""Seconds for an agent to answer a client's extension request."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSetup:
    """The values with which every session of one agent is made."""

    config: AcpAgentConfig
    files: Callable[[Chat], FileAccess] | None = None
    terminals: Callable[[Chat], TerminalAccess] | None = None
    secrets: Mapping[str, str]
    """Variables that a client filled in with `authenticate`."""
    environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ
    """Returns the part of the environment that an agent's process may see, for a session."""
    auth_method: str | None = None
    """The method with which to log in first."""
    on_options: Callable[[SessionOptions], None]
    tracer_provider: trace.TracerProvider | None = None
    """Where spans go. With None they go to the provider of the process."""


class AcpSession:
    """Call `start`, then `new` or `restore`. Call `aclose` at the end, also after a failure."""

    def __init__(self, chat: Chat, setup: SessionSetup) -> None:
        config = setup.config
        self.prompted = False
        self.servers: Sequence[McpServerOffer] = ()
        self._config = config
        self._chat = chat
        self._setup = setup
        self._tracer = trace.get_tracer("ahpkit.agents.acp", tracer_provider=setup.tracer_provider)
        self._id: str | None = None
        self._early: list[JsonObject] = []
        self._undelivered: list[Message] = []
        self._wanted: Mapping[str, Any] = {}
        self._broken = False
        self._over = False
        self._strange = False
        self._taken = 0
        terminals = setup.terminals(chat) if setup.terminals else None
        self._mapper = SessionMapper(
            chat, terminal_uri=terminals.uri if terminals else lambda id: None, on_options=setup.on_options
        )
        self._callbacks = Callbacks(
            self._mapper,
            working_directory=chat.working_directory,
            policy=config.permissions,
            files=setup.files(chat) if setup.files else None,
            terminals=terminals,
            mark=lambda: self.connection.mark,
        )
        self.connection = AcpConnection(
            config,
            cwd=chat.working_directory,
            on_request=self._on_request,
            on_notification=self._on_notification,
            on_refused=self._mapper.refused,
            terminals=terminals is not None,
            extensions=chat.extensions,
            secrets=setup.secrets,
            environ=setup.environ(chat.session_uri),
            on_slow=chat.activity,
        )

    # Life.

    async def start(self) -> None:
        await self.connection.__aenter__()
        if self._setup.auth_method is not None:
            await self.authenticate(self._setup.auth_method)

    async def aclose(self) -> None:
        """End the session, then the process. Messages that still arrive are ignored."""
        self._over = True
        self._callbacks.stop_waiting()
        try:
            await self._callbacks.release()
            if self._id is not None and not self.closed and self.connection.session_can("close"):
                with suppress(AgentError):
                    await self._call("session/close", {}, timeout=_PATIENCE)
        finally:
            await self.connection.__aexit__(None, None, None)

    async def delete(self) -> None:
        """Let the agent delete the conversation, if it can. Afterwards only `aclose` may be called."""
        self._over = True
        if self._id is not None and not self.closed and self.connection.session_can("delete"):
            with suppress(AgentError):
                await self._call("session/delete", {}, timeout=_PATIENCE)
            self._id = None

    @property
    def closed(self) -> bool:
        """Whether the process has ended or must not be used any more."""
        return self._broken or self.connection.closed

    async def authenticate(self, method: str) -> None:
        await self.connection.request("authenticate", {"methodId": method}, timeout=self._config.start_timeout)

    async def new(self, servers: Sequence[McpServerOffer]) -> str:
        """Begin a conversation; returns its id."""
        self._id = None
        result = obj(await self._open("session/new", {}, servers))
        id = text(result.get("sessionId"))
        if id is None:
            raise AgentError(f"{self._config.display_name} opened a session without an id", error_type="acp/protocol")
        await self._opened(id, result)
        return id

    async def fork(self, source: str, servers: Sequence[McpServerOffer]) -> str | None:
        """Begin a conversation as a copy of another one. Returns its id, or None if the agent cannot do this."""
        if not self.connection.session_can("fork"):
            return None
        self._id = None
        try:
            result = obj(await self._open("session/fork", {"sessionId": source}, servers))
        except AgentError as error:
            if error.error_type == EXITED:
                raise
            _log.warning("agent %s: session/fork failed: %s", self._config.name, error.message)
            return None
        id = text(result.get("sessionId"))
        if id is not None:
            await self._opened(id, result)
        return id

    async def restore(self, id: str, servers: Sequence[McpServerOffer]) -> bool:
        """Resume an earlier conversation. Returns False if the agent cannot. Old messages that it sends again are
        dropped."""
        ways = ["session/resume"] if self.connection.session_can("resume") else []
        ways += ["session/load"] if self.connection.loads else []
        for way in ways:
            self._id = id
            self._mapper.restoring = True
            try:
                result = obj(await self._open(way, {"sessionId": id}, servers))
            except AgentError as error:
                if error.error_type == EXITED:
                    raise
                _log.warning("agent %s: %s failed: %s", self._config.name, way, error.message)
                continue
            finally:
                self._mapper.restoring = False
            await self._opened(id, result)
            return True
        return False

    async def recall(self, id: str, history: History) -> None:
        """Let the agent repeat an earlier conversation. An agent that can only resume it repeats nothing."""
        if self.connection.loads:
            self._id = id
            with self._mapper.replaying(history):
                result = obj(await self._open("session/load", {"sessionId": id}, ()))
            await self._opened(id, result)

    async def _open(self, method: str, params: JsonObject, servers: Sequence[McpServerOffer]) -> Any:
        self.servers = list(servers)
        self._wanted = dict(self._chat.config)
        self.connection.hide(secrets_of(servers))
        given = mcp_servers(servers, self.connection.mcp_capabilities)
        request = params | {"cwd": str(self._chat.working_directory), "mcpServers": given}
        if meta := passed_on(self._chat.session_meta):
            request["_meta"] = meta
        return await self.connection.request(method, request, timeout=self._config.start_timeout)

    async def _opened(self, id: str, result: JsonObject) -> None:
        """The agent has opened a session. Send it the options that were chosen, then report its options to clients."""
        self._id = id
        with self._mapper.holding_options():
            self._mapper.take_options(result)
            early, self._early = self._early, []
            for params in early:
                self._on_update(params)
            try:
                await self.select(model=None, config=self._wanted)
            except AgentError as error:
                if self.closed:
                    raise
                _log.warning("%s", error.message)

    @property
    def model(self) -> str | None:
        """The id of the model that the agent uses now, if the agent reports it."""
        return self._mapper.options.model

    @property
    def free_mode(self) -> str | None:
        """The mode in which the agent runs its own tools without asking, if it is in one."""
        return self._mapper.options.free_mode

    async def select(self, *, model: ModelSelection | None, config: Mapping[str, Any]) -> None:
        """Set the agent's options to the wanted values. Afterwards its actual options are reported, even if it
        refused."""
        changes = self._mapper.options.changes(model=model, config=config)
        with self._mapper.holding_options() if changes else nullcontext():
            for change in changes:
                result = await self._change(change)
                self._mapper.options.changed(change)
                self._mapper.take_options(result)

    async def _change(self, change: Change) -> JsonObject:
        self._mapper.selecting = True
        try:
            return obj(await self._call(change.method, change.params, timeout=self._config.start_timeout))
        finally:
            self._mapper.selecting = False

    async def _call(self, method: str, params: JsonObject, *, timeout: float | None = None) -> Any:
        return await self.connection.request(method, {"sessionId": self._id} | params, timeout=timeout)

    # One turn.

    async def prompt(self, turn: Turn, before: Sequence[str]) -> StopReason:
        """Send a turn's message, with these words before it, and pass updates to the turn until the prompt is
        answered."""
        capabilities = self.connection.prompt_capabilities
        words: list[JsonObject] = [{"type": "text", "text": text} for text in before if text]
        asked = blocks(turn.prompt, turn.message, capabilities)
        if turn.resumed and any(part["kind"] != "error" for part in turn.parts):
            asked = [{"type": "text", "text": GO_ON}]
        reason = await self._prompt(turn, [*words, *asked], turn.message)
        while self._undelivered and reason == "end_turn":
            message = self._undelivered.pop(0)
            reason = await self._prompt(turn, blocks(message["text"], message, capabilities), message)
        return reason

    async def _prompt(self, turn: Turn, content: list[JsonObject], message: Message) -> StopReason:
        self.prompted = True
        mapped = self._mapper.begin(turn)
        asking = asyncio.create_task(self._ask(content, message), name="acp prompt")
        steering = asyncio.create_task(self._steer(turn), name="acp steering") if self.connection.steers else None
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            await self._cancel(asking, mapped)
            raise
        finally:
            self._callbacks.stop_waiting()
            self._mapper.end()
            if steering is not None:
                steering.cancel()
                await asyncio.wait([steering], timeout=_PATIENCE)

    async def _ask(self, content: list[JsonObject], message: Message) -> StopReason:
        inside = trace.get_current_span().get_span_context().is_valid
        context = None if inside else extract(carried(message.get("_meta")))
        with self._tracer.start_as_current_span("acp session/prompt", context, trace.SpanKind.CLIENT):
            meta = passed_on(message.get("_meta"))
            params: JsonObject = {"prompt": content} | ({"_meta": meta} if meta else {})
            result = obj(await self._call("session/prompt", params))
        return self._mapper.finish(result)

    async def _cancel(self, asking: asyncio.Task[StopReason], mapped: TurnMapper) -> None:
        """Stop a turn as ACP requires: answer the open requests, then wait for the end of the prompt, but not for
        ever."""
        self._callbacks.stop_waiting()
        if asking.done():
            return  # The prompt has ended by itself: a cancel now could hit the next one.
        self.connection.notify("session/cancel", {"sessionId": self._id})
        try:
            await asyncio.wait([asking], timeout=self._config.cancel_timeout)
            await self._callbacks.end_commands(mapped)
        finally:
            if not _ended_well(asking):
                # The agent ignored the cancel or failed because of it, so its session cannot be used for the next turn.
                self._broken = True
                self.connection.kill()
                asking.cancel()

    async def _steer(self, turn: Turn) -> None:
        """Pass on what the user says while the turn runs. What the agent does not take becomes a prompt afterwards."""
        while True:
            message = await turn.wait_steering()
            delivered = asyncio.create_task(self._deliver(message))
            try:
                await asyncio.shield(delivered)
            finally:
                if not delivered.done():
                    await asyncio.wait([delivered], timeout=_PATIENCE)
                if delivered.cancel() or delivered.cancelled() or not delivered.result():
                    self._undelivered.append(message)

    async def _deliver(self, message: Message) -> bool:
        if self._mapper.turn is not None:
            self._mapper.turn.steered(message["text"])
        content = blocks(message["text"], message, self.connection.prompt_capabilities)
        meta = passed_on(message.get("_meta")) | {"steering": {"idleBehavior": "promptRequired"}}
        params = {"prompt": content, "_meta": meta}
        try:
            result = obj(await self._call("_session/steering", params))
        except AgentError:
            return False
        return result.get("outcome") in ("injected", "startedNewTurn")

    # Extensions that clients call.

    async def extension_request(self, method: str, params: JsonObject) -> Any:
        """Pass a client's request on, with our `sessionId`. An error of the agent is passed back as the answer."""
        try:
            return await self.connection.rpc.request(method, {**params, "sessionId": self._id}, timeout=_EXTENSION)
        except TransportClosed:
            raise InternalError(f"{self._config.display_name} ended while it was asked") from None
        except TimeoutError:
            raise InternalError(f"{self._config.display_name} did not answer in {_EXTENSION:g} s") from None

    def extension_notification(self, method: str, params: JsonObject) -> None:
        self.connection.notify(method, {**params, "sessionId": self._id})

    # Messages from the agent.

    async def _on_request(self, method: str, params: JsonObject) -> Any:
        if method.startswith("_"):
            return await self._chat.extension_request(method, params)
        if "sessionId" in params and params["sessionId"] != self._id:
            raise InvalidParams(f"sessionId: {params['sessionId']!r} is not a session of this process")
        return await self._callbacks.serve(method, params)

    def _on_notification(self, method: str, params: JsonObject) -> Awaitable[None] | None:
        if method == "session/update":
            first, *others = text_in_pieces(params)
            self._on_update(first)
            return self._go_on(others) if self._has_sent_much() else None
        if method == "$/cancel_request" and isinstance(params.get("requestId"), int | str):
            self.connection.rpc.cancel(params["requestId"])
        elif method == "elicitation/complete":
            self._callbacks.elicitation_complete(params)
        elif method.startswith("_"):
            self._chat.extension_notification(method, params)
        return None

    def _has_sent_much(self) -> bool:
        """Whether the agent has sent so much since the last check that clients may be behind."""
        received = self.connection.rpc.received
        if received - self._taken < MAX_PIECE:
            return False
        self._taken = received
        return True

    async def _go_on(self, pieces: Sequence[JsonObject]) -> None:
        """Take the next pieces of a long text, at the speed at which clients read."""
        await self._room()
        for piece in pieces:
            self._on_update(piece)
            await self._room()

    async def _room(self) -> None:
        if self._mapper.turn is not None:
            await self._mapper.turn.turn.room()

    def _on_update(self, params: JsonObject) -> None:
        if self._over:
            return
        if params.get("sessionId") == self._id:
            self._mapper.update(with_meta_around(params.get("update"), params))
        elif self._id is None and len(self._early) < MAX_EARLY:
            self._early.append(params)
        elif not self._strange:
            self._strange = True
            _log.warning("agent %s: updates for a session it does not have are dropped", self._config.name)


def _ended_well(asking: asyncio.Task[StopReason]) -> bool:
    if not asking.done() or asking.cancelled():
        return False
    error = asking.exception()
    return error is None or (isinstance(error, AgentError) and error.error_type == REQUEST_CANCELLED)


__all__ = ["AcpSession", "SessionSetup"]
