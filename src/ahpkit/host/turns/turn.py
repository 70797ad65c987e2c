"""Drives one running turn for the agent: each call of the agent becomes an action of the chat."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack

from opentelemetry.context import Context

from ahpkit.host.agent import CanvasRuntime, Chat, InputAnswers, SubChat, ToolCall, ToolOutcome, TurnContext
from ahpkit.host.agent.values import AskOptions, CallToolOptions, ToolCallOptions
from ahpkit.host.registration import ToolSource
from ahpkit.host.states import NO_CHAT
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.approvals import CallGate
from ahpkit.host.turns.session_tools import contributor_of, owner_key
from ahpkit.host.turns.tool_call import LiveToolCall, ToolCallPorts, canonical
from ahpkit.protocol.chat.actions import (
    ChatAction,
    ChatInputCompletedAction,
    chat_delta,
    chat_error,
    chat_input_completed,
    chat_input_requested,
    chat_pending_message_removed,
    chat_reasoning,
    chat_response_part,
    chat_tool_call_start,
    chat_turn_cancelled,
    chat_turn_complete,
    chat_usage,
)
from ahpkit.protocol.chat.state import (
    ChatInputQuestion,
    ChatInputRequest,
    ChatState,
    ErrorResponsePart,
    Message,
    ResponsePart,
    SystemNotificationResponsePart,
)
from ahpkit.protocol.chat.turns import elapsed, find_tool_call, open_request
from ahpkit.protocol.common.state import ErrorInfo, JsonObject, ModelSelection, StringOrMarkdown, UsageInfo
from ahpkit.tools.registry import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """What a turn needs from the host."""

    tracing: Tracing
    dispatch: Callable[[ChatAction], object]
    """Takes an action of the turn's chat."""
    chat_state: Callable[[], ChatState | None]
    activity: Callable[[str | None], None]
    """Shows what the agent is doing right now."""
    store_content: Callable[[bytes, str], str]
    """Stores data of a content type; returns its URI."""
    tool: Callable[[str], tuple[Tool, ToolSource] | None]
    """The tool with this name and its source; None for the agent's own tools."""
    gone: Callable[[], Sequence[Tool]]
    """Tools that this turn had earlier and does not have any more."""
    gate: CallGate | None
    """The gate of every call that the host mediates."""
    subchat: Callable[[LiveTurn, str, str, str | None], Awaitable[SubChat]]
    """Opens a chat for a sub-agent. Gets the turn that asks, the title, the prompt, and the id of the tool call."""
    before_call: Callable[[str, str], Awaitable[None]]
    """Called with the ids of the turn and of a tool call, after the call was allowed and before it runs."""
    writing: Callable[[str, Path], Sequence[AbstractAsyncContextManager[None]]]
    """Contexts to enter while the agent writes a file in a turn."""
    room: Callable[[], Awaitable[None]]
    """Waits until clients have read most of the chat."""
    now: Callable[[], int]


