"""The schemas of the specification's releases, when they lie beside the checkout: what they say against a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import jsonschema_rs

from ahpkit.dialects.generations import OUR_ACTIONS
from ahpkit.protocol.registry import ACTIONS
from support.specification import specification

Json = dict[str, Any]


@cache
def definitions(release: str) -> Json:
    """All types of a release by name, read as they are meant.

    Enumerations and their members are missing in the schemas of 0.4.0: those of 0.5.0 stand in for them. The status is
    a set of bits, and not only one of the values that have a name.
    """
    found: Json = {"SessionStatus": {"type": "number"}}
    for path in specification(f"ahp-{release}", "schema"):
        text = path.read_text(encoding="utf-8").replace('"oneOf"', '"anyOf"')
        found = json.loads(text)["$defs"] | found
    if release == "0.4.0":
        found = _with_enumerations(found, definitions("0.5.0"))
    for mend in (_without_undefined, _with_any_tool_schema, _with_content_of_edits, _with_changes_of_watches):
        mend(found)
    return dict.fromkeys(references(found), True) | found


def _with_enumerations(found: Json, later: Json) -> Json:
    shapes = {name: _with_members(shape, later.get(name)) for name, shape in found.items()}
    return {name: later[name] for name in references(shapes) if name in later} | shapes


def _with_members(shape: Any, later: Any) -> Any:
    """A reference to a member of an enumeration becomes the text that the later release has in the same place."""
    if isinstance(shape, dict):
        known, newer = cast("Json", shape), cast("Json", later if isinstance(later, dict) else {})
        action = _ACTION_TYPE.fullmatch(known.get("$ref", ""))
        if action is not None:
            return {"const": "/".join(f"{word[0].lower()}{word[1:]}" for word in action.groups())}
        if "$ref" in known and "const" in newer:
            return newer
        return {key: _with_members(value, newer.get(key)) for key, value in known.items()}
    if isinstance(shape, list) and isinstance(later, list) and len(cast("Json", shape)) == len(cast("Json", later)):
        return [*map(_with_members, cast("list[Any]", shape), cast("list[Any]", later))]
    return cast("Any", shape)


_ACTION_TYPE = re.compile(r"#/\$defs/ActionType\.(ResourceWatch|[A-Z][a-z]+)(\w+)")
"""`ActionType.ChatTurnStarted` is `chat/turnStarted`, also when the later release lacks it."""

_UNDEFINED = {
    "ActionEnvelope": "origin",
    "ActiveTurn": "usage",
    "ChangesetOperationsChangedAction": "operations",
    "SessionActivityChangedAction": "activity",
    "SessionChangesetsChangedAction": "changesets",
    "SessionMetaChangedAction": "_meta",
    "Turn": "usage",
}
"""Members such as `usage: UsageInfo | undefined`, which became required in the schemas of the first releases."""


def _without_undefined(found: Json) -> None:
    for name, member in _UNDEFINED.items():
        required: list[str] = found.get(name, {}).get("required", [])
        if member in required:
            required.remove(member)


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


def _with_changes_of_watches(found: Json) -> None:
    """And of the changes that a watch reports."""
    changes: Json = found.get("ResourceWatchChangedAction", {}).get("properties", {}).get("changes", {})
    if changes.get("properties", {}).get("items") == {"type": "string"}:
        changes["properties"]["items"] = {"type": "array", "items": {"$ref": "#/$defs/ResourceChange"}}


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
def closed(release: str) -> Json:
    """The same types without any member that neither they nor the newest release have. Canvases are ours."""
    newest = definitions("1.0.0")
    return {name: _closed(shape, newest.get(name), name) for name, shape in definitions(release).items()}


def _closed(shape: Any, newer: Any, name: str = "") -> Any:
    if isinstance(shape, list):
        return [_closed(item, None) for item in cast("list[Any]", shape)]
    if not isinstance(shape, dict):
        return shape
    known, later = cast("Json", shape), cast("Json", newer if isinstance(newer, dict) else {})
    if not isinstance(known.get("properties"), dict):
        return {key: _closed(value, later.get(key)) for key, value in known.items()}
    members: Json = {"_meta": True} | later.get("properties", {}) | dict.fromkeys(_CANVASES.get(name, ()), True)
    members = dict.fromkeys(members, True) | known["properties"]
    members |= dict.fromkeys(members.keys() & {"inputSchema", "outputSchema"}, True)  # JSON schemas of anybody.
    inner = {key: _closed(value, later.get("properties", {}).get(key)) for key, value in members.items()}
    return {"additionalProperties": False, **known, "properties": inner}


_CANVASES = {
    "SessionState": ("canvasRegistry", "openCanvases", "canvasRequests"),
    "SessionActiveClient": ("canvasProviders", "canRenderCanvases"),
}


@cache
def validator(release: str, name: str, *, strictly: bool) -> Any:
    shapes = closed(release) if strictly else definitions(release)
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": shapes})


def wrong(release: str, name: str, value: Json, *, strictly: bool = False) -> list[str]:
    """What the schema of a release says against a value; nothing without the schema.

    `strictly`: also against members that the specification does not have, in this release or a later one.
    """
    if name not in definitions(release):
        return []
    return [
        f"{release} {name}{error.instance_path}: {error.message[:300]}"
        for error in validator(release, name, strictly=strictly).iter_errors(value)
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


def wrong_action(release: str, action: Json, *, strictly: bool = False) -> list[str]:
    """Of an action; one that the release does not have is wrong too. Extensions and our canvases are nowhere in it."""
    names = names_of_actions(release).get(action["type"], [])
    if not names and names_of_actions(release) and action["type"] in ACTIONS.keys() - OUR_ACTIONS:
        return [f"{release} has no action {action['type']}"]
    found = [wrong(release, name, action, strictly=strictly) for name in names]
    return [] if [] in found else [message for messages in found for message in messages]


__all__ = ["wrong", "wrong_action"]
