"""Passes on an agent's `_meta` to clients: under one key of ours, bounded, without secrets.

Agents use bare names (`quota`, `toolName`, `ui`) that would collide with keys AHP gives a meaning, so nothing of it is
put at the root. The other direction needs no code: what a client puts into a message's `_meta` is passed on as is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import Any, TypeVar, cast

from ahpkit.agents.acp.limits import MAX_KINDS, short
from ahpkit.agents.untrusted_json import obj
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import ACP
from ahpkit.wire.codec import encode

T = TypeVar("T")

MAX_META_BYTES = 8 * 1024
"""Enough for every agent that was seen, except one that sends 548 kB of skill texts with its commands."""

_MAX_CLEANED = 16 * MAX_META_BYTES
"""Bytes of an entry that is searched for secrets. A larger entry is left out."""

_MAX_ENTRIES = 1_000
"""The number of entries that are looked at: far more than fit."""

_SECRET = re.compile(
    r"(?i)(^env$|^headers$|terminal[-_]auth|token$|api[-_]?key|secret|password|authorization|credential)"
)

_SPOKEN = re.compile(
    r"(?i)((?:bearer|basic)\s{1,9}"
    r"|(?:api[-_]?key|token|secret|passw(?:or)?d|credential|authorization)[\w-]{0,40}[\"']?[\s=:]{1,9}[\"']?"
    r"|://[^/\s:@]{0,99}:)[^\s\"',;@]{8,}"
    r"|\b(?:sk-|gh[a-z]_|xox[a-z]-|AIza|eyJ)[\w.-]{8,}"
)
"""Secrets in running text: values with names such as token, passwords in URLs, and well-known kinds of keys. The
patterns before the secret have bounded lengths, because an agent can send a line of any length and must not block the
host with it."""


def without_secrets(value: Any, known: Collection[str]) -> Any:
    """A text of an agent, or a JSON value with such texts, without anything that looks like a secret or is known to be
    one."""
    if isinstance(value, dict):
        return {key: without_secrets(entry, known) for key, entry in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [without_secrets(entry, known) for entry in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    for secret in known:
        value = value.replace(secret, "…")
    return _SPOKEN.sub(lambda found: f"{found[1] or ''}…", value)


def upward(meta: Any) -> JsonObject:
    """An agent's `_meta` in a form that can be shown: without secrets, and not too large."""
    facts = dict(islice(obj(meta).items(), _MAX_ENTRIES))
    huge = {key for key, value in facts.items() if len(encode({key: value})) > _MAX_CLEANED}
    looked_through = clean({key: None if key in huge else value for key, value in facts.items()})
    return bounded(looked_through, MAX_META_BYTES, but=huge)


def bounded(facts: JsonObject, limit: int, *, but: Collection[str] = ()) -> JsonObject:
    """The facts without those in `but`. The largest entries are left out until the rest is small enough."""
    sizes = {key: len(encode({key: value})) for key, value in facts.items()}
    kept: JsonObject = {}
    total = 0
    for key in sorted(facts, key=lambda name: sizes[name]):
        total += sizes[key]
        if total <= limit and key not in but:
            kept[key] = facts[key]
    left_out = sorted(short(key) for key in facts.keys() - kept.keys())
    return kept | ({"ahpkit/left-out": left_out[:MAX_KINDS]} if left_out else {})


def wrapped(facts: JsonObject) -> JsonObject:
    """A `_meta` with these facts under our key. Facts without a value are left out."""
    given = {key: value for key, value in facts.items() if value not in (None, {}, [], "")}
    return {ACP: given} if given else {}


def annotated(shown: T, **facts: JsonObject) -> T:
    """An AHP object, with these facts about it under our key if there are any. Every type of AHP may have `_meta`."""
    meta = wrapped({name: upward(fact) for name, fact in facts.items() if fact})
    return cast("T", {**cast("JsonObject", shown), "_meta": meta}) if meta else shown


def with_meta_around(inner: Any, around: JsonObject) -> JsonObject:
    """The object in a message, with the `_meta` of the message added to its own, because clients see only the
    object."""
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


__all__ = [
    "MAX_META_BYTES",
    "annotated",
    "bounded",
    "clean",
    "upward",
    "with_meta_around",
    "without_secrets",
    "wrapped",
]
