"""Shows a turn: streamed text, reasoning, tool calls, the plan, and how it ended. Also shows the status line while a
turn runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ahpkit.cli.output import Output
from ahpkit.cli.text import plain, shorten
from ahpkit.cli.usage import cost_of, in_money, short_count
from ahpkit.client import Subscription, events
from ahpkit.client.events import TurnEvent
from ahpkit.wire.codec import encode

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_LONGEST_ACTIVITY = 40
"""Characters of the activity in the status line."""


class StatusLine:
    """Follows the events of one turn, and computes the line that shows its state."""

    def __init__(self, agent: str, model: str | None, began: float) -> None:
        self._who = f"{agent} ({model})" if model else agent
        self._began = began
        self._doing = "starts"
        self._usage: Any = {}

    def take(self, event: TurnEvent) -> None:
        match event:
            case events.TextDelta():
                self._doing = "answers"
            case events.ReasoningDelta():
                self._doing = "thinks"
            case events.ToolCallStarted(call=call) | events.ToolCallRunning(call=call):
                running: Any = call
                self._doing = shorten(plain(running.get("invocationMessage")) or call["displayName"], _LONGEST_ACTIVITY)
            case events.ToolCallCompleted() | events.ToolCallCancelled():
                self._doing = "works"
            case events.ConfirmationNeeded() | events.InputNeeded():
                self._doing = "waits for somebody"
            case events.Usage(usage=usage):
                self._usage = usage
            case _:
                pass

    def text(self, now: float) -> str:
        """The status line at this time."""
        seconds = max(int(now - self._began), 0)
        elapsed = f"{seconds} s" if seconds < 60 else f"{seconds // 60}:{seconds % 60:02} min"
        spinner = _SPINNER[int(now * 2) % len(_SPINNER)]
        return " · ".join([f"{spinner} {self._who}", self._doing, elapsed, *self._spent()])

    def _spent(self) -> list[str]:
        words = {"inputTokens": "in", "outputTokens": "out"}
        counts = [f"{short_count(self._usage[key])} {word}" for key, word in words.items() if key in self._usage]
        cost, currency = cost_of(self._usage)
        price = [] if cost is None else [in_money(cost, currency)]
        return [*([", ".join(counts)] if counts else []), *price]


_KEY = "ahpkit/plan"
"""The key in the session's `_meta` under which the plans of each chat are. The reference of the ACP mapping describes
them."""

_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●"}

_LONGEST_ENTRY = 100
"""Characters of an entry. Agents like long explanations."""

Entry = tuple[str, str]
"""The text of an entry, and its status."""


def plan_of(session: Any, chat: str) -> Sequence[Entry]:
    """The entries of all plans of a chat, in their order."""
    plans = session.get("_meta", {}).get(_KEY, {}).get(chat, ())
    entries = [entry for plan in plans for entry in plan.get("entries", ())]
    return [(str(entry.get("content", "")), str(entry.get("status", ""))) for entry in entries]


def plan_lines(plan: Sequence[Entry]) -> list[str]:
    return [f"  {_MARKS.get(status, '?')} {shorten(content, _LONGEST_ENTRY)}" for content, status in plan]


def news(before: Sequence[Entry], after: Sequence[Entry]) -> list[str]:
    """The lines for a changed plan: all entries of a new plan, else the entries that changed."""
    if [content for content, _ in before] == [content for content, _ in after]:
        return plan_lines([entry for entry, old in zip(after, before, strict=True) if entry != old])
    return ["Plan", *plan_lines(after)] if after else []


async def show_plans(output: Output, session: Subscription, chat: str) -> None:
    """Show the plans of a chat whenever they change."""
    shown = plan_of(session.confirmed, chat)

    def is_new(state: Any) -> bool:
        return plan_of(state, chat) != shown

    while True:
        before, shown = shown, plan_of(await session.wait_for(is_new), chat)
        if output.panel(["Plan", *plan_lines(shown)] if shown else []):
            continue
        for line in news(before, shown):
            output.say(line, "cyan")


_LONGEST_REASON = 200
"""Characters of a tool's error that are shown. The agent gets all of it."""


