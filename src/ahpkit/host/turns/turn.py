"""One running turn, as the agent drives it: what the agent says becomes actions of its chat."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from opentelemetry.context import Context

from ahpkit.host.agent import CanvasRuntime, Chat, InputAnswers, SubChat, TurnContext
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.tool_call import LiveToolCall, ToolCallPorts, find_tool_call
from ahpkit.protocol.chat.state import ChatInputQuestion, Message, ToolCallContributor, UsageInfo
from ahpkit.protocol.common.state import JsonObject, ModelSelection, StringOrMarkdown


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPorts:
    """What a turn uses of the host."""

    tracing: Tracing
    dispatch: Callable[[JsonObject], object]
    """Takes an action of the turn's chat."""
    chat_state: Callable[[], JsonObject | None]
    activity: Callable[[str | None], None]
    """Shows what the agent is doing right now."""
    store_content: Callable[[bytes, str], str]
    """Keeps data of a content type; returns its URI."""
    client_tool: Callable[[str], tuple[str, str] | None]
    """`(clientId, toolName)` when the active client contributed the tool the model calls by this name."""
    guard: Callable[[str, str], Awaitable[str | None]]
    """A reason to deny a call of a tool with this input before anyone is asked, or None."""
    subchat: Callable[[LiveTurn, str, str, str | None], Awaitable[SubChat]]
    """Opens a chat for a sub-agent: who asks, its title, its prompt, the tool call it belongs to."""


