"""Translates between a 1.0.0 client and a host of 0.4 to 0.9.

A client has one mirror and one API, both 1.0.0. What hosts of 0.9 and 1.0 send needs no translation. Pure: the clock
and the mirror's states are passed in.
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


class Heard(NamedTuple):
    """What translating an action of the host may need besides the action itself."""

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


class Written(NamedTuple):
    """An action in the host's version, and actions that have to be dispatched before it, each with its channel."""

    action: JsonObject
    before: Sequence[tuple[str, JsonObject]] = ()


@dataclass(frozen=True, slots=True)
class HostDialect:
    """The dialect of one host."""

    version: str
    generation: Generation

    @property
    def _is_old(self) -> bool:
        return self.generation < V.V0_9

    # -- from the host ---------------------------------------------------------------------------------------------

    def state(self, kind: str | None, state: JsonObject, heard: Heard) -> JsonObject:
        """The state in a snapshot."""
        if not self._is_old:
            return state
        session = heard.session_of(heard.channel) or ""
        default_chat = actions_up.default_chat(heard.state_of)
        return up.state_of_kind(kind or "", state, session=session, default_chat=default_chat)

    def actions(self, action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
        """An action as the mirror applies it: mostly one, sometimes several."""
        if not self._is_old:
            return [action]
        read = _READINGS.get(action["type"])
        return [action] if read is None else read(action, heard)

    def result(self, method: str, result: Any) -> Any:
        """The answer to a request; snapshots and actions in it are read one by one."""
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
        """A notification of the host."""
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
        """The params of a request. Raises `LocalProtocolError` when the host's version does not have it."""
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

    def write_action(self, action: JsonObject, heard: Heard) -> Written:
        """An action for the host. Raises `LocalProtocolError` when its version cannot express it."""
        if action["type"] in OUR_ACTIONS:
            return Written(action)
        if self.generation == V.V0_4 and action["type"] in _WRITINGS:
            return _WRITINGS[action["type"]](action, heard)
        written = actions_down.action(action, self.generation)
        if written is None or not knows_action(self.generation, written["type"]):
            raise self._lacks(action["type"])
        return Written(written)

    def check_action(self, action_type: str) -> None:
        """Raise `LocalProtocolError` unless the host's version has an action."""
        if not knows_action(self.generation, action_type):
            raise self._lacks(action_type)

    def _lacks(self, name: str) -> LocalProtocolError:
        return LocalProtocolError(f"the host speaks {self.version}, which has no {name}")


# -- reading 0.4 to 0.8 --------------------------------------------------------------------------------------------

_Reading = Callable[[JsonObject, Heard], Sequence[JsonObject]]


def _turn_started(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    return [{"startedAt": iso_time(heard.now), **action}]


def _turn_ended(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    return [{"duration": elapsed(heard.state, heard.now), **action}]


def _error(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    """An error cannot be resumed at these hosts, whatever our own says of it to newer clients."""
    part = without(action.get("part") or {"kind": "error", "error": action["error"]}, "resumable")
    return _turn_ended({**without(action, "error"), "part": part}, heard)


def _active_client_changed(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    """0.4 has one active client: the one before is removed."""
    client: JsonObject | None = action["activeClient"]
    present: Sequence[JsonObject] = heard.state.get("activeClients") or ()
    stays = None if client is None else client["clientId"]
    gone = [one["clientId"] for one in present if one["clientId"] != stays]
    left = [{"type": "session/activeClientRemoved", "clientId": client_id} for client_id in gone]
    return left if client is None else [*left, _set(up.with_customizations(client))]


def _active_client_tools(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    present: Sequence[JsonObject] = heard.state.get("activeClients") or ()
    return [_set({**client, "tools": action["tools"]}) for client in present[:1]]


def _set(client: JsonObject) -> JsonObject:
    return {"type": "session/activeClientSet", "activeClient": client}


def _selected(key: str) -> _Reading:
    def read(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
        meta: JsonObject = heard.state.get("_meta") or {}
        selection: JsonObject = {**put({**selection_of(heard.state)}, key, action.get(key)), CHANGED: key}
        return [{"type": "session/metaChanged", "_meta": {**meta, SELECTION: selection}}]

    return read


def _meta_changed(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    return [actions_up.with_hints(action, heard.state, by=None)]


def _toggled(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    said = actions_up.Said(heard.channel, "", lambda: heard.now, heard.state_of, heard.session_of)
    return [actions_up.action(action, said, by=V.V0_4)]


def _each(key: str, read: Callable[[JsonObject, Heard], JsonObject], *, many: bool = False) -> _Reading:
    """Read the value, or each of the values, that an action carries in a member."""

    def reading(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
        value = [read(one, heard) for one in action[key]] if many else read(action[key], heard)
        return [{**action, key: value}]

    return reading


def _terminal(value: JsonObject, heard: Heard) -> JsonObject:
    return up.terminal(value, actions_up.default_chat(heard.state_of))


def _claim(value: JsonObject, heard: Heard) -> JsonObject:
    return up.claim(value, actions_up.default_chat(heard.state_of))


def _reviewed(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
    """The name that 0.5.2 has for it."""
    after = without(action, "fileIds")
    return [{**after, "type": "changeset/filesReviewChanged", "files": action["fileIds"]}]


def _content_changed(action: JsonObject, heard: Heard) -> Sequence[JsonObject]:
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
    "chat/turnsLoaded": _each("turns", lambda value, heard: up.turn(value), many=True),
    "root/agentsChanged": _each("agents", lambda value, heard: up.with_customizations(value), many=True),
    "root/terminalsChanged": _each("terminals", _terminal, many=True),
    "session/activeClientChanged": _active_client_changed,
    "session/activeClientSet": _each("activeClient", lambda value, heard: up.with_customizations(value)),
    "session/activeClientToolsChanged": _active_client_tools,
    "session/agentChanged": _selected("agent"),
    "session/chatAdded": _each("summary", lambda value, heard: up.chat_summary(value)),
    "session/chatUpdated": _each("changes", lambda value, heard: up.chat_summary(value)),
    "session/customizationToggled": _toggled,
    "session/customizationUpdated": _each("customization", lambda value, heard: up.customization(value)),
    "session/customizationsChanged": _each("customizations", lambda value, heard: up.customization(value), many=True),
    "session/metaChanged": _meta_changed,
    "session/modelChanged": _selected("model"),
    "terminal/claimed": _each("claim", _claim),
}


def _summary_changes(changes: JsonObject) -> JsonObject:
    """In 0.4 an empty value says that a field was removed."""
    after = up.session_summary(changes)
    if changes.get("activity") == "":
        after = {**after, "activity": None}
    return after


# -- writing 0.4 ---------------------------------------------------------------------------------------------------


def _client_set(action: JsonObject, heard: Heard) -> Written:
    client = down.active_client(action["activeClient"], V.V0_4, ours=True)
    return Written({"type": "session/activeClientChanged", "activeClient": client})


def _client_removed(action: JsonObject, heard: Heard) -> Written:
    return Written({"type": "session/activeClientChanged", "activeClient": None})


def _start_turn(action: JsonObject, heard: Heard) -> Written:
    """Choose the model and agent of a message for the session, before the message."""
    session = heard.session_of(heard.channel)
    written = actions_down.action(without(action, "startedAt"), V.V0_4) or action
    message: JsonObject = written["message"]
    if session is None:
        return Written(written)
    selected = selection_of(heard.state_of(session))
    choices: list[tuple[str, JsonObject]] = [
        (session, {"type": f"session/{key}Changed", key: message[key]})
        for key in ("model", "agent")
        if message.get(key) is not None and message[key] != selected.get(key)
    ]
    return Written({**written, "message": without(message, "model", "agent")}, choices)


def _cancel_turn(action: JsonObject, heard: Heard) -> Written:
    return Written(without(action, "duration"))


_WRITINGS: Final[Mapping[str, Callable[[JsonObject, Heard], Written]]] = {
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


__all__ = ["Heard", "HostDialect", "Written"]