def event_line(event: TurnEvent) -> str:
    """An event as one line of JSON: its name under `event`, and its fields."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return encode({"event": type(event).__name__, **fields}).decode()


def terminals(event: TurnEvent) -> list[str]:
    """The URIs of the terminals that the tool call of an event uses while it runs."""
    call: Any = getattr(event, "call", None)
    content = call.get("content", ()) if call is not None and call["status"] == "running" else ()
    return [one["resource"] for one in content if one["type"] == "terminal"]


class TurnPrinter:
    """Writes the events of a turn as they come. Events that need a decision are shown elsewhere."""

    def __init__(self, output: Output, *, quiet: bool = False) -> None:
        """`quiet`: write only the answer. Errors go to standard error."""
        self._output = output
        self._quiet = quiet
        self._part = ""
        self._stopped = False
        self.left_out = False
        """Whether text came after `stop` and was not shown."""

    def stop(self) -> None:
        """Show no more text, because the person has seen enough. How the turn ends is still shown."""
        self._stopped = True

    def show(self, event: TurnEvent) -> None:
        match event:
            case events.TextDelta() | events.ReasoningDelta() if self._stopped:
                self.left_out = True
            case events.TextDelta(part_id=part, text=text):
                self._begin(part)
                self._output.stream_markdown(text)
            case events.TurnFailed(error=error):
                self._output.end_line()
                self._output.say(f"✗ {error['message']}", "red", error=self._quiet)
            case events.TurnCancelled():
                self._output.end_line()
                self._output.say("✗ cancelled", "yellow", error=self._quiet)
            case events.TurnCompleted():
                self._output.end_line()
                if self.left_out:
                    words = "✗ stopped here; the answer was complete already (ahpkit sessions show)"
                    self._output.say(words, "yellow", error=self._quiet)
            case _:
                if not self._quiet:
                    self._show_aside(event)

    def _show_aside(self, event: TurnEvent) -> None:
        match event:
            case events.ReasoningDelta(part_id=part, text=text):
                self._begin(part)
                self._output.stream(text, "dim italic")
            case events.ToolCallRunning(call=call):
                self._output.say(f"… {_title(call)}", "cyan")
            case events.AuthenticationNeeded(call=call):
                self._output.say(
                    f"! {call['toolName']} waits: its MCP server wants you to log in (ahpkit mcp login)", "yellow"
                )
            case events.ToolCallCompleted(call=call):
                self._show_completed(call)
            case events.ToolCallCancelled(call=call):
                reason = plain(call.get("reasonMessage"))
                self._output.say(f"✗ {call['displayName']}: not run" + (f" ({reason})" if reason else ""), "yellow")
            case events.Notice(content=content):
                self._output.say(f"! {plain(content)}", "yellow")
            case events.Usage(usage=usage):
                if words := describe_usage(usage):
                    self._output.say(f"· {words}", "dim")
            case _:
                pass

    def _show_completed(self, call: Any) -> None:
        did = plain(call.get("pastTenseMessage")) or call["displayName"]
        if call.get("success"):
            self._output.say(f"✓ {did}", "green")
        else:
            reason = shorten(call.get("error", {}).get("message", ""), _LONGEST_REASON)
            self._output.say(f"✗ {did}" + (f": {reason}" if reason else ""), "red")

    def _begin(self, part: str) -> None:
        if self._part != part:
            self._output.end_line()
            self._part = part


def _title(call: Any) -> str:
    return plain(call.get("invocationMessage")) or call["displayName"]


def describe_usage(usage: Any) -> str:
    """Token counts and cost in words; empty if the agent reported none."""
    words = {"inputTokens": "in", "outputTokens": "out", "cacheReadTokens": "from the cache"}
    counts = ", ".join(f"{usage[key]} {word}" for key, word in words.items() if key in usage)
    cost, currency = cost_of(usage)
    price = "" if cost is None else in_money(cost, currency)
    return ", ".join(filter(None, [f"tokens: {counts}" if counts else "", price]))


__all__ = [
    "Entry",
    "StatusLine",
    "TurnPrinter",
    "describe_usage",
    "event_line",
    "news",
    "plan_lines",
    "plan_of",
    "show_plans",
    "terminals",
]
