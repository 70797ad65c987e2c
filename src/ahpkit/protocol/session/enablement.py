"""Which customizations of a session are in force, and who may invoke them. Pure; knows no plugins and no files.

A child is in force when its container and the child itself are enabled. Plugins and MCP servers have decisions by
scope, and the first, most specific one counts; others have `enabled`. What says nothing is enabled. Skills and agents
may forbid the user or the model to invoke them; an absent flag forbids nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpkit.protocol.common.state import JsonObject

__all__ = ["Customizations", "Effective", "Placed", "effective", "find", "is_enabled", "walk"]

Customizations = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""A session state, or a list of top-level customizations; both may have none."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A customization and where it is; `container` is None at top level."""

    entry: JsonObject
    container: JsonObject | None

    @property
    def effective(self) -> Effective:
        """What is in force, taking the container into account."""
        enabled = is_enabled(self.entry) and (self.container is None or is_enabled(self.container))
        return Effective(
            enabled=enabled,
            user_invocable=enabled and self.entry.get("disableUserInvocation") is not True,
            model_invocable=enabled and self.entry.get("disableModelInvocation") is not True,
        )


@dataclass(frozen=True, slots=True)
class Effective:
    """What applies to one customization once its container has had its say."""

    enabled: bool
    user_invocable: bool
    """The user may run the skill as a command, or select the agent."""
    model_invocable: bool
    """The model may use the skill, or delegate to the agent, of its own accord."""


def walk(source: Customizations) -> Iterator[Placed]:
    """Every customization of `source`, each container before its children."""
    for entry in _top_level(source):
        yield Placed(entry, None)
        for child in entry.get("children") or ():
            yield Placed(child, entry)


def find(source: Customizations, customization_id: str) -> Placed | None:
    """The customization with that id, at top level or in any container."""
    return next((placed for placed in walk(source) if placed.entry.get("id") == customization_id), None)


def effective(source: Customizations, customization_id: str) -> Effective | None:
    """What is in force for the customization with that id; None when there is none."""
    placed = find(source, customization_id)
    return None if placed is None else placed.effective


def _top_level(source: Customizations) -> Sequence[JsonObject]:
    entries: Any = source.get("customizations") if isinstance(source, Mapping) else source
    return entries or ()


def is_enabled(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is enabled by itself, whatever its container says."""
    decisions: Sequence[JsonObject] = entry.get("enablement") or ()
    return decisions[0]["enabled"] is not False if decisions else entry.get("enabled") is not False
