"""Rewrites states of 1.0.0, and the values inside them, for an older generation. Pure.

0.4 gets exactly its own form. 0.5 to 0.8 get the old names in addition to the new ones, because readers ignore unknown
members. docs/topics/generations.md lists what a generation cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from ahpkit.dialects.generations import PRIMARY, SELECTION, Generation, selection_of
from ahpkit.protocol.common.reducing import milliseconds, put, without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.common.status import IN_PROGRESS, with_activity
from ahpkit.protocol.session.summary import named_chats
from ahpkit.wire.codec import encode

V = Generation

CANVAS_STATE: Final = ("canvasRegistry", "openCanvases", "canvasRequests")
"""Members of a session's state that ahpkit adds to the protocol."""

_CANVAS_CLIENT: Final = ("canvasProviders", "canRenderCanvases")
"""Members of an active client that ahpkit adds to the protocol."""

_CHAT_1_0: Final = ("changes", "movable", "changesets", "backgroundWork", "canvases")
"""Members of a chat that only actions of 1.0 change: older readers would keep outdated values forever."""

_WAITING: Final = frozenset({"pending-confirmation", "pending-result-confirmation"})
"""States of a tool call that wait for a person, in every generation."""

_INPUT_TEXT: Final = 1_048_576
"""Characters. A longer input is not sent as text. Agents cannot write longer inputs into a call."""


# -- messages and response parts -----------------------------------------------------------------------------------


def message(value: JsonObject, to: Generation) -> JsonObject:
    """A message of the user or of the host."""
    origin: JsonObject = value["origin"]
    if to < V.V0_9 and origin.get("kind") == "automation":
        value = {**value, "origin": {"kind": "systemNotification"}}
    if to < V.V0_7 and value.get("attachments"):
        value = {**value, "attachments": [attachment(item, to) for item in value["attachments"]]}
    return value


def attachment(value: JsonObject, to: Generation) -> JsonObject:
    """An attachment. For versions that cannot attach chats, an attached chat becomes its label."""
    if to >= V.V0_7 or value.get("type") != "chat":
        return value
    return {**without(value, "resource", "endTurn"), "type": "simple"}


def tool_input(value: Any) -> Any:
    """The input of a tool call as text. For a reference, it is the text in its `_meta`, or its URI if that is too
    long."""
    if not isinstance(value, dict):
        return value
    reference = cast("JsonObject", value)
    text = reference.get("_meta", {}).get("ahpkit.dev/text")
    return text if text and len(text) <= _INPUT_TEXT else reference.get("uri", "")


def tool_call(call: JsonObject, to: Generation) -> JsonObject:
    """A tool call in any status."""
    if to < V.V0_7 and isinstance(call.get("toolInput"), dict):
        call = {**call, "toolInput": tool_input(call["toolInput"])}
    if to < V.V0_6 and call.get("status") == "auth-required":
        call = without({**call, "status": "running"}, "auth")
    if to < V.V0_9 and isinstance(call.get("userSuggestion"), dict):
        call = {**call, "userSuggestion": message(call["userSuggestion"], to)}
    return without(call, "intention", "riskAssessment") if to == V.V0_4 else call


def _parts(parts: Sequence[JsonObject], to: Generation) -> list[JsonObject]:
    return [_part(part, to) for part in parts if _keeps(part, to)]


def _keeps(part: JsonObject, to: Generation) -> bool:
    """Whether a part stays a part: older readers get errors and open questions in other members."""
    if part.get("kind") == "error":
        return to >= V.V0_9
    if part.get("kind") == "inputRequest":
        return to >= V.V0_6 or (to == V.V0_5_2 and part.get("response") is not None)
    return True


def _part(part: JsonObject, to: Generation) -> JsonObject:
    return {**part, "toolCall": tool_call(part["toolCall"], to)} if part.get("kind") == "toolCall" else part


def turn(value: JsonObject, to: Generation) -> JsonObject:
    """A finished turn."""
    after = {**value, "message": message(value["message"], to), "responseParts": _parts(value["responseParts"], to)}
    if to < V.V0_9 and (error := _final_error(value)) is not None:
        after["error"] = error
    return without(after, "startedAt", "duration") if to == V.V0_4 else after


def _final_error(value: JsonObject) -> JsonObject | None:
    parts: Sequence[JsonObject] = value["responseParts"]
    return parts[-1]["error"] if parts and parts[-1].get("kind") == "error" else None


