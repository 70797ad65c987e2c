"""The schemas of the specification's releases, when they lie beside the checkout: what they say against a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import jsonschema_rs

from support.specification import specification

Json = dict[str, Any]


@cache
def definitions(release: str) -> Json:
    """All types of a release by name, read as they are meant.

    Names of 0.4 to 0.5.1 that lead nowhere (members of enumerations) match everything, so variants are not told apart
    and more than one may fit. The status is a set of bits, and not only one of the values that have a name.
    """
    found: Json = {"SessionStatus": {"type": "number"}}
    for path in specification(f"ahp-{release}", "schema"):
        text = path.read_text(encoding="utf-8").replace('"oneOf"', '"anyOf"')
        found = json.loads(text)["$defs"] | found
    for mend in (_without_usage, _with_any_tool_schema, _with_content_of_edits):
        mend(found)
    return dict.fromkeys(references(found), True) | found


def _without_usage(found: Json) -> None:
    """`usage: UsageInfo | undefined` became a required member in the schemas of the first releases."""
    for name in ("Turn", "ActiveTurn"):
        required: list[str] = found.get(name, {}).get("required", [])
        if "usage" in required:
            required.remove("usage")


def _with_any_tool_schema(found: Json) -> None:
    """The members of a tool's JSON schema became texts in the schemas of the first releases."""
    for key in ("inputSchema", "outputSchema"):
        members: Json = found.get("ToolDefinition", {}).get("properties", {}).get(key, {}).get("properties", {})
        for name in ("properties", "required"):
            if members.get(name) == {"type": "string"}:
                members[name] = True


def _with_content_of_edits(found: Json) -> None:
    """The same became of the contents of a changed file."""
    for side in ("before", "after"):
        members: Json = found.get("FileEdit", {}).get("properties", {}).get(side, {}).get("properties", {})
        if members.get("content") == {"type": "string"}:
            members["content"] = {"$ref": "#/$defs/ContentRef"}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            if key == "$ref":
                yield str(inner).removeprefix("#/$defs/")
            yield from references(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from references(inner)


@cache
def validator(release: str, name: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": definitions(release)})


def wrong(release: str, name: str, value: Json) -> list[str]:
    """What the schema of a release says against a value; nothing without the schema."""
    if name not in definitions(release):
        return []
    return [
        f"{release} {name}{error.instance_path}: {error.message[:300]}"
        for error in validator(release, name).iter_errors(value)
    ]


@cache
def names_of_actions(release: str) -> Json:
    """Action type → names of its shapes, where the schema says so in one place."""
    found: Json = {}
    for name, shape in definitions(release).items():
        if isinstance(shape, dict) and name.endswith("Action"):
            members = cast("Json", shape).get("properties", {})
            if (kind := members.get("type", {}).get("const")) is not None:
                found.setdefault(kind, []).append(name)
    return found


def wrong_action(release: str, action: Json) -> list[str]:
    names = names_of_actions(release).get(action["type"], [])
    found = [wrong(release, name, action) for name in names]
    return [] if [] in found else [message for messages in found for message in messages]


__all__ = ["wrong", "wrong_action"]
