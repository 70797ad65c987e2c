"""Finds sessions by their properties and by what was said in them, and shows each in one line."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.asking import WholeNumber, ask
from ahpkit.cli.shell_completion import AGENT
from ahpkit.cli.text import printable, shorten
from ahpkit.client import Client
from ahpkit.protocol.chat.turns import text_of
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.meta_keys import OPENING
from ahpkit.protocol.session.state import SessionStatus

UNTITLED = "New session"
"""The title of sessions and chats that nobody has named."""

_ACTIVITIES = (
    (SessionStatus.InputNeeded, "needs input"),
    (SessionStatus.InProgress, "running"),
    (SessionStatus.Error, "error"),
    (SessionStatus.Idle, "idle"),
)

_SHOWN = 15
"""The number of sessions that a person can pick from. `--session` names any other one."""


def is_archived(summary: Any) -> bool:
    return bool(summary["status"] & SessionStatus.IsArchived)


def status_word(summary: Any) -> str:
    """What a session is doing now, in a word or two."""
    return next((word for bits, word in _ACTIVITIES if summary["status"] & bits == bits), "?")


def summary_line(summary: Any) -> str:
    status = status_word(summary)
    status += ", archived" if is_archived(summary) else ""
    title = shorten(session_title(summary), 60)
    when = _when(summary["modifiedAt"])
    return f"{summary['resource'].rpartition('/')[2][:8]:8}  {when:16}  {summary['provider']:10}  {status:14}  {title}"


def session_title(summary: Any) -> str:
    """The title of a session. A session without one is named by the slash command that it began with."""
    title, opening = summary["title"].strip(), summary.get("_meta", {}).get(OPENING)
    return f"({opening})" if opening and title in ("", UNTITLED) else title


def _when(time: str) -> str:
    """The local time; empty for a conversation whose agent does not say when it was."""
    moment = datetime.fromisoformat(time)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment.timestamp() else ""


def pick_session(summaries: Sequence[Any]) -> str:
    """Ask the person for a session and return its URI. The default is the session that changed last."""
    newest = sorted(summaries, key=lambda one: one["modifiedAt"], reverse=True)
    shown = newest[:_SHOWN]
    for number, one in enumerate(shown, 1):
        click.echo(f"{number:3}. {printable(summary_line(one))}")
    if len(newest) > _SHOWN:
        click.echo(f"     … and {len(newest) - _SHOWN} more:  ahpkit sessions list")
    number: int = ask("Which one", type=WholeNumber(1, len(shown)), default=1)
    return shown[number - 1]["resource"]


def picker() -> Callable[[Sequence[Any]], str] | None:
    """A function that asks a person to pick a session; None without a terminal."""
    return pick_session if sys.stdin.isatty() and sys.stdout.isatty() else None


_AGE = re.compile(r"(\d+)\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_AROUND = 40
"""Characters that are shown before and after the words that were found."""

STATUSES = ("idle", "running", "needs input", "error", "archived")


def age(text: str) -> timedelta:
    """`30d`, `12h`, `2w` or `45min` as a duration. Raises `ValueError`."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration; write 45min, 12h, 30d or 2w")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise ValueError(f"{text!r} is longer ago than there are dates") from None


class AgeOption(click.ParamType[timedelta]):
    """The type of an option with a duration, such as `30d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return value if isinstance(value, timedelta) else age(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sessions a command is about. A value that is None excludes none; `everything` includes archived ones."""

    agent: str | None = None
    directory: Path | None = None
    status: str | None = None
    since: timedelta | None = None
    everything: bool = False

    def fits(self, summary: Any, now: datetime) -> bool:
        archived = is_archived(summary)
        if self.status is not None:
            if self.status == "archived" or not archived:
                return self._rest(summary, now) and (
                    archived if self.status == "archived" else status_word(summary) == self.status
                )
            return False
        return (self.everything or not archived) and self._rest(summary, now)

    def _rest(self, summary: Any, now: datetime) -> bool:
        return (
            self.agent in (None, summary["provider"])
            and (self.directory is None or self.directory.resolve().as_uri() in summary.get("workingDirectories", ()))
            and (self.since is None or now - datetime.fromisoformat(summary["modifiedAt"]) <= self.since)
        )


def filter_options(function: Any) -> Any:
    """Options that choose sessions: agent, directory, status, since."""
    place = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        click.option("--since", type=AgeOption(), help="Only those changed within this time, such as 12h or 30d."),
        click.option("--status", type=click.Choice(STATUSES), help="Only those with this status."),
        click.option("--dir", "directory", type=place, help="Only those that work in this directory."),
        click.option("--agent", shell_complete=AGENT, help="Only those with this agent."),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that contains all words."""

    session: str
    title: str
    chat: str
    turn: str
    text: str
    """The text around the first word."""


async def search(client: Client, summaries: Iterable[Any], words: Sequence[str]) -> AsyncGenerator[Hit]:
    """The turns of these sessions that contain all words, whether in capitals or not. Agents that do not run are not
    started."""
    async with aclosing(turns_of(client, summaries)) as turns:
        async for summary, chat, turn in turns:
            if (found := excerpt(text_of(turn), words)) is not None:
                yield Hit(summary["resource"], session_title(summary), chat, turn["id"], found)


async def turns_of(client: Client, summaries: Iterable[Any]) -> AsyncGenerator[tuple[Any, str, Any]]:
    """Every turn of these sessions: the summary of the session, the URI of the chat, and the turn."""
    for summary in summaries:
        with suppress(AhpError):  # The session was deleted while it was read.
            async with await client.session(summary["resource"]) as session:
                for entry in session.chats:
                    async with await session.chat(entry["resource"]) as chat:
                        async for turn in chat.history():
                            yield summary, chat.uri, turn


def excerpt(text: str, words: Sequence[str]) -> str | None:
    """The text around the first word, on one line; None if one of the words is missing."""
    folded = text.casefold()
    places = [folded.find(word.casefold()) for word in words]
    if not places or min(places) < 0:
        return None
    start = max(places[0] - _AROUND, 0)
    end = places[0] + len(words[0]) + _AROUND
    return (
        ("…" if start else "")
        + shorten(text[start:end], 2 * _AROUND + len(words[0]))
        + ("…" if end < len(text) else "")
    )


__all__ = [
    "UNTITLED",
    "AgeOption",
    "Filter",
    "Hit",
    "age",
    "excerpt",
    "filter_options",
    "is_archived",
    "picker",
    "search",
    "session_title",
    "status_word",
    "summary_line",
    "turns_of",
]
