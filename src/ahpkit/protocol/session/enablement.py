"""Computes which customizations of a session are in force, and who may invoke them. Pure.

A child is in force when its container and the child itself are enabled. Plugins and MCP servers have decisions by
scope, and the first, most specific one counts; others have `enabled`. An entry that says nothing is enabled. Skills and
agents may forbid the user or the model to invoke them; an absent flag forbids nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ahpkit.protocol.common.state import JsonObject

__all__ = [
    "DECIDED",
    "SCOPES",
    "SWITCH",
    "Customizations",
    "EffectiveEnablement",
    "PlacedCustomization",
    "decided_note",
    "effective",
    "find",
    "is_enabled",
    "sorted_decisions",
    "walk",
]

_D = TypeVar("_D", bound=Mapping[str, Any])
"""A decision."""

SCOPES = ("session", "workspace", "global")
"""The scopes of decisions, the most specific first."""

SWITCH = "ahpkit.dev/switch"
"""In `_meta` of `session/customizationToggled`: a plain switch, which the next session in the directory keeps."""

DECIDED = "ahpkit/enablement"
"""In the `_meta` of a customization, where the decision was not made in this session: its scope (`kind`), since when it
holds (`since`), what it says (`effective`), and all of that in words (`reason`)."""

Customizations = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""A session state, or a list of top-level customizations; both may have none."""


@dataclass(frozen=True, slots=True)
class PlacedCustomization:
    """A customization and where it is; `container` is None at top level."""

    entry: JsonObject
    container: JsonObject | None

    @property
    def effective(self) -> EffectiveEnablement:
        """Whether the customization is in force, taking its container into account."""
        enabled = is_enabled(self.entry) and (self.container is None or is_enabled(self.container))
        return EffectiveEnablement(
            enabled=enabled,
            why=self._why(),
            user_invocable=enabled and self.entry.get("disableUserInvocation") is not True,
            model_invocable=enabled and self.entry.get("disableModelInvocation") is not True,
        )

    def _why(self) -> str:
        if self.container is not None and is_enabled(self.entry) and not is_enabled(self.container):
            return f"{self.container['name']} is {_reason(self.container)}"
        return _reason(self.entry)

    def refusal(self, called: str) -> str:
        """Why a user cannot call it, and what helps. `called`: how the user called it."""
        if self.effective.model_invocable:
            return f"{called} is for the model alone; say in words what you need"
        if self.effective.enabled:
            return f"{called} cannot be called: neither users nor the model may invoke it"
        if self.container is not None and not is_enabled(self.container):
            where = f"`{self.container['name']}`, which is {_reason(self.container)}"
            return f"{called} is in {where}; switch that on to use it"
        return f"{called} is {_reason(self.entry)}; switch it on to use it"


@dataclass(frozen=True, slots=True)
class EffectiveEnablement:
    """What applies to one customization, taking its container into account."""

    enabled: bool
    why: str
    """Who decided that, in words: `off here since 2026-11-15 12:00`, `on: nobody switched it off`."""
    user_invocable: bool
    """The user may run the skill as a command, or select the agent."""
    model_invocable: bool
    """The model may use the skill, or delegate to the agent, by itself."""


def walk(source: Customizations) -> Iterator[PlacedCustomization]:
    """Every customization of `source`, each container before its children."""
    for entry in _top_level(source):
        yield PlacedCustomization(entry, None)
        for child in entry.get("children") or ():
            yield PlacedCustomization(child, entry)


def find(source: Customizations, customization_id: str) -> PlacedCustomization | None:
    """The customization with that id, at top level or in any container."""
    return next((placed for placed in walk(source) if placed.entry.get("id") == customization_id), None)


def effective(source: Customizations, customization_id: str) -> EffectiveEnablement | None:
    """What is in force for the customization with that id; None when there is none."""
    placed = find(source, customization_id)
    return None if placed is None else placed.effective


def _top_level(source: Customizations) -> Sequence[JsonObject]:
    entries: Any = source.get("customizations") if isinstance(source, Mapping) else source
    return entries or ()


def sorted_decisions(decisions: Sequence[_D]) -> list[_D]:
    """Decisions as they are published: the most specific first, one for each scope. Of several for one scope, the last
    one counts."""
    last = {decision["kind"]: decision for decision in decisions}
    return sorted(last.values(), key=lambda one: SCOPES.index(one["kind"]) if one["kind"] in SCOPES else len(SCOPES))


def decided_note(kind: str, enabled: bool, since: str | None, *, configured: bool = False) -> JsonObject:
    """The note under `DECIDED` about a decision. `configured`: the host's configuration made it."""
    where = "by configuration" if configured else "everywhere" if kind == "global" else "here"
    time = f" since {since[:16].replace('T', ' ')}" if since else ""
    note: JsonObject = {"kind": kind, "effective": enabled, "reason": f"{'on' if enabled else 'off'} {where}{time}"}
    return {**note, "since": since} if since else note


_PLACES = {"session": "in this session", "workspace": "in this directory", "global": "everywhere"}


def _reason(entry: Mapping[str, Any]) -> str:
    word = "on" if is_enabled(entry) else "off"
    meta: Mapping[str, Any] = entry.get("_meta") or {}
    decided: Mapping[str, Any] = meta.get(DECIDED) or {}
    decisions: Sequence[JsonObject] = entry.get("enablement") or ()
    kind: str | None = decisions[0]["kind"] if decisions else decided.get("kind")
    if "reason" in decided and decided.get("effective") is is_enabled(entry):
        return decided["reason"]
    if kind is None:
        return "on: nobody switched it off" if word == "on" else "switched off"
    return f"switched {word} {_PLACES.get(kind, kind)}"


def is_enabled(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is enabled by itself, whatever its container says."""
    decisions: Sequence[JsonObject] = entry.get("enablement") or ()
    return decisions[0].get("enabled") is not False if decisions else entry.get("enabled") is not False
