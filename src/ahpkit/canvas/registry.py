"""Joins the canvases of all providers of a session, and finds one by name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ahpkit.canvas.errors import AMBIGUOUS, INVALID_INPUT, NO_HANDLER, NOT_FOUND, CanvasError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import find_problem
from ahpkit.protocol.session.state import SessionActiveClient

CLIENT_PREFIX = "client:"
"""Prefix of the extension ids of clients' canvases. No provider on the host's side may have such an id."""

_OWNER = frozenset({"extensionId", "extensionName", "source", "clientId"})

Key = tuple[str, str]
"""Identifies a declaration: extension id and canvas id."""


def active_client_ids(state: Mapping[str, Any]) -> set[str]:
    """The clients that are active in a session."""
    return {client["clientId"] for client in state.get("activeClients", ())}


def renderer_of(state: Mapping[str, Any]) -> str | None:
    """The client that shows a canvas of the host: the first that can."""
    clients: Sequence[JsonObject] = state.get("activeClients") or ()
    return next((client["clientId"] for client in clients if client.get("canRenderCanvases") is True), None)


def key_of(entry: Mapping[str, Any]) -> Key:
    """The declaration that a registry entry, an instance or a request belongs to."""
    return entry["extensionId"], entry["canvasId"]


def is_heir(declaration: Mapping[str, Any], instance: Mapping[str, Any]) -> bool:
    """Whether a client declares the canvas of which another client opened an instance."""
    same = declaration["canvasId"] == instance["canvasId"]
    return same and all(one["extensionId"].startswith(CLIENT_PREFIX) for one in (declaration, instance))


def server_entries(extension_id: str, extension_name: str | None, declarations: Iterable[Any]) -> list[JsonObject]:
    """Registry entries of a provider on the host's side."""
    return [_entry(one, extension_id, extension_name) | {"source": "server"} for one in declarations]


def client_entries(active_client: SessionActiveClient) -> list[JsonObject]:
    """Registry entries of what an active client declares."""
    client_id = active_client["clientId"]
    source = {"source": "activeClient", "clientId": client_id}
    return [
        _entry(one, CLIENT_PREFIX + client_id, active_client.get("displayName")) | source
        for one in active_client.get("canvasProviders", ())
    ]


def _entry(declaration: Mapping[str, Any], extension_id: str, extension_name: str | None) -> JsonObject:
    """A declaration with its owner. Members of the declaration that name another owner are dropped."""
    kept = {key: value for key, value in declaration.items() if key not in _OWNER}
    return {"extensionId": extension_id, **({"extensionName": extension_name} if extension_name else {}), **kept}


def find_canvas(registry: Sequence[JsonObject], canvas_id: str, extension_id: str | None) -> JsonObject:
    """The declaration with these ids. Raises with the candidates if there is not exactly one."""
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


def new_instance(
    declaration: JsonObject, call: JsonObject, result: JsonObject, *, available: bool, renderer: str | None
) -> JsonObject:
    """An instance as its provider confirmed it."""
    instance: JsonObject = {key: call[key] for key in ("instanceId", "canvasId", "extensionId")}
    instance["availability"] = "ready" if available else "stale"
    if "extensionName" in declaration:
        instance["extensionName"] = declaration["extensionName"]
    if "input" in call:
        instance["input"] = call["input"]
    instance |= {key: result[key] for key in ("url", "title", "status") if key in result}
    return instance | ({"renderer": {"clientId": renderer}} if renderer else {})


def discovered(entry: JsonObject) -> JsonObject:
    """A registry entry as an agent sees it."""
    return {key: value for key, value in entry.items() if key not in ("source", "clientId")}


def opened(instance: JsonObject, *, reopen: bool) -> JsonObject:
    """An open instance as an agent sees it."""
    return {key: value for key, value in instance.items() if key != "renderer"} | {"reopen": reopen}


__all__ = [
    "CLIENT_PREFIX",
    "Key",
    "active_client_ids",
    "check_input",
    "client_entries",
    "discovered",
    "find_action",
    "find_canvas",
    "is_heir",
    "key_of",
    "new_instance",
    "opened",
    "renderer_of",
    "server_entries",
]
