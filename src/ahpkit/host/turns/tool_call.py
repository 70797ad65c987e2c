"""Drives one tool call of a running turn for the agent: each method becomes actions of the chat.

A call's status is read from the chat's state and never remembered here, because clients change it too.

Every call that the host mediates passes the gate (`ahpkit.tools.gate`): guards, then rules, then a person; then the
tool runs. A call that the agent only reports as running (`running`) does not pass the gate.

This module is long because one call is one class: each of its methods depends on the same status in the chat.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict, TypeVar, Unpack

from opentelemetry.trace import Span

from ahpkit.host.agent import Confirmation, ToolOutcome
from ahpkit.host.agent.values import CompleteOptions, ConfirmOptions, PerformOptions, RunningOptions
from ahpkit.host.turns.approvals import AskedCall, CallGate, DecisionOptions, denied_by
from ahpkit.protocol.chat.actions import (
    ChatAction,
    ChatToolCallConfirmedAction,
    ChatToolCallResultConfirmedAction,
    chat_tool_call_approved,
    chat_tool_call_complete,
    chat_tool_call_content_changed,
    chat_tool_call_delta,
    chat_tool_call_denied,
    chat_tool_call_ready,
    chat_tool_call_result_confirmed,
)
from ahpkit.protocol.chat.state import (
    ConfirmationOption,
    Message,
    ToolCallConfirmationReason,
    ToolCallEdits,
    ToolCallResult,
    ToolCallRiskAssessment,
    ToolCallState,
    ToolResultContent,
)
from ahpkit.protocol.chat.tool_calls import ToolCallAction
from ahpkit.protocol.common.state import FileEdit, JsonObject, StringOrMarkdown
from ahpkit.protocol.meta_keys import AUTOMATIC, SETTLED
from ahpkit.tools.approvals import By
from ahpkit.tools.gate import CallPassage
from ahpkit.tools.rules import ASK, Rule, Ruling
from ahpkit.wire.tasks import unless

_OVER = frozenset({"completed", "cancelled"})
_PROGRESS = 1000
"""Characters of a running tool's output that `on_progress` gets."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPorts:
    """What a tool call uses of its turn."""

    turn_id: str
    say: Callable[[ChatAction], None]
    turn_over: Callable[[], bool]
    state: Callable[[], ToolCallState | None]
    """The call in the chat's state; None when its turn is over."""
    gate: CallGate | None
    """None for an imported history: its calls have ended, and nothing is decided about them."""
    before_run: Callable[[str], Awaitable[None]]
    """Called with the call's id after it was allowed and before it runs."""


class _CallAction(TypedDict):
    """The call that an action is about."""

    turn_id: str
    tool_call_id: str


