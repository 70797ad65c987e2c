"""Shows what terminals of the host print, without their control sequences."""

from __future__ import annotations

import re
from typing import Any

from ahpkit.cli.output import Output
from ahpkit.cli.text import printable
from ahpkit.client import Client
from ahpkit.host.terminals.output import plain

TERMINAL = "ahp-terminal:"

_LINES = 12
"""Of one terminal, in the middle of a conversation: enough to see how a command is doing."""

_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n|\Z)")


def readable(text: str) -> str:
    """What is left on a screen of lines: no colours, no cursor moves, nothing that was overwritten."""
    return _OVERWRITTEN.sub("", plain(text)).replace("\r", "")


def as_shown(text: str, *, is_pty: bool) -> str:
    """Output for a reader. Without a pty it is plain text: nothing in it drives a screen, so nothing is taken out."""
    return readable(text) if is_pty else printable(text)


def has_pty(state: Any) -> bool:
    """Whether a terminal is one; where nothing is said, it is."""
    return state.get("isPty") is not False


def printed(state: Any) -> str:
    """Everything a terminal has printed so far."""
    text = "".join(part["value"] if "value" in part else part["output"] for part in state["content"])
    return as_shown(text, is_pty=has_pty(state))


async def watch_terminal(output: Output, client: Client, uri: str) -> None:
    """Show the first lines of a terminal as they come, and then where to see the rest."""
    async with client.subscribe(uri) as terminal:
        is_pty = has_pty(terminal.confirmed)
        *lines, rest = printed(terminal.confirmed).split("\n")
        shown = 0
        while True:
            for line in lines[: _LINES - shown]:
                output.say(f"  │ {line}", "dim")
            shown += len(lines)
            if shown > _LINES:
                output.say(f"  │ … all of it:  ahpkit tail {uri}", "dim")
                return
            action: Any = (await anext(terminal))["action"]
            match action["type"]:
                case "terminal/data":
                    *lines, rest = (rest + as_shown(action["data"], is_pty=is_pty)).split("\n")
                case "terminal/exited":
                    lines, rest = [rest] if rest else [], ""
                case _:
                    lines = []


__all__ = ["TERMINAL", "as_shown", "has_pty", "printed", "readable", "watch_terminal"]
