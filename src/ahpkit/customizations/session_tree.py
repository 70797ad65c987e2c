"""Holds the customizations of one session: where they were found, what was read, and what clients see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from ahpkit.customizations.assemble import Discovery, assemble
from ahpkit.customizations.details import Parsed, ServerDetail
from ahpkit.customizations.discovery import Location
from ahpkit.customizations.enablement_decisions import Here
from ahpkit.customizations.in_force import InForce
from ahpkit.customizations.session_entries import changes, decided, keeping_runtime
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import SessionAction


@dataclass(slots=True)
class ClientPlugin:
    """A plugin the active client published. `parsed` is None until it was read."""

    published: JsonObject
    client_id: str
    parsed: Parsed | None = None
    read: Parsed | None = None
    """As it was read, before it was decided which parts may run."""
    interrupted: bool = False
    """The client left before everything was read. It is read again when the client is back."""

    def decisions(self, entry: JsonObject, container: JsonObject | None) -> Sequence[JsonObject]:
        """What its publisher decided about it, or about a child that it bundles."""
        if container is None:
            return self.published.get("enablement") or ()
        children: JsonObject = self.published.get("childEnablement") or {}
        return children.get(entry["name"]) or children.get(entry["name"].rpartition(":")[2]) or ()

    @property
    def entry(self) -> JsonObject:
        """What clients see: under the publisher's id, marked with the publisher."""
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
    locations: list[Location] = field(default_factory=list[Location])
    is_located: bool = False
    """Whether `locations` are known. Until then the session shows what it showed before it rested."""
    is_reading: bool = False
    """Whether its places are being read. It is told of all of them at the end, and of those that it is the first to
    read."""
    expected: frozenset[str] = frozenset()
    """Locations that are shown as loading: there is something, or clients can save into them."""
    read: dict[str, Parsed | None] = field(default_factory=dict[str, "Parsed | None"])
    plugins: dict[str, ClientPlugin] = field(default_factory=dict[str, ClientPlugin])
    decisions: Callable[[], Here] = lambda: Here({}, {}, {}, "")
    """What was decided about customizations, as this session sees it."""
    configured: Sequence[tuple[JsonObject, ServerDetail]] = ()
    """Servers of the host's configuration."""
    crashed: set[str] = field(default_factory=set[str])
    """MCP servers that ended by themselves and are being started again."""
    discovery: Discovery = field(default_factory=lambda: Discovery([], {}, {}))

    def actions(self, state: Sequence[JsonObject]) -> list[SessionAction]:
        """What to dispatch so that the session shows what is known now."""
        return list(changes(self.entries(state), state))

    def entries(self, state: Sequence[JsonObject]) -> list[JsonObject]:
        """All containers, in order, for the session's state; keeps their details."""
        known, found = self.discovery.details, assemble(self._parsed())
        own = {entry["id"]: detail for entry, detail in self.configured}
        self.discovery = replace(found, details={**found.details, **own})
        done = {container["id"]: cast("JsonObject", container) for container in self.discovery.containers}
        shown = {entry["id"]: entry for entry in state}
        details, here = self.discovery.details, self.decisions()

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
        """What a turn may use. Nothing of it may run before it was judged."""
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
            elif location.id not in self.read and location.id in self.expected:
                yield cast("JsonObject", location.loading)

    def _published(self, done: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
        for id, plugin in self.plugins.items():
            entry = plugin.entry
            if id in done:
                entry = {**entry, **{key: done[id][key] for key in ("load", "children") if key in done[id]}}
            yield entry


__all__ = ["ClientPlugin", "SessionTree"]
