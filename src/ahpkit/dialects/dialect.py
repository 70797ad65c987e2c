"""The dialect of one connection: translates all messages between its client and the host.

Everything inside the host is 1.0.0. A client's message is first checked against the client's own version, so that
errors name the fields of that version, and then translated to 1.0.0.

Messages are also adapted to what the client can show, whatever its version. VS Code offers only agents that have
models. For it, an agent that reports its models later, or never, gets a stand-in model. The stand-in is removed from
the messages that the client sends. A client that does not render MCP Apps gets no `mcpApp` and no `mcp://` channel of a
server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, cast

from msgspec import Raw

from ahpkit.dialects import actions_down, actions_up, validation
from ahpkit.dialects import states_down as states
from ahpkit.dialects.base import ClientFacts, Dialect, MustReconnect, OutgoingAction
from ahpkit.dialects.generations import (
    IDENTICAL,
    OUR_ACTIONS,
    Generation,
    Routes,
    Stream,
    dispatched_by,
    fixed_route,
    knows_action,
    knows_method,
    may_dispatch,
    routes,
)
from ahpkit.dialects.negotiation import AgreedVersion
from ahpkit.protocol.common.reducing import without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import ContentNotFound, InvalidParams, MethodNotFound, NotFound, RpcError
from ahpkit.protocol.registry import ACTIONS
from ahpkit.protocol.validation import check, check_action
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.pieces import Items

AGENTS_CHANGED: Final = "root/agentsChanged"
"""The action that carries agents, and so their models."""

APP_ACTIONS: Final = frozenset(
    {"session/customizationsChanged", "session/customizationUpdated", "session/mcpServerStateChanged"}
)
"""Actions that may carry `mcpApp` or the channel of a server."""

STAND_IN_MODEL: Final = "ahpkit-any-model"
_MODEL_NAME: Final = "The agent's own choice"
_NO_MODELS: Final = b'"models":[]'
MESSAGES: Final = frozenset({"message", "draft", "initialMessage"})
"""Members of actions and params that hold a message."""

_APP_FIELDS: Final = ("mcpApp", "channel")
_APP_MARKS: Final = (b'"mcpApp"', b'"mcp://')


def _edit(envelope: bytes, edit: Callable[[JsonObject], JsonObject]) -> bytes:
    """An envelope whose action was changed by `edit`."""
    decoded: JsonObject = decode_own(envelope)
    return encode({**decoded, "action": edit(decoded["action"])})


# -- a model for every agent ---------------------------------------------------------------------------------------


def envelope_with_models(envelope: bytes) -> bytes:
    """Give every agent in an envelope of `AGENTS_CHANGED` a model. It is not decoded when all agents have models."""
    return _edit(envelope, with_models) if _NO_MODELS in envelope else envelope


def with_models(value: JsonObject) -> JsonObject:
    """The root's state, or the action `AGENTS_CHANGED`, with a model for every agent."""
    agents: Sequence[JsonObject] = value.get("agents") or ()
    return {**value, "agents": [_agent_with_models(agent) for agent in agents]} if agents else value


def _agent_with_models(agent: JsonObject) -> JsonObject:
    if agent.get("models"):
        return agent
    return {**agent, "models": [{"id": STAND_IN_MODEL, "provider": agent["provider"], "name": _MODEL_NAME}]}


def without_stand_in(value: JsonObject) -> JsonObject:
    """An action or params without the stand-in model in its messages."""
    for key in () if MESSAGES.isdisjoint(value) else MESSAGES:
        message: Any = value.get(key)
        if isinstance(message, dict) and _names_stand_in(cast("JsonObject", message)):
            value = {**value, key: without(cast("JsonObject", message), "model")}
    return value


def _names_stand_in(message: JsonObject) -> bool:
    model: Any = message.get("model")
    return isinstance(model, dict) and cast("JsonObject", model).get("id") == STAND_IN_MODEL


# -- MCP Apps ------------------------------------------------------------------------------------------------------


def envelope_without_apps(envelope: bytes) -> bytes:
    """Remove the apps from an envelope of one of `APP_ACTIONS`. Most have none, and are not decoded."""
    return _edit(envelope, action_without_apps) if any(mark in envelope for mark in _APP_MARKS) else envelope


