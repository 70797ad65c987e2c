"""Converts whole numbers that were written with a point to integers: `7.0` becomes 7.

Many JSON libraries have only one kind of number and write `7.0` or `1e3`. Which members are integers is read off the
wire types, so there is no list to keep. Everything else, and all free-form JSON, stays as it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin, is_typeddict

from ahpkit.protocol.type_schemas import discriminator, hints, literals
from ahpkit.wire.codec import whole

Fix = Callable[[Any], Any]
"""Returns a value with its integers made whole; objects and lists are changed in place."""


@cache
def whole_numbers(shape: Any) -> Fix | None:
    """What makes the integers of that shape whole; None when it has none."""
    return _fix(shape, {}) if any(map(_is_integer, _reachable(shape))) else None


def _is_integer(shape: Any) -> bool:
    return shape is int


def _parts(shape: Any) -> Iterable[Any]:
    """The types that a type is made of."""
    if is_typeddict(shape):
        return hints(shape).values()
    if get_origin(shape) is Literal:
        return ()
    parts = get_args(shape)
    return () if int in parts and float in parts else parts  # `int | float` accepts a float as it is.


def _reachable(shape: Any) -> list[Any]:
    found: list[Any] = [shape]
    seen = set[Any]()
    for one in found:  # It grows while we walk.
        new = [part for part in _parts(one) if part not in seen]
        seen.update(new)
        found += new
    return found


def _fix(shape: Any, made: dict[Any, Fix]) -> Fix | None:
    if shape is int:
        return whole
    if not any(map(_is_integer, _reachable(shape))):
        return None
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return _of_object(shape, made)
    if origin in (Annotated, NotRequired, Required):
        return _fix(arguments[0], made)
    if origin is list:
        return _of_list(_fix(arguments[0], made))
    if origin is dict:
        return _of_map(_fix(arguments[1], made))
    if origin in (Union, UnionType):
        return _of_union(arguments, made)
    return None


def _of_object(shape: Any, made: dict[Any, Fix]) -> Fix:
    if shape in made:
        return made[shape]
    members: list[tuple[str, Fix]] = []

    def fix(value: Any) -> Any:
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            for key, inner in members:
                if key in found:
                    found[key] = inner(found[key])
        return cast("Any", value)

    made[shape] = fix  # Before its members, which may refer back.
    fixes = ((key, _fix(hint, made)) for key, hint in hints(shape).items())
    members.extend((key, inner) for key, inner in fixes if inner is not None)
    return fix


def _of_list(inner: Fix | None) -> Fix:
    def fix(value: Any) -> Any:
        if isinstance(value, list) and inner is not None:
            items = cast("list[Any]", value)
            items[:] = map(inner, items)
        return cast("Any", value)

    return fix


def _of_map(inner: Fix | None) -> Fix:
    def fix(value: Any) -> Any:
        if isinstance(value, dict) and inner is not None:
            entries = cast("dict[str, Any]", value)
            entries.update({key: inner(item) for key, item in entries.items()})
        return cast("Any", value)

    return fix


def _of_union(members: tuple[Any, ...], made: dict[Any, Fix]) -> Fix:
    """Numbers by themselves; an object as the variant that it says it is."""
    objects = [member for member in members if is_typeddict(member)]
    others = [inner for member in members if not is_typeddict(member) and (inner := _fix(member, made))]
    key = discriminator(objects) if len(objects) > 1 else None
    by_value: dict[Any, list[Fix]] = {}
    for member in objects:
        for value in literals(member, key) if key else (None,):
            by_value.setdefault(value, []).extend(fix for fix in (_fix(member, made),) if fix)

    def fix(value: Any) -> Any:
        if isinstance(value, dict):
            tag = cast("dict[str, Any]", value).get(key) if key else None
            for inner in by_value.get(tag, ()) if isinstance(tag, str | bool | None) else ():
                inner(value)
            return cast("Any", value)
        for inner in others:
            value = inner(value)
        return value

    return fix


__all__ = ["whole", "whole_numbers"]
