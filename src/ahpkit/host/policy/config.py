"""Checks changes of configuration values against their schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ahpkit.protocol.common.state import ConfigPropertySchema, ConfigSchema, JsonObject
from ahpkit.protocol.json_schema import find_problem
from ahpkit.protocol.root import RootConfigState
from ahpkit.protocol.session.state import SessionConfigPropertySchema, SessionConfigSchema, SessionConfigState

_Values = Mapping[str, object]

Mutable = Callable[[Any], bool]
"""Whether the property with this schema may be changed now."""


def check_change(
    config: SessionConfigState | RootConfigState | None, changes: _Values, *, replace: bool, mutable: Mutable
) -> str | None:
    """Why `changes` may not be merged into `config.values`, or replace them."""
    if config is None:
        return "there is no configuration to change"
    schema, values = config["schema"], config["values"]
    for name, value in changes.items():
        if (reason := _check_property(schema["properties"], values, name, value, mutable)) is not None:
            return reason
    return _check_dropped(schema, values, changes, mutable) if replace else None


def check_value(name: str, schema: ConfigPropertySchema, value: object) -> str | None:
    """Why `value` does not fit property `name`, as a sentence that names the place."""
    problem = find_problem(_validated_part(schema), value)
    return f"{name}{problem}" if problem else None


def _check_property(
    properties: Mapping[str, ConfigPropertySchema], values: _Values, name: str, value: object, mutable: Mutable
) -> str | None:
    schema = properties.get(name)
    if schema is None:
        return f"there is no configuration property {name!r}"
    if name in values and _same(values[name], value):
        return None
    if not mutable(schema):
        return f"configuration property {name!r} cannot be changed now"
    return check_value(name, schema, value)


def _check_dropped(
    schema: SessionConfigSchema | ConfigSchema, values: _Values, changes: _Values, mutable: Mutable
) -> str | None:
    properties = schema["properties"]
    for name in values.keys() - changes.keys():
        if name in properties and not mutable(properties[name]):
            return f"configuration property {name!r} cannot be changed now, so a replacement must keep its value"
    for name in schema.get("required", ()):
        if name not in changes:
            return f"configuration property {name!r} is required, so a replacement must give its value"
    return None


def all_values(schema: SessionConfigSchema) -> JsonObject:
    """A schema for all values together."""
    properties = {name: _validated_part(one) for name, one in schema["properties"].items()}
    return {**schema, "properties": properties}


def _validated_part(schema: ConfigPropertySchema | SessionConfigPropertySchema) -> JsonObject:
    """The part of a property's schema that values are checked against. The values of an `enumDynamic` property are only
    suggestions."""
    return {key: value for key, value in schema.items() if key != "enum" or not schema.get("enumDynamic")}


def _same(left: object, right: object) -> bool:
    """Equal as JSON: `true` is not 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


__all__ = ["Mutable", "all_values", "check_change"]