def action_without_apps(action: JsonObject) -> JsonObject:
    match action["type"]:
        case "session/mcpServerStateChanged" if "channel" in action:
            return {key: value for key, value in action.items() if key != "channel"}
        case "session/customizationUpdated":
            return {**action, "customization": _entry_without_apps(action["customization"])}
        case "session/customizationsChanged":
            return {**action, "customizations": [_entry_without_apps(entry) for entry in action["customizations"]]}
        case _:
            return action


def state_without_apps(state: JsonObject) -> JsonObject:
    """A session's state without the apps and channels of its servers."""
    entries: list[JsonObject] = state.get("customizations") or []
    shown = [_entry_without_apps(entry) for entry in entries]
    return state if shown == entries else {**state, "customizations": shown}


def _entry_without_apps(entry: JsonObject) -> JsonObject:
    if entry.get("type") == "mcpServer":
        return {key: value for key, value in entry.items() if key not in _APP_FIELDS}
    children: list[JsonObject] = entry.get("children") or []
    shown = [_entry_without_apps(child) if child.get("type") == "mcpServer" else child for child in children]
    return entry if shown == children else {**entry, "children": shown}


V = Generation

_OLDEST, _N, _OMIT, _RESYNC = V.V0_4, Stream.N, Stream.OMIT, Stream.RESYNC
"""Constants, because these are used for every action and reader, and looking up members of an enumeration is slow."""

_AT_ONCE = 500
"""Sessions of a list that are translated in one step: some milliseconds. Longer lists are written by `SessionLists`."""

_MAX_NAME = 100
"""Characters. An error shortens a longer type of an unknown action."""


class SessionLists:
    """Writes long lists of sessions. A session whose summary is still the same object is not written again.

    The summaries of the last list of each generation are kept with their JSON.
    """

    def __init__(self) -> None:
        self._kept: dict[Generation, dict[int, tuple[JsonObject, Raw]]] = {}
        """By the `id()` of the summary. The summary is kept too, so that no other object can get the same id."""

    def written(self, sessions: Sequence[JsonObject], generation: Generation) -> Iterator[Raw]:
        """The JSON of each session, made while iterating."""
        before = self._kept.get(generation, {})
        kept = self._kept[generation] = {}
        for one in sessions:
            found = before.get(id(one))
            if found is None:
                found = one, Raw(encode(states.session_summary(one, generation)))
            kept[id(one)] = found
            yield found[1]


class Surroundings(Protocol):
    """The data of the host, besides the states, that translations need."""

    @property
    def lists(self) -> SessionLists:
        """Shared by all connections."""
        ...

    def kind(self, uri: str) -> str | None:
        """The kind of a channel ("session", "chat", …), which is fixed when the channel is created."""
        ...

    def session_of(self, uri: str) -> str | None:
        """The session that a chat or an annotations channel belongs to; a session itself."""
        ...

    def summary(self, session: str) -> JsonObject | None:
        """A session's entry in the catalogue, as 1.0.0."""
        ...

    def title(self, chat: str) -> str | None:
        """The title to show for the only chat of a session: that of the session. None for other chats."""
        ...


