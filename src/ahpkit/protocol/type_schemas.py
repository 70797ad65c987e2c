"""Makes JSON Schemas from the wire types.

The `TypedDict`s are the only place where shapes are defined. The schemas are open where the protocol is:

- every object may have more members than we know; `_meta` is an object wherever it appears;
- in a union of objects one member tells the variants apart (`type`, `kind`, `status`, …): an unknown value passes,
  a known one must have its variant's shape, and errors are found inside that variant (`if`/`then`, not `oneOf`);
- a union marked with `CLOSED` lets no other value pass;
- any other `Literal` is closed, unless it stands in a union with `str`;
- integers are limited to what every JSON reader keeps exactly: ±(2**53 - 1). Counts and offsets are never negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

JsonSchema = dict[str, Any]

CLOSED: Final = "closed"
"""Marks a union whose discriminator has no other values: `Annotated[A | B, CLOSED]`."""

MAX_INTEGER = 2**53 - 1
"""The largest whole number that a double, and so every JSON reader, keeps exact."""

COUNTS = frozenset(
    {
        "clientSeq",
        "serverSeq",
        "fromSeq",
        "lastSeenServerSeq",
        "position",
        "offset",
        "rangeStart",
        "rangeEnd",
        "line",
        "character",
    }
)
"""Members that are sequence numbers or offsets, wherever they appear: from 0 on."""

_SCALARS: dict[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    None: "null",
}


def json_schema(shape: Any) -> JsonSchema:
    """A self-contained schema for a `TypedDict`, a union, or any type they are made of."""
    defs: dict[str, JsonSchema] = {}
    schema = _schema(shape, defs)
    return {**schema, "$defs": defs}


def _schema(shape: Any, defs: dict[str, JsonSchema]) -> JsonSchema:
    if shape is Any:
        return {}
    if shape is int:
        return {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER}
    if shape in _SCALARS:
        return {"type": _SCALARS[shape]}
    if is_typeddict(shape):
        return _reference(shape, defs)
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (NotRequired, Required):
        return _schema(arguments[0], defs)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], defs)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], defs)}
    if origin in (Union, UnionType):
        return _union(arguments, defs)
    if origin is Annotated:
        return _closed(arguments[0], defs)
    raise TypeError(f"{shape!r} is not a wire type")


def _reference(shape: Any, defs: dict[str, JsonSchema]) -> JsonSchema:
    name = shape.__name__
    if name not in defs:
        defs[name] = {}  # before its members, which may refer back
        properties = {key: _member(key, _schema(hint, defs)) for key, hint in hints(shape).items()}
        properties.setdefault("_meta", {"type": "object"})
        defs[name].update(type="object", required=required(shape), properties=properties)
    return {"$ref": f"#/$defs/{name}"}


def _member(key: str, schema: JsonSchema) -> JsonSchema:
    return {**schema, "minimum": 0} if key in COUNTS and schema.get("type") == "integer" else schema


@cache
def hints(shape: Any) -> dict[str, Any]:
    """The members of a `TypedDict` with their types."""
    return get_type_hints(shape, include_extras=True)


def required(shape: Any) -> list[str]:
    """The members that an object of this shape must have."""
    # `__required_keys__` cannot see through postponed annotations; the evaluated hints can.
    return [key for key, hint in hints(shape).items() if get_origin(hint) is not NotRequired]


def _closed(union: Any, defs: dict[str, JsonSchema]) -> JsonSchema:
    """The schema of a union of objects that lets only known values of its discriminator pass."""
    members = get_args(union)
    key = discriminator(members)
    if key is None:
        raise TypeError(f"{union!r} has nothing that tells its variants apart")
    known = [value for member in members for value in literals(member, key)]
    schema = _schema(union, defs)
    return {**schema, "properties": {key: {"enum": known}}}


def _union(members: Sequence[Any], defs: dict[str, JsonSchema]) -> JsonSchema:
    objects = [member for member in members if is_typeddict(member)]
    types = {kind for member in members if not is_typeddict(member) for kind in _scalars(member)}
    if "number" in types:
        types.discard("integer")
    if not objects:
        return {"type": _one_or_many(types)}
    variants = _variants(objects, defs)
    if not types:
        return variants
    return {"type": _one_or_many(types | {"object"}), "if": {"type": "object"}, "then": variants}


def _scalars(member: Any) -> set[str]:
    """The JSON types of a union's member that is not an object; for a literal, those of its values."""
    values = get_args(member) if get_origin(member) is Literal else ()
    return {_SCALARS[type(value)] for value in values} or {_SCALARS[member]}


def _one_or_many(types: set[str]) -> str | list[str]:
    return next(iter(types)) if len(types) == 1 else sorted(types)


def _variants(members: Sequence[Any], defs: dict[str, JsonSchema]) -> JsonSchema:
    if len(members) == 1:
        return _reference(members[0], defs)
    key = discriminator(members)
    if key is None:
        return {"anyOf": [_reference(member, defs) for member in members]}
    values = [literals(member, key) for member in members]
    by_value: dict[Any, list[Any]] = {}
    for member, own in zip(members, values, strict=True):
        for value in own:
            by_value.setdefault(value, []).append(member)
    cases = [
        {
            "if": {"type": "object", "properties": {key: {"const": value}}, "required": [key]},
            "then": _variants(group, defs),
        }
        for value, group in by_value.items()
    ]
    known = {"type": "string"} if isinstance(values[0][0], str) else {"type": "boolean"}
    return {"type": "object", "required": [key], "properties": {key: known}, "allOf": cases}


def discriminator(members: Sequence[Any]) -> str | None:
    """The member of all variants that tells them apart best: a literal in each, with the most different values."""
    keys = set[str].intersection(*(set(required(member)) for member in members))
    kinds = {key: {literals(member, key) for member in members} for key in keys}
    usable = [key for key, values in kinds.items() if () not in values and len(values) > 1]
    return max(usable, key=lambda key: (len(kinds[key]), key), default=None)


def literals(member: Any, key: str) -> tuple[Any, ...]:
    """The values that a member of a `TypedDict` may have, where they are fixed."""
    hint = hints(member).get(key)
    return get_args(hint) if get_origin(hint) is Literal else ()


__all__ = ["CLOSED", "COUNTS", "MAX_INTEGER", "JsonSchema", "discriminator", "hints", "json_schema", "literals"]
