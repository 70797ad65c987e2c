"""Turns the updates of one prompt into one turn: text, thoughts, tool calls, notices, usage, and its end. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from ahpkit.agents.acp.content import Contents, block_data, is_too_long, shown_as_text
from ahpkit.agents.acp.limits import MAX_WORDS, Allowance, cut, short
from ahpkit.agents.acp.meta import upward, wrapped
from ahpkit.agents.acp.toolcalls import MappedCall, ToolCalls
from ahpkit.agents.untrusted_json import integer, obj, objects, text
from ahpkit.host.agent import StopReason, Turn
from ahpkit.protocol.chat.state import UsageInfo
from ahpkit.protocol.common.state import JsonObject

Tokens = dict[str, int]

_COUNTS = ("totalTokens", "inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens")


class Usage:
    """Counts tokens and cost of one ACP session, per turn.

    Some agents report each turn's tokens, others the running total of the session, and none says which it reports. A
    total never falls, and it grows by at least what the turn before took, because every turn reads the whole
    conversation again. Once an agent's numbers contradict this, they are taken as numbers of one turn from then on. The
    raw numbers are passed on too.
    """

    def __init__(self) -> None:
        self.context: JsonObject = {}
        """The last `usage_update`: context used, its size, cost."""
        self._reported: Tokens = {}
        self._last_turn: Tokens = {}
        self._per_turn = False

    def update(self, update: JsonObject) -> None:
        """Take a `usage_update`."""
        known = upward({key: update[key] for key in ("used", "size", "cost") if update.get(key) is not None})
        self.context = known | ({"meta": meta} if (meta := upward(update.get("_meta"))) else {})

    def turn(self, result: JsonObject, *, chunk_meta: JsonObject) -> UsageInfo | None:
        """The tokens that one turn used, from the prompt's result; None if the agent does not report them."""
        raw = obj(result.get("usage"))
        tokens = self._this_turn({key: value for key in _COUNTS if (value := integer(raw.get(key))) is not None})
        info: UsageInfo = {}
        if "inputTokens" in tokens:
            info["inputTokens"] = tokens["inputTokens"]
        if "outputTokens" in tokens:
            info["outputTokens"] = tokens["outputTokens"]
        if "cachedReadTokens" in tokens:
            info["cacheReadTokens"] = tokens["cachedReadTokens"]
        meta = wrapped(self._facts(result, raw, chunk_meta))
        if meta:
            info["_meta"] = meta
        return info or None

    def _facts(self, result: JsonObject, raw: JsonObject, chunk_meta: JsonObject) -> JsonObject:
        stop: Any = result.get("stopReason")
        return {
            "usage": {key: value for key, value in raw.items() if key != "_meta"},
            "usageMeta": upward(raw.get("_meta")),
            "context": self.context,
            "stopReason": None if stop == "end_turn" else stop,
            "result": upward(result.get("_meta")),
            "message": upward(chunk_meta),
        }

    def _this_turn(self, reported: Tokens) -> Tokens:
        if not reported:
            return {}
        growth = {key: value - self._reported.get(key, 0) for key, value in reported.items()}
        self._per_turn = self._per_turn or not self._may_be_total(growth)
        self._reported = reported
        self._last_turn = reported if self._per_turn else growth
        return self._last_turn

    def _may_be_total(self, growth: Tokens) -> bool:
        never_fell = all(value >= 0 for value in growth.values())
        return never_fell and growth.get("inputTokens", 0) >= self._last_turn.get("inputTokens", 0)


_STOP_REASONS: tuple[StopReason, ...] = get_args(StopReason)

MAX_ECHO = 64 * 1024
"""Characters that are kept of text that an agent sends as the user's."""

_COMPACTION = {
    "in_progress": "The agent is compacting the conversation.",
    "completed": "The agent compacted the conversation.",
    "failed": "The agent could not compact the conversation.",
}


