"""One tool call of a running turn, as the agent drives it: its methods become actions of the chat.

The state is the truth: a call's status is read from the chat, never remembered here, because clients change it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from opentelemetry.trace import Span

from ahpkit.host.agent import Confirmation, ToolOutcome
from ahpkit.protocol_next.chat.actions import ChatAction
from ahpkit.protocol_next.chat.constructors import (
    chat_tool_call_complete,
    chat_tool_call_content_changed,
    chat_tool_call_delta,
    chat_tool_call_denied,
    chat_tool_call_ready,
)
from ahpkit.protocol_next.chat.state import (
    ConfirmationOption,
    ToolCallConfirmationReason,
    ToolCallEdits,
    ToolCallResult,
    ToolResultContent,
)
from ahpkit.protocol_next.chat.tool_calls import ToolCallAction
from ahpkit.protocol_next.common.state import FileEdit, JsonObject, StringOrMarkdown

_OVER = frozenset({"completed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPorts:
    """What a tool call uses of its turn."""

    turn_id: str
    say: Callable[[ChatAction], None]
    turn_over: Callable[[], bool]
    state: Callable[[], JsonObject | None]
    """The call as the chat's state has it; None once its turn is over."""
    guard: Callable[[str, str], Awaitable[str | None]]
    """A reason to deny a call of a tool with this input before anyone is asked, or None."""


class _About(TypedDict):
    """The call that an action is about."""

    turn_id: str
    tool_call_id: str


