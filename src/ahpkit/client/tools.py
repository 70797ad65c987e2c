"""Tools that this client offers: typed Python functions, run when a call arrives and ended when the call is cancelled.

@client.tool
async def run_tests(pattern: str, context: ToolContext) -> str:
    "Run the unit tests that match a pattern."
    context.show("collecting …")
    ...
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast, get_type_hints

from ahpkit.authoring.tool_functions import ToolFunction
from ahpkit.client.answers import Deny, by_program, confirmed
from ahpkit.client.channels import Channel, Channels
from ahpkit.protocol.chat.state import ToolCallResult, ToolResultContent
from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, tool_calls, waits_for_person
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolAnnotations, ToolDefinition
from ahpkit.wire.codec import encode
from ahpkit.wire.errors import AhpError
from ahpkit.wire.tasks import Tasks

Content = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Content of a tool call: text, one content object of the protocol, or several."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Passed to a tool that has a parameter of this type: identifies the call, and shows progress."""

    session: str
    chat: str
    turn_id: str
    tool_call_id: str
    meta: Mapping[str, Any]
    _show: Callable[[list[ToolResultContent]], None]

    def show(self, content: Content) -> None:
        """Replace the content that the call shows while the tool runs. May be called from any thread."""
        self._show(_contents(content))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result when text or plain data is not enough."""

    content: Content = ""
    success: bool = True
    message: str | None = None
    """What the tool did, in the past tense. The chat shows it."""
    structured: Mapping[str, Any] | None = None


class Tool:
    """A registered tool."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> None:
        self._context = _context_parameter(function)
        injected = () if self._context is None else (self._context,)
        self._function = ToolFunction(function, name=name, title=title, injected=injected)
        self.name = self._function.name
        self.definition: ToolDefinition = self._function.definition
        if annotations is not None:
            self.definition = {**self.definition, "annotations": annotations}

    async def run(self, tool_input: str, context: ToolContext) -> ToolCallResult:
        """Run the tool on the call's input. An exception becomes a failed result."""
        try:
            arguments = self._function.arguments(tool_input)
            if self._context is not None:
                arguments[self._context] = context
            return _result(self.name, await _call(self._function.function, arguments))
        except Exception as error:  # A tool is the user's code.
            return failed(f"{self.name} failed", f"{type(error).__name__}: {error}")


def failed(message: str, error: str) -> ToolCallResult:
    """The result of a call that did not work."""
    return {"success": False, "pastTenseMessage": message, "error": {"message": error}}


def _context_parameter(function: Callable[..., Any]) -> str | None:
    hints = get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is ToolContext and name != "return"), None)


async def _call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Plain functions run in a thread: they may block without stopping the connection."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    result = await asyncio.to_thread(function, **arguments)
    await asyncio.sleep(0)  # Since Python 3.14 the result of a thread can overtake its last `show`.
    return await result if inspect.isawaitable(result) else result


def _result(name: str, returned: Any) -> ToolCallResult:
    given = returned if isinstance(returned, ToolResult) else _wrapped(returned)
    result: ToolCallResult = {"success": given.success, "pastTenseMessage": given.message or f"Ran {name}"}
    if contents := _contents(given.content):
        result["content"] = contents
    if given.structured is not None:
        result["structuredContent"] = dict(given.structured)
    return result


def _wrapped(returned: Any) -> ToolResult:
    """A result made of plain data: text and content objects unchanged, everything else as JSON."""
    if returned is None or isinstance(returned, str):
        return ToolResult(returned or "")
    if _is_content(returned):
        return ToolResult(returned)
    text = encode(returned).decode()
    return ToolResult(text, structured=cast("JsonObject", returned) if isinstance(returned, dict) else None)


def _is_content(value: Any) -> TypeGuard[Content]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and "type" in item for item in items)


def _contents(content: Content) -> list[ToolResultContent]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    items: Any = [content] if isinstance(content, Mapping) else content
    return list(items)


