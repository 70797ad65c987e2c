"""A chat of the client SDK: send, steer, cancel, approve, answer, read back.

Methods that change something return a `Dispatch`: the effect shows at once, `await` gives the outcome.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from ahpkit.client.answers import (
    Answer,
    Approve,
    Decline,
    Deny,
    answer_to,
    confirmed,
    input_completed,
    open_requests,
    result_confirmed,
)
from ahpkit.client.ask import Answering, OnApproval, confirming
from ahpkit.client.channels import Channel, Handle
from ahpkit.client.core import Core, given, now, with_context
from ahpkit.client.dispatch import Dispatch
from ahpkit.client.responder import OnConfirmation, OnInput, Responders
from ahpkit.client.turn import TurnStream
from ahpkit.dialects.generations import Generation
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import ChatInputRequest, ChatState, Message, MessageAttachment, Turn
from ahpkit.protocol.chat.turns import elapsed, is_resumable
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject, ModelSelection, StringOrMarkdown
from ahpkit.protocol.errors import NotFound

TYPING_PAUSE = 0.1
"""Seconds without a keystroke before completions are requested: short enough to feel immediate."""


class Chat(Handle[ChatState]):
    """One conversation of a session. It is followed until `aclose`, or until the client ends."""

    def __init__(self, core: Core, channel: Channel, responders: Responders) -> None:
        super().__init__(core.channels, channel, on_close=responders.leave)
        self._core = core
        self._responders = responders
        self._typed = 0
        responders.attend(channel)

    # Turns.

    def send(
        self,
        text: str,
        *,
        attachments: Sequence[MessageAttachment] = (),
        model: str | ModelSelection | None = None,
        agent: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_confirmation: OnConfirmation | None = None,
        on_input: OnInput | None = None,
    ) -> TurnStream:
        """Start a turn and iterate over what happens in it. The callbacks replace the client's for this turn.

        `model` (an id, or an id with configuration) and `agent` (a URI) apply to this message; by default those chosen
        for the session are used.
        """
        turn_id, span = str(uuid.uuid4()), self._core.tracing.start_turn(self.uri)
        message = self._message(text, attachments, with_context(meta, span), _selection(model, agent))
        dispatch = self._dispatch("turnStarted", turnId=turn_id, startedAt=iso_time(now()), message=message)
        turn = TurnStream(self._core.channels, self.uri, turn_id, dispatch=dispatch)
        turn.when_over(span.end)
        return self._attended(turn, on_confirmation, on_input)

    def resume(self, *, on_confirmation: OnConfirmation | None = None, on_input: OnInput | None = None) -> TurnStream:
        """Resume the last turn, if it failed with a resumable error. The stream contains only the events from now on.

        Raises `LookupError` when there is no such turn, and `LocalProtocolError` when the host's version cannot resume
        turns.
        """
        self._core.dialect.check_action("chat/turnResume")
        turns = self.optimistic["turns"]
        if not turns or "activeTurn" in self.optimistic or not is_resumable(turns[-1]):
            raise LookupError(f"{self.uri}: the last turn cannot be resumed")
        turn_id = turns[-1]["id"]
        dispatch = self._dispatch("turnResume", turnId=turn_id)
        turn = TurnStream(self._core.channels, self.uri, turn_id, dispatch=dispatch, resumed=True)
        return self._attended(turn, on_confirmation, on_input)

    def _attended(
        self, turn: TurnStream, on_confirmation: OnConfirmation | None, on_input: OnInput | None
    ) -> TurnStream:
        if on_confirmation is not None or on_input is not None:
            turn.when_over(self._responders.attend_turn(self._channel, turn.turn_id, on_confirmation, on_input))
        return turn

    async def ask(
        self,
        text: str,
        *,
        attachments: Sequence[MessageAttachment] = (),
        model: str | ModelSelection | None = None,
        agent: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_approval: OnApproval | None = None,
        on_confirmation: OnConfirmation | None = None,
        on_input: OnInput | None = None,
        timeout: float | None = None,
    ) -> str:
        """Start a turn and wait for the whole answer.

        `on_approval` decides about tool calls: "allow", "deny", a function (as for `on_confirmation`), or "wait" to
        leave calls and questions to other clients. After `timeout` seconds the turn is cancelled.

        Raises `ActionRejected` or `TurnError` when there is no answer. `TurnWaiting`: a call or a question waits and no
        callback decides, or a call needs a login. `TurnTimeout`: the turn took too long. What a callback raises is
        raised here too.
        """
        decide = confirming(on_approval) or on_confirmation
        if on_approval == "wait":
            on_input = on_input or (lambda event: None)
        turn = self.send(text, attachments=attachments, model=model, agent=agent, meta=meta)
        answering = Answering(
            self._core,
            turn,
            on_confirmation=decide or self._responders.on_confirmation,
            on_input=on_input or self._responders.on_input,
            others_log_in=on_approval == "wait",
        )
        attend = self._responders.attend_turn
        turn.when_over(attend(self._channel, turn.turn_id, decide, on_input, answering.fail))
        return await answering.text(timeout, self.cancel)

    def follow(self) -> TurnStream | None:
        """The running turn from its beginning, whoever started it; None when no turn is running."""
        active = (self._channel.confirmed or {}).get("activeTurn")
        return None if active is None else TurnStream(self._core.channels, self.uri, active["id"])

    def cancel(self) -> Dispatch:
        """Cancel the running turn. Raises `LookupError` when none is running."""
        duration = elapsed(self.optimistic, now())
        return self._dispatch("turnCancelled", turnId=self._turn_id(), duration=duration)

    def truncate(self, turn_id: str | None = None) -> Dispatch:
        """Remove the history after a turn; without a turn, the whole history."""
        return self._dispatch("truncated", **given(turnId=turn_id))

    # Drafts, queued messages and steering messages.

    def write_draft(self, text: str | None, *, attachments: Sequence[MessageAttachment] = ()) -> Dispatch:
        """Share an unfinished message with all clients of the chat (`state["draft"]`). None removes it.

        The last writer wins. Sending a message does not clear the draft.
        """
        draft = None if text is None else self._message(text, attachments, {})
        return self._dispatch("draftChanged", **given(draft=draft))

    def queue(
        self,
        text: str,
        *,
        attachments: Sequence[MessageAttachment] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Dispatch:
        """Queue a message, which the host sends when the chat is idle. Its id is `dispatch.action["id"]`."""
        return self._pend("queued", self._message(text, attachments, with_context(meta)))

    def unqueue(self, message_id: str) -> Dispatch:
        """Take a queued message back."""
        return self._dispatch("pendingMessageRemoved", kind="queued", id=message_id)

    def reorder(self, message_ids: Sequence[str]) -> Dispatch:
        """Change the order of the queued messages."""
        return self._dispatch("queuedMessagesReordered", order=list(message_ids))

    def steer(self, text: str, *, attachments: Sequence[MessageAttachment] = ()) -> Dispatch:
        """Send a message to the agent of the running turn. It replaces a steering message that was not delivered
        yet."""
        return self._pend("steering", self._message(text, attachments, with_context(None)))

    def _pend(self, kind: Literal["queued", "steering"], message: Message) -> Dispatch:
        return self._dispatch("pendingMessageSet", kind=kind, id=str(uuid.uuid4()), message=message)

    # A person's decisions.

    def approve(self, tool_call_id: str, *, option_id: str | None = None, edited_input: str | None = None) -> Dispatch:
        """Approve a tool call."""
        return self._act(confirmed(self._turn_id(), tool_call_id, Approve(option_id, edited_input)))

    def deny(
        self, tool_call_id: str, *, option_id: str | None = None, reason: StringOrMarkdown | None = None
    ) -> Dispatch:
        """Deny a tool call."""
        return self._act(confirmed(self._turn_id(), tool_call_id, Deny(option_id, reason)))

    def confirm_result(self, tool_call_id: str, *, approved: bool) -> Dispatch:
        """Let the agent use a tool's result, or withhold it."""
        return self._act(result_confirmed(self._turn_id(), tool_call_id, approved=approved))

    def draft(self, request_id: str, question_id: str, value: Any) -> Dispatch:
        """Share an unfinished answer with the other clients; None removes it."""
        answer = {} if value is None else {
            "answer": answer_to(self._request(request_id), question_id, value, state="draft")
        }  # fmt: skip
        return self._dispatch("inputAnswerChanged", requestId=request_id, questionId=question_id, **answer)

    def answer(self, request_id: str, answers: Mapping[str, Any]) -> Dispatch:
        """Answer the agent's questions: plain values by question id; None skips one."""
        return self._act(input_completed(self._request(request_id), Answer(answers)))

    def decline(self, request_id: str, *, response: Literal["decline", "cancel"] = "decline") -> Dispatch:
        """Decline or cancel the agent's questions."""
        return self._act(input_completed(self._request(request_id), Decline(response)))

    # History, and completions.

    async def fetch_turns(self, before: str | None = None, limit: int | None = None) -> TurnPage:
        """A page of finished turns, oldest first: those before the turn `before`, or the latest.

        Raises `NotFound` when there is no such turn.
        """
        if self._core.dialect.generation < Generation.V0_5_1:
            return await self._core.request("fetchTurns", given(before=before, limit=limit), channel=self.uri)
        while True:
            page, cursor = page_of(self.confirmed, before, limit)
            if cursor is None:
                return page
            await self._core.request("fetchTurns", {"cursor": cursor}, channel=self.uri)

    async def history(self, *, page: int = 50) -> AsyncIterator[Turn]:
        """All finished turns, newest first. Pages are fetched while iterating."""
        before: str | None = None
        while True:
            result = await self.fetch_turns(before, page)
            for turn in reversed(result["turns"]):
                yield turn
            if not result["hasMore"] or not result["turns"]:
                return
            before = result["turns"][0]["id"]

    async def completions(self, text: str, offset: int) -> list[CompletionItem]:
        """Completions at `offset` (UTF-16 code units) in the whole text typed so far.

        Call it at every keystroke: a call that is followed by another one within `TYPING_PAUSE` returns nothing.
        """
        self._typed = typed = self._typed + 1
        await asyncio.sleep(TYPING_PAUSE)
        if self._typed != typed:
            return []
        params = {"kind": "userMessage", "text": text, "offset": offset}
        return (await self._core.request("completions", params, channel=self.uri))["items"]

    # The chat among others.

    def mark_read(self, read: bool = True) -> Dispatch:
        """Mark this chat as read or unread. The session and its other chats do not change."""
        return self._dispatch("isReadChanged", isRead=read)

    def archive(self, archived: bool = True) -> Dispatch:
        """Put this chat into the archive, or take it out. Instead of a session's default chat, archive the session."""
        return self._dispatch("isArchivedChanged", isArchived=archived)

    async def move(self, session: str | None = None, *, after: str | None = None) -> str:
        """Move the chat to `session`, right after its chat `after` or to the first place; None: to a new session.

        With the chat's present session only its place changes. Returns the URI of the session that it is in now.
        """
        there = {"kind": "newSession"} if session is None else {"kind": "session", "session": session}
        params = {"destination": {**there, **given(after=after)}}
        return (await self._core.request("moveChat", params, channel=self.uri))["session"]

    async def dispose(self) -> None:
        """Delete the chat."""
        await self._core.request("disposeChat", channel=self.uri)
        await self.aclose()

    # Helpers.

    def _dispatch(self, kind: str, /, **fields: Any) -> Dispatch:
        return self._act({"type": f"chat/{kind}", **fields})

    def _act(self, action: JsonObject) -> Dispatch:
        return self._core.channels.dispatch(self.uri, action)

    def _message(
        self, text: str, attachments: Sequence[MessageAttachment], meta: JsonObject, selection: JsonObject | None = None
    ) -> Message:
        """A user message, with the model and agent chosen for the message, or else for the session."""
        session = self._core.channels.session_of(self.uri)
        chosen = {**(self._core.selections.of(session) if session is not None else {}), **(selection or {})}
        message = cast("Message", {"text": text, "origin": {"kind": "user"}, **chosen})
        if attachments:
            message["attachments"] = list(attachments)
        if meta:
            message["_meta"] = meta
        return message

    def _turn_id(self) -> str:
        active = (self._channel.optimistic or {}).get("activeTurn")
        if active is None:
            raise LookupError(f"{self.uri}: no turn is running")
        return active["id"]

    def _request(self, request_id: str) -> ChatInputRequest:
        for request in open_requests(self._channel.optimistic or {}):
            if request["id"] == request_id:
                return request
        raise LookupError(f"{self.uri}: there is no open input request {request_id!r}")


