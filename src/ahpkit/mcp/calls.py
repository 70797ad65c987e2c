"""Runs calls to one MCP server: their time limits, their callers, and the questions that the server asks during them.

A server may ask questions while one of its tools runs (elicitation, sampling). They go only to the caller of that tool:
a turn that runs it, or a message whose prompts and resources are read. `ServerPort` has everything else that the server
needs from its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError

from ahpkit.agents.acp.questions import form_answer, form_questions, web_address
from ahpkit.host.agent import AgentError, ToolCall, Turn
from ahpkit.host.feature import Services
from ahpkit.mcp.connect import MAX_MESSAGE
from ahpkit.mcp.errors import McpError, McpUnavailable
from ahpkit.mcp.tokens import Challenge
from ahpkit.mcp.tolerance import plain
from ahpkit.protocol.chat.actions import chat_tool_call_auth_required, chat_tool_call_auth_resolved
from ahpkit.protocol.chat.state import ChatInputQuestion
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.tasks import unless

if TYPE_CHECKING:
    from ahpkit.mcp.server import McpServer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of time and amount for one server."""

    start: float = 60.0
    """Seconds from the start to the first list of tools."""
    call: float = 600.0
    """Seconds that a tool may take without reporting progress."""
    delays: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0)
    """Seconds before each restart after a crash. After the last one the server stays in `error` until somebody starts
    it again."""
    steady: float = 60.0
    """When a server was ready for this many seconds, earlier crashes do not count any more."""
    listed: int = 10_000
    """Tools, prompts or resources of one server. Further ones are not listed."""
    pages: int = 200
    asks: int = 10
    """Questions and model requests during one call."""
    relist: float = 0.2
    """Seconds between two readings of lists that change all the time."""
    message: int = MAX_MESSAGE


class ServerPort(Protocol):
    """What a server needs from its session."""

    def changed(self, server: McpServer) -> None:
        """Called when its state or one of its lists changed."""
        ...

    def notified(self, server: McpServer, method: str, params: JsonObject) -> None: ...

    def roots(self) -> Sequence[str]:
        """The session's working directories, as URIs."""
        ...

    def token(self, resource: str) -> str | None: ...

    def token_refused(self, resource: str, token: str) -> None: ...

    async def renew_token(self, resource: str) -> bool:
        """Renew a token that was refused, without asking anybody; returns whether there is a new one."""
        ...

    @property
    def samples(self) -> bool:
        """Whether callers of this session answer sampling requests."""
        ...


class Caller(Protocol):
    """The caller of a tool. It gets the progress, and answers the server's questions meanwhile."""

    @property
    def session(self) -> str:
        """The URI of the session that the call is made in."""
        ...

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def auth_required(self, state: JsonObject) -> None:
        """The call waits for a token. `state` names the resource that needs it."""
        ...

    def auth_resolved(self) -> None: ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        """An `ElicitResult` for `elicitation/create`."""
        ...

    async def sample(self, params: JsonObject) -> JsonObject:
        """A `CreateMessageResult`; raise `McpError` to refuse."""
        ...