def _active_turn(value: JsonObject, to: Generation) -> JsonObject:
    after = {**value, "message": message(value["message"], to), "responseParts": _parts(value["responseParts"], to)}
    return without(after, "startedAt") if to == V.V0_4 else after


# -- chats ---------------------------------------------------------------------------------------------------------


def chat_origin(value: JsonObject | None, to: Generation) -> JsonObject | None:
    """The origin of a chat. For readers without side chats, a side chat is a fork."""
    if to < V.V0_7 and value and value.get("kind") == "sideChat":
        return {**without(value, "selection"), "kind": "fork"}
    return value


def chat_summary(value: JsonObject, to: Generation) -> JsonObject:
    """A chat's entry in its session, or changes of it."""
    after: JsonObject = without(value, "changes", "movable") if to == V.V0_4 else value
    if "origin" in after:
        after = {**after, "origin": chat_origin(after["origin"], to)}
    after = _with_working_directory(after, to)
    return _with_selection(after, value) if to == V.V0_4 else after


def _with_working_directory(value: JsonObject, to: Generation) -> JsonObject:
    """For readers with a single directory: the first one."""
    if to >= V.V0_7 or "workingDirectories" not in value:
        return value
    directories: Sequence[str] = value["workingDirectories"] or ()
    after = put(value, "workingDirectory", directories[0] if directories else None)
    return without(after, "workingDirectories") if to == V.V0_4 else after


def _with_selection(after: JsonObject, value: JsonObject) -> JsonObject:
    """Model and agent as members, as in 0.4, instead of the note in `_meta`."""
    selection = selection_of(value)
    after = {**after, **{key: one for key in ("model", "agent") if (one := selection.get(key)) is not None}}
    return without_note(after, SELECTION)


def without_note(value: JsonObject, key: str) -> JsonObject:
    """`value` without one of ahpkit's notes in `_meta`; an empty `_meta` is removed."""
    meta: JsonObject | None = value.get("_meta")
    return value if not meta or key not in meta else put(value, "_meta", without(meta, key) or None)


def chat_state(state: JsonObject, to: Generation) -> JsonObject:
    """The state of a chat."""
    after = chat_summary(without(state, *_CHAT_1_0) if to < V.V1_0 else state, to)
    turns: Sequence[JsonObject] = state["turns"]
    after = {**after, "turns": [turn(value, to) for value in turns]}
    if (active := state.get("activeTurn")) is not None:
        after["activeTurn"] = _active_turn(active, to)
    if to < V.V0_6 and active is not None:
        after = _with_open_requests(after, active)
    if (draft := state.get("draft")) is not None:
        after["draft"] = message(draft, to)
    if (steering := state.get("steeringMessage")) is not None:
        after["steeringMessage"] = _pending(steering, to)
    if queued := state.get("queuedMessages"):
        after["queuedMessages"] = [_pending(item, to) for item in queued]
    return without(after, "draft", "turnsNextCursor") if to == V.V0_4 else after


def titled(chat: JsonObject, title: str | None) -> JsonObject:
    """The state of a chat with another title; unchanged if `title` is None."""
    return chat if title is None or title == chat["title"] else {**chat, "title": title}


def _with_open_requests(after: JsonObject, active: JsonObject) -> JsonObject:
    """Put open questions into a list of the chat, and show a tool call that needs a login as running."""
    parts: Sequence[JsonObject] = active["responseParts"]
    asked = [part["request"] for part in parts if part.get("kind") == "inputRequest" and part.get("response") is None]
    statuses = {part["toolCall"]["status"] for part in parts if part.get("kind") == "toolCall"}
    if "auth-required" in statuses and not (asked or statuses & _WAITING):
        after = {**after, "status": with_activity(after["status"], IN_PROGRESS)}
    return {**after, "inputRequests": asked} if asked else after


def _pending(item: JsonObject, to: Generation) -> JsonObject:
    return {**item, "message": message(item["message"], to)}


# -- customizations ------------------------------------------------------------------------------------------------


def enabled(enablement: Sequence[JsonObject] | None) -> bool:
    """Whether it is switched on. Of the decisions, the one with the most specific scope counts."""
    return enablement[0].get("enabled") is not False if enablement else True


def customization(value: JsonObject, to: Generation) -> JsonObject:
    """A plugin, directory or MCP server, with its children."""
    if to >= V.V0_8:
        return value
    after: JsonObject = value
    if value.get("type") in ("plugin", "mcpServer"):
        after = put(value, "enabled", enabled(value.get("enablement")))
    # In other types `children` may be any value.
    if value.get("type") in ("plugin", "directory") and after.get("children"):
        after = {**after, "children": [customization(child, to) for child in after["children"]]}
    return without(after, "enablement", "childEnablement") if to == V.V0_4 else after


