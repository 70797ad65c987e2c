"""A turn on the terminal: streamed text, reasoning, tool calls, questions. Knows no connection and asks nobody."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from ahpkit.client import events
from ahpkit.client.events import TurnEvent
from ahpkit.protocol.codec import encode
from ahpkit.protocol.common.state import StringOrMarkdown


def plain(text: StringOrMarkdown | None) -> str:
    return text["markdown"] if isinstance(text, dict) else text or ""


def event_line(event: TurnEvent) -> str:
    """An event as one line of JSON: its name in `event`, its fields beside it."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return encode({"event": type(event).__name__, **fields}).decode()


class TurnPrinter:
    """Writes the events of a turn as they come. With colours on a terminal, as plain text elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self._out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._quiet = quiet
        self._open = ""

    def show(self, event: TurnEvent) -> None:
        match event:
            case events.TextDelta(part_id=part, text=text):
                self._stream(part, text, style=None)
            case events.ReasoningDelta(part_id=part, text=text):
                if not self._quiet:
                    self._stream(part, text, style="dim italic")
            case events.TurnFailed(error=error):
                self._line(f"✗ {error['message']}", "red", error=True)
            case events.TurnCancelled():
                self._line("✗ cancelled", "yellow", error=True)
            case events.TurnCompleted():
                self._end_part()
            case _:
                if not self._quiet:
                    self._show_aside(event)

    def _show_aside(self, event: TurnEvent) -> None:
        match event:
            case events.ConfirmationNeeded(call=call):
                asked = call.get("confirmationTitle") or call.get("invocationMessage") or call["displayName"]
                self._line(f"? {plain(asked)}", "bold yellow")
                self._indented(call.get("toolInput"))
            case events.ToolCallRunning(call=call):
                self._line(f"… {plain(call.get('invocationMessage')) or call['displayName']}", "cyan")
            case events.ToolCallCompleted(call=call):
                mark, style = ("✓", "green") if call.get("success") else ("✗", "red")
                self._line(f"{mark} {plain(call.get('pastTenseMessage')) or call['displayName']}", style)
            case events.ToolCallCancelled(call=call):
                self._line(f"✗ {call['displayName']}: not run", "yellow")
            case events.InputNeeded(request=request):
                self._line(f"? {request.get('message') or 'The agent asks:'}", "bold yellow")
            case events.Notice(content=content):
                self._line(f"! {plain(content)}", "yellow")
            case events.Usage(usage=usage):
                tokens = [f"{key} {value}" for key, value in usage.items() if isinstance(value, int)]
                self._line("· " + ", ".join(tokens), "dim")
            case _:
                pass

    def _stream(self, part: str, text: str, *, style: str | None) -> None:
        if self._open != part:
            self._end_part()
            self._open = part
        self._out.print(text, end="", style=style)
        sys.stdout.flush()

    def _end_part(self) -> None:
        if self._open:
            self._out.print()
            self._open = ""

    def _line(self, text: str, style: str, *, error: bool = False) -> None:
        self._end_part()
        (self._errors if error else self._out).print(text, style=style)

    def _indented(self, text: str | None) -> None:
        for line in (text or "").splitlines()[:20]:
            self._out.print(f"    {line}", style="dim")


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


__all__ = ["TurnPrinter", "as_json", "event_line", "plain"]
