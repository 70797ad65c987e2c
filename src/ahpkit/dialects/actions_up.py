"""Rewrites actions and params of older clients to 1.0.0. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ahpkit.dialects import states_up as states
from ahpkit.dialects.generations import CHANGED, FORK, PRIMARY, SELECTION, Generation, selection_of
from ahpkit.dialects.states_down import primary, primary_mark
from ahpkit.protocol.chat.turns import elapsed
from ahpkit.protocol.common.reducing import is_duration, is_time, iso_time, put, without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import SWITCH

V = Generation


class ClientContext(NamedTuple):
    """What translating a client's action may need: its channel, its sender, and the host's states, which are 1.0.0."""

    channel: str
    client_id: str
    now: Callable[[], int]
    """Milliseconds since the epoch."""
    state_of: Callable[[str], JsonObject | None]
    """The newest state of a channel."""
    session_of: Callable[[str], str | None]
    """The session that a chat or an annotations channel belongs to."""

    @property
    def state(self) -> JsonObject:
        """The state of its channel; empty when there is none."""
        return self.state_of(self.channel) or {}

    @property
    def session(self) -> str:
        """The session of its channel."""
        return self.session_of(self.channel) or ""


_Reading = Callable[[JsonObject, ClientContext], JsonObject]


def is_rewritten(action_type: str, by: Generation) -> bool:
    """Whether `refusal` and `action` have to look at actions of this type."""
    return by < V.V0_9 and action_type in _READINGS


def action(value: JsonObject, context: ClientContext, *, by: Generation) -> JsonObject:
    """Rewrite a client's action to 1.0.0. It must be valid in the client's generation."""
    if by >= V.V0_9:
        return value
    read = _READINGS.get(value["type"])
    after = value if read is None else read(value, context)
    if by < V.V0_6:
        after = _with_time(after, context)
    return _with_selected(after, context) if by == V.V0_4 and after["type"] == "chat/turnStarted" else after


def refusal(value: JsonObject, context: ClientContext) -> str | None:
    """Why the client's own version does not allow an action that 1.0 would allow; None: it is allowed."""
    if value["type"] != "session/activeClientToolsChanged":
        return None
    active = any(client["clientId"] == context.client_id for client in _clients_of(context.state))
    return None if active else "only the session's active client may do this"


# -- chat ----------------------------------------------------------------------------------------------------------


def _with_time(value: JsonObject, context: ClientContext) -> JsonObject:
    """Add the start or the duration of a turn by the host's clock. Versions before 0.6 have neither member, so an
    invalid value counts as absent."""
    match value["type"]:
        case "chat/turnStarted" if not is_time(value.get("startedAt")):
            return {**value, "startedAt": iso_time(context.now())}
        case "chat/turnCancelled" if not is_duration(value.get("duration")):
            return {**value, "duration": elapsed(context.state, context.now())}
        case _:
            return value


def _with_selected(value: JsonObject, context: ClientContext) -> JsonObject:
    """Add the session's model and agent to a message of a 0.4 client, because newer readers expect them in the
    message."""
    selected = {**selection_of(context.state_of(context.session)), **selection_of(context.state)}
    message: JsonObject = value["message"]
    chosen = {key: selected[key] for key in ("model", "agent") if selected.get(key) is not None}
    return {**value, "message": {**chosen, **message}}


def _tool_call_complete(value: JsonObject, context: ClientContext) -> JsonObject:
    """Convert the content in which 0.5.2 and 0.6 report the end of a command."""
    result: JsonObject = value["result"]
    content: Sequence[JsonObject] = result.get("content") or ()
    if not any(item.get("type") == "terminalComplete" for item in content):
        return value
    return {**value, "result": {**result, "content": [_terminal_content(item) for item in content]}}


def _terminal_content(item: JsonObject) -> JsonObject:
    if item.get("type") != "terminalComplete":
        return item
    result = {key: item[key] for key in ("exitCode", "preview", "truncated") if key in item}
    rest = without(item, "exitCode", "preview", "truncated", "cwd")
    return {"resource": "", "title": "", **rest, "type": "terminal", "result": result}


# -- session -------------------------------------------------------------------------------------------------------