class LiveTurn:
    """Implements `ahpkit.host.agent.Turn`. Once it is over, whatever a slow agent still says is dropped."""

    def __init__(self, chat: Chat, ports: TurnPorts, *, id: str, message: Message) -> None:
        self._chat = chat
        self._ports = ports
        self.id = id
        self.message = message
        self.prompt = message["text"]
        self.context = TurnContext()
        self.model: ModelSelection | None = chat.model
        self.canvas: CanvasRuntime | None = None
        self.over = False
        self.trace: Context | None = None
        """Where spans of this turn belong, once it runs."""
        self.tool_calls: dict[str, LiveToolCall] = {}
        self._numbers = itertools.count(1)
        self._open_part: tuple[str, str] | None = None
        self._inputs: dict[str, asyncio.Future[InputAnswers]] = {}
        self._steered = asyncio.Event()

    @property
    def chat(self) -> Chat:
        return self._chat

    @property
    def chat_state(self) -> JsonObject | None:
        return self._ports.chat_state()

    def say(self, action: JsonObject) -> None:
        """Dispatch an action of this turn unless the turn is over."""
        if not self.over:
            self._ports.dispatch(action)

    def end(self) -> None:
        """The turn is over in the chat's state, whoever ended it."""
        self.over = True
        for call in self.tool_calls.values():
            call.end()

    def text(self, delta: str) -> None:
        self._stream("markdown", "chat/delta", delta)

    def think(self, delta: str) -> None:
        self._stream("reasoning", "chat/reasoning", delta)

    def new_part(self) -> None:
        self._open_part = None

    def notice(self, text: StringOrMarkdown, *, meta: JsonObject | None = None) -> None:
        self._part({"kind": "systemNotification", "content": text} | ({"_meta": meta} if meta else {}))

    def attach(self, data: bytes, *, content_type: str) -> None:
        uri = self.store(data, content_type=content_type)
        self._part({"kind": "contentRef", "uri": uri, "sizeHint": len(data), "contentType": content_type})

    def store(self, data: bytes, *, content_type: str) -> str:
        return self._ports.store_content(data, content_type)

    def tool_call(
        self,
        name: str,
        *,
        display_name: str | None = None,
        id: str | None = None,
        message: StringOrMarkdown | None = None,
        contributor: ToolCallContributor | None = None,
        meta: JsonObject | None = None,
    ) -> LiveToolCall:
        self.new_part()
        owned = self._ports.client_tool(name) if contributor is None else None
        if owned is not None:
            contributor, name = {"kind": "client", "clientId": owned[0]}, owned[1]
        call = self._new_call(id or f"{self.id}-tool-{next(self._numbers)}", name, meta)
        self.tool_calls[call.id] = call
        action: JsonObject = {"type": "chat/toolCallStart", "turnId": self.id, "toolCallId": call.id}
        action |= {"toolName": name, "displayName": display_name or name}
        action |= {"contributor": contributor} if contributor else {}
        action |= {"_meta": meta} if meta else {}
        self.say(action)
        if message is not None:
            call.input("", message=message)
        return call

    def _new_call(self, id: str, name: str, meta: JsonObject | None) -> LiveToolCall:
        ports = ToolCallPorts(
            turn_id=self.id,
            say=self.say,
            turn_over=lambda: self.over,
            state=lambda: find_tool_call(self.chat_state, id),
            guard=self._ports.guard,
        )
        return LiveToolCall(ports, id, name, span=self._ports.tracing.tool_call(name, self.trace), meta=meta)

    async def ask(
        self,
        questions: Sequence[ChatInputQuestion],
        *,
        message: str | None = None,
        url: str | None = None,
        meta: JsonObject | None = None,
    ) -> InputAnswers:
        request: JsonObject = {"id": f"{self.id}-input-{next(self._numbers)}", "questions": list(questions)}
        request |= {"message": message} if message is not None else {}
        request |= {"url": url} if url is not None else {}
        request |= {"_meta": meta} if meta else {}
        answered: asyncio.Future[InputAnswers] = asyncio.get_running_loop().create_future()
        self._inputs[request["id"]] = answered
        self.new_part()
        self.say({"type": "chat/inputRequested", "request": request})
        try:
            return await answered
        finally:
            del self._inputs[request["id"]]
            if answered.cancelled():  # Nobody waits for an answer any more, so nobody should be asked.
                self.say({"type": "chat/inputCompleted", "requestId": request["id"], "response": "cancel"})

    def usage(self, usage: UsageInfo) -> None:
        self.say({"type": "chat/usage", "turnId": self.id, "usage": usage})

    def activity(self, text: str | None) -> None:
        if not self.over:
            self._ports.activity(text)

    async def subchat(self, title: str, prompt: str, *, tool_call: object | None = None) -> SubChat:
        tool_call_id = tool_call.id if isinstance(tool_call, LiveToolCall) else None
        return await self._ports.subchat(self, title, prompt, tool_call_id)

    def steering(self) -> Message | None:
        pending = (self.chat_state or {}).get("steeringMessage")
        self._steered.clear()
        if pending is None or self.over:
            return None
        self.say({"type": "chat/pendingMessageRemoved", "kind": "steering", "id": pending["id"]})
        return pending["message"]

    async def wait_steering(self) -> Message:
        while (message := self.steering()) is None:
            await self._steered.wait()
        return message

    def heard(self, action: JsonObject, before: JsonObject) -> None:
        """Something about this turn was applied that the agent may be waiting for."""
        kind = action["type"]
        if kind == "chat/pendingMessageSet" and action["kind"] == "steering":
            self._steered.set()
        elif kind == "chat/inputCompleted":
            self._answered(action, before)
        elif "toolCallId" in action and (call := self.tool_calls.get(action["toolCallId"])) is not None:
            call.heard(action)

    def _answered(self, action: JsonObject, before: JsonObject) -> None:
        waiting = self._inputs.get(action["requestId"])
        if waiting is None or waiting.done():
            return
        requests: list[JsonObject] = before.get("inputRequests", [])
        none: JsonObject = {}
        drafts = next((r.get("answers", none) for r in requests if r["id"] == action["requestId"]), none)
        answers = {**drafts, **action.get("answers", {})}
        waiting.set_result(InputAnswers(action["response"], answers, action.get("_meta", {})))

    def _stream(self, kind: str, append: str, delta: str) -> None:
        if not delta:
            return
        if self._open_part is None or self._open_part[0] != kind:
            part_id = f"{self.id}-part-{next(self._numbers)}"
            self._part({"kind": kind, "id": part_id, "content": ""})
            self._open_part = (kind, part_id)
        self.say({"type": append, "turnId": self.id, "partId": self._open_part[1], "content": delta})

    def _part(self, part: JsonObject) -> None:
        self.new_part()
        self.say({"type": "chat/responsePart", "turnId": self.id, "part": part})


__all__ = ["LiveTurn", "TurnPorts"]