class ToolRunner:
    """Runs this client's tool calls in one chat of a session in which it is, or was, the active client.

    Follows the confirmed state, so a call is started only once, also when the connection is lost meanwhile.
    """

    def __init__(
        self,
        channels: Channels,
        tasks: Tasks,
        chat: Channel,
        *,
        session: str,
        client_id: str,
        tools: Mapping[str, Tool],
        read: Callable[[str], Awaitable[str]],
    ) -> None:
        """`read` fetches the text that a reference names from the host."""
        self._read = read
        self._channels = channels
        self._tasks = tasks
        self._chat = chat
        self._session = session
        self._client_id = client_id
        self._tools = tools
        self._running: dict[str, asyncio.Task[None]] = {}
        self._denied: set[str] = set()
        chat.listeners.append(self)
        self.on_reset()

    def close(self) -> None:
        """Stop watching, and end the tools that run."""
        if self in self._chat.listeners:
            self._chat.listeners.remove(self)
        for task in self._running.values():
            task.cancel()

    def on_action(self, envelope: JsonObject) -> None:
        if envelope["action"]["type"] not in STREAMING_ACTIONS:
            self.on_reset()

    def on_reset(self) -> None:
        turn: JsonObject = (self._chat.confirmed or {}).get("activeTurn", {})
        ours = {call["toolCallId"]: call for call in self._our_calls(turn)}
        for call_id in [id for id in self._running if ours.get(id, {}).get("status") != "running"]:
            self._running.pop(call_id).cancel()
        self._denied &= ours.keys()
        for call_id, call in ours.items():
            if call["status"] == "running" and call_id not in self._running:
                work = self._run(turn["id"], call)
                self._running[call_id] = self._tasks.spawn(work, name=f"tool {call['toolName']}")
            elif waits_for_person(call) and call["toolName"] not in self._tools:
                self._deny(turn["id"], call)

    def on_gone(self, error: AhpError) -> None:
        self.close()

    def _our_calls(self, turn: Mapping[str, Any]) -> Iterator[JsonObject]:
        for call in tool_calls(turn):
            owner: JsonObject = call.get("contributor") or {}
            if owner.get("kind") == "client" and owner.get("clientId") == self._client_id:
                yield call

    def _deny(self, turn_id: str, call: JsonObject) -> None:
        """Deny a call of a tool that this client does not have, so that it does not wait forever."""
        if call["toolCallId"] not in self._denied:
            self._denied.add(call["toolCallId"])
            denial = Deny(reason=f"this client has no tool {call['toolName']!r}", automatic=True)
            self._dispatch(by_program(confirmed(turn_id, call["toolCallId"], denial), call))

    async def _run(self, turn_id: str, call: JsonObject) -> None:
        ids = {"turnId": turn_id, "toolCallId": call["toolCallId"]}
        tool = self._tools.get(call["toolName"])
        if tool is None:
            name = call["toolName"]
            result = failed(f"{name} was not run", f"this client has no tool {name!r}")
        else:
            result = await self._result(tool, call, self._context(turn_id, call, ids))
        self._dispatch({"type": "chat/toolCallComplete", **ids, "result": result})

    async def _result(self, tool: Tool, call: JsonObject, context: ToolContext) -> ToolCallResult:
        """Run a tool. If its input is a reference, the text is read only now, because a person may have edited it."""
        given = call.get("toolInput", "")
        try:
            text = given if isinstance(given, str) else await self._read(given["uri"])
        except (AhpError, TimeoutError, ValueError) as error:
            return failed(f"{tool.name} was not run", f"its input cannot be read: {error}")
        return await tool.run(text, context)

    def _context(self, turn_id: str, call: JsonObject, ids: JsonObject) -> ToolContext:
        def show(content: list[Any]) -> None:
            self._dispatch({"type": "chat/toolCallContentChanged", **ids, "content": content})

        return ToolContext(
            session=self._session,
            chat=self._chat.uri,
            turn_id=turn_id,
            tool_call_id=call["toolCallId"],
            meta=call.get("_meta", {}),
            _show=_on_loop(show),
        )

    def _dispatch(self, action: JsonObject) -> None:
        self._channels.dispatch(self._chat.uri, action)


def _on_loop(function: Callable[[list[Any]], None]) -> Callable[[list[Any]], None]:
    """Makes `function` callable from any thread: it always runs on the event loop."""
    loop = asyncio.get_running_loop()

    def call(content: list[Any]) -> None:
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            function(content)
        else:
            loop.call_soon_threadsafe(function, content)

    return call


__all__ = ["Content", "Tool", "ToolContext", "ToolResult", "ToolRunner", "failed"]