def customizations(values: Sequence[JsonObject], to: Generation) -> list[JsonObject]:
    """A list of customizations."""
    return [customization(value, to) for value in values]


def active_client(value: JsonObject, to: Generation, *, ours: bool) -> JsonObject:
    """A client that gives a session tools and plugins."""
    after = value if ours else without(value, *_CANVAS_CLIENT)
    if after.get("customizations") and to < V.V0_8:
        after = {**after, "customizations": customizations(after["customizations"], to)}
    return without_note(after, PRIMARY) if to == V.V0_4 else after


def primary(active_clients: Sequence[JsonObject]) -> JsonObject | None:
    """The active client that 0.4 readers see: the last one set on a 0.4 connection, else the first in the list."""
    return max(active_clients, key=primary_mark, default=None)


def primary_mark(client: Mapping[str, Any]) -> int:
    """A rising number that says when an active client was set on a 0.4 connection; 0: never."""
    meta: JsonObject = client.get("_meta") or {}
    mark = meta.get(PRIMARY, 0)
    return mark if isinstance(mark, int) else 0


# -- sessions ------------------------------------------------------------------------------------------------------


def session_summary(value: JsonObject, to: Generation) -> JsonObject:
    """A session's entry in a list, or changes of it."""
    if to > V.V0_4:
        return _with_working_directory(value, to)
    after: JsonObject = {key: one for key, one in value.items() if key not in _NOT_IN_0_4}
    for key in ("createdAt", "modifiedAt"):
        if isinstance(after.get(key), str):
            after[key] = milliseconds(after[key])
    if value.get("workingDirectories"):
        after["workingDirectory"] = value["workingDirectories"][0]
    if selection := selection_of(value):
        after |= {key: one for key in ("model", "agent") if (one := selection.get(key)) is not None}
    return after


_NOT_IN_0_4: Final = frozenset(("workingDirectories", "origin", "chats", "defaultChat", "_meta"))

_SUMMARY_IN_STATE: Final = ("provider", "title", "status", "activity", "project", "annotations")

_DERIVED: Final = ("status", "activity", "annotations")
"""Members of a session's state that no action updates. Snapshots take them from the session's list entry."""


def session_state(state: JsonObject, to: Generation, uri: str, summary: JsonObject, *, ours: bool) -> JsonObject:
    """The state of a session. `summary` is its entry in the catalogue."""
    after = _as_listed(state if ours else without(state, *CANVAS_STATE), summary)
    after = {**after, "chats": [chat_summary(chat, to) for chat in after["chats"]]}
    clients: Sequence[JsonObject] = state["activeClients"]
    after["activeClients"] = [active_client(client, to, ours=ours) for client in clients]
    if after.get("customizations"):
        after["customizations"] = customizations(after["customizations"], to)
    if to < V.V0_9 and state["lifecycle"] == "failed":
        after["lifecycle"] = "creationFailed"
    if after.get("inputNeeded"):
        after["inputNeeded"] = [input_needed(one, to) for one in after["inputNeeded"] if can_wait(one, to)]
    after = _with_working_directory(after, to)
    return _session_state_0_4(after, state, uri, summary, ours=ours) if to == V.V0_4 else after


def _as_listed(state: JsonObject, summary: JsonObject) -> JsonObject:
    if "status" not in summary:  # The session has no entry in the catalogue.
        return state
    after = without(state, *_DERIVED) | {key: summary[key] for key in _DERIVED if key in summary}
    return {**after, "chats": named_chats(state)}


def can_wait(request: JsonObject, to: Generation) -> bool:
    """Whether a generation has this kind of entry of `inputNeeded`."""
    return to >= V.V0_6 or request.get("kind") != "toolAuthentication"


def input_needed(request: JsonObject, to: Generation) -> JsonObject:
    """An entry of `inputNeeded` for which `can_wait` is true."""
    return (
        {**request, "toolCall": tool_call(request["toolCall"], max(to, V.V0_6))} if "toolCall" in request else request
    )


