"""Requests to models and their replies, whatever API they are written in. Pure."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

Json = dict[str, Any]

_TAGGED = re.compile(r"<([\w-]+)[^>]*>.*?</\1>|<[\w-]+[^>]*/>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    text: str
    """What the user said last."""
    result: str | None
    """The result of the tool the model called last, if that is what the request ends with."""
    tools: tuple[str, ...]
    body: Json


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with words; `pause` seconds between them."""

    text: str
    pause: float = 0.0
    thought: str = ""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool."""

    name: str
    arguments: Json
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:12]}")


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an HTTP error."""

    status: int
    message: str


Reply = Say | CallTool | Fail
Event = tuple[str, Any]
"""Name, or nothing, and data of a server-sent event."""


@dataclass(frozen=True, slots=True)
class ModelApi:
    """How one maker's requests are read and answered."""

    asked: Callable[[Json], Asked]
    whole: Callable[[Say | CallTool], Json]
    events: Callable[[Say | CallTool], AsyncIterator[Event]]


def text_of(content: Any) -> str:
    """The words of a content, whether it is a string, a list of parts or something else."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in parts_of(cast("list[Any]", content)))
    return content if isinstance(content, str) else json.dumps(content)


def parts_of(content: Any) -> list[Json]:
    """The parts of a content that has some."""
    listed = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Json", part) for part in listed if isinstance(part, dict)]


def last_said(messages: Iterable[Json], key: str = "content") -> str:
    """The last words of the user, without what agents add in the user's name: reminders and the like, in tags."""
    said = [own for message in messages if (own := own_words(message, key))]
    return said[-1] if said else ""


def own_words(message: Json, key: str = "content") -> str:
    """The user's own words in a message: the last ones outside of tags, if it is the user's."""
    content = message.get(key) if message.get("role") == "user" else None
    texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in parts_of(content)]
    own = [words for text in texts if (words := _TAGGED.sub("", text).strip())]
    return own[-1] if own else ""


def since_reply(messages: list[Json], model: str = "assistant", key: str = "content") -> list[Json]:
    """What the user's side added since the model, or the user in words, last spoke: results of tools, reminders."""
    spoke = [index for index, message in enumerate(messages) if message.get("role") == model or own_words(message, key)]
    return messages[spoke[-1] + 1 :] if spoke else messages


def words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


__all__ = [
    "Asked",
    "CallTool",
    "Event",
    "Fail",
    "Json",
    "ModelApi",
    "Reply",
    "Say",
    "last_said",
    "parts_of",
    "since_reply",
    "text_of",
    "words",
]
