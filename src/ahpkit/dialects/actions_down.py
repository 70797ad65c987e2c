"""Rewrites actions of 1.0.0 for clients of an older generation. Pure: hints are in the action's `_meta`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from ahpkit.dialects import states_down as states
from ahpkit.dialects.base import OutgoingAction
from ahpkit.dialects.generations import CHANGED, PRIMARY, SELECTION, Generation, Stream, knows_action, selection_of
from ahpkit.protocol.common.reducing import put, without
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

V = Generation

_Projection = Callable[[JsonObject, Generation], JsonObject | None]


def action(value: JsonObject, to: Generation) -> JsonObject | None:
    """A 1.0 action rewritten for readers of a generation; None when they get nothing."""
    if (to, value["type"]) not in _RENAMED and not knows_action(to, value["type"]):
        return None
    if value["type"] == "session/inputNeededSet" and not states.can_wait(value["request"], to):
        return None
    return _projected(value, to)


_RENAMED: Final = frozenset(
    {
        (V.V0_4, "session/activeClientSet"),
        (V.V0_4, "session/activeClientRemoved"),
        (V.V0_5_2, "changeset/filesReviewChanged"),
    }
)
"""Actions whose type has another name in some generation."""


def _projected(value: JsonObject, to: Generation) -> JsonObject | None:
    project = _PROJECTIONS.get(value["type"])
    return value if project is None else project(value, to)


# -- chat ----------------------------------------------------------------------------------------------------------


def _with_message(key: str) -> _Projection:
    def project(value: JsonObject, to: Generation) -> JsonObject:
        return {**value, key: states.message(value[key], to)} if isinstance(value.get(key), dict) else value

    return project


def _error(value: JsonObject, to: Generation) -> JsonObject:
    if to >= V.V0_9:
        return value
    after = {**value, "error": value["part"]["error"]}
    return without(after, "part", "duration") if to == V.V0_4 else after


def _response_part(value: JsonObject, to: Generation) -> JsonObject:
    part: JsonObject = value["part"]
    if part.get("kind") != "toolCall":
        return value
    return {**value, "part": {**part, "toolCall": states.tool_call(part["toolCall"], to)}}


def _tool_call_delta(value: JsonObject, to: Generation) -> JsonObject:
    return {"content": "", **value} if to < V.V0_7 else value


def _tool_call_ready(value: JsonObject, to: Generation) -> JsonObject:
    if to >= V.V0_7:
        return value
    after = without(value, "contributor")  # In these versions only the start of a call carries it.
    return {**after, "toolInput": states.tool_input(after["toolInput"])} if "toolInput" in after else after


def _turns_loaded(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "turns": [states.turn(turn, to) for turn in value["turns"]]}


# -- session -------------------------------------------------------------------------------------------------------


def _active_client_set(value: JsonObject, to: Generation) -> JsonObject | None:
    meta: JsonObject = value.get("_meta") or {}
    client = states.active_client(value["activeClient"], to, ours=True)
    if to > V.V0_4:
        return {**value, "activeClient": client}
    return {"type": "session/activeClientChanged", "activeClient": client} if meta.get(PRIMARY) else None


def _active_client_removed(value: JsonObject, to: Generation) -> JsonObject | None:
    if to > V.V0_4:
        return value
    meta: JsonObject = value.get("_meta") or {}
    if PRIMARY not in meta:
        return None
    following = meta[PRIMARY]
    client = None if following is None else states.active_client(following, to, ours=True)
    return {"type": "session/activeClientChanged", "activeClient": client}


def _meta_changed(value: JsonObject, to: Generation) -> JsonObject:
    if to > V.V0_4:
        return value
    selection = selection_of(value)
    match selection.get(CHANGED):
        case "model" if (model := selection.get("model")) is not None:
            return {"type": "session/modelChanged", "model": model}
        case "agent":
            return put({"type": "session/agentChanged"}, "agent", selection.get("agent"))
        case _:
            return states.without_note(value, SELECTION)


def _customization_toggled(value: JsonObject, to: Generation) -> JsonObject:
    if to >= V.V0_8:
        return value
    after = {**value, "enabled": states.enabled(value["enablement"])}
    return without(after, "enablement", "_meta") if to == V.V0_4 else after


def _customizations_changed(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "customizations": states.customizations(value["customizations"], to)}


def _customization_updated(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "customization": states.customization(value["customization"], to)}


def _chat_added(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "summary": states.chat_summary(value["summary"], to)}


def _chat_updated(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "changes": states.chat_summary(value["changes"], to)}


def _input_needed_set(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "request": states.input_needed(value["request"], to)}


# -- the others ----------------------------------------------------------------------------------------------------


def _agents_changed(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "agents": [states.agent(agent, to) for agent in value["agents"]]}


def _terminals_changed(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "terminals": [states.terminal(terminal, to) for terminal in value["terminals"]]}


def _annotation_set(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "annotation": states.annotation(value["annotation"], to)}


def _annotation_updated(value: JsonObject, to: Generation) -> JsonObject:
    return value if "origin" not in value else states.annotation(value, to)


def _status_changed(value: JsonObject, to: Generation) -> JsonObject:
    return {**value, "status": states.changeset_status(value["status"], to)}


def _review_changed(value: JsonObject, to: Generation) -> JsonObject:
    if to >= V.V0_6:
        return value
    return {"type": "changeset/filesReviewedChanged", "fileIds": value["files"], "reviewed": value["reviewed"]}


_PROJECTIONS: Final[Mapping[str, _Projection]] = {
    "annotations/set": _annotation_set,
    "annotations/updated": _annotation_updated,
    "changeset/filesReviewChanged": _review_changed,
    "changeset/statusChanged": _status_changed,
    "chat/draftChanged": _with_message("draft"),
    "chat/error": _error,
    "chat/pendingMessageSet": _with_message("message"),
    "chat/responsePart": _response_part,
    "chat/toolCallConfirmed": _with_message("userSuggestion"),
    "chat/toolCallDelta": _tool_call_delta,
    "chat/toolCallReady": _tool_call_ready,
    "chat/turnStarted": _with_message("message"),
    "chat/turnsLoaded": _turns_loaded,
    "root/agentsChanged": _agents_changed,
    "root/terminalsChanged": _terminals_changed,
    "session/activeClientRemoved": _active_client_removed,
    "session/activeClientSet": _active_client_set,
    "session/chatAdded": _chat_added,
    "session/chatUpdated": _chat_updated,
    "session/customizationToggled": _customization_toggled,
    "session/customizationUpdated": _customization_updated,
    "session/customizationsChanged": _customizations_changed,
    "session/inputNeededSet": _input_needed_set,
    "session/metaChanged": _meta_changed,
}

# -- bytes ---------------------------------------------------------------------------------------------------------

_AS: Final[Mapping[Stream, Generation]] = {Stream.L: V.V0_5_0, Stream.Z: V.V0_4}
"""The oldest generation that reads a stream. Newer readers of the stream understand its form too."""


def payload(logged: bytes, stream: Stream, outgoing: OutgoingAction | None = None) -> bytes:
    """A logged envelope as the bytes of the stream that `routes` chose for it.

    With its `outgoing`, all readers of the stream get the same bytes object.
    """
    generation = _AS.get(stream)
    if generation is None:
        return logged
    if outgoing is None:
        envelope: JsonObject = decode_own(logged)
        return encode({**envelope, "action": _projected(envelope["action"], generation)})
    made = outgoing.made.get(stream)
    if made is None:
        seq = int(logged[logged.rindex(b":") + 1 : -1])  # The number is added at the end.
        action = _projected(outgoing.envelope["action"], generation)
        made = outgoing.made[stream] = encode({**outgoing.envelope, "action": action, "serverSeq": seq})
    return made


CLIENT_SET: Final = "session/activeClientSet"

_CANVAS_MARKS: Final = (b'"canvasProviders"', b'"canRenderCanvases"')


def without_canvases(envelope: bytes) -> bytes:
    """A `CLIENT_SET` without its canvas members, for readers that did not ask for the canvas extension."""
    if not any(mark in envelope for mark in _CANVAS_MARKS):
        return envelope
    decoded: JsonObject = decode_own(envelope)
    client = states.active_client(decoded["action"]["activeClient"], V.V1_0, ours=False)
    return encode({**decoded, "action": {**decoded["action"], "activeClient": client}})


_HOSTS_TIMES = ("startedAt", "duration")
"""Members that the host sets by its own clock, whatever the client sent."""


def as_said(logged: JsonObject) -> JsonObject:
    """A logged action as its sender said it. A 0.4 client that gives up the role does not say who has it next."""
    meta: JsonObject = logged.get("_meta") or {}
    if logged["type"] != "session/activeClientRemoved" or PRIMARY not in meta:
        return logged
    return {**logged, "_meta": {**meta, PRIMARY: None}}


def is_repeat(sent: JsonObject, logged: JsonObject) -> bool:
    """Whether an action that a client sends again is the same as a logged one. Both are in the client's version.

    The host adds members, such as the model of a message, so the logged action may have more members. New tools of the
    active client of 0.4 are logged as its whole entry.
    """
    if sent["type"] == "session/activeClientToolsChanged" and logged["type"] == "session/activeClientChanged":
        sent = {"type": logged["type"], "activeClient": {"tools": sent["tools"]}}
    return _covers(without(sent, *_HOSTS_TIMES), logged)


def _covers(sent: Any, logged: Any) -> bool:
    if isinstance(sent, dict) and isinstance(logged, dict):
        ours, theirs = cast("JsonObject", logged), cast("JsonObject", sent)
        return all(key in ours and _covers(value, ours[key]) for key, value in theirs.items())
    if isinstance(sent, list) and isinstance(logged, list):
        mine, yours = cast("list[Any]", logged), cast("list[Any]", sent)
        return len(mine) == len(yours) and all(map(_covers, yours, mine))
    return sent == logged


__all__ = ["CLIENT_SET", "action", "as_said", "is_repeat", "payload", "without_canvases"]