@dataclass(frozen=True, slots=True)
class GenerationDialect:
    """Implements `ahpkit.dialects.base.Dialect` for every generation."""

    version: str
    """The agreed version, spelled as the client offered it."""
    generation: Generation
    host: Surroundings
    canvases: bool = False
    """Whether the client gets canvas state and actions. 0.4 always does: its specification contains them."""
    apps: bool = False
    """Whether the client renders MCP Apps (`mcpApps`): only then does it get the channels of MCP servers."""
    needs_models: bool = False
    """Whether the client offers only agents that have models (VS Code). Then agents without models get a stand-in
    model."""

    @property
    def stream(self) -> str:
        marks = {"+canvases": self.ours, "+apps": self.apps, "+models": self.needs_models}
        return self.generation.release + "".join(mark for mark, is_set in marks.items() if is_set)

    @property
    def ours(self) -> bool:
        return self.canvases or self.generation == V.V0_4

    # -- from the client -------------------------------------------------------------------------------------------

    def read(self, method: str, params: JsonObject, facts: ClientFacts) -> tuple[str, JsonObject]:
        if not knows_method(self.generation, method):
            raise MethodNotFound(f"there is no method {method} in version {self.version}")
        validation.check_params(method, params, by=self.generation)
        cleaned = without_stand_in(validation.own_params(method, params))
        return method, actions_up.params(method, cleaned, facts.state_of, by=self.generation)

    def read_action(self, channel: str, action: JsonObject, facts: ClientFacts) -> JsonObject:
        by, ours = self.generation, self.canvases or self.generation == _OLDEST
        kind: Any = action.get("type")
        plain = isinstance(kind, str) and _SPECIAL.isdisjoint(action)
        if plain and (shape := _plain_shapes(by, ours).get(kind)) is not None:
            check(shape, action, at="action")
            return action
        if isinstance(kind, str) and not may_dispatch(by, kind, ours=ours):  # Checked before the other fields.
            raise InvalidParams(self._refusal(kind))
        validation.check_action(action, by=by)
        own = without_stand_in(validation.own_action(action))
        if _is_newest(by, kind):
            return own
        context = actions_up.ClientContext(channel, facts.client_id, facts.now, facts.state_of, self.host.session_of)
        if (reason := actions_up.refusal(action, context)) is not None:
            raise InvalidParams(reason)
        read = actions_up.action(own, context, by=by)
        check_action(read)
        return read

    def _refusal(self, action_type: str) -> str:
        """Why a client of this version may not dispatch an action."""
        if knows_action(self.generation, action_type) or (self.ours and action_type in OUR_ACTIONS):
            return f"{action_type} is dispatched by the host, not by clients"
        return f"unknown action type {action_type[:_MAX_NAME]!r}: version {self.version} has no such action"

    def read_answer(self, method: str, result: Any) -> Any:
        return result

    def is_repeat(self, sent: JsonObject, logged: JsonObject) -> bool:
        projected = self._action(actions_down.as_said(logged))
        return projected is not None and actions_down.is_repeat(without_stand_in(sent), projected)

    # -- to the client ---------------------------------------------------------------------------------------------

    def is_same(self, action_type: str) -> bool:
        if action_type == AGENTS_CHANGED and self.needs_models:
            return False
        return action_type in IDENTICAL and (self.apps or action_type not in APP_ACTIONS)

    def form(self, action_type: str) -> str | None:
        if self.is_same(action_type):
            return _N.value
        return _form(self.generation, action_type) if action_type in _FORMED else None

    def action(self, action_type: str, envelope: bytes, outgoing: OutgoingAction | None = None) -> bytes | None:
        stream = self._routes(action_type, envelope, outgoing)[self.generation]
        if stream is _RESYNC:
            raise MustReconnect(f"version {self.version} cannot express {action_type}")
        if stream is _OMIT:
            return None
        sent = envelope if stream is _N else actions_down.payload(envelope, stream, outgoing)
        if action_type == AGENTS_CHANGED and self.needs_models:
            return envelope_with_models(sent)
        if action_type == actions_down.CLIENT_SET and not self.ours:
            return actions_down.without_canvases(sent)
        if action_type in APP_ACTIONS and not self.apps:
            return envelope_without_apps(sent)
        return sent

    def _routes(self, action_type: str, envelope: bytes, outgoing: OutgoingAction | None) -> Routes:
        """Looked up once for all readers of an action."""
        if outgoing is None:
            return routes(action_type, envelope, ours=self.ours)
        ours = self.canvases or self.generation == _OLDEST
        if ours not in outgoing.routes:
            outgoing.routes[ours] = routes(action_type, envelope, ours=ours)
        return outgoing.routes[ours]

    def _action(self, action: JsonObject) -> JsonObject | None:
        if not self.apps:
            action = action_without_apps(action)
        if action["type"] in OUR_ACTIONS:
            return action if self.ours else None
        return actions_down.action(action, self.generation)

    def rejection(self, envelope: JsonObject) -> JsonObject:
        return envelope

    def state(self, channel: str, state: JsonObject) -> JsonObject:
        kind = self.host.kind(channel)
        if kind == "chat":
            state = states.titled(state, self.host.title(channel))
        if kind == "root" and self.needs_models:
            state = with_models(state)
        if kind != "session":
            return states.state_of_kind(kind or "", state, self.generation)
        summary = self.host.summary(channel) or {}
        state = state if self.apps else state_without_apps(state)
        return states.session_state(state, self.generation, channel, summary, ours=self.ours)

    def result(self, method: str, params: Mapping[str, Any], result: Any) -> Any:
        match method:
            case "listSessions":
                return {**result, "items": self._listed(result["items"])}
            case "fetchTurns" if self.takes_windows:
                return {}
            case "fetchTurns" if "turns" in result:
                return {**result, "turns": [states.turn(one, self.generation) for one in result["turns"]]}
            case "resolveSessionConfig" if self.generation == V.V0_4:
                return {**result, "schema": states.config_schema(result["schema"])}
            case "completions" if self.generation < V.V0_7:
                return {**result, "items": [_completion(one, self.generation) for one in result["items"]]}
            case _:
                return result

    def _listed(self, sessions: Sequence[JsonObject]) -> list[JsonObject] | Items:
        """The translated summaries of a list of sessions. A long list is translated while it is written."""
        if len(sessions) <= _AT_ONCE:
            return [states.session_summary(one, self.generation) for one in sessions]
        return Items(lambda: self.host.lists.written(sessions, self.generation))

    def error(self, method: str, error: RpcError) -> RpcError:
        if self.generation >= V.V0_9 and isinstance(error, ContentNotFound):
            return NotFound(error.message, error.data)  # 0.9 removed the error code that older versions have.
        return error

    def notification(self, method: str, params: JsonObject) -> tuple[str, JsonObject] | None:
        if not knows_method(self.generation, method):
            return None
        match method:
            case "root/sessionAdded":
                return method, {**params, "summary": states.session_summary(params["summary"], self.generation)}
            case "root/sessionSummaryChanged":
                return method, {**params, "changes": states.session_summary(params["changes"], self.generation)}
            case "auth/required" if self.generation < V.V0_8 and isinstance(params.get("resource"), dict):
                return method, {**params, "resource": params["resource"]["resource"]}
            case "action":
                action = self._action(params["action"])
                return None if action is None else (method, {**params, "action": action})
            case _:
                return method, params

    def request(self, method: str, params: JsonObject) -> tuple[str, JsonObject]:
        return method, params

    @property
    def tolerates_settings(self) -> bool:
        return self.generation > V.V0_4

    # -- ways of a version -----------------------------------------------------------------------------------------

    @property
    def takes_windows(self) -> bool:
        """Whether older turns can be sent as an action. Before 0.5.1 only the answer to `fetchTurns` contains them."""
        return self.generation >= V.V0_5_1


