"""What of an agent's `_meta` reaches clients: under one key of our own, without secrets, bounded. Knows no messages.

Agents use bare names (`quota`, `toolName`, `ui`) that would collide with keys AHP gives a meaning, so nothing is ever
spread at the root. The other direction needs no code: what a client puts into a message's `_meta` is passed on as is.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, cast

import msgspec

from ahpkit.agents.shape import obj
from ahpkit.protocol.common.state import JsonObject

T = TypeVar("T")

META_KEY = "ahpkit/acp"
"""The one key of `_meta` that carries what an ACP agent said beyond AHP's own fields."""

MAX_META_BYTES = 8 * 1024
"""Enough for every agent seen but one, which sends 548 kB of skill texts with its commands."""

_SECRET = re.compile(
    r"(?i)(^env$|^headers$|terminal[-_]auth|token$|api[-_]?key|secret|password|authorization|credential)"
)


def upward(meta: Any) -> JsonObject:
    """An agent's `_meta`, fit to be shown: no secrets, and the largest entries left out until it is small enough."""
    cleaned = cast("JsonObject", clean(obj(meta)))
    sizes = {key: len(msgspec.json.encode({key: value})) for key, value in cleaned.items()}
    kept: JsonObject = {}
    total = 0
    for key in sorted(cleaned, key=lambda name: sizes[name]):
        total += sizes[key]
        if total <= MAX_META_BYTES:
            kept[key] = cleaned[key]
    left_out = sorted(cleaned.keys() - kept.keys())
    return kept | ({"ahpkit/left-out": left_out} if left_out else {})


def wrapped(facts: JsonObject) -> JsonObject:
    """`_meta` with these facts under our key; facts without a value are dropped."""
    said = {key: value for key, value in facts.items() if value not in (None, {}, [], "")}
    return {META_KEY: said} if said else {}


def annotated(shown: T, **facts: JsonObject) -> T:
    """An AHP object, with these facts about it under our key if there are any. Every type of AHP may have `_meta`."""
    meta = wrapped({name: upward(fact) for name, fact in facts.items() if fact})
    return cast("T", {**cast("JsonObject", shown), "_meta": meta}) if meta else shown


def with_meta_around(inner: Any, around: JsonObject) -> JsonObject:
    """What a message is about, with the `_meta` of the message added to its own: there is one place for both."""
    outer, found = obj(around.get("_meta")), obj(inner)
    return {**found, "_meta": {**outer, **obj(found.get("_meta"))}} if outer else found


def clean(value: Any) -> Any:
    """A JSON value without the entries whose names speak of secrets."""
    if isinstance(value, dict):
        items = cast("JsonObject", value).items()
        return {key: clean(entry) for key, entry in items if not _SECRET.search(str(key))}
    if isinstance(value, list):
        return [clean(entry) for entry in cast("list[Any]", value)]
    return value


__all__ = ["MAX_META_BYTES", "META_KEY", "annotated", "clean", "upward", "with_meta_around", "wrapped"]
