"""Translates between a 1.0.0 client and a host of 0.4 to 0.9.

The client's states and API are 1.0.0 for all hosts. Messages of hosts of 0.9 and 1.0 need no translation. Pure: the
time and the mirror's states are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ahpkit.dialects import actions_down, actions_up
from ahpkit.dialects import states_down as down
from ahpkit.dialects import states_up as up
from ahpkit.dialects.generations import (
    CHANGED,
    FORK,
    OUR_ACTIONS,
    SELECTION,
    Generation,
    knows_action,
    knows_method,
    selection_of,
)
from ahpkit.protocol.chat.turns import elapsed
from ahpkit.protocol.common.reducing import iso_time, put, without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import LocalProtocolError

V = Generation


class HostContext(NamedTuple):
    """What translating a host's action may need: its channel, the time, and the mirror's states."""

    channel: str
    now: int
    """Milliseconds since the epoch."""
    state_of: Callable[[str], JsonObject | None]
    """The mirror's confirmed states."""
    session_of: Callable[[str], str | None]
    """The session that a chat or an annotations channel belongs to."""

    @property
    def state(self) -> JsonObject:
        return self.state_of(self.channel) or {}


class HostActions(NamedTuple):
    """An action in the host's version, and actions to dispatch before it, each with its channel."""

    action: JsonObject
    before: Sequence[tuple[str, JsonObject]] = ()


