"""Joins the parsed containers of a session, in order of precedence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from ahpkit.customizations.details import Container, Detail, Parsed
from ahpkit.customizations.diagnostics import Diagnostic, load_state
from ahpkit.protocol.common.state import JsonObject


@dataclass(frozen=True, slots=True)
class Discovery:
    """The containers in order of precedence, and what stays on the host."""

    containers: list[Container]
    details: Mapping[str, Detail]
    diagnostics: Mapping[str, tuple[Diagnostic, ...]]
    """By container id."""
    roots: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where a container is on this machine, by id."""
    bare: frozenset[str] = frozenset()
    """Containers of the user's own servers, which are listed directly and not in a directory."""

    def entries(self) -> list[JsonObject]:
        """The containers as a session lists them, with bare servers in place of theirs."""
        listed: list[JsonObject] = []
        for container in cast("list[JsonObject]", self.containers):
            children: list[JsonObject] = container.get("children") or []
            listed += children if container["id"] in self.bare and children else [container]
        return listed


def assemble(parsed: Iterable[Parsed]) -> Discovery:
    """Join containers: a file is listed once, and two plugins with the same name are told apart."""
    containers: list[Container] = []
    details: dict[str, Detail] = {}
    diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
    roots: dict[str, str] = {}
    for entry in _named_once(_listed_once(parsed)):
        container_id = entry.container["id"]
        containers.append(entry.container)
        details.update(entry.details)
        diagnostics[container_id] = entry.diagnostics
        if entry.root is not None:
            roots[container_id] = entry.root
    return Discovery(containers, details, diagnostics, roots)


def _listed_once(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """Leave out children whose file an earlier container lists."""
    seen: dict[str, str] = {}
    for entry in parsed:
        twice = {child_id: seen[real] for child_id, real in entry.real_paths.items() if real in seen}
        for real in entry.real_paths.values():
            seen.setdefault(real, entry.container["name"])
        yield _without(entry, twice) if twice else entry


def _without(entry: Parsed, listed: Mapping[str, str]) -> Parsed:
    """The container without the children that another one lists, by child id."""
    children = entry.container.get("children", [])
    notes = [
        Diagnostic("note", "same-file", f"`{child['name']}` is the same file as in {listed[child['id']]}")
        for child in children
        if child["id"] in listed
    ]
    kept = [child for child in children if child["id"] not in listed]
    return replace(
        entry,
        container=cast("Container", {**entry.container, "children": kept}),
        details={key: detail for key, detail in entry.details.items() if key not in listed},
        diagnostics=(*entry.diagnostics, *notes),
    )


def _named_once(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """Warn on the second of two plugins with one name: what is called by name is found in the first."""
    seen: dict[str, str] = {}
    for entry in parsed:
        container = entry.container
        if container["type"] == "plugin":
            other = seen.setdefault(container["name"], container["uri"])
            if other != container["uri"]:
                message = (
                    f"another plugin is called `{container['name']}` too ({other}); its components are found first"
                )
                entry = _warned(entry, Diagnostic("warning", "plugin-twice", message))
        yield entry


def _warned(entry: Parsed, warning: Diagnostic) -> Parsed:
    diagnostics = (*entry.diagnostics, warning)
    container = cast("Container", {**entry.container, "load": load_state(diagnostics)})
    return replace(entry, container=container, diagnostics=diagnostics)


__all__ = ["Discovery", "assemble"]