class Call:
    """One call that runs: its caller, and its remaining time."""

    def __init__(self, caller: Caller, clock: asyncio.Timeout, limits: Limits) -> None:
        self.caller = caller
        self.challenge: Challenge | None = None
        """The challenge with which its request was refused, if it lacks a token."""
        self.asked = 0
        self.over = False
        self._clock = clock
        self._limits = limits

    def alive(self) -> None:
        """The server sent something about this call, so the time limit starts again."""
        if not self.over and not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + self._limits.call)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """The server reported progress."""
        self.alive()
        self.caller.progress(progress, total, message)

    async def ask(self, question: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """Ask the caller the server's question. The time limit does not run until it is answered."""
        self.asked += 1
        if self.asked > self._limits.asks:
            raise McpError(f"the server has asked {self._limits.asks} times during this call, which is the limit")
        self._clock.reschedule(None)
        try:
            return await question()
        finally:
            self.alive()


class TokenNeeded(McpError):
    """A call was refused because it needs a token."""

    def __init__(self, challenge: Challenge) -> None:
        super().__init__("the server wants a token")
        self.challenge = challenge


_current: ContextVar[Call | None] = ContextVar("call", default=None)


def current_call() -> Call | None:
    """The call that the present task belongs to."""
    return _current.get()


class Calls:
    """The calls to one server that are in flight."""

    def __init__(self, server: str, limits: Limits) -> None:
        self._server = server
        self._limits = limits
        self._calls: list[Call] = []
        self._pages: dict[str, asyncio.Future[None]] = {}
        """Pages that a person is asked to open, by the server's ids."""

    async def run(self, send: Callable[[Call], Awaitable[T]], caller: Caller) -> T:
        """Send a request, and wait for the answer within the time limit. Raises `McpUnavailable` when the time is over,
        and `TokenNeeded` if this request was refused because it lacks a token."""
        clock = asyncio.timeout(self._limits.call)
        try:
            async with clock:
                call = Call(caller, clock, self._limits)
                self._calls.append(call)
                known = _current.set(call)
                try:
                    return await send(call)
                except MCPError:
                    if call.challenge is not None:
                        raise TokenNeeded(call.challenge) from None
                    raise
                finally:
                    call.over = True
                    _current.reset(known)
                    self._calls.remove(call)
        except TimeoutError:
            if not clock.expired():
                raise
            raise McpUnavailable(f"{self._server} did not answer within {self._limits.call:g} seconds") from None

    def _asking(self, what: str) -> Call:
        """The call that a question belongs to: the call that the server names, or else the latest call, if only one
        session calls this server.

        Servers of the older era do not name the call. With several sessions, a question could reach the people of the
        wrong session.
        """
        if (call := _current.get()) is not None:
            return call
        if not self._calls:
            raise McpError(f"a server may {what} only while one of its tools runs; no tool runs now")
        if len({call.caller.session for call in self._calls}) > 1:
            raise McpError(f"a server may not {what} while several sessions call its tools: it does not say for which")
        return self._calls[-1]

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Answer the server's question through the caller."""
        try:
            call = self._asking("ask questions")
            answer = await call.ask(lambda: self._elicited(call.caller, plain(params)))
            return types.ElicitResult.model_validate(answer)
        except McpError as error:
            return _refusal(error)

    async def _elicited(self, caller: Caller, params: JsonObject) -> JsonObject:
        """The answer of a person. A request to open a page also ends when the server reports that it is done."""
        if params.get("mode") != "url":
            return await caller.elicit(params)
        try:
            web_address(params.get("url"))
        except ValueError as error:
            raise McpError(str(error)) from None
        id = str(params.get("elicitationId"))
        done = self._pages[id] = asyncio.get_running_loop().create_future()
        try:
            return await unless(done, caller.elicit(params)) or {"action": "accept"}
        finally:
            if self._pages.get(id) is done:
                del self._pages[id]

    def page_done(self, id: str) -> None:
        """The server reports that the page which it wanted to be opened is done."""
        if (done := self._pages.get(id)) is not None and not done.done():
            done.set_result(None)

    async def opened(self, error: MCPError, caller: Caller) -> bool:
        """If a call was refused until a person opens pages, ask for that. Returns whether they were opened, so that the
        call can be repeated."""
        if error.code != types.URL_ELICITATION_REQUIRED:
            return False
        try:
            wanted = UrlElicitationRequiredError.from_error(error.error).elicitations[: self._limits.asks]
            answers = [await self._elicited(caller, plain(page)) for page in wanted]
        except (McpError, ValueError, AttributeError, TypeError):  # Nobody can be asked, or there is no page to open.
            return False
        return bool(answers) and all(answer.get("action") == "accept" for answer in answers)

    async def sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Answer a sampling request through the caller's session."""
        try:
            call = self._asking("ask the model")
            answer = await call.ask(lambda: call.caller.sample(plain(params)))
            if isinstance(answer.get("content"), list):
                return types.CreateMessageResultWithTools.model_validate(answer)
            return types.CreateMessageResult.model_validate(answer)
        except McpError as error:
            return _refusal(error)


def _refusal(error: McpError) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=str(error))