def dialect_for(
    agreed: AgreedVersion, host: Surroundings, *, canvases: bool = False, apps: bool = False, needs_models: bool = False
) -> Dialect:
    """The dialect of a connection whose version was agreed on."""
    return GenerationDialect(agreed.version, agreed.generation, host, canvases, apps, needs_models)


_SPECIAL = frozenset({"_meta", "activeClient"}) | MESSAGES
"""Members of a client's action from which parts may have to be removed."""


_FORMED = ACTIONS.keys() - {AGENTS_CHANGED, actions_down.CLIENT_SET, *APP_ACTIONS}
"""Actions that have the same content for all clients of a version."""


@cache
def _form(to: Generation, action_type: str) -> str | None:
    stream = fixed_route(to, action_type)
    return None if stream is None else stream.value


@cache
def _plain_shapes(by: Generation, ours: bool) -> Mapping[str, Any]:
    """The shapes of the actions that clients of a generation may dispatch in the form of 1.0.0.

    If such an action has none of the `_SPECIAL` members, checking its shape is all that reading it needs.
    """
    return {kind: ACTIONS[kind].shape for kind in dispatched_by(by, ours) if kind in ACTIONS and _is_newest(by, kind)}


@cache
def _is_newest(by: Generation, action_type: str) -> bool:
    """Whether clients of a generation dispatch an action in exactly the form of 1.0.0."""
    return validation.is_newest(action_type, by) and not actions_up.is_rewritten(action_type, by)


def _completion(item: JsonObject, to: Generation) -> JsonObject:
    attached: JsonObject | None = item.get("attachment")
    return item if attached is None else {**item, "attachment": states.attachment(attached, to)}


__all__ = ["GenerationDialect", "SessionLists", "Surroundings", "dialect_for"]