class LiveTurn:
    """Implements `ahpkit.host.agent.Turn`. Calls after the end of the turn are ignored."""

    def __init__(self, chat: Chat, ports: TurnPorts, *, id: str, message: Message, resumed: bool = False) -> None:
        self._chat = chat
        self._ports = ports
        self.id = id
        self.message = message
        self.resumed = resumed
        self.prompt = message["text"]
        self.context = TurnContext()
        self.model: ModelSelection | None = message.get("model") or chat.model
        self.canvas: CanvasRuntime | None = None
        self.over = False
        self.client_id: str | None = None
        """The client that began this turn."""
        self.trace: Context | None = None
        """The trace context for spans of this turn, once it runs."""
        self.tool_calls: dict[str, LiveToolCall] = {}
        self._numbers = itertools.count(1 + len(self.parts))
        self._open_part: tuple[str, str] | None = None
        self._inputs: dict[str, asyncio.Future[InputAnswers]] = {}
        self._steered = asyncio.Event()
        self.ended = asyncio.Event()
        """Set when the turn is over in the chat's state."""
        self._at_end: list[Callable[[], object]] = []
        self._announced: list[_Keyed] = []
        """Calls that the agent announced and has not made yet."""
        self._made: list[_Keyed] = []
        """Calls that the agent made before it announced them."""
        self._announced_gone: list[_Keyed] = []
        """Calls of tools that are gone: announced, shown as failed, and not made yet."""

    @property
    def chat(self) -> Chat:
        return self._chat

    @property
    def chat_state(self) -> ChatState | None:
        return self._ports.chat_state()

    def say(self, action: ChatAction) -> None:
        """Dispatch an action of this turn unless the turn is over."""
        if not self.over:
            self._ports.dispatch(action)

    def complete(self) -> None:
        """The agent is done."""
        self.say(chat_turn_complete(turn_id=self.id, duration=self._duration))

    def cancel(self) -> None:
        """The turn was cancelled, and the agent stopped."""
        self.say(chat_turn_cancelled(turn_id=self.id, duration=self._duration))

    def fail(self, error: ErrorInfo, *, resumable: bool = False) -> None:
        """The agent failed."""
        self.say(chat_error(turn_id=self.id, duration=self._duration, part=error_part(error, resumable=resumable)))

    @property
    def parts(self) -> list[ResponsePart]:
        """The parts of the answer so far."""
        turn = (self.chat_state or NO_CHAT).get("activeTurn")
        return turn["responseParts"] if turn is not None and turn["id"] == self.id else []

    @property
    def _duration(self) -> int:
        return elapsed(self.chat_state, self._ports.now())

    def end(self) -> None:
        """The turn is over in the chat's state. The agent, a client or the host may have ended it."""
        self.over = True
        self.ended.set()
        for call in self.tool_calls.values():
            call.end()
        for done in self._at_end:
            done()
        self._at_end.clear()

    def on_end(self, done: Callable[[], object]) -> None:
        """Call a function when the turn is over, or now if it is over already."""
        if self.over:
            done()
        else:
            self._at_end.append(done)

    def text(self, delta: str) -> None:
        if delta:
            part_id = self._streaming_part("markdown")
            self.say(chat_delta(turn_id=self.id, part_id=part_id, content=delta))

    def think(self, delta: str) -> None:
        if delta:
            part_id = self._streaming_part("reasoning")
            self.say(chat_reasoning(turn_id=self.id, part_id=part_id, content=delta))

    async def room(self) -> None:
        await self._ports.room()

    def new_part(self) -> None:
        self._open_part = None

    def notice(self, text: StringOrMarkdown, *, meta: JsonObject | None = None) -> None:
        part: SystemNotificationResponsePart = {"kind": "systemNotification", "content": text}
        if meta:
            part["_meta"] = meta
        self._part(part)

    def attach(self, data: bytes, *, content_type: str) -> None:
        uri = self.store(data, content_type=content_type)
        self._part({"kind": "contentRef", "uri": uri, "sizeHint": len(data), "contentType": content_type})

    def store(self, data: bytes, *, content_type: str) -> str:
        return self._ports.store_content(data, content_type)

    def tool_call(self, name: str, **given: Unpack[ToolCallOptions]) -> LiveToolCall:
        found = self._ports.tool(name) if given.get("contributor") is None else None
        return self._start_call(name, found, given)

    def _start_call(self, name: str, found: tuple[Tool, ToolSource] | None, given: ToolCallOptions) -> LiveToolCall:
        """Begin a call. `found` is its tool, if somebody contributes one of that name."""
        self.new_part()
        contributor, display_name, owner = given.get("contributor"), given.get("display_name"), None
        meta = given.get("meta") or None
        if found is not None:
            tool = found[0]
            contributor, name = contributor_of(tool, self.client_id), tool.own_name
            owner, display_name = owner_key(tool, self.client_id), display_name or tool.definition.get("title")
        call = self._new_call(self._free_id(given.get("id")), name, meta, owner)
        self.tool_calls[call.id] = call
        started = chat_tool_call_start(
            turn_id=self.id,
            tool_call_id=call.id,
            tool_name=name,
            display_name=display_name or name,
            intention=given.get("intention"),
            contributor=contributor,
            meta=meta,
        )
        self.say(started)
        if (message := given.get("message")) is not None:
            call.input("", message=message)
        return call

    def _free_id(self, wanted: str | None) -> str:
        """An id for a call that no other call of this turn has. Two calls with the same id would get each other's
        results."""
        id = wanted or f"{self.id}-tool-{next(self._numbers)}"
        while id in self.tool_calls:
            id = f"{wanted}-{next(self._numbers)}"
        return id

    async def call_tool(self, name: str, tool_input: str, **given: Unpack[CallToolOptions]) -> ToolOutcome:
        key = (name, canonical(tool_input))
        found = self._ports.tool(name)
        if found is None:
            return self._call_gone(key, given.get("id"))
        tool, source = found
        live = _taken(self._announced, key)
        if live is None:
            live = self._start_call(name, found, {"id": given.get("id")})
            self._made.append((key, live))
        live.on_progress = given.get("on_progress")

        async def run(tool_input: str) -> ToolOutcome:
            return await source.run(self, live, tool, tool_input)

        return await live.perform(run, tool_input=tool_input, asks=source.asks(tool))

    def announce(self, name: str, tool_input: str, *, meta: JsonObject | None = None) -> LiveToolCall | None:
        key = (name, canonical(tool_input))
        found = self._ports.tool(name)
        live = _taken(self._made, key)
        if live is None and found is None:
            live = self._show_gone(name, None)
            if live is not None:
                self._announced_gone.append((key, live))
        elif live is None and found is not None:
            live = self.tool_call(name, meta=meta)
            live.asks_nobody = not found[1].asks(found[0])
            self._announced.append((key, live))
        return live

    def _call_gone(self, key: tuple[str, str], id: str | None) -> ToolOutcome:
        """A call of a tool that is gone fails, and people see it."""
        why = no_tool(key[0])
        if (announced := _taken(self._announced, key)) is not None:  # The tool was removed after that.
            if announced.status == "pending-confirmation":
                announced.withdraw(why)
            announced.complete(success=False, error=why)
        elif _taken(self._announced_gone, key) is None and (live := self._show_gone(key[0], id)) is not None:
            self._made.append((key, live))
        return ToolOutcome(success=False, error=why)

    def _show_gone(self, name: str, id: str | None) -> LiveToolCall | None:
        """Show a call of a tool that is gone as failed, without asking anybody. None: this turn never had such a
        tool."""
        tool = next((tool for tool in self._ports.gone() if tool.name == name), None)
        if tool is None:
            return None
        contributor = contributor_of(tool, self.client_id)
        title = tool.definition.get("title") or tool.own_name
        live = self.tool_call(tool.own_name, id=id, display_name=title, contributor=contributor)
        live.complete(success=False, error=no_tool(name))
        return live

    def _new_call(self, id: str, name: str, meta: JsonObject | None, owner: str | None) -> LiveToolCall:
        ports = ToolCallPorts(
            turn_id=self.id,
            say=self.say,
            turn_over=lambda: self.over,
            state=lambda: find_tool_call((self.chat_state or {}).get("activeTurn"), id),
            gate=self._ports.gate,
            before_run=lambda call_id: self._ports.before_call(self.id, call_id),
        )
        span = self._ports.tracing.tool_call(name, self.trace)
        return LiveToolCall(ports, id, name, span=span, meta=meta, owner=owner)

    async def ask(self, questions: Sequence[ChatInputQuestion], **given: Unpack[AskOptions]) -> InputAnswers:
        request = _request(f"{self.id}-input-{next(self._numbers)}", questions, given)
        answered: asyncio.Future[InputAnswers] = asyncio.get_running_loop().create_future()
        self._inputs[request["id"]] = answered
        self.new_part()
        self.say(chat_input_requested(request=request))
        try:
            return await answered
        finally:
            del self._inputs[request["id"]]
            if answered.cancelled():  # The agent stopped waiting, so the question is withdrawn.
                self.say(chat_input_completed(request_id=request["id"], response="cancel"))

    @asynccontextmanager
    async def writing(self, path: Path) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for hears in self._ports.writing(self.id, self._chat.working_directory / path):
                await stack.enter_async_context(hears)
            yield

    def usage(self, usage: UsageInfo) -> None:
        self.say(chat_usage(turn_id=self.id, usage=usage))

    def activity(self, text: str | None) -> None:
        if not self.over:
            self._ports.activity(text)

    async def subchat(self, title: str, prompt: str, *, tool_call: ToolCall | None = None) -> SubChat:
        tool_call_id = tool_call.id if isinstance(tool_call, LiveToolCall) else None
        return await self._ports.subchat(self, title, prompt, tool_call_id)

    def steering(self) -> Message | None:
        pending = (self.chat_state or {}).get("steeringMessage")
        self._steered.clear()
        if pending is None or self.over:
            return None
        self.say(chat_pending_message_removed(kind="steering", id=pending["id"]))
        return pending["message"]

    async def wait_steering(self) -> Message:
        while (message := self.steering()) is None:
            await self._steered.wait()
        return message

    def on_applied(self, action: ChatAction, before: ChatState, client_id: str | None = None) -> None:
        """An action of this turn's chat was applied. The agent may be waiting for it."""
        if action["type"] == "chat/pendingMessageSet" and action["kind"] == "steering":
            self._steered.set()
        elif action["type"] == "chat/inputCompleted":
            self._answered(action, before)
        elif (
            isinstance(call_id := action.get("toolCallId"), str) and (call := self.tool_calls.get(call_id)) is not None
        ):
            call.on_applied(action, client_id)

    def _answered(self, action: ChatInputCompletedAction, before: ChatState) -> None:
        waiting = self._inputs.get(action["requestId"])
        if waiting is None or waiting.done():
            return
        request: ChatInputRequest | None = open_request(before, action["requestId"])
        answers = {**(request.get("answers", {}) if request else {}), **action.get("answers", {})}
        waiting.set_result(InputAnswers(action["response"], answers, action.get("_meta", {})))

    def _streaming_part(self, kind: Literal["markdown", "reasoning"]) -> str:
        """The id of the part for text of this kind: the open part, or a new one."""
        if self._open_part is None or self._open_part[0] != kind:
            part_id = f"{self.id}-part-{next(self._numbers)}"
            self._part(_text_part(kind, part_id))
            self._open_part = (kind, part_id)
        return self._open_part[1]

    def _part(self, part: ResponsePart) -> None:
        self.new_part()
        self.say(chat_response_part(turn_id=self.id, part=part))