_MESSAGE = 1000
"""Characters of a progress message."""

_BURST = 20
_EVERY = 0.1
"""Seconds between progress messages, after `_BURST` of them came at once."""


class RateLimit:
    """Limits how often something happens: some times at once, then at a steady rate. Anything faster is left out."""

    def __init__(self, clock: Callable[[], float], *, burst: int = _BURST, every: float = _EVERY) -> None:
        self._clock = clock
        self._burst = burst
        self._every = every
        self._left = float(burst)
        self._at = clock()

    def allows(self) -> bool:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) / self._every)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class TurnCaller:
    """A turn that runs an MCP tool. Progress is shown in the call, and questions go to the people of the chat."""

    def __init__(self, turn: Turn, call: ToolCall, services: Services) -> None:
        self._turn = turn
        self._call = call
        self._services = services
        self._pace = RateLimit(asyncio.get_running_loop().time)

    @property
    def session(self) -> str:
        return self._turn.chat.session_uri

    def auth_required(self, state: JsonObject) -> None:
        """The server needs a token first. The call shows this, and so does the session."""
        needed: Any = {key: value for key, value in state.items() if key != "kind"}
        self._dispatch(chat_tool_call_auth_required(turn_id=self._turn.id, tool_call_id=self._call.id, auth=needed))

    def auth_resolved(self) -> None:
        self._dispatch(chat_tool_call_auth_resolved(turn_id=self._turn.id, tool_call_id=self._call.id))

    def _dispatch(self, action: Any) -> None:
        if not self._turn.ended.is_set():
            self._services.dispatch(self._turn.chat.uri, action)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._pace.allows():
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            self._call.content([{"type": "text", "text": f"{message[:_MESSAGE]} ({share})" if message else share}])

    async def elicit(self, params: JsonObject) -> JsonObject:
        words = str(params.get("message", ""))[:4000]
        if params.get("mode") == "url":
            given = await self._turn.ask([], message=words, url=str(params.get("url", "")))
            return {"action": given.response}
        schema = params.get("requestedSchema")
        return form_answer(schema, await self._turn.ask(form_questions(schema), message=words))

    async def sample(self, params: JsonObject) -> JsonObject:
        """Have the session's agent answer a sampling request, if a person agrees."""
        words = _asked_of_model(params)
        question: ChatInputQuestion = {
            "kind": "single-select",
            "id": "sampling",
            "message": f"The MCP server wants to ask the model:\n\n{words}",
            "options": [{"id": "allow", "label": "Allow once"}, {"id": "deny", "label": "Deny"}],
            "required": True,
        }
        given = await self._turn.ask([question])
        picked: Any = given.answers.get("sampling") or {}
        if given.response != "accept" or picked.get("value", {}).get("value") != "allow":
            raise McpError("the user did not allow this server to ask the model")
        try:
            return await self._services.sample(self._turn.chat.session_uri, params)
        except AgentError as error:
            raise McpError(str(error)) from error


def _asked_of_model(params: JsonObject) -> str:
    """The text of a sampling request, for a person."""
    messages: list[JsonObject] = params.get("messages") or []
    words: list[str] = [str(params.get("systemPrompt") or "")]
    for message in messages:
        content: Any = message.get("content")
        parts = cast("list[JsonObject]", content if isinstance(content, list) else [content or {}])
        words += [str(part.get("text") or f"({part.get('type')})") for part in parts]
    return "\n".join(filter(None, words))[:4000]


class SilentCaller:
    """The caller that reads prompts and resources for a message that is being sent.

    At that time nobody can answer a server's questions.
    """

    def __init__(self, session: str) -> None:
        self.session = session

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def auth_required(self, state: JsonObject) -> None: ...

    def auth_resolved(self) -> None: ...

    async def elicit(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask questions only while a tool runs")

    async def sample(self, params: JsonObject) -> JsonObject:
        raise McpError("a server may ask the model only while a tool runs")


__all__ = [
    "Call",
    "Caller",
    "Calls",
    "Limits",
    "RateLimit",
    "ServerPort",
    "SilentCaller",
    "TokenNeeded",
    "TurnCaller",
    "current_call",
]