def _selection(model: str | ModelSelection | None, agent: str | None) -> JsonObject:
    return given(
        model={"id": model} if isinstance(model, str) else model, agent=None if agent is None else {"uri": agent}
    )


_LARGEST = 200
"""Turns in one page: many screenfuls."""


class TurnPage(TypedDict):
    """Finished turns, oldest first."""

    turns: list[Turn]
    hasMore: bool
    """Whether there are older ones."""


def page_of(chat: ChatState, before: str | None, limit: int | None) -> tuple[TurnPage, str | None]:
    """A page of the turns in the state, and a cursor. The cursor is not None if older turns must be loaded first.

    Raises `NotFound` when there is no such turn, here or at the host.
    """
    turns, cursor = chat["turns"], chat.get("turnsNextCursor")
    end = len(turns) if before is None else next((at for at, turn in enumerate(turns) if turn["id"] == before), -1)
    if end < 0 and cursor is None:
        raise NotFound(f"before: the chat has no finished turn {before!r}")
    start = end - min(limit or _LARGEST, _LARGEST)
    if cursor is not None and (end < 0 or start < 0):
        return {"turns": [], "hasMore": True}, cursor
    start = max(0, start)
    return {"turns": turns[start:end], "hasMore": start > 0 or cursor is not None}, None


__all__ = ["Chat", "TurnPage", "page_of"]