class LiveToolCall:
    """Implements `ahpkit.host.agent.ToolCall` on a chat's state."""

    def __init__(self, ports: ToolCallPorts, id: str, name: str, *, span: Span, meta: JsonObject | None) -> None:
        self._ports = ports
        self.id = id
        self.name = name
        self._meta: JsonObject = meta or {}
        self._dropped: set[str] = set()
        self._span = span
        self._confirmed: asyncio.Future[JsonObject] | None = None
        self._completed: asyncio.Future[JsonObject] | None = None

    @property
    def _state(self) -> JsonObject | None:
        return self._ports.state()

    @property
    def status(self) -> str | None:
        """The call's status in the chat; None once its turn is over."""
        state = self._state
        return state["status"] if state else None

    @property
    def over(self) -> bool:
        return self.status in _OVER or self._ports.turn_over()

    def input(self, delta: str, *, message: StringOrMarkdown | None = None) -> None:
        self._say(chat_tool_call_delta(**self._about, content=delta, invocation_message=message))

    def running(
        self,
        *,
        tool_input: str | None = None,
        message: StringOrMarkdown | None = None,
        confirmed: ToolCallConfirmationReason = "not-needed",
    ) -> None:
        if self.status == "streaming":
            self._ready(tool_input, message, confirmed=confirmed)

    async def confirm(
        self,
        *,
        tool_input: str | None = None,
        message: StringOrMarkdown | None = None,
        title: StringOrMarkdown | None = None,
        options: Sequence[ConfirmationOption] = (),
        edits: Sequence[FileEdit] = (),
        editable: bool = False,
    ) -> Confirmation:
        tool_input = self._input(tool_input)
        denial = await self._ports.guard(self.name, tool_input)
        self._confirmed = asyncio.get_running_loop().create_future()
        self._ready(
            tool_input,
            message,
            title=title,
            options=list(options) or None,
            edits={"items": list(edits)} if edits else None,
            editable=editable or None,
        )
        if denial is not None:
            self._ports.say(chat_tool_call_denied(**self._about, reason="denied", reason_message=denial))
        try:
            answer = await self._confirmed
        finally:
            self._confirmed = None
        return Confirmation(
            approved=answer["approved"],
            tool_input=answer.get("editedToolInput", tool_input),
            option_id=answer.get("selectedOptionId"),
            reason=_plain(answer.get("reasonMessage")),
            suggestion=answer.get("userSuggestion"),
            meta=answer.get("_meta", {}),
        )

    async def run_by_client(self, *, tool_input: str) -> ToolOutcome:
        self._completed = asyncio.get_running_loop().create_future()
        self._ready(tool_input, None, confirmed="not-needed")
        try:
            return _outcome(await self._completed)
        finally:
            self._completed = None

    def content(self, content: Sequence[ToolResultContent]) -> None:
        self._say(chat_tool_call_content_changed(**self._about, content=list(content)))

    def complete(
        self,
        *,
        success: bool = True,
        message: StringOrMarkdown | None = None,
        content: Sequence[ToolResultContent] = (),
        error: str | None = None,
        structured_content: JsonObject | None = None,
    ) -> None:
        self.running()
        if self.over:
            return
        result: ToolCallResult = {"success": success, "pastTenseMessage": message or self._past_tense(success)}
        if content:
            result["content"] = list(content)
        if error is not None:
            result["error"] = {"message": error}
        if structured_content is not None:
            result["structuredContent"] = structured_content
        self._say(chat_tool_call_complete(**self._about, result=result))
        self.end()

    def meta(self, meta: JsonObject) -> None:
        self._dropped = (self._dropped | self._meta.keys()) - meta.keys()
        self._meta = meta

    def end(self) -> None:
        """The call is over: so is its span."""
        if self._span.is_recording():
            self._span.end()

    def heard(self, action: JsonObject) -> None:
        """A client decided about this call, or finished it."""
        kind = action["type"]
        if kind == "chat/toolCallConfirmed":
            _resolve(self._confirmed, action)
            if not action["approved"]:
                self.end()
                _resolve(
                    self._completed, {"success": False, "error": {"message": "the client declined this tool call"}}
                )
        elif kind == "chat/toolCallComplete":
            _resolve(self._completed, action["result"])
            self.end()

    def _ready(
        self,
        tool_input: str | None,
        message: StringOrMarkdown | None,
        *,
        confirmed: ToolCallConfirmationReason | None = None,
        title: StringOrMarkdown | None = None,
        options: list[ConfirmationOption] | None = None,
        edits: ToolCallEdits | None = None,
        editable: bool | None = None,
    ) -> None:
        state = self._state or {}
        ready = chat_tool_call_ready(
            **self._about,
            invocation_message=message or state.get("invocationMessage") or state.get("displayName") or self.name,
            tool_input=self._input(tool_input) or None,
            confirmed=confirmed,
            confirmation_title=title,
            options=options,
            edits=edits,
            editable=editable,
        )
        self._say(ready)

    def _input(self, tool_input: str | None) -> str:
        if tool_input is not None:
            return tool_input
        state = self._state or {}
        return str(state.get("toolInput") or state.get("partialInput") or "")

    def _past_tense(self, success: bool) -> str:
        name = (self._state or {}).get("displayName", self.name)
        return f"Used {name}" if success else f"{name} failed"

    @property
    def _about(self) -> _About:
        return {"turn_id": self._ports.turn_id, "tool_call_id": self.id}

    def _say(self, action: ToolCallAction) -> None:
        """Dispatch an action of this call, with its `_meta` when that changed."""
        shown: JsonObject = (self._state or {}).get("_meta", {})
        if shown != (meta := self._merged(shown)):
            action["_meta"] = meta
        self._ports.say(action)

    def _merged(self, shown: JsonObject) -> JsonObject:
        """An action's `_meta` takes the place of what is there, so what a client put there goes along."""
        return {key: value for key, value in shown.items() if key not in self._dropped} | self._meta


def _resolve(future: asyncio.Future[JsonObject] | None, value: JsonObject) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _outcome(result: JsonObject) -> ToolOutcome:
    error: JsonObject = result.get("error") or {}
    return ToolOutcome(
        success=result["success"],
        content=result.get("content", ()),
        error=error.get("message"),
        structured_content=result.get("structuredContent"),
    )


def _plain(text: StringOrMarkdown | None) -> str | None:
    return text["markdown"] if isinstance(text, dict) else text


__all__ = ["LiveToolCall", "ToolCallPorts"]
