"""What an action says to a person who follows a channel, in one line of words. Pure.

The most frequent actions have words of their own. Of the others, also those of extensions and of versions to come, the
members are told: a thing by its name or title, ids only when there is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from ahpkit.cli.session_search import status_word
from ahpkit.cli.show_turn import describe_usage
from ahpkit.cli.text import plain, shorten

_LONGEST = 160
"""Characters of a text."""

_SHOWN = 3
"""Things of a list that are named."""

_MOST = 6
"""Members of a thing that are told."""

_DEEPEST = 4
"""Levels of things in things."""

_NAMES = (
    *("title", "displayName", "label", "name", "message", "text", "markdown", "content"),
    *("request", "toolCall", "resource", "uri"),
)
"""Members that stand for the whole thing: the first one that says something."""

_ASIDE = frozenset(
    {"id", "turnId", "partId", "toolCallId", "requestId", "questionId", "instanceId", "queuedMessageId", "nonce"}
    | {"createdAt", "modifiedAt", "startedAt", "timestamp"}
)
"""Members that are told only when there is nothing else: ids and times."""


def in_words(action: Any) -> str:
    """What an action carries, in words; empty when its type says it all."""
    match action:
        case {"type": "chat/turnStarted", "message": {"text": str(text)}}:
            return f"> {shorten(text, _LONGEST)}"
        case {"type": "chat/delta" | "chat/reasoning" | "chat/toolCallDelta", "content": str(text)}:
            return shorten(text, _LONGEST) or "(an empty line)"
        case {"type": "chat/responsePart", "part": {"kind": "markdown" | "reasoning" as kind, "content": str(text)}}:
            return shorten(text, _LONGEST) or {"markdown": "(text)", "reasoning": "(thoughts)"}[kind]
        case {"type": "chat/toolCallStart", "displayName": str(name)}:
            return name
        case {"type": "chat/toolCallReady"}:
            given: Any = action.get("toolInput")
            return _told(given if given else plain(action.get("invocationMessage")), 0)
        case {"type": "chat/toolCallConfirmed" | "chat/toolCallResultConfirmed", "approved": bool(approved)}:
            return "approved" if approved else action.get("reason", "denied")
        case {"type": "chat/toolCallComplete", "result": {"success": bool(success)}}:
            return "done" if success else "failed"
        case {"type": "chat/usage", "usage": {**usage}}:
            return describe_usage(usage)
        case {"type": "chat/error", "part": {"error": {"message": str(text)}}}:
            return shorten(text, _LONGEST)
        case {"type": "chat/turnComplete" | "chat/turnCancelled", "duration": int() | float() as milliseconds}:
            return f"after {milliseconds / 1000:.1f} s"
        case _:
            return _members({key: value for key, value in action.items() if key not in ("type", "_meta")}, 0)


def _members(thing: Mapping[str, Any], depth: int) -> str:
    """The members of a thing. A single one of the action itself needs no name."""
    kept = {key: value for key, value in thing.items() if key not in _ASIDE and key != "_meta"} or thing
    told = [(_spaced(key), _member(key, value, depth + 1)) for key, value in islice(kept.items(), _MOST)]
    if len(told) == 1 and depth == 0:
        return told[0][1]
    return ", ".join(f"{key}{' ' if depth else ': '}{value}" for key, value in told)


def _member(key: str, value: Any, depth: int) -> str:
    match key, value:
        case "status", int():
            return status_word({"status": value})
        case "changes", {**changes} if changes:  # A new name is one change of several.
            return _members(changes, depth)
        case _:
            return _told(value, depth)


def _told(value: Any, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    match value:
        case None:
            return "nothing"
        case bool():
            return "yes" if value else "no"
        case str():
            return shorten(value, _LONGEST) or "nothing"
        case [*things]:
            return _listed(things, depth)
        case {}:
            return next(_names(value, depth), None) or _members(value, depth) or "nothing"
        case _:
            return str(value)


def _names(thing: Mapping[str, Any], depth: int) -> Iterator[str]:
    """What a thing may be called."""
    for key in _NAMES:
        found: Any = thing.get(key)
        if found and isinstance(found, str | dict):
            yield _told(cast("Any", found), depth + 1)


def _listed(things: list[Any], depth: int) -> str:
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    return ", ".join(_told(one, depth + 1) for one in things[:_SHOWN]) + more or "nothing"


def _spaced(key: str) -> str:
    """`canvasId` as people write it: `canvas id`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()


__all__ = ["in_words"]
