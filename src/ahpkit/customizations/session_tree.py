"""Holds the customizations of one session: their places, the read content, and the entries for clients.

The functions before the class are pure: they build the entries of the session's state, and the actions that update it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ahpkit.customizations.details import Parsed, ServerDetail
from ahpkit.customizations.discovery import Discovery, Location, assemble
from ahpkit.customizations.enablement_decisions import SessionDecisions
from ahpkit.customizations.in_force import InForce
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import DIRECT, LEFT_OUT
from ahpkit.protocol.session.actions import SessionAction, session_customization_removed, session_customization_updated
from ahpkit.protocol.session.customizations import Customization, is_top_level_id
from ahpkit.protocol.session.enablement import DECIDED, decided_note

DecisionsOf = Callable[[JsonObject, JsonObject | None], Sequence[JsonObject]]
"""Gets a container (None at top level) and an entry; returns the decisions about the entry, the most specific first."""

_RUNTIME = ("state", "channel", "mcpApp")
"""Fields of a server that say how it runs; reading its declaration again does not change them."""

_FAILED = 3
_WORDS = 200
"""The number of failed servers that a load message names, and the characters for each."""


def keeping_runtime(
    entry: JsonObject, before: JsonObject | None, same: Callable[[str], bool], crashed: Collection[str] = ()
) -> JsonObject:
    """An entry whose servers keep their present state, as long as their declaration is the same.

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
    """The container with these children, and a load state that names the servers that failed while they ran."""
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
        if plain or entry.get("enabled") is not False:
            return after
        decisions = [{"kind": "session", "enabled": False, "taken": True, "configured": True}]
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
    """Actions after which `state` shows `wanted`. Entries of other features are not changed."""
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


@dataclass(slots=True)
class ClientPlugin:
    """A plugin the active client published. `parsed` is None until it was read."""

    published: JsonObject
    client_id: str
    parsed: Parsed | None = None
    read: Parsed | None = None
    """The content that was read, before it was judged which parts may run."""
    interrupted: bool = False
    """The client left before everything was read. It is read again when the client is back."""

    def decisions(self, entry: JsonObject, container: JsonObject | None) -> Sequence[JsonObject]:
        """The publisher's decisions about the plugin, or about a child in it."""
        if container is None:
            return self.published.get("enablement") or ()
        children: JsonObject = self.published.get("childEnablement") or {}
        return children.get(entry["name"]) or children.get(entry["name"].rpartition(":")[2]) or ()

    @property
    def entry(self) -> JsonObject:
        """The entry for clients: under the publisher's id, marked with the publisher."""
        base: JsonObject = {key: self.published[key] for key in ("type", "id", "uri", "name")}
        base["enabled"] = True
        if "icons" in self.published:
            base["icons"] = self.published["icons"]
        base |= {"clientId": self.client_id, "load": {"kind": "loading"}}
        if self.parsed is None:
            return base
        return {**base, **self.parsed.container, "enabled": base["enabled"], "uri": base["uri"]}


@dataclass(slots=True)
class SessionTree:
    """One session. `read` holds what was read by location; a location that is missing there is still loading."""

    uri: str
    workspace: Path
    decisions: Callable[[str, str], SessionDecisions]
    """Gets the URIs of a session and its workspace; returns the decisions that count there."""
    locations: list[Location] = field(default_factory=list[Location])
    is_located: bool = False
    """Whether `locations` are known. Until then the session shows the entries from before it rested."""
    is_reading: bool = False
    """Whether its places are being read. It gets all of them at the end, and earlier those that it is the first to
    read."""
    expected: frozenset[str] = frozenset()
    """Locations that are shown as loading: they exist, or clients can save into them."""
    read: dict[str, Parsed | None] = field(default_factory=dict[str, "Parsed | None"])
    plugins: dict[str, ClientPlugin] = field(default_factory=dict[str, ClientPlugin])
    configured: Sequence[tuple[JsonObject, ServerDetail]] = ()
    """Servers of the host's configuration."""
    crashed: set[str] = field(default_factory=set[str])
    """MCP servers that ended by themselves and are being started again."""
    discovery: Discovery = field(default_factory=lambda: Discovery([], {}, {}))

    def actions(self, state: Sequence[JsonObject]) -> list[SessionAction]:
        """The actions after which the session shows the present customizations."""
        return list(changes(self.entries(state), state))

    def entries(self, state: Sequence[JsonObject]) -> list[JsonObject]:
        """All containers, in order, for the session's state; keeps their details."""
        known, found = self.discovery.details, assemble(self._parsed())
        own = {entry["id"]: detail for entry, detail in self.configured}
        self.discovery = replace(found, details={**found.details, **own})
        done = {container["id"]: cast("JsonObject", container) for container in self.discovery.containers}
        shown = {entry["id"]: entry for entry in state}
        details, here = self.discovery.details, self.decisions(self.uri, self.workspace.as_uri())

        def decisions_of(entry: JsonObject, container: JsonObject | None) -> Sequence[JsonObject]:
            plugin = self.plugins.get((container or entry)["id"])
            return here.of(entry, container, [] if plugin is None else plugin.decisions(entry, container))

        return [
            keeping_runtime(
                decided(entry, decisions_of),
                shown.get(entry["id"]),
                lambda child: known.get(child) == details.get(child),
                self.crashed,
            )
            for entry in (*self._located(done), *self._published(done), *(entry for entry, _ in self.configured))
        ]

    def in_force(self, state: Sequence[JsonObject], workspace: Path) -> InForce:
        """The customizations for a turn. None may run before it was judged."""
        return InForce(state, self.discovery.details, self.discovery.roots, str(workspace), {})

    def _parsed(self) -> Iterator[Parsed]:
        for location in self.locations:
            if (parsed := self.read.get(location.id)) is not None:
                yield parsed
        for plugin in self.plugins.values():
            if plugin.parsed is not None:
                yield plugin.parsed

    def _located(self, done: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
        for location in self.locations:
            if location.id in done and location.bare and done[location.id].get("children"):
                yield from done[location.id]["children"]
            elif location.id in done:
                yield done[location.id]
            elif self._is_loading(location):
                yield cast("JsonObject", location.loading)

    def shows(self, location: Location) -> bool:
        """Whether the session shows an entry for a place: its content, or that it is being read."""
        return self.read.get(location.id) is not None or self._is_loading(location)

    def _is_loading(self, location: Location) -> bool:
        return location.id not in self.read and location.id in self.expected

    def _published(self, done: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
        for id, plugin in self.plugins.items():
            entry = plugin.entry
            if id in done:
                entry = {**entry, **{key: done[id][key] for key in ("load", "children") if key in done[id]}}
            yield entry


__all__ = ["ClientPlugin", "DecisionsOf", "SessionTree", "changes", "decided", "is_ours", "keeping_runtime"]
