"""Makes titles of sessions: the default, from the first message, from their agent. Pure."""

from __future__ import annotations

import re

DEFAULT_TITLE = "New session"

MAX_TITLE = 200
"""Characters of a title that an agent gives: every list of sessions shows it."""

OPENING_PREFIX = "opening/"
"""Prefix of the durable value with the slash command that a chat began with."""

_FROM_MESSAGE = 60
"""Characters of a title that is only a guess."""

_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


_COMMAND = re.compile(r"/[\w:.-]+(\s|$)")
"""A slash command, with or without arguments. A path has a further slash."""


def title_from(message: str) -> str | None:
    """A session's title until its agent or a person gives one: a message's first line, cut short.

    A slash command says nothing about the session: None.
    """
    line = message.strip().partition("\n")[0]
    return None if _COMMAND.match(line) else _short(line, _FROM_MESSAGE)


def opening(message: str) -> str:
    """The slash command that a session began with. It is no title, but tells sessions without one apart."""
    return _short(message.strip().partition("\n")[0], _FROM_MESSAGE)


def agent_title(title: str) -> str:
    """What an agent calls a session, in one line without control characters."""
    return _short(title, MAX_TITLE)


def _short(text: str, limit: int) -> str:
    line = " ".join(text[: 10 * limit].translate(_CONTROL).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


__all__ = ["DEFAULT_TITLE", "MAX_TITLE", "OPENING_PREFIX", "agent_title", "opening", "title_from"]