def _active_client_set(value: JsonObject, context: ClientContext) -> JsonObject:
    return {**value, "activeClient": states.with_customizations(value["activeClient"])}


def _active_client_changed(value: JsonObject, context: ClientContext) -> JsonObject:
    """Convert a change of the only active client of 0.4. A client that takes the role does not remove the others; a
    client that gives it up removes only itself."""
    client: JsonObject | None = value["activeClient"]
    if client is None:
        return {"type": "session/activeClientRemoved", "clientId": context.client_id}
    entry = states.marked_primary(states.with_customizations(client), _clients_of(context.state))
    return {"type": "session/activeClientSet", "activeClient": entry}


def _active_client_tools(value: JsonObject, context: ClientContext) -> JsonObject:
    clients = _clients_of(context.state)
    own = next(
        (client for client in clients if client["clientId"] == context.client_id), {"clientId": context.client_id}
    )
    entry = states.marked_primary({**own, "tools": value["tools"]}, clients)
    return {"type": "session/activeClientSet", "activeClient": entry}


def _selected(key: str) -> _Reading:
    def read(value: JsonObject, context: ClientContext) -> JsonObject:
        state = context.state
        selection: JsonObject = {**put({**selection_of(state)}, key, value.get(key)), CHANGED: key}
        meta: JsonObject = state.get("_meta") or {}
        return {"type": "session/metaChanged", "_meta": {**meta, SELECTION: selection}}

    return read


def _customization_toggled(value: JsonObject, context: ClientContext) -> JsonObject:
    """A plain switch becomes a decision for this session. Decisions of other scopes stay."""
    if "enabled" not in value:
        return value
    if "enablement" in value:
        return without(value, "enabled")
    containers: Sequence[JsonObject] = context.state.get("customizations") or ()
    known: JsonObject = next((one for one in _flattened(containers) if one.get("id") == value["id"]), JsonObject())
    so_far: Sequence[JsonObject] = known.get("enablement") or ()
    others = [decision for decision in so_far if decision.get("kind") != "session"]
    decisions = [{"kind": "session", "enabled": value["enabled"]}, *others]
    return states.with_note({**without(value, "enabled"), "enablement": decisions}, SWITCH, True)


