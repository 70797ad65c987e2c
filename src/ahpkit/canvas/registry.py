"""The aggregated registry of a session, and finding the canvas somebody means. Pure: knows no provider."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ahpkit.canvas.errors import AMBIGUOUS, INVALID_INPUT, NO_HANDLER, NOT_FOUND, CanvasError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import find_problem


def server_entries(extension_id: str, extension_name: str | None, declarations: Iterable[Any]) -> list[JsonObject]:
    """Registry entries of a provider on the host's side."""
    named = {"extensionName": extension_name} if extension_name else {}
    return [{"extensionId": extension_id, **named, **one, "source": "server"} for one in declarations]


def client_extension_id(client_id: str) -> str:
    return f"client:{client_id}"


def client_entries(active_client: JsonObject | None) -> list[JsonObject]:
    """Registry entries of what the active client declares."""
    if not active_client:
        return []
    client_id = active_client["clientId"]
    owner = {"extensionId": client_extension_id(client_id)}
    if "displayName" in active_client:
        owner["extensionName"] = active_client["displayName"]
    declared = active_client.get("canvasProviders", ())
    return [{**owner, **one, "source": "activeClient", "clientId": client_id} for one in declared]


def find_canvas(registry: Sequence[JsonObject], canvas_id: str, extension_id: str | None) -> JsonObject:
    """The one declaration that is meant; raises with the candidates when there is not exactly one."""
    found = [one for one in registry if one["canvasId"] == canvas_id and extension_id in (None, one["extensionId"])]
    if not found:
        of = f" of {extension_id!r}" if extension_id else ""
        known = ", ".join(sorted({one["canvasId"] for one in registry})) or "none"
        raise CanvasError(f"there is no canvas {canvas_id!r}{of}; declared: {known}", code=NOT_FOUND)
    if len(found) > 1:
        candidates = ", ".join(repr(one["extensionId"]) for one in found)
        raise CanvasError(f"canvas {canvas_id!r} is declared by {candidates}: give the extensionId", code=AMBIGUOUS)
    return found[0]


def find_action(declaration: JsonObject, name: str) -> JsonObject:
    """A declared action of a canvas."""
    for action in declaration.get("actions", ()):
        if action["name"] == name:
            return action
    known = ", ".join(action["name"] for action in declaration.get("actions", ())) or "none"
    raise CanvasError(f"{declaration['canvasId']!r} has no action {name!r}; it has: {known}", code=NO_HANDLER)


def check_input(schema: Any, value: Any) -> None:
    """Raise `canvas_invalid_input` when a value does not match a schema. No value counts as an empty object."""
    if schema is None:
        return
    problem = find_problem(schema, {} if value is None else value)
    if problem is not None:
        raise CanvasError(f"input{problem}", code=INVALID_INPUT)


def discovered(entry: JsonObject) -> JsonObject:
    """A registry entry as an agent sees it."""
    return {key: value for key, value in entry.items() if key not in ("source", "clientId")}


def opened(instance: JsonObject, *, reopen: bool) -> JsonObject:
    """An open instance as an agent sees it."""
    return {key: value for key, value in instance.items() if key != "renderer"} | {"reopen": reopen}


__all__ = [
    "check_input",
    "client_entries",
    "client_extension_id",
    "discovered",
    "find_action",
    "find_canvas",
    "opened",
    "server_entries",
]