def _session_state_0_4(
    after: JsonObject, state: JsonObject, uri: str, summary: JsonObject, *, ours: bool
) -> JsonObject:
    """The form of 0.4: one active client, the summary as a separate object, and choices as texts."""
    shown = {key: after[key] for key in _SUMMARY_IN_STATE if key in after}
    listed = session_summary(summary, V.V0_4)
    kept = {key: listed[key] for key in ("createdAt", "modifiedAt", "changes") if key in listed}
    whole = {"resource": uri, **shown, **kept}
    if "workingDirectory" in after:
        whole["workingDirectory"] = after["workingDirectory"]
    whole = without_note(_with_selection(whole, state), SELECTION)
    flat = without(after, *_SUMMARY_IN_STATE, "activeClients", "inputNeeded", "origin", "workingDirectory")
    made = {"summary": whole, **without_note(flat, SELECTION)}
    if (client := primary(state["activeClients"])) is not None:
        made["activeClient"] = active_client(client, V.V0_4, ours=ours)
    if "config" in made:
        made["config"] = {**made["config"], "schema": config_schema(made["config"]["schema"])}
    return made


def config_schema(schema: JsonObject) -> JsonObject:
    """A schema of settings in which all choices are texts, because 0.4 allows no others."""
    after = dict(schema)
    if isinstance(after.get("enum"), list):
        after["enum"] = [_as_text(value) for value in after["enum"]]
    if isinstance(after.get("properties"), dict):
        after["properties"] = {name: config_schema(value) for name, value in after["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(after.get(key), dict):
            after[key] = config_schema(after[key])
    return after


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


# -- root, terminals, annotations, changesets ----------------------------------------------------------------------


def agent(value: JsonObject, to: Generation) -> JsonObject:
    """An agent that the host offers."""
    if value.get("customizations") and to < V.V0_8:
        value = {**value, "customizations": customizations(value["customizations"], to)}
    if to == V.V0_4 and value.get("models"):
        value = {**value, "models": [_model(model) for model in value["models"]]}
    return value


def _model(model: JsonObject) -> JsonObject:
    schema: JsonObject | None = model.get("configSchema")
    return model if not schema else {**model, "configSchema": config_schema(schema)}


def terminal(value: JsonObject, to: Generation) -> JsonObject:
    """A terminal: its state, or its entry in the host's list. Without an exit code it appears to be running."""
    if to >= V.V0_9:
        return value
    after = put(value, "exitCode", value.get("lifecycle", {}).get("exitCode"))
    return without(after, "lifecycle") if to == V.V0_4 else after


def annotation(value: JsonObject, to: Generation) -> JsonObject:
    """An annotation: remarks on a place in a file."""
    if to >= V.V0_9:
        return value
    after = {**value, "turnId": value.get("origin", {}).get("turnId", "")}
    return without(after, "origin") if to == V.V0_4 else after


def changeset_status(value: str, to: Generation) -> str:
    """The status of a changeset."""
    return "computing" if to < V.V1_0 and value == "recomputing" else value


def _root_state(state: JsonObject, to: Generation) -> JsonObject:
    after = {**state, "agents": [agent(value, to) for value in state["agents"]]}
    if state.get("terminals"):
        after["terminals"] = [terminal(value, to) for value in state["terminals"]]
    if to == V.V0_4 and "config" in state:
        after["config"] = {**state["config"], "schema": config_schema(state["config"]["schema"])}
    return after


def _annotations_state(state: JsonObject, to: Generation) -> JsonObject:
    return {**state, "annotations": [annotation(value, to) for value in state["annotations"]]}


def _changeset_state(state: JsonObject, to: Generation) -> JsonObject:
    return {**state, "status": changeset_status(state["status"], to)}


_STATES: Final[Mapping[str, Callable[[JsonObject, Generation], JsonObject]]] = {
    "root": _root_state,
    "chat": chat_state,
    "terminal": terminal,
    "annotations": _annotations_state,
    "changeset": _changeset_state,
}


def state_of_kind(kind: str, state: JsonObject, to: Generation) -> JsonObject:
    """The state of a channel of any kind except session."""
    project = _STATES.get(kind)
    return state if project is None else project(state, to)


__all__ = [
    "active_client",
    "agent",
    "annotation",
    "attachment",
    "can_wait",
    "changeset_status",
    "chat_state",
    "chat_summary",
    "config_schema",
    "customization",
    "customizations",
    "enabled",
    "input_needed",
    "message",
    "primary",
    "primary_mark",
    "session_state",
    "session_summary",
    "state_of_kind",
    "terminal",
    "titled",
    "tool_call",
    "tool_input",
    "turn",
    "without_note",
]