def _flattened(containers: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for container in containers:
        yield container
        children: Sequence[JsonObject] = container.get("children") or ()
        yield from children


# -- annotations and terminals -------------------------------------------------------------------------------------


def _annotation_set(value: JsonObject, context: ClientContext) -> JsonObject:
    return {**value, "annotation": states.annotation(value["annotation"], context.session)}


def _annotation_updated(value: JsonObject, context: ClientContext) -> JsonObject:
    remarks: Sequence[JsonObject] = context.state.get("annotations") or ()
    known = next((one for one in remarks if one["id"] == value["annotationId"]), None)
    return states.annotation(value, context.session, known)


def _terminal_claimed(value: JsonObject, context: ClientContext) -> JsonObject:
    return {**value, "claim": states.claim(value["claim"], default_chat(context.state_of))}


def default_chat(state_of: Callable[[str], JsonObject | None]) -> states.DefaultChat:
    """Finds the default chat of a session in its state."""
    return lambda session: (state_of(session) or {}).get("defaultChat")


_READINGS: Final[Mapping[str, _Reading]] = {
    "annotations/set": _annotation_set,
    "annotations/updated": _annotation_updated,
    "chat/toolCallComplete": _tool_call_complete,
    "session/activeClientChanged": _active_client_changed,
    "session/activeClientSet": _active_client_set,
    "session/activeClientToolsChanged": _active_client_tools,
    "session/agentChanged": _selected("agent"),
    "session/customizationToggled": _customization_toggled,
    "session/modelChanged": _selected("model"),
    "terminal/claimed": _terminal_claimed,
}


HINTED: Final = frozenset({"session/activeClientSet", "session/activeClientRemoved", "session/metaChanged"})
"""The actions that `with_hints` adds something to."""


def with_hints(value: JsonObject, session: JsonObject | None, *, by: Generation | None) -> JsonObject:
    """Add the hints that 0.4 readers need about the active client and the selection to an action, before it is logged.

    To be called for every action of a session before it is reduced; `session` is the state before it. `by` is the
    generation of the sending client, or None for the host's own actions. Other actions are returned unchanged.
    """
    match value["type"]:
        case "session/activeClientSet":
            return _hint_at_set(value, _clients_of(session))
        case "session/activeClientRemoved":
            return _hint_at_removal(value, _clients_of(session), by)
        case "session/metaChanged":
            return _keeping_selection(value, session)
        case _:
            return value


def _clients_of(session: JsonObject | None) -> Sequence[JsonObject]:
    return (session or {}).get("activeClients") or ()


def _hint_at_set(value: JsonObject, before: Sequence[JsonObject]) -> JsonObject:
    entry = _keeping_mark(value["activeClient"], before)
    value = {**value, "activeClient": entry}
    others = [entry if one["clientId"] == entry["clientId"] else one for one in before]
    shown = primary(others if entry in others else [*others, entry])
    return states.with_note(value, PRIMARY, True) if shown is entry else value


def _keeping_mark(entry: JsonObject, before: Sequence[JsonObject]) -> JsonObject:
    """A client that 0.4 readers see as the active one stays so when it is set again by a newer version."""
    mark = max((primary_mark(one) for one in before if one["clientId"] == entry["clientId"]), default=0)
    return states.with_note(entry, PRIMARY, mark) if mark and not primary_mark(entry) else entry


def _hint_at_removal(value: JsonObject, before: Sequence[JsonObject], by: Generation | None) -> JsonObject:
    seen = primary(before)
    if by != V.V0_4 and (seen is None or seen["clientId"] != value["clientId"]):
        return value
    return states.with_note(value, PRIMARY, primary([one for one in before if one["clientId"] != value["clientId"]]))


def _keeping_selection(value: JsonObject, session: JsonObject | None) -> JsonObject:
    """Keep the selection of 0.4 clients in a new `_meta`: it replaces the old `_meta`, but is not meant to remove the
    selection."""
    kept = without({**selection_of(session)}, CHANGED)
    return states.with_note(value, SELECTION, kept) if kept and not selection_of(value) else value


# -- params of requests --------------------------------------------------------------------------------------------

_WITH_DIRECTORIES: Final = frozenset({"createChat", "createTerminal"})
"""Methods whose directories are translated here. `host/sessions` does it for `createSession`, because there it depends
on which folders exist."""


def params(
    method: str, value: JsonObject, state_of: Callable[[str], JsonObject | None], *, by: Generation
) -> JsonObject:
    """Rewrite the params of a client's request to 1.0.0. They must be valid in the client's generation."""
    if method in _WITH_DIRECTORIES and by > V.V0_4:
        value = states.local_directories(value)
    match method:
        case "createSession":
            return _create_session(value, by)
        case "createChat":
            return _create_chat(value, by)
        case "createTerminal" if by < V.V0_9:
            return {**value, "claim": states.claim(value["claim"], default_chat(state_of))}
        case "listSessions" if by < V.V0_5_1:
            return without(value, "filter", "limit", "cursor")
        case "subscribe" if by < V.V0_5_1:
            return without(value, "view", "delivery")
        case _:
            return value


def _create_session(value: JsonObject, by: Generation) -> JsonObject:
    if by < V.V0_7:
        value = states.working_directories(value)
    if by == V.V0_4:
        value = states.with_selection(value)
    if by < V.V0_9 and value.get("fork") is not None:
        value = without(states.with_note(value, FORK, value["fork"]), "fork")
    if by < V.V0_8 and value.get("activeClient") is not None:
        value = {**value, "activeClient": states.with_customizations(value["activeClient"])}
    if by == V.V0_4 and value.get("activeClient") is not None:
        value = {**value, "activeClient": states.marked_primary(value["activeClient"], ())}
    return value


def _create_chat(value: JsonObject, by: Generation) -> JsonObject:
    if by == V.V0_4:
        value = states.with_selection(value)
    source: JsonObject | None = value.get("source")
    if by < V.V0_7 and source is not None and "kind" not in source:
        value = {**value, "source": {**source, "kind": "fork"}}
    return value


__all__ = ["ClientContext", "action", "default_chat", "is_rewritten", "params", "refusal", "with_hints"]
