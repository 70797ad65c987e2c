"""Stores what people decided about customizations, by scope: for a session, for a directory, everywhere. Durable.

The host owns the decisions. They are stored by URI and name (`key_of`), not by id, so that a decision holds in a later
session in which the same plugin has another id. A plain switch (the only kind in clients before 0.8) is a decision for
its session. The next session in that directory begins with the same switch, and shows since when it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpkit.host.feature import Values
from ahpkit.platform.files import local_path
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import SCOPES

_SESSION = "customizations/decided/session/"
_WORKSPACE = "customizations/decided/workspace/"
_GLOBAL = "customizations/decided/global"
_DEFAULTS = "customizations/decided/defaults/"
"""Prefix of the durable value with the switches of a directory's last session."""

_OLD_SESSION = "customizations/session/"
_OLD_DEFAULTS = "customizations/workspace/"
"""Prefix of the switches that an earlier version stored by id."""

Made = Mapping[str, JsonObject]
"""Decisions of one scope by key: `{enabled, since?, taken?}`. `taken` is one from an earlier session."""


def key_of(entry: JsonObject, container: JsonObject | None) -> str:
    """The key of a customization, independent of its id: its URI; for a bundled child, its container's URI and its
    name."""
    if container is None:
        return entry.get("uri") or f"{entry['type']} {entry['name']}"
    return f"{container['uri']} {entry['type']} {entry['name']}"


@dataclass(frozen=True, slots=True)
class SessionDecisions:
    """The decisions that count for a session."""

    session: Made
    workspace: Made
    everywhere: Made
    directory: str
    off: Collection[str] = ()
    """Names of customizations that the host's configuration switches off."""

    def of(self, entry: JsonObject, container: JsonObject | None, published: Sequence[JsonObject] = ()) -> list[Any]:
        """The decisions about a customization, the most specific first, each with `since` where that is known.

        `published` is the decision of its publisher, which holds everywhere unless the host has a more specific one.
        """
        key = key_of(entry, container)
        said = {one["kind"]: one for one in published}
        own = {"session": self.session.get(key), "workspace": self.workspace.get(key)}
        own["global"] = said.get("global") or self.everywhere.get(key)
        found = {kind: own.get(kind) or said.get(kind) for kind in SCOPES}
        decisions = [self._decision(kind, made) for kind, made in found.items() if made is not None]
        if not decisions and entry["name"] in self.off:
            return [{"kind": "global", "enabled": False, "configured": True}]
        return decisions

    def _decision(self, kind: str, made: JsonObject) -> JsonObject:
        decision: JsonObject = {"kind": kind, "enabled": made["enabled"]}
        if kind == "workspace":
            decision["uri"] = self.directory
        if "since" in made:
            decision |= {"since": made["since"], "taken": made.get("taken", False)}
        return decision


class Decisions:
    """All decisions of a host. With `remember` a new session begins as the last one in its directory was left.

    `off` names what the configuration switches off; it counts until somebody decides otherwise.
    """

    def __init__(
        self, values: Values, *, remember: bool, now: Callable[[], int], off: Collection[str] = frozenset()
    ) -> None:
        self._values = values
        self._off = off
        self._remember = remember
        self._now = now

    def here(self, session: str, directory: str) -> SessionDecisions:
        made = (self._made(_SESSION + session), self._made(_WORKSPACE + directory), self._made(_GLOBAL))
        return SessionDecisions(*made, directory, self._off)

    def begin(self, session: str, directory: str) -> None:
        """A session without decisions takes over the switches of the last session in its directory."""
        if self._remember and self._values.get(_SESSION + session) is None:
            defaults = self._made(_DEFAULTS + directory)
            if defaults:
                taken = {key: {**made, "taken": True} for key, made in defaults.items()}
                self._values.set(_SESSION + session, taken)

    def convert(self, session: str, directory: str, keys: Mapping[str, str]) -> None:
        """Take over the switches that an earlier version stored by id; `keys` maps ids to keys."""
        for old, new in (
            (_OLD_SESSION + session, _SESSION + session),
            (_OLD_DEFAULTS + directory, _DEFAULTS + directory),
        ):
            kept: Mapping[str, bool] = self._values.get(old) or {}
            found = {keys[id]: {"enabled": enabled} for id, enabled in kept.items() if id in keys}
            if found:
                self._values.set(new, {**found, **self._made(new)})
                self._values.set(old, {id: enabled for id, enabled in kept.items() if id not in keys} or None)

    def decide(
        self, session: str, directory: str, key: str, decisions: Sequence[Mapping[str, Any]], *, switch: bool
    ) -> set[str]:
        """Replace the decisions about a customization; returns the scopes in which something changed.

        A decision for another directory than the session's is stored for that directory. Then the result contains
        "elsewhere" too. `switch`: it was a plain switch. A switch that was taken over from an earlier session is
        forgotten once there is a new decision, and one of this directory once there is one of a wider scope.
        """
        there = {uri: one["enabled"] for one in decisions if (uri := _other_directory(one, directory))}
        said = {one["kind"]: one["enabled"] for one in decisions if not _other_directory(one, directory)}
        taken = self._made(_SESSION + session).get(key, {}).get("taken", False)
        changed = {
            kind
            for kind, place in (
                ("session", _SESSION + session),
                ("workspace", _WORKSPACE + directory),
                ("global", _GLOBAL),
            )
            if self._replace(place, key, said.get(kind))
        }
        if self._remember and (switch or changed - {"session"} or (taken and changed)):
            self._replace(_DEFAULTS + directory, key, said.get("session") if switch else None)
        for uri, enabled in there.items():
            if self._replace(_WORKSPACE + uri, key, enabled):
                changed.add("elsewhere")
        return changed

    def forget_session(self, session: str) -> None:
        self._values.set(_SESSION + session, None)
        self._values.set(_OLD_SESSION + session, None)

    def _made(self, place: str) -> Made:
        return self._values.get(place) or {}

    def _replace(self, place: str, key: str, enabled: bool | None) -> bool:
        known = dict(self._made(place))
        before = known.pop(key, None)
        if (None if before is None else before["enabled"]) is enabled and not (before or {}).get("taken"):
            return False
        if enabled is not None:
            known[key] = {"enabled": enabled, "since": iso_time(self._now())}
        self._values.set(place, known or None)
        return True


def _other_directory(decision: Mapping[str, Any], directory: str) -> str | None:
    """The directory of a decision, if it is not `directory`."""
    path = local_path(str(decision.get("uri"))) if decision["kind"] == "workspace" else None
    return path.as_uri() if path is not None and path.as_uri() != directory else None


__all__ = ["Decisions", "SessionDecisions", "key_of"]
