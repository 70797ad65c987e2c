"""Shows a turn: streamed text, reasoning, tool calls, how it ended."""

from __future__ import annotations

import dataclasses
from typing import Any

from ahpkit.cli.output import Output
from ahpkit.cli.text import plain, shorten
from ahpkit.cli.usage import cost_of
from ahpkit.client import events
from ahpkit.client.events import TurnEvent
from ahpkit.wire.codec import encode

_LONGEST_REASON = 200
"""Characters of a tool's error: the agent gets all of it."""


def event_line(event: TurnEvent) -> str:
    """An event as one line of JSON: its name in `event`, its fields beside it."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return encode({"event": type(event).__name__, **fields}).decode()


def terminals(event: TurnEvent) -> list[str]:
    """The terminals that the tool call of an event uses while it runs."""
    call: Any = getattr(event, "call", None)
    content = call.get("content", ()) if call is not None and call["status"] == "running" else ()
    return [one["resource"] for one in content if one["type"] == "terminal"]


class TurnPrinter:
    """Writes the events of a turn as they come. What needs a person's decision is for others to show."""

    def __init__(self, output: Output, *, quiet: bool = False) -> None:
        """`quiet`: the answer only; what went wrong goes to standard error."""
        self._output = output
        self._quiet = quiet
        self._part = ""

    def show(self, event: TurnEvent) -> None:
        match event:
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
    """Token counts and cost in words; nothing when nobody counted."""
    words = {"inputTokens": "in", "outputTokens": "out", "cacheReadTokens": "from the cache"}
    counts = ", ".join(f"{usage[key]} {word}" for key, word in words.items() if key in usage)
    cost, currency = cost_of(usage)
    price = "" if cost is None else f"{'$' if currency == 'USD' else currency + ' '}{cost:.4f}"
    return ", ".join(filter(None, [f"tokens: {counts}" if counts else "", price]))


__all__ = ["TurnPrinter", "describe_usage", "event_line", "terminals"]
