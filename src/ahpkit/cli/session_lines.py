"""Shows a session in one line: id, time, agent, what it does, title; and a list to pick one from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from ahpkit.cli.asking import ask
from ahpkit.cli.text import printable, shorten
from ahpkit.protocol.session.state import SessionStatus

_ACTIVITIES = (
    (SessionStatus.InputNeeded, "needs input"),
    (SessionStatus.InProgress, "running"),
    (SessionStatus.Error, "error"),
    (SessionStatus.Idle, "idle"),
)

_SHOWN = 15
"""Sessions that are listed: more are found by --session."""


def is_archived(summary: Any) -> bool:
    return bool(summary["status"] & SessionStatus.IsArchived)


def status_word(summary: Any) -> str:
    """What a session does now."""
    return next((word for bits, word in _ACTIVITIES if summary["status"] & bits == bits), "?")


def summary_line(summary: Any) -> str:
    status = status_word(summary)
    status += ", archived" if is_archived(summary) else ""
    title = shorten(summary["title"], 60)
    when = _when(summary["modifiedAt"])
    return f"{summary['resource'].rpartition('/')[2][:8]:8}  {when:16}  {summary['provider']:10}  {status:14}  {title}"


def _when(time: str) -> str:
    """Local time; empty for an agent's conversation whose time is not known."""
    moment = datetime.fromisoformat(time)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment.timestamp() else ""


def pick_session(summaries: Sequence[Any]) -> str:
    """The URI of the session that the person picks, the one changed last being the default."""
    newest = sorted(summaries, key=lambda one: one["modifiedAt"], reverse=True)
    shown = newest[:_SHOWN]
    for number, one in enumerate(shown, 1):
        click.echo(f"{number:3}. {printable(summary_line(one))}")
    if len(newest) > _SHOWN:
        click.echo(f"     … and {len(newest) - _SHOWN} more:  ahpkit sessions list")
    number: int = ask("Which one", type=click.IntRange(1, len(shown)), default=1)
    return shown[number - 1]["resource"]


__all__ = ["is_archived", "pick_session", "status_word", "summary_line"]
