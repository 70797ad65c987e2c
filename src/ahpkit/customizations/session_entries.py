"""Builds the customization entries of a session's state, and the actions that update it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import cast

from ahpkit.customizations.build import is_top_level_id
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT, LEFT_OUT
from ahpkit.protocol.session.actions import SessionAction, session_customization_removed, session_customization_updated
from ahpkit.protocol.session.customizations import Customization
from ahpkit.protocol.session.enablement import DECIDED, decided_note

DecisionsOf = Callable[[JsonObject, JsonObject | None], Sequence[JsonObject]]
"""What was decided about an entry of a container (None at top level), the most specific first."""

_RUNTIME = ("state", "channel", "mcpApp")
"""Fields of a server that say how it runs; reading its declaration again does not change them."""

_FAILED = 3
_WORDS = 200
"""Failed servers that a load message names, and characters for each."""


def keeping_runtime(
    entry: JsonObject, before: JsonObject | None, same: Callable[[str], bool], crashed: Collection[str] = ()
) -> JsonObject:
    """An entry whose servers keep the state they are in, as long as their declaration is the same.

    A container with a server that failed is degraded until that server works again. `crashed`: servers that ended
    by themselves and are being started again.
    """
    if entry["type"] == "mcpServer":
        return _kept(entry, before, same)
    running = {child["id"]: child for child in (before or {}).get("children", ()) if child["type"] == "mcpServer"}
    if not running or "children" not in entry:
        return entry

    children = [_kept(child, running.get(child["id"]), same) for child in entry["children"]]
    return _following(entry, children, crashed)


def _kept(server: JsonObject, old: JsonObject | None, same: Callable[[str], bool]) -> JsonObject:
    if old is None or not same(server["id"]):
        return server
    fresh: JsonObject = {key: value for key, value in server.items() if key not in _RUNTIME}
    kept = {**fresh, **{key: old[key] for key in _RUNTIME if key in old}}
    noted: JsonObject = old.get("_meta") or {}
    runtime = {key: noted[key] for key in (LEFT_OUT, DIRECT) if key in noted}
    return {**kept, "_meta": {**(kept.get("_meta") or {}), **runtime}} if runtime else kept


def _following(entry: JsonObject, children: list[JsonObject], crashed: Collection[str]) -> JsonObject:
    """The container with these children, and a load state that tells of servers that failed while they ran."""
    declared = {child["id"] for child in entry["children"] if child.get("state", {}).get("kind") == "error"}
    failed = [
        f"MCP server {child['state']['error']['message']}".splitlines()[0][:_WORDS]
        for child in children
        if child.get("state", {}).get("kind") == "error" and child["id"] not in declared
    ]
    failed += [
        f"MCP server {child['name']}: it ended, and is started again" for child in children if child["id"] in crashed
    ]
    load: JsonObject = entry.get("load") or {}
    if not failed or load.get("kind") not in ("loaded", "degraded"):
        return {**entry, "children": children}
    message = "; ".join(filter(None, [load.get("message"), *failed[:_FAILED]]))
    return {**entry, "children": children, "load": {"kind": "degraded", "message": message}}


def is_ours(entry: JsonObject) -> bool:
    """Whether an entry was found on disk, configured, or published by a client; other features add their own
    entries."""
    return is_top_level_id(entry["id"]) or "clientId" in entry


def decided(entry: JsonObject, decisions_of: DecisionsOf = lambda entry, container: ()) -> JsonObject:
    """A container for the state, with the decisions about it and its children. Reading it again does not change
    them."""
    after = _decided(entry, decisions_of(entry, None))
    if "children" in after:
        after = {**after, "children": [_decided(child, decisions_of(child, entry)) for child in after["children"]]}
    return after


def _decided(entry: JsonObject, decisions: Sequence[JsonObject]) -> JsonObject:
    """Plugins and servers carry decisions by scope, others a plain switch."""
    plain = entry["type"] not in ("plugin", "mcpServer")
    after = entry if plain else {key: value for key, value in entry.items() if key != "enabled"}
    if not decisions:
        off = not plain and entry.get("enabled") is False
        return {**after, "enablement": [{"kind": "session", "enabled": False}]} if off else after
    first = decisions[0]
    if plain:
        after = {**after, "enabled": first["enabled"]}
    else:
        after["enablement"] = [{key: one[key] for key in ("kind", "uri", "enabled") if key in one} for one in decisions]
    if first["kind"] == "session" and not first.get("taken"):
        return after
    note = decided_note(first["kind"], first["enabled"], first.get("since"), configured=first.get("configured") is True)
    return {**after, "_meta": {**(entry.get("_meta") or {}), DECIDED: note}}


def changes(wanted: Sequence[JsonObject], state: Sequence[JsonObject]) -> Iterator[SessionAction]:
    """Actions that make `state` show `wanted`, leaving alone what is not ours."""
    shown = {entry["id"]: entry for entry in state}
    ids = {entry["id"] for entry in wanted}
    for entry in state:
        if is_ours(entry) and entry["id"] not in ids:
            yield session_customization_removed(id=entry["id"])
    for entry in wanted:
        before = shown.get(entry["id"])
        if before != entry:
            if before is not None and _kind(before) == "error" and _kind(entry) != "error":
                yield _updated(_loading(entry))  # A container in `error` has to be loaded again.
            yield _updated(entry)


def _updated(entry: JsonObject) -> SessionAction:
    return session_customization_updated(customization=cast("Customization", entry))


def _loading(entry: JsonObject) -> JsonObject:
    """A container that is about to be read: no children yet."""
    return {**{key: value for key, value in entry.items() if key != "children"}, "load": {"kind": "loading"}}


def _kind(entry: JsonObject) -> str:
    return entry.get("load", {}).get("kind", "")


__all__ = ["DecisionsOf", "changes", "decided", "is_ours", "keeping_runtime"]