class _CallTexts(TypedDict):
    """The texts that clients show about a call, in addition to its input."""

    title: StringOrMarkdown | None
    edits: ToolCallEdits | None
    intention: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One pass of a call through the gate: the question, and the steps that were passed."""

    tool_input: str
    message: StringOrMarkdown | None
    shown: _CallTexts
    asked: AskedCall | None
    """None for an imported history, in which nothing is decided."""
    passage: CallPassage = field(default_factory=CallPassage)


class LiveToolCall:
    """Implements `ahpkit.host.agent.ToolCall` on a chat's state."""

    def __init__(
        self,
        ports: ToolCallPorts,
        id: str,
        name: str,
        *,
        span: Span,
        meta: JsonObject | None,
        owner: str | None = None,
    ) -> None:
        self._ports = ports
        self.id = id
        self.name = name
        self._owner = owner
        """The name, in approval rules, of the one who runs this call; None: the agent itself."""
        self._meta: JsonObject = meta or {}
        self._dropped: set[str] = set()
        self._risk: ToolCallRiskAssessment | None = None
        self._span = span
        self._confirmed: asyncio.Future[ChatToolCallConfirmedAction] | None = None
        self._covered: Confirmation | None = None
        self._decider: tuple[By, str] = "person", ""
        """The kind of the last decision (a person, a program), and the client that sent it."""
        self._decided_by: Rule | None = None
        """The rule that was made while a person was asked, and that decided in place of this person."""
        self.asks_nobody = False
        """Whether the tool needs no approval. Then `confirm` allows the call at once; it passes the gate when the tool
        is called."""
        self.on_progress: Callable[[str], None] | None = None
        """Called with the text that the tool shows while it runs."""
        self._result: ToolCallResult | None = None
        self._completed: asyncio.Future[ToolCallResult] | None = None

    @property
    def _state(self) -> ToolCallState | None:
        return self._ports.state()

    @property
    def status(self) -> str | None:
        """The call's status in the chat's state; None when its turn is over."""
        state = self._state
        return state["status"] if state else None

    @property
    def over(self) -> bool:
        return self.status in _OVER or self._ports.turn_over()

    def input(self, delta: str, *, message: StringOrMarkdown | None = None) -> None:
        self._say(chat_tool_call_delta(**self._about, content=delta, invocation_message=message))

    def running(self, **given: Unpack[RunningOptions]) -> None:
        if self.status == "streaming":
            confirmed, intention = given.get("confirmed", "not-needed"), given.get("intention")
            self._ready(given.get("tool_input"), given.get("message"), confirmed=confirmed, intention=intention)

    def assess(self, reason: StringOrMarkdown | None = None, *, safety: float | None = None) -> None:
        """If a person is being asked, the assessment is shown at once; otherwise together with the question."""
        if safety is None:
            self._risk = {"kind": "judge", "status": "loading"}
        else:
            self._risk = {"kind": "judge", "status": "complete", "reason": reason or "", "safety": safety}
        if self.status == "pending-confirmation":
            self._ready(None, None)

    async def confirm(self, **given: Unpack[ConfirmOptions]) -> Confirmation:
        answer = await self._confirm(given)
        if answer.approved:
            await self._ports.before_run(self.id)
        return answer

    async def _confirm(self, given: ConfirmOptions) -> Confirmation:
        """Pass the gate up to the point where the tool may run."""
        tool_input, setting = self._input(given.get("tool_input")), given.get("setting")
        if self.asks_nobody:
            return Confirmation(approved=True, tool_input=tool_input)
        request = self._request(
            tool_input,
            given.get("message"),
            title=given.get("title"),
            edits=given.get("edits", ()),
            intention=given.get("intention"),
        )
        ruling = await self._judged(request)
        if isinstance(ruling, Confirmation):
            return ruling
        if ruling.decision == "allow" and ruling.rule is not None:
            return self._allowed(request, by="rule", who=ruling.rule.id, reason=ruling.rule.says())
        if setting is False:
            return self._denied_by_setting(request)
        if setting and not ruling.needs_person:
            return self._allowed(request, by="setting")
        options, editable = given.get("options", ()), given.get("editable", False)
        return await self._ask_person(request, options, editable=editable, why=ruling.why)

    def _request(
        self,
        tool_input: str,
        message: StringOrMarkdown | None,
        *,
        title: StringOrMarkdown | None = None,
        edits: Sequence[FileEdit] = (),
        intention: str | None = None,
    ) -> _Request:
        shown = _CallTexts(title=title, edits={"items": list(edits)} if edits else None, intention=intention)
        asked = self._asked(tool_input, title or message, edits)
        return _Request(tool_input=tool_input, message=message, shown=shown, asked=asked)

    async def _judged(self, request: _Request) -> Confirmation | Ruling:
        """Ask guards and rules. Returns their denial, or the ruling that says whether a person has to be asked."""
        gate = self._ports.gate
        objection = await gate.guard(self.name, request.tool_input, self._owner) if gate is not None else None
        if objection is not None and not objection.asks:
            return self._denied(request, objection.reason, by="guard")
        request.passage.take("passed" if objection is None else "doubt")
        ruling = gate.judge(request.asked.subject) if gate is not None and request.asked is not None else ASK
        if ruling.decision == "deny" and ruling.rule is not None:
            return self._denied(request, denied_by(ruling.rule), by="rule", who=ruling.rule.id)
        return ruling if objection is None else Ruling("ask", why=objection.reason)

    async def _ask_person(
        self, request: _Request, options: Sequence[ConfirmationOption], *, editable: bool, why: str | None
    ) -> Confirmation:
        """Ask, with the host's options beside the agent's own, and record the answer. `why` is the objection of a
        guard."""
        request.passage.take("ask")
        if why is not None:
            request = self._with_reason(request, why)
        gate, asked = self._ports.gate, request.asked
        offered = gate.options(asked.subject, options) if gate is not None and asked is not None else list(options)
        answer = await self._person(request, offered, editable=editable, only_a_person_allows=why is not None)
        request.passage.take("allow" if answer.approved else "deny")
        edited = "" if same_input(answer.tool_input, request.tool_input) else answer.tool_input
        if (rule := self._decided_by) is not None:
            self._decided(asked, answer.approved, "rule", who=rule.id, reason=answer.reason or rule.says())
        else:
            by, who = self._decider
            picked, why = answer.option_id, answer.reason
            self._decided(asked, answer.approved, by, who=who, option=picked, reason=why, edited=edited)
        if answer.approved and edited and (denial := await self._denial_of_edited(request, edited)) is not None:
            return denial
        own = {option["id"] for option in options}
        return answer if answer.option_id in own else replace(answer, option_id=None)

    def _with_reason(self, request: _Request, why: str) -> _Request:
        """The same request, with the reason of a guard in its title and in the record."""
        title = _with_words(request.shown["title"] or request.message or self._known_message, why)
        asked = request.asked
        shown = None if asked is None else replace(asked, shown={**asked.shown, "title": _plain(title)})
        return replace(request, shown={**request.shown, "title": title}, asked=shown)

    async def _denial_of_edited(self, request: _Request, edited: str) -> Confirmation | None:
        """Check an input that a person edited, because guards and rules have seen the input before the edit."""
        again = self._request(edited, request.message, title=request.shown["title"])
        ruling = await self._judged(again)
        return ruling if isinstance(ruling, Confirmation) else None

    def _ruled(self, ruling: Ruling, *, only_denials: bool) -> None:
        """If a rule that was made meanwhile decides about this call, answer the open question by it."""
        if (rule := ruling.rule) is None or self._confirmed is None or self._confirmed.done():
            return
        if only_denials and ruling.decision == "allow":
            return
        self._decided_by = rule
        if ruling.decision == "allow":
            self._say(chat_tool_call_approved(**self._about, confirmed="setting"))
        else:
            self._say(chat_tool_call_denied(**self._about, reason="denied", reason_message=denied_by(rule)))

    async def perform(
        self, run: Callable[[str], Awaitable[ToolOutcome]], **given: Unpack[PerformOptions]
    ) -> ToolOutcome:
        """Pass the whole gate, from the request to the result. With `asks`, a person decides where no rule does."""
        try:
            answer = await self._admitted(given)
            if not answer.approved:
                return ToolOutcome(success=False, error=_refusal(answer.reason, answer.suggestion))
            await self._ports.before_run(self.id)
            return await self._run(run, answer.tool_input)
        except asyncio.CancelledError:
            self.withdraw("The agent gave this call up.")
            raise

    async def _admitted(self, given: PerformOptions) -> Confirmation:
        tool_input, message = given.get("tool_input"), given.get("message")
        options, editable = given.get("options", ()), given.get("editable", False)
        covered, self._covered = self._covered, None
        if covered is not None and same_input(covered.tool_input, self._input(tool_input)):
            return self._still_allowed(covered)
        gate = self._ports.gate
        setting = gate.setting if gate is not None and self._owner is not None else None
        if given.get("asks", True):
            return await self._confirm(
                {
                    "tool_input": tool_input,
                    "message": message,
                    "options": options,
                    "editable": editable,
                    "setting": setting,
                }
            )
        request = self._request(self._input(tool_input), message)
        ruling = await self._judged(request)
        if isinstance(ruling, Confirmation):
            return ruling
        if ruling.needs_person and setting is False:
            return self._denied_by_setting(request)
        if ruling.needs_person:
            return await self._ask_person(request, options, editable=editable, why=ruling.why)
        self._ready(request.tool_input, message, confirmed="not-needed")
        return Confirmation(approved=True, tool_input=request.tool_input)

    def _still_allowed(self, covered: Confirmation) -> Confirmation:
        """The answer for a call about which the agent has asked before, with the same input: the approval that it got
        then, unless a rule denies the call now."""
        request = self._request(covered.tool_input, None)
        gate, asked = self._ports.gate, request.asked
        ruling = gate.judge(asked.subject) if gate is not None and asked is not None else ASK
        if ruling.decision != "deny" or ruling.rule is None:
            return covered
        request.passage.take("passed")
        return self._denied(request, denied_by(ruling.rule), by="rule", who=ruling.rule.id)

    async def _run(self, run: Callable[[str], Awaitable[ToolOutcome]], tool_input: str) -> ToolOutcome:
        """Run the tool, unless the one who runs it denies the call. If a person has to review the result, it is held
        back until then."""
        ending: asyncio.Future[ToolCallResult] = asyncio.get_running_loop().create_future()
        self._completed = ending
        try:
            outcome = await unless(ending, run(tool_input))
            if ending.done() or outcome is None:
                return _outcome(ending.result())
            self.complete(
                success=outcome.success,
                content=outcome.content,
                error=outcome.error,
                structured_content=outcome.structured_content,
            )
            return outcome
        finally:
            self._completed = None

    async def run_by_client(self, *, tool_input: str) -> ToolOutcome:
        return await self.perform(self.by_client, tool_input=tool_input, asks=False)

    async def by_client(self, tool_input: str) -> ToolOutcome:
        """Wait while the client that contributed this tool runs it."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    def covered(self, answer: Confirmation) -> None:
        """The agent has asked about this call, and it was allowed. With the same input nobody is asked again."""
        if not self.asks_nobody:
            self._covered = answer

    def withdraw(self, reason: str) -> None:
        """Withdraw the call: its question disappears, also that about its result, and it is shown as not finished."""
        if self.over or self.status is None:
            return
        if self.status == "pending-result-confirmation":
            self._meta = {**self._meta, SETTLED: "caller"}
            self._say(chat_tool_call_result_confirmed(**self._about, approved=False))
            return
        if self.status != "pending-confirmation":
            self._show_pending("caller")
        self._ports.say(chat_tool_call_denied(**self._about, reason="skipped", reason_message=reason))

    def _asked(self, tool_input: str, title: StringOrMarkdown | None, edits: Sequence[FileEdit]) -> AskedCall | None:
        gate = self._ports.gate
        if gate is None:
            return None
        subject = gate.subject(self.name, tool_input, self._owner, _paths(edits))
        shown = {"title": _plain(title) or self.name, "input": tool_input}
        return AskedCall(self.id, self._ports.turn_id, subject, shown)

    def _asked_about_result(self) -> AskedCall | None:
        return self._asked(self._input(None), f"The result of {self.name}", ())

    async def _person(
        self,
        request: _Request,
        options: Sequence[ConfirmationOption],
        *,
        editable: bool,
        only_a_person_allows: bool,
    ) -> Confirmation:
        self._confirmed, self._decided_by = asyncio.get_running_loop().create_future(), None
        self._ready(
            request.tool_input,
            request.message,
            **request.shown,
            options=list(options) or None,
            editable=editable or None,
        )
        try:
            with contextlib.ExitStack() as stack:
                if self._ports.gate is not None and request.asked is not None:
                    ruled = partial(self._ruled, only_denials=only_a_person_allows)
                    stack.enter_context(self._ports.gate.follow(request.asked.subject, ruled))
                answer = await self._confirmed
        finally:
            self._confirmed = None
        return Confirmation(
            approved=answer["approved"],
            tool_input=answer.get("editedToolInput", request.tool_input),
            option_id=answer.get("selectedOptionId"),
            reason=_plain(answer.get("reasonMessage")),
            suggestion=answer.get("userSuggestion"),
            meta=answer.get("_meta", {}),
        )

    def _allowed(self, request: _Request, *, by: By, who: str = "", reason: str = "") -> Confirmation:
        request.passage.take("allow")
        self._decided(request.asked, True, by, who=who, reason=reason)
        self._ready(request.tool_input, request.message, confirmed="setting")
        return Confirmation(approved=True, tool_input=request.tool_input)

    def _denied_by_setting(self, request: _Request) -> Confirmation:
        return self._denied(request, "The host's configuration denies this.", by="setting")

    def _denied(self, request: _Request, reason: str, *, by: By, who: str = "") -> Confirmation:
        """Show the call as denied, with the reason."""
        request.passage.take("deny")
        self._decided(request.asked, False, by, who=who, reason=reason)
        self._show_pending(by, request)
        self._ports.say(chat_tool_call_denied(**self._about, reason="denied", reason_message=reason))
        self.end()
        return Confirmation(approved=False, tool_input=request.tool_input, reason=reason)

    def _decided(self, asked: AskedCall | None, allowed: bool, by: By, **given: Unpack[DecisionOptions]) -> None:
        if (gate := self._ports.gate) is not None and asked is not None:
            gate.decided(asked, allowed=allowed, by=by, **given)

    def content(self, content: Sequence[ToolResultContent]) -> None:
        self._say(chat_tool_call_content_changed(**self._about, content=list(content)))

    def complete(self, **given: Unpack[CompleteOptions]) -> None:
        state = self._state
        status = state["status"] if state else None
        if status in _OVER or self._ports.turn_over():
            return
        if status == "streaming":
            self.running()
        success = given.get("success", True)
        message = given.get("message") or _past_tense(state["displayName"] if state else self.name, success)
        result: ToolCallResult = {"success": success, "pastTenseMessage": message}
        if content := given.get("content"):
            result["content"] = list(content)
        if (error := given.get("error")) is not None:
            result["error"] = {"message": error}
        if (structured := given.get("structured_content")) is not None:
            result["structuredContent"] = structured
        self._say(chat_tool_call_complete(**self._about, result=result))
        self.end()

    def meta(self, meta: JsonObject) -> None:
        self._dropped = (self._dropped | self._meta.keys()) - meta.keys()
        self._meta = meta

    def end(self) -> None:
        """The call is over: end its trace span."""
        if self._span.is_recording():
            self._span.end()

    def on_applied(self, action: ChatAction, client_id: str | None = None) -> None:
        """A client decided about this call, or finished it."""
        if action["type"] == "chat/toolCallConfirmed":
            self._decision(action, client_id)
        elif action["type"] == "chat/toolCallContentChanged":
            self._tell(action["content"])
        elif action["type"] == "chat/toolCallComplete":
            if action.get("requiresResultConfirmation"):
                self._result = action["result"]
                return
            _resolve(self._completed, action["result"])
            self.end()
        elif action["type"] == "chat/toolCallResultConfirmed":
            held, self._result = self._result, None
            if client_id is not None:  # Otherwise the caller gave up, and nobody decided.
                by = _decided_by_whom(action)
                self._decided(self._asked_about_result(), action["approved"], by, who=client_id, of="result")
            denied = _failure("the user did not release the result of this tool")
            _resolve(self._completed, held or _SUCCESS if action["approved"] else denied)
            self.end()

    def _tell(self, content: Sequence[ToolResultContent]) -> None:
        words = [part["text"] for part in content if part["type"] == "text" and part["text"]]
        if self.on_progress is not None and words:
            self.on_progress(words[-1][-_PROGRESS:])

    def _decision(self, action: ChatToolCallConfirmedAction, client_id: str | None) -> None:
        self._decider = _decided_by_whom(action), client_id or ""
        _resolve(self._confirmed, action)
        if action["approved"] is True:
            return
        if self.status == "running":  # Its owner denied it. A call can be denied only while it is pending.
            by, who = self._decider
            asked = self._asked(self._input(None), self._known_message, ())
            self._decided(asked, False, by, who=who, reason=_plain(action.get("reasonMessage")))
            self._show_pending("owner")
            denied = chat_tool_call_denied(
                **self._about,
                reason=action["reason"],
                reason_message=action.get("reasonMessage"),
                user_suggestion=action.get("userSuggestion"),
            )
            self._ports.say(denied)
            return  # `on_applied` is called again for this denial.
        self.end()
        reason = _plain(action.get("reasonMessage")) or "the client declined this tool call"
        _resolve(self._completed, _failure(_refusal(reason, action.get("userSuggestion"))))

    def _show_pending(self, by: str, request: _Request | None = None) -> None:
        """Show the call as pending for one action, because only a pending call can be denied.

        A note in its `_meta` says that nobody is asked.
        """
        self._meta = {**self._meta, SETTLED: by}
        if request is None:
            self._ready(None, None)
        else:
            self._ready(request.tool_input, request.message, **request.shown)

    def _ready(
        self,
        tool_input: str | None,
        message: StringOrMarkdown | None,
        *,
        confirmed: ToolCallConfirmationReason | None = None,
        title: StringOrMarkdown | None = None,
        options: list[ConfirmationOption] | None = None,
        edits: ToolCallEdits | None = None,
        intention: str | None = None,
        editable: bool | None = None,
    ) -> None:
        ready = chat_tool_call_ready(
            **self._about,
            invocation_message=message or self._known_message,
            tool_input=self._input(tool_input) or None,
            confirmed=confirmed,
            confirmation_title=title,
            risk_assessment=None if confirmed else self._risk,
            options=options,
            edits=edits,
            intention=intention,
            editable=editable,
        )
        self._say(ready)

    @property
    def _known_message(self) -> StringOrMarkdown:
        """The message that the chat already shows about the call; otherwise the tool's name."""
        state = self._state
        return (state.get("invocationMessage") or state["displayName"] if state else None) or self.name

    def _input(self, tool_input: str | None) -> str:
        if tool_input is not None:
            return tool_input
        state = self._state
        return str(state.get("toolInput") or state.get("partialInput") or "") if state else ""

    @property
    def _about(self) -> _CallAction:
        return {"turn_id": self._ports.turn_id, "tool_call_id": self.id}

    def _say(self, action: ToolCallAction) -> None:
        """Dispatch an action of this call, with its `_meta` when that changed."""
        shown = state.get("_meta", {}) if (state := self._state) else {}
        if shown != (meta := self._merged(shown)):
            action["_meta"] = meta
        self._ports.say(action)

    def _merged(self, shown: JsonObject) -> JsonObject:
        """The `_meta` for an action. An action replaces all of `_meta`, so keys that a client has set are repeated."""
        return {key: value for key, value in shown.items() if key not in self._dropped and key != SETTLED} | self._meta


