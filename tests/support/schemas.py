"""What is wrong with a value, by the types of a release of the protocol.

Two sources are asked. Our own: the types of 1.0.0 and 0.4.0 from the source, and `members.txt` for the releases between
them, of which 0.8.0 published no schema. And the published schemas, when they are beside the checkout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Union, cast, is_typeddict

import jsonschema_rs

from ahpkit.dialects.generations import OUR_ACTIONS
from ahpkit.dialects.v0_4 import registry as oldest
from ahpkit.protocol import registry as newest
from ahpkit.protocol.registry import ACTIONS
from ahpkit.protocol.type_schemas import json_schema
from support.specification import specification

Json = dict[str, Any]

# -- our own types ---------------------------------------------------------------------------------------------------

MEMBERS = Path(__file__).with_name("members.txt").read_text(encoding="utf-8")
"""What differs from 1.0.0 in the releases after 0.4.0.

`0.5.1 new: …` names the types that a release brought. `0.5.0-0.5.2 Turn: …` lists the members of a type in a range of
releases, `?` after those that may be absent.
"""

RELEASES = ("0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.9.0", "1.0.0")

_ONLY_THEN: Json = {"ChangesetFilesReviewedChangedAction": {"type": {"const": "changeset/filesReviewedChanged"}}}
"""Members of types that neither 0.4.0 nor 1.0.0 has."""


@cache
def own_definitions(release: str) -> Json:
    """All types of a release by name, from our own tables; nothing for a release that published no schema."""
    if release not in RELEASES:
        return {}
    if release in ("0.4.0", "1.0.0"):
        return _shapes_of(oldest.TYPES if release == "0.4.0" else newest.TYPES)
    found = dict(own_definitions("1.0.0"))
    for row in MEMBERS.splitlines():
        head, names = row.split(": ", 1)
        span, name = head.split(" ")
        first, last = span.split("-") if "-" in span else (span, "1.0.0")
        if name == "new" and release < first:
            found = {known: shape for known, shape in found.items() if known not in names.split()}
        elif name != "new" and first <= release <= last:
            found[name] = _shape_then(name, names.split())
    return dict.fromkeys(references(found), True) | found


def _shapes_of(types: Mapping[str, Any]) -> Json:
    objects = tuple(shape for shape in types.values() if is_typeddict(shape))
    return json_schema(Union[objects])["$defs"]  # noqa: UP007  # A union of what a table lists.


def _shape_then(name: str, members: list[str]) -> Json:
    """A type as it was in an earlier release. The type of a member that 1.0.0 lacks is taken from 0.4.0."""
    known: Json = {"_meta": {"type": "object"}, **_ONLY_THEN.get(name, {})}
    for release in ("0.4.0", "1.0.0"):
        known |= own_definitions(release).get(name, {}).get("properties", {})
    shown = {member.removesuffix("?"): known.get(member.removesuffix("?"), True) for member in members}
    required = [member for member in members if not member.endswith("?")]
    return {"type": "object", "required": required, "properties": {"_meta": known["_meta"], **shown}}


@cache
def own_closed(release: str) -> Json:
    """The same types without any member that neither they nor the newest release have."""
    later = own_definitions("1.0.0")
    return {name: _own_closed(shape, later.get(name, {})) for name, shape in own_definitions(release).items()}


def _own_closed(shape: Any, later: Json) -> Any:
    if not isinstance(shape, dict):
        return shape
    known = cast("Json", shape)
    members: Json = dict.fromkeys(later.get("properties", {}), True) | known["properties"]
    return {**known, "properties": members, "additionalProperties": False}


# -- the published schemas -------------------------------------------------------------------------------------------


@cache
def definitions(release: str) -> Json:
    """All types of a release by name, with mistakes of the published schemas corrected; few without the schemas.

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
    """The contents of a changed file became texts in the same way."""
    for side in ("before", "after"):
        members: Json = found.get("FileEdit", {}).get("properties", {}).get(side, {}).get("properties", {})
        if members.get("content") == {"type": "string"}:
            members["content"] = {"$ref": "#/$defs/ContentRef"}


def _with_changes_of_watches(found: Json) -> None:
    """And so did the changes that a watch reports."""
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


# -- both ------------------------------------------------------------------------------------------------------------


def sources(release: str, *, strictly: bool = False) -> list[Json]:
    """The types of a release by name: our own ones, and the published ones when they are there."""
    ours, published = (own_closed, closed) if strictly else (own_definitions, definitions)
    return [shapes for shapes in (ours(release), published(release)) if len(shapes) > 1]


@cache
def validators(release: str, name: str, *, strictly: bool) -> list[Any]:
    """One for each source that has the type."""
    return [
        jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": shapes})
        for shapes in sources(release, strictly=strictly)
        if name in shapes
    ]


def wrong(release: str, name: str, value: Json, *, strictly: bool = False) -> list[str]:
    """What is wrong with a value; nothing for a type that the release does not have.

    `strictly`: also members that the specification does not have, in this release or a later one.
    """
    return [
        f"{release} {name}{error.instance_path}: {error.message[:300]}"
        for validator in validators(release, name, strictly=strictly)
        for error in validator.iter_errors(value)
    ]


@cache
def names_of_actions(release: str) -> Json:
    """Action type → names of its shapes, where a source says so in one place."""
    found: Json = {}
    for shapes in sources(release):
        for name, shape in shapes.items():
            if isinstance(shape, dict) and name.endswith("Action"):
                kind = cast("Json", shape).get("properties", {}).get("type", {})
                for value in [kind["const"]] if "const" in kind else kind.get("enum", ()):
                    found.setdefault(value, {})[name] = True
    return found


def wrong_action(release: str, action: Json, *, strictly: bool = False) -> list[str]:
    """What is wrong with an action; one of another release is wrong. Extensions and our canvases are not checked."""
    names = names_of_actions(release).get(action["type"], ())
    if not names and names_of_actions(release) and action["type"] in ACTIONS.keys() - OUR_ACTIONS:
        return [f"{release} has no action {action['type']}"]
    found = [wrong(release, name, action, strictly=strictly) for name in names]
    return [] if [] in found else [message for messages in found for message in messages]


def is_later(release: str, name: str) -> bool:
    """Whether a type came after a release."""
    then = own_definitions(release)
    return bool(then) and name in own_definitions("1.0.0") and name not in then


__all__ = ["is_later", "own_definitions", "wrong", "wrong_action"]
