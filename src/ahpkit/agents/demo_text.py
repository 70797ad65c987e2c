"""Text of the demo agent: streaming it in small pieces, and Markdown that holds anything."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from ahpkit.host.agent import Turn
from ahpkit.protocol.chat.state import Message


async def stream(turn: Turn, text: str) -> None:
    """Say a text word by word; others get their turn between the words."""
    for piece in re.finditer(r"\S+\s*", text):
        turn.text(piece[0])
        await asyncio.sleep(0)


def acknowledge(turn: Turn, message: Message | None) -> None:
    """Show that a steering message arrived."""
    if message is not None:
        turn.text(f"\n\nYou steered me while I was busy:\n\n{quoted(message['text'])}\n\n")


def quoted(text: str) -> str:
    """A Markdown quotation."""
    return "\n".join(f"> {line}" for line in text.strip().split("\n"))


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def fenced_json(value: Any) -> str:
    """A value as a Markdown code block."""
    return fenced(json.dumps(value, indent=2, ensure_ascii=False), "json")


__all__ = ["acknowledge", "fenced", "fenced_json", "quoted", "stream"]