def _past_tense(name: str, success: bool) -> str:
    return f"Used {name}" if success else f"{name} failed"


def _decided_by_whom(action: ChatToolCallConfirmedAction | ChatToolCallResultConfirmedAction) -> By:
    """Who decided: a person, or the client by itself, because of its settings or because no person could be asked.

    The reason `skipped` alone proves neither, because a person may skip a call.
    """
    automatic = action.get("_meta", {}).get(AUTOMATIC) or action.get("confirmed", "user-action") != "user-action"
    return "client" if automatic else "person"


def _refusal(reason: str | None, suggestion: Message | None) -> str:
    """The message about a denied call for an agent: the reason, and what to do instead."""
    why = reason or "the user denied this tool call"
    return f"{why}\nThe user suggests instead: {suggestion['text']}" if suggestion and suggestion["text"] else why


_SORTED = json.JSONEncoder(sort_keys=True)


def canonical(tool_input: str) -> str:
    """The input in one form for all spellings of the same JSON, because agents format JSON differently."""
    try:
        return _SORTED.encode(json.loads(tool_input or "{}"))
    except (ValueError, RecursionError):
        return tool_input


def same_input(one: str, other: str) -> bool:
    return canonical(one) == canonical(other)


_SUCCESS: ToolCallResult = {"success": True, "pastTenseMessage": ""}


def _failure(reason: str) -> ToolCallResult:
    return {"success": False, "pastTenseMessage": "", "error": {"message": reason}}


def _resolve(future: asyncio.Future[_T] | None, value: _T) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _outcome(result: ToolCallResult) -> ToolOutcome:
    error = result.get("error")
    return ToolOutcome(
        success=result["success"],
        content=result.get("content", ()),
        error=error["message"] if error else None,
        structured_content=result.get("structuredContent"),
    )


def _paths(edits: Sequence[FileEdit]) -> list[str]:
    """The files that edits change, as URIs: `subject_of` reads them like those of an input."""
    sides = [side for edit in edits for side in (edit.get("before"), edit.get("after")) if side is not None]
    return [side["uri"] for side in sides if side["uri"].startswith("file:")]


def _with_words(title: StringOrMarkdown, words: str) -> StringOrMarkdown:
    joined = f"{_plain(title)} ({words})"
    return {"markdown": joined} if isinstance(title, dict) else joined


def _plain(text: StringOrMarkdown | None) -> str | None:
    return text["markdown"] if isinstance(text, dict) else text


__all__ = ["LiveToolCall", "ToolCallPorts", "canonical"]
