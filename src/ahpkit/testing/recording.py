"""Stand-ins for what the host gives an agent: they record what the agent says.

    turn = RecordingTurn("hello", confirmations=[False])
    await my_agent_chat.run(turn)
    assert turn.said == [("text", "Hi "), ("text", "there")]

Every call becomes one tuple in `said`: the verb, what it is about, and, only when the agent gave more, a dict of the
rest. Calls of a sub-chat and of the chat itself are in their own lists. Questions to a person are answered from a
script; an answer may also be an awaitable, so that a test can make the agent wait.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack, cast

from ahpkit.host.agent import (
    CanvasRuntime,
    Command,
    Confirmation,
    InputAnswers,
    McpServerOffer,
    ToolCall,
    ToolOutcome,
    Turn,
    TurnContext,
)
from ahpkit.host.agent.values import (
    AskOptions,
    CallToolOptions,
    CompleteOptions,
    ConfirmOptions,
    PerformOptions,
    RunningOptions,
    ToolCallOptions,
)
from ahpkit.protocol.chat.state import (
    ChatInputQuestion,
    Message,
    ResponsePart,
    ToolResultContent,
    UsageInfo,
)
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection, StringOrMarkdown
from ahpkit.protocol.session.state import SessionConfigSchema

Said = tuple[Any, ...]
T = TypeVar("T")


def user_message(text: str) -> Message:
    """A plain message of a user."""
    return {"text": text, "origin": {"kind": "user"}}


def _said(verb: str, *about: Any, **more: Any) -> Said:
    given = {key: value for key, value in more.items() if value not in (None, (), [], False)}
    return (verb, *about, given) if given else (verb, *about)


class Script(Generic[T]):
    """Answers that are given in order; afterwards the default is given."""

    def __init__(self, answers: Iterable[T | Awaitable[T]]) -> None:
        self._left = deque(answers)

    async def next(self, default: T) -> T:
        answer = self._left.popleft() if self._left else default
        return await cast(Awaitable[T], answer) if isinstance(answer, Awaitable) else cast(T, answer)


class RecordingChat:
    """Stands in for `ahpkit.host.agent.Chat`."""

    def __init__(
        self,
        *,
        uri: str = "ahp-chat:/recorded",
        session_uri: str = "ahp-session:/recorded",
        working_directory: Path | None = None,
        model: ModelSelection | None = None,
        agent: AgentSelection | None = None,
        config: Mapping[str, Any] | None = None,
        history: Sequence[TurnRecord] = (),
        memory: JsonObject | None = None,
        extensions: JsonObject | None = None,
        extension_results: Mapping[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.session_uri = session_uri
        self.working_directory = working_directory or Path.cwd()
        self.working_directories: Sequence[Path] = [self.working_directory]
        self.model = model
        self.agent = agent
        self.config: Mapping[str, Any] = config or {}
        self.history: Sequence[TurnRecord] = history
        self.background: Sequence[TurnRecord] = ()
        self.memory: JsonObject = memory or {}
        self.forked_memory: JsonObject = {}
        self.watched = True
        self.session_meta: JsonObject = {}
        self.said: list[Said] = []
        self.extensions: JsonObject = extensions or {}
        self._extension_results = extension_results or {}
        self.servers: Sequence[McpServerOffer] = ()

    def remember(self, memory: JsonObject) -> None:
        self.memory = memory
        self.said.append(("remember", memory))

    async def mcp_servers(self) -> Sequence[McpServerOffer]:
        return self.servers

    def title(self, title: str) -> None:
        self.said.append(("title", title))

    def activity(self, text: str | None) -> None:
        self.said.append(("activity", text))

    def commands(self, commands: Sequence[Command]) -> None:
        self.said.append(("commands", [command.name for command in commands]))

    def config_options(self, schema: SessionConfigSchema, values: Mapping[str, Any]) -> None:
        self.said.append(("config_options", schema, dict(values)))

    def meta(self, key: str, value: object) -> None:
        self.said.append(("meta", key, value))

    async def extension_request(self, method: str, params: JsonObject) -> Any:
        self.said.append(("extension_request", method, params))
        return self._extension_results[method]

    def extension_notification(self, method: str, params: JsonObject) -> None:
        self.said.append(("extension_notification", method, params))


class RecordingToolCall:
    """Stands in for `ahpkit.host.agent.ToolCall`. It ignores the calls that the host would ignore."""

    def __init__(self, turn: RecordingTurn, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.over = False
        self._turn = turn
        self._running = False
        self._input = ""

    def _say(self, verb: str, *about: Any, **more: Any) -> None:
        self._turn.said.append(_said(verb, self.id, *about, **more))

    def _ready(self, tool_input: str | None) -> str:
        self._input = self._input if tool_input is None else tool_input
        return self._input

    def input(self, delta: str, *, message: StringOrMarkdown | None = None) -> None:
        self._input += delta
        self._say("input", delta, message=message)

    def running(self, **given: Unpack[RunningOptions]) -> None:
        if not self._running and not self.over:
            self._running = True
            how = None if given.get("confirmed") == "not-needed" else given.get("confirmed")
            more = {"message": given.get("message"), "confirmed": how, "intention": given.get("intention")}
            self._say("running", self._ready(given.get("tool_input")), **more)

    def assess(self, reason: StringOrMarkdown | None = None, *, safety: float | None = None) -> None:
        self._say("assess", reason, safety=safety)

    async def confirm(self, **given: Unpack[ConfirmOptions]) -> Confirmation:
        shown, message = self._ready(given.get("tool_input")), given.get("message")
        if (setting := given.get("setting")) is not None:
            self._running, self.over = setting, not setting
            self._say("setting", setting, shown, message=message)
            return Confirmation(approved=setting, tool_input=shown)
        offered = [option["id"] for option in given.get("options", ())]
        more = {"title": given.get("title"), "edits": list(given.get("edits", ())), "editable": given.get("editable")}
        more["intention"] = given.get("intention")
        self._say("confirm", shown, message=message, options=offered, **more)
        answer = await self._turn.confirmations.next(True)
        if isinstance(answer, bool):
            answer = Confirmation(approved=answer, tool_input=shown)
        self._running = answer.approved
        self.over = not answer.approved
        return answer

    async def perform(
        self, run: Callable[[str], Awaitable[ToolOutcome]], **given: Unpack[PerformOptions]
    ) -> ToolOutcome:
        tool_input, message = given.get("tool_input"), given.get("message")
        if given.get("asks", True):
            options, editable = given.get("options", ()), given.get("editable", False)
            answer = await self.confirm(tool_input=tool_input, message=message, options=options, editable=editable)
            if not answer.approved:
                return ToolOutcome(success=False, error=answer.reason or "the user denied this tool call")
            tool_input = answer.tool_input
        else:
            self.running(tool_input=tool_input, message=message)
        outcome = await run(self._ready(tool_input))
        self.complete(
            success=outcome.success,
            content=outcome.content,
            error=outcome.error,
            structured_content=outcome.structured_content,
        )
        return outcome

    def covered(self, answer: Confirmation) -> None:
        self._say("covered", answer.approved)

    def withdraw(self, reason: str) -> None:
        self.over = True
        self._say("withdraw", reason)

    async def run_by_client(self, *, tool_input: str) -> ToolOutcome:
        self._say("run_by_client", self._ready(tool_input))
        outcome = await self._turn.outcomes.next(ToolOutcome(success=True))
        self.over = True
        return outcome

    def content(self, content: Sequence[ToolResultContent]) -> None:
        self._say("content", list(content))

    def complete(self, **given: Unpack[CompleteOptions]) -> None:
        if not self.over:
            self.over = True
            success, said = given.get("success", True), {**given, "content": list(given.get("content", ()))}
            self._say("complete", success, **{key: value for key, value in said.items() if key != "success"})

    def meta(self, meta: JsonObject) -> None:
        self._say("meta", meta)


class RecordingTurn:
    """Stands in for `ahpkit.host.agent.Turn`.

    `confirmations`, `outcomes` and `answers` are the script for `ToolCall.confirm` (a bool stands for a plain yes or
    no), `ToolCall.run_by_client` and `ask`. Without a script people approve, client tools succeed, questions are
    cancelled. With `parts` it is a turn that goes on after it failed.
    """

    def __init__(
        self,
        prompt: str = "",
        *,
        id: str = "turn",
        message: Message | None = None,
        chat: RecordingChat | None = None,
        context: TurnContext | None = None,
        model: ModelSelection | None = None,
        canvas: CanvasRuntime | None = None,
        parts: Sequence[ResponsePart] | None = None,
        confirmations: Iterable[bool | Confirmation | Awaitable[bool | Confirmation]] = (),
        outcomes: Iterable[ToolOutcome | Awaitable[ToolOutcome]] = (),
        answers: Iterable[InputAnswers | Awaitable[InputAnswers]] = (),
    ) -> None:
        self.id = id
        self.prompt = prompt
        self.message = message or user_message(prompt)
        self.chat = chat or RecordingChat()
        self.context = context or TurnContext()
        self.model = model
        self.canvas = canvas
        self.resumed = parts is not None
        self.parts = parts or ()
        self.said: list[Said] = []
        self.ended = asyncio.Event()
        self.tool_calls: dict[str, RecordingToolCall] = {}
        self.subchats: list[RecordingSubChat] = []
        self.stored: list[bytes] = []
        self.confirmations = Script[bool | Confirmation](confirmations)
        self.outcomes = Script(outcomes)
        self.answers = Script(answers)
        self._steering: asyncio.Queue[Message] = asyncio.Queue()
        self._numbers = itertools.count(1)

    @property
    def answer(self) -> str:
        """All text so far, joined."""
        return "".join(said[1] for said in self.said if said[0] == "text")

    def verbs(self) -> list[str]:
        """The verbs of all calls, in order."""
        return [said[0] for said in self.said]

    def steer(self, text: str, *, meta: JsonObject | None = None) -> None:
        """Let a user send a steering message."""
        message = user_message(text)
        if meta is not None:
            message["_meta"] = meta
        self._steering.put_nowait(message)

    def _say(self, verb: str, *about: Any, **more: Any) -> None:
        self.said.append(_said(verb, *about, **more))

    def text(self, delta: str) -> None:
        self._say("text", delta)

    def think(self, delta: str) -> None:
        self._say("think", delta)

    async def room(self) -> None:
        await asyncio.sleep(0)

    def new_part(self) -> None:
        self._say("new_part")

    def notice(self, text: StringOrMarkdown, *, meta: JsonObject | None = None) -> None:
        self._say("notice", text, meta=meta)

    def attach(self, data: bytes, *, content_type: str) -> None:
        self._say("attach", data, content_type)

    def store(self, data: bytes, *, content_type: str) -> str:
        self.stored.append(data)
        self._say("store", data, content_type)
        return f"recorded:/{len(self.stored)}"

    def tool_call(self, name: str, **given: Unpack[ToolCallOptions]) -> RecordingToolCall:
        id = given.pop("id", None) or f"{self.id}-tool-{next(self._numbers)}"
        call = self.tool_calls[id] = RecordingToolCall(self, id, name)
        self._say("tool_call", id, name, **given)
        return call

    def announce(self, name: str, tool_input: str, *, meta: JsonObject | None = None) -> RecordingToolCall | None:
        return None

    async def call_tool(self, name: str, tool_input: str, **given: Unpack[CallToolOptions]) -> ToolOutcome:
        self._say("call_tool", name, tool_input)
        return await self.outcomes.next(ToolOutcome(success=True))

    async def ask(self, questions: Sequence[ChatInputQuestion], **given: Unpack[AskOptions]) -> InputAnswers:
        self._say("ask", [question["id"] for question in questions], **given)
        return await self.answers.next(InputAnswers("cancel"))

    def writing(self, path: Path) -> AbstractAsyncContextManager[None]:
        self._say("writing", path)
        return nullcontext()

    def usage(self, usage: UsageInfo) -> None:
        self._say("usage", usage)

    def activity(self, text: str | None) -> None:
        self._say("activity", text)

    async def subchat(self, title: str, prompt: str, *, tool_call: ToolCall | None = None) -> RecordingSubChat:
        self._say("subchat", title, prompt, tool_call=tool_call.id if tool_call else None)
        subchat = RecordingSubChat(RecordingTurn(prompt, id=f"{self.id}-sub-{len(self.subchats) + 1}"))
        self.subchats.append(subchat)
        return subchat

    def steering(self) -> Message | None:
        return None if self._steering.empty() else self._steering.get_nowait()

    async def wait_steering(self) -> Message:
        return await self._steering.get()


class RecordingSubChat:
    """Stands in for `ahpkit.host.agent.SubChat`; `record` is its turn; `ended` and `error` say how it ended."""

    def __init__(self, turn: RecordingTurn) -> None:
        self.record = turn
        self.turn: Turn = turn
        self.uri = f"ahp-chat:/{turn.id}"
        self.ended = False
        self.error: BaseException | None = None

    async def __aenter__(self) -> RecordingTurn:
        return self.record

    async def __aexit__(self, *exc: object) -> None:
        self.ended = True
        self.error = exc[1] if isinstance(exc[1], BaseException) else None


__all__ = ["RecordingChat", "RecordingSubChat", "RecordingToolCall", "RecordingTurn", "Said", "user_message"]