@dataclass(frozen=True, slots=True)
class HostDialect:
    """Translates for one host between 1.0.0 and the host's version."""

    version: str
    generation: Generation

    @property
    def _is_old(self) -> bool:
        return self.generation < V.V0_9

    # -- from the host ---------------------------------------------------------------------------------------------

    def state(self, kind: str | None, state: JsonObject, context: HostContext) -> JsonObject:
        """Translate the state in a snapshot."""
        if not self._is_old:
            return state
        session = context.session_of(context.channel) or ""
        default_chat = actions_up.default_chat(context.state_of)
        return up.state_of_kind(kind or "", state, session=session, default_chat=default_chat)

    def actions(self, action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
        """Translate an action of the host: mostly to one action, sometimes to several."""
        if not self._is_old:
            return [action]
        read = _READINGS.get(action["type"])
        return [action] if read is None else read(action, context)

    def result(self, method: str, result: Any) -> Any:
        """Translate the answer to a request, without the snapshots and actions in it: `state` and `actions` do
        those."""
        if not self._is_old:
            return result
        match method:
            case "listSessions":
                return {**result, "items": [up.session_summary(one) for one in result["items"]]}
            case "fetchTurns" if "turns" in result:
                return {**result, "turns": [up.turn(one) for one in result["turns"]]}
            case _:
                return result

    def notification(self, method: str, params: JsonObject) -> JsonObject:
        """Translate the params of a notification."""
        if not self._is_old:
            return params
        match method:
            case "root/sessionAdded":
                return {**params, "summary": up.session_summary(params["summary"])}
            case "root/sessionSummaryChanged":
                return {**params, "changes": _summary_changes(params["changes"])}
            case "auth/required" if isinstance(params.get("resource"), str):
                return {**params, "resource": {"resource": params["resource"]}}
            case _:
                return params

    # -- to the host -----------------------------------------------------------------------------------------------

    def write(self, method: str, params: JsonObject) -> JsonObject:
        """Translate the params of a request. Raises `LocalProtocolError` when the host's version has no such
        request."""
        if not knows_method(self.generation, method):
            raise self._lacks(method)
        if not self._is_old:
            return params
        match method:
            case "createSession":
                return _create_session(params, self.generation)
            case "createChat":
                return _create_chat(params, self)
            case "listSessions" if self.generation < V.V0_5_1:
                return without(params, "limit", "cursor")
            case "subscribe" if self.generation < V.V0_5_1:
                return without(params, "view", "delivery")
            case _:
                return params

    def write_action(self, action: JsonObject, context: HostContext) -> HostActions:
        """Translate an action for the host. Raises `LocalProtocolError` when its version cannot express it."""
        if action["type"] in OUR_ACTIONS:
            return HostActions(action)
        if self.generation == V.V0_4 and action["type"] in _WRITINGS:
            return _WRITINGS[action["type"]](action, context)
        written = actions_down.action(action, self.generation)
        if written is None or not knows_action(self.generation, written["type"]):
            raise self._lacks(action["type"])
        return HostActions(written)

    def check_action(self, action_type: str) -> None:
        """Raise `LocalProtocolError` unless the host's version has an action."""
        if not knows_action(self.generation, action_type):
            raise self._lacks(action_type)

    def _lacks(self, name: str) -> LocalProtocolError:
        return LocalProtocolError(f"the host speaks {self.version}, which has no {name}")


# -- reading 0.4 to 0.8 --------------------------------------------------------------------------------------------

_Reading = Callable[[JsonObject, HostContext], Sequence[JsonObject]]


def _turn_started(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    return [{"startedAt": iso_time(context.now), **action}]


def _turn_ended(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    return [{"duration": elapsed(context.state, context.now), **action}]


def _error(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    """An error becomes the last part of the turn. It is not resumable, because these hosts cannot resume turns."""
    part = without(action.get("part") or {"kind": "error", "error": action["error"]}, "resumable")
    return _turn_ended({**without(action, "error"), "part": part}, context)


def _active_client_changed(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    """0.4 has one active client: setting it removes the others."""
    client: JsonObject | None = action["activeClient"]
    present: Sequence[JsonObject] = context.state.get("activeClients") or ()
    stays = None if client is None else client["clientId"]
    gone = [one["clientId"] for one in present if one["clientId"] != stays]
    left = [{"type": "session/activeClientRemoved", "clientId": client_id} for client_id in gone]
    return left if client is None else [*left, _set(up.with_customizations(client))]


def _active_client_tools(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    present: Sequence[JsonObject] = context.state.get("activeClients") or ()
    return [_set({**client, "tools": action["tools"]}) for client in present[:1]]


def _set(client: JsonObject) -> JsonObject:
    return {"type": "session/activeClientSet", "activeClient": client}


def _selected(key: str) -> _Reading:
    def read(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
        meta: JsonObject = context.state.get("_meta") or {}
        selection: JsonObject = {**put({**selection_of(context.state)}, key, action.get(key)), CHANGED: key}
        return [{"type": "session/metaChanged", "_meta": {**meta, SELECTION: selection}}]

    return read


def _meta_changed(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    return [actions_up.with_hints(action, context.state, by=None)]


def _toggled(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    sender = actions_up.ClientContext(context.channel, "", lambda: context.now, context.state_of, context.session_of)
    return [actions_up.action(action, sender, by=V.V0_4)]


def _each(key: str, read: Callable[[JsonObject, HostContext], JsonObject], *, many: bool = False) -> _Reading:
    """Makes a translation that applies `read` to the member `key` of an action, or with `many` to each value in it."""

    def reading(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
        value = [read(one, context) for one in action[key]] if many else read(action[key], context)
        return [{**action, key: value}]

    return reading


def _terminal(value: JsonObject, context: HostContext) -> JsonObject:
    return up.terminal(value, actions_up.default_chat(context.state_of))


def _claim(value: JsonObject, context: HostContext) -> JsonObject:
    return up.claim(value, actions_up.default_chat(context.state_of))


def _reviewed(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    """The same action under the name that 0.5.2 has for it."""
    after = without(action, "fileIds")
    return [{**after, "type": "changeset/filesReviewChanged", "files": action["fileIds"]}]


def _content_changed(action: JsonObject, context: HostContext) -> Sequence[JsonObject]:
    """0.4 sends an error with the content; in 1.0 it is a status."""
    error: JsonObject | None = action.get("error")
    changed = without(action, "error")
    return (
        [changed]
        if error is None
        else [changed, {"type": "changeset/statusChanged", "status": "error", "error": error}]
    )


_READINGS: Final[Mapping[str, _Reading]] = {
    "annotations/set": _toggled,
    "annotations/updated": _toggled,
    "changeset/contentChanged": _content_changed,
    "changeset/filesReviewedChanged": _reviewed,
    "chat/error": _error,
    "chat/turnCancelled": _turn_ended,
    "chat/turnComplete": _turn_ended,
    "chat/turnStarted": _turn_started,
    "chat/turnsLoaded": _each("turns", lambda value, context: up.turn(value), many=True),
    "root/agentsChanged": _each("agents", lambda value, context: up.with_customizations(value), many=True),
    "root/terminalsChanged": _each("terminals", _terminal, many=True),
    "session/activeClientChanged": _active_client_changed,
    "session/activeClientSet": _each("activeClient", lambda value, context: up.with_customizations(value)),
    "session/activeClientToolsChanged": _active_client_tools,
    "session/agentChanged": _selected("agent"),
    "session/chatAdded": _each("summary", lambda value, context: up.chat_summary(value)),
    "session/chatUpdated": _each("changes", lambda value, context: up.chat_summary(value)),
    "session/customizationToggled": _toggled,
    "session/customizationUpdated": _each("customization", lambda value, context: up.customization(value)),
    "session/customizationsChanged": _each("customizations", lambda value, context: up.customization(value), many=True),
    "session/metaChanged": _meta_changed,
    "session/modelChanged": _selected("model"),
    "terminal/claimed": _each("claim", _claim),
}


def _summary_changes(changes: JsonObject) -> JsonObject:
    """Changes in which an empty value of 0.4 is null, which means that the field is removed."""
    after = up.session_summary(changes)
    if changes.get("activity") == "":
        after = {**after, "activity": None}
    return after


# -- writing 0.4 ---------------------------------------------------------------------------------------------------


def _client_set(action: JsonObject, context: HostContext) -> HostActions:
    client = down.active_client(action["activeClient"], V.V0_4, ours=True)
    return HostActions({"type": "session/activeClientChanged", "activeClient": client})


def _client_removed(action: JsonObject, context: HostContext) -> HostActions:
    return HostActions({"type": "session/activeClientChanged", "activeClient": None})


def _start_turn(action: JsonObject, context: HostContext) -> HostActions:
    """Choose the message's model and agent for the session first, because 0.4 messages have neither."""
    session = context.session_of(context.channel)
    written = actions_down.action(without(action, "startedAt"), V.V0_4) or action
    message: JsonObject = written["message"]
    if session is None:
        return HostActions(written)
    selected = selection_of(context.state_of(session))
    choices: list[tuple[str, JsonObject]] = [
        (session, {"type": f"session/{key}Changed", key: message[key]})
        for key in ("model", "agent")
        if message.get(key) is not None and message[key] != selected.get(key)
    ]
    return HostActions({**written, "message": without(message, "model", "agent")}, choices)


def _cancel_turn(action: JsonObject, context: HostContext) -> HostActions:
    return HostActions(without(action, "duration"))


_WRITINGS: Final[Mapping[str, Callable[[JsonObject, HostContext], HostActions]]] = {
    "chat/turnCancelled": _cancel_turn,
    "chat/turnStarted": _start_turn,
    "session/activeClientRemoved": _client_removed,
    "session/activeClientSet": _client_set,
}


# -- writing to 0.4 to 0.8 -----------------------------------------------------------------------------------------


def _create_session(params: JsonObject, to: Generation) -> JsonObject:
    after = _with_directory(params) if to < V.V0_7 else params
    if params.get("activeClient") is not None:
        after = {**after, "activeClient": down.active_client(params["activeClient"], to, ours=True)}
    notes: JsonObject = params.get("_meta") or {}
    after = down.without_note(put(after, "fork", notes.get(FORK)), FORK)
    return _with_selected(without(after, "progressToken")) if to == V.V0_4 else after


def _with_directory(params: JsonObject) -> JsonObject:
    directories: Sequence[str] = params.get("workingDirectories") or ()
    return put(without(params, "workingDirectories"), "workingDirectory", directories[0] if directories else None)


def _create_chat(params: JsonObject, host: HostDialect) -> JsonObject:
    if host.generation >= V.V0_7:
        return params
    source: JsonObject | None = params.get("source")
    after = without(params, "workingDirectories")
    if source is not None:
        if source.get("kind", "fork") != "fork":
            raise LocalProtocolError(f"the host speaks {host.version}, which has no chat of kind {source['kind']}")
        after = {**after, "source": without(source, "kind")}
    return _with_selected(after) if host.generation == V.V0_4 else after


def _with_selected(params: JsonObject) -> JsonObject:
    chosen = without({**selection_of(params)}, CHANGED)
    return down.without_note({**params, **chosen}, SELECTION)


__all__ = ["HostActions", "HostContext", "HostDialect"]