class TurnMapper:
    """Passes updates to one turn. Each method takes one variant of `session/update`."""

    def __init__(self, turn: Turn, contents: Contents, *, past_tool_calls: Collection[str] = ()) -> None:
        self.turn = turn
        self.tool_calls = ToolCalls(turn, contents, may_begin=self._room, past=past_tool_calls)
        self._last: tuple[str, str | None] | None = None
        self._silent = True
        self._has_told_refusal = False
        self._echo = ""
        self._known = {turn.message["text"].strip(), turn.prompt.strip()}
        self._chunk_meta: JsonObject = {}
        self._allowance = Allowance()
        self._compactions: dict[str, str] = {}

    def steered(self, message: str) -> None:
        """A steering message was sent to the agent. If the agent echoes it, the echo is not shown."""
        self._known.add(message.strip())

    def agent_message_chunk(self, update: JsonObject) -> None:
        self._chunk("message", update)

    def agent_thought_chunk(self, update: JsonObject) -> None:
        self._chunk("thought", update)

    def user_message_chunk(self, update: JsonObject) -> None:
        """Take text that the agent sends as the user's. Some agents repeat the user's own words; other words are
        shown."""
        self._echo = (self._echo + (shown_as_text(obj(update.get("content"))) or ""))[:MAX_ECHO]

    def tool_call(self, update: JsonObject) -> None:
        self._flush_echo()
        if self.tool_calls.update(update):
            self._spoke(None)

    def for_permission(self, request: JsonObject) -> MappedCall:
        """The tool call that a permission request is about."""
        self._flush_echo()
        self._spoke(None)
        return self.tool_calls.for_permission(request)

    def notice_update(self, update: JsonObject) -> None:
        self.notice(notice_text(update), update)

    def compaction_update(self, update: JsonObject) -> None:
        status, summary = text(update.get("status")) or "", update.get("summary")
        parts = [_COMPACTION.get(status, f"Compaction of the conversation: {status}."), text(update.get("error")) or ""]
        collected = self._compactions.pop(str(update.get("compactionId")), "")
        parts.append("".join(shown_as_text(block) or "" for block in objects(summary)) or collected)
        self.notice("\n\n".join(part for part in parts if part), update)

    def compaction_summary_chunk(self, update: JsonObject) -> None:
        id = str(update.get("compactionId"))
        chunk = shown_as_text(obj(update.get("content"))) or ""
        self._compactions[id] = (self._compactions.get(id, "") + chunk)[:MAX_ECHO]

    def notice(self, shown: str, raw: JsonObject | None = None) -> None:
        """Show a system notification, with the update it stands for."""
        self._flush_echo()
        self._spoke(None)
        if self._room():
            self.turn.notice(cut(shown, MAX_WORDS), meta=wrapped({"update": upward(raw)}) or None)

    def tell_refused(self, reason: str) -> None:
        if not self._has_told_refusal:
            self._has_told_refusal = True
            self.notice(f"A message of the agent was not taken, so something may be missing here: {reason}")

    def finish(self, result: JsonObject, usage: Usage) -> StopReason:
        """The prompt was answered: close what is open, and report the usage and why the turn ended."""
        self.close(ended_well=result.get("stopReason") == "end_turn")
        reason = self._stop_reason(result.get("stopReason"))
        if self._silent and reason == "end_turn":
            self.turn.notice("The agent ended its turn without an answer.")
        info = usage.turn(result, chunk_meta=self._chunk_meta)
        if info is not None:
            self.turn.usage(info)
        return reason

    def close(self, *, ended_well: bool) -> None:
        """The turn is over: end what is still open."""
        self._flush_echo()
        self.tool_calls.close(ended_well=ended_well)

    def _stop_reason(self, reason: object) -> StopReason:
        if reason == "cancelled" or reason is None:
            return "end_turn"  # Nobody cancelled it: some agents say "cancelled" for a turn that ended with a denial.
        if reason in _STOP_REASONS:
            return reason
        self.notice(f"The agent stopped for a reason this host does not know: {short(str(reason))}")
        return "end_turn"

    def _chunk(self, kind: str, update: JsonObject) -> None:
        self._flush_echo()
        block = obj(update.get("content"))
        if meta := obj(block.get("_meta")) | obj(update.get("_meta")):
            self._chunk_meta = upward(self._chunk_meta | meta)
        shown = shown_as_text(block)
        if shown is None:
            self._attach(block)
        elif shown:
            self._stream((kind, text(update.get("messageId"))), shown)

    def _stream(self, part: tuple[str, str | None], shown: str) -> None:
        if self._last != part and not self._room():
            return
        if self._last is not None and self._last[0] == part[0] and self._last != part:
            self.turn.new_part()
        self._spoke(part)
        if words := self._allowance.words(shown):
            (self.turn.text if part[0] == "message" else self.turn.think)(words)
            self._tell_end()

    def _attach(self, block: JsonObject) -> None:
        if is_too_long(block):
            self.notice(f"The agent sent content that is too long to be shown: {short(repr(block.get('type')))}")
            return
        data = block_data(block)
        if data is None:
            kind = short(repr(block.get("type")))
            self.notice(f"The agent sent content of a kind this host does not know: {kind}", block)
            return
        self._spoke(None)
        if self._room():
            self.turn.attach(data[0], content_type=short(data[1]))

    def _room(self) -> bool:
        """Whether the turn takes one more part."""
        was_left = self._allowance.left
        taken = self._allowance.part()
        if was_left:
            self._tell_end()
        return taken

    def _tell_end(self) -> None:
        """Say once that nothing more of this turn is shown."""
        if not self._allowance.left:
            self.turn.notice("The agent says more in this turn than this host shows: the rest is left out.")

    def _flush_echo(self) -> None:
        echo, self._echo = self._echo.strip(), ""
        if echo and not any(echo in known or known in echo for known in self._known if known):
            self.notice(echo)

    def _spoke(self, part: tuple[str, str | None] | None) -> None:
        self._last = part
        self._silent = False


def notice_text(update: JsonObject) -> str:
    """The text of a `notice`, from any of the places where agents put it."""
    found = [text(update.get(key)) for key in ("message", "text", "title", "description")]
    found.append(shown_as_text(obj(update.get("content"))))
    return next((words for words in found if words), "The agent sent a notice without words.")


TURN_UPDATES: Mapping[str, Callable[[TurnMapper, JsonObject], None]] = {
    "user_message_chunk": TurnMapper.user_message_chunk,
    "agent_message_chunk": TurnMapper.agent_message_chunk,
    "agent_thought_chunk": TurnMapper.agent_thought_chunk,
    "tool_call": TurnMapper.tool_call,
    "tool_call_update": TurnMapper.tool_call,
    "notice": TurnMapper.notice_update,
    "compaction_update": TurnMapper.compaction_update,
    "compaction_summary_chunk": TurnMapper.compaction_summary_chunk,
}
"""The variants of an update that belong to the running turn."""


__all__ = ["TURN_UPDATES", "TurnMapper", "Usage", "notice_text"]
