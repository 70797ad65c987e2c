"""Checks names of protocol extensions, and which of them a peer announced. Pure.

An extension is called `example.com/analytics`: a namespace, a slash, a feature. Its methods begin with an underscore,
`_example.com/analytics/summary`, and it is announced under its name, or under its namespace alone, in `_meta` of a
capability object. Since 0.8 private names begin with `x-`: `x-example.com/analytics/summary` is the same method.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import LocalProtocolError

_NAME = re.compile(r"(?!_)[^\s/]+(/[^\s/]+)+")
_FEATURE = re.compile(r"(?!_)[^\s/]+(/[^\s/]+)*")
_NAMESPACED = re.compile(r"(?!_)[^\s/]+[./]\S+")


def check_name(name: str) -> None:
    """Raise unless it names an extension: `example.com/analytics` or `myproject/analytics`."""
    if not _NAME.fullmatch(name):
        raise LocalProtocolError(
            f"{name!r} is not an extension name; put a namespace before it, such as 'example.com/{name or 'feature'}'"
        )


def check_feature(feature: str) -> None:
    """Raise unless it can follow an extension's name as the name of a method."""
    if not _FEATURE.fullmatch(feature):
        raise LocalProtocolError(f"{feature!r} is not the last part of a method name; use a word such as 'summary'")


def check_method(method: str) -> None:
    """Raise unless it is the name of an extension's method: `_example.com/analytics/summary`."""
    name = extension_method(method)
    if not name.startswith("_") or not _NAME.fullmatch(name.removeprefix("_")):
        raise LocalProtocolError(f"{method!r} is not an extension method; use a name such as '_example.com/feature'")


def extension_method(method: str) -> str:
    """The name by which a method is registered: `_` and `x-` before a private name mean the same."""
    return f"_{method.removeprefix('x-')}" if method.startswith("x-") else method


def announced(capabilities: object) -> JsonObject:
    """What a capability object announces: the namespaced entries of its `_meta`, except those that are switched off."""
    meta = _object(_object(capabilities).get("_meta"))
    return {name: value for name, value in meta.items() if _NAMESPACED.fullmatch(name) and _says_yes(value)}


def announces(meta: Mapping[str, Any], method: str) -> bool:
    """Whether a `_meta` announces the extension that `method` belongs to."""
    parts = extension_method(method).removeprefix("_").split("/")
    names = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return any(_says_yes(meta.get(name)) for name in names)


def _says_yes(value: Any) -> bool:
    return value is not None and value is not False


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


__all__ = ["announced", "announces", "check_feature", "check_method", "check_name", "extension_method"]
