"""Shows an agent's plan: a list that fills while a turn runs; elsewhere, what changed.

Plans stand in the session's `_meta`, by chat, under a name that the reference of the ACP mapping gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ahpkit.cli.output import Output
from ahpkit.cli.text import shorten
from ahpkit.client import Subscription

_KEY = "ahpkit/plan"

_MARKS = {"pending": "○", "in_progress": "◐", "completed": "●"}

_LONGEST = 100
"""Characters of an entry: agents like to explain."""

Entry = tuple[str, str]
"""What is to be done, and how far it is."""


def plan_of(session: Any, chat: str) -> Sequence[Entry]:
    """The entries of all plans of a chat, in order."""
    plans = session.get("_meta", {}).get(_KEY, {}).get(chat, ())
    entries = [entry for plan in plans for entry in plan.get("entries", ())]
    return [(str(entry.get("content", "")), str(entry.get("status", ""))) for entry in entries]


def plan_lines(plan: Sequence[Entry]) -> list[str]:
    return [f"  {_MARKS.get(status, '?')} {shorten(content, _LONGEST)}" for content, status in plan]


def news(before: Sequence[Entry], after: Sequence[Entry]) -> list[str]:
    """A new plan as a whole; of one that goes on, the entries that changed."""
    if [content for content, _ in before] == [content for content, _ in after]:
        return plan_lines([entry for entry, old in zip(after, before, strict=True) if entry != old])
    return ["Plan", *plan_lines(after)] if after else []


async def show_plans(output: Output, session: Subscription, chat: str) -> None:
    """Show what becomes of the plans of a chat, from now on."""
    shown = plan_of(session.confirmed, chat)

    def is_new(state: Any) -> bool:
        return plan_of(state, chat) != shown

    while True:
        before, shown = shown, plan_of(await session.wait_for(is_new), chat)
        if output.panel(["Plan", *plan_lines(shown)] if shown else []):
            continue
        for line in news(before, shown):
            output.say(line, "cyan")


__all__ = ["Entry", "news", "plan_lines", "plan_of", "show_plans"]