def error_part(error: ErrorInfo, *, resumable: bool) -> ErrorResponsePart:
    """The error part that a failed turn ends with."""
    part: ErrorResponsePart = {"kind": "error", "error": error}
    return {**part, "resumable": True} if resumable else part


def _text_part(kind: Literal["markdown", "reasoning"], part_id: str) -> ResponsePart:
    if kind == "markdown":
        return {"kind": "markdown", "id": part_id, "content": ""}
    return {"kind": "reasoning", "id": part_id, "content": ""}


def _request(id: str, questions: Sequence[ChatInputQuestion], given: AskOptions) -> ChatInputRequest:
    request: ChatInputRequest = {"id": id, "questions": list(questions)}
    if (message := given.get("message")) is not None:
        request["message"] = message
    if (url := given.get("url")) is not None:
        request["url"] = url
    if meta := given.get("meta"):
        request["_meta"] = meta
    return request


def no_tool(name: str) -> str:
    return f"there is no tool {name!r} now"


_Keyed = tuple[tuple[str, str], LiveToolCall]
"""A call, its tool's name, and its input in canonical form."""


def _taken(calls: list[_Keyed], key: tuple[str, str]) -> LiveToolCall | None:
    """Take the first call that matches, so that it is used only once. Some agents announce a call before they know its
    input."""
    fitting = [entry for entry in calls if entry[0] == key]
    fitting += [entry for entry in calls if entry[0][0] == key[0] and "{}" in (entry[0][1], key[1])]
    if not fitting:
        return None
    calls.remove(fitting[0])
    return fitting[0][1]


__all__ = ["LiveTurn", "TurnPorts", "error_part"]
