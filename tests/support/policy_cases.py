"""States and helpers for the policy tests: one check, who dispatches, what comes out."""

from __future__ import annotations

from typing import Any, cast

from ahpkit.dialects.actions_up import ClientContext, refusal
from ahpkit.dialects.actions_up import action as up
from ahpkit.dialects.generations import Generation
from ahpkit.dialects.states_up import marked_primary, state_of_kind
from ahpkit.dialects.v0_4.channels import ROOT_URI, channel_of
from ahpkit.host.policy import check_action
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import SessionState

CHAT = "ahp-chat:/c"
SESSION = "ahp-session:/s"
ANNOTATIONS = "ahp-session:/s/annotations"
TERMINAL = "ahp-terminal:/t"


def check(
    channel: str, state: JsonObject, type: str, *, by: str = "me", session: JsonObject | None = None, **fields: Any
) -> str | None:
    """The policy's answer to `by` dispatching this action over a 0.4 connection; states are given as 0.4 has them."""
    states = {ROOT_URI: _up(ROOT_URI, ROOT), channel: _up(channel, state)}
    said = ClientContext(channel, by, lambda: 0, states.get, _session_of)
    dispatched: JsonObject = {"type": type, **fields}
    if (reason := refusal(dispatched, said)) is not None:
        return reason
    action = up(dispatched, said, by=Generation.V0_4)
    return check_action(
        client_id=by,
        channel=channel,
        kind=kind.name if (kind := channel_of(channel)) else None,
        action=cast("StateAction", action),
        state=states[channel],
        state_of=states.get,
        session=None if session is None else cast("SessionState", _up(SESSION, session)),
    )


def _session_of(uri: str) -> str:
    return SESSION


def _up(uri: str, state: JsonObject) -> Any:
    channel = channel_of(uri)
    assert channel is not None
    after = state_of_kind(channel.name, state, session=SESSION, default_chat=lambda session: CHAT)
    if "activeClient" in state:
        after["activeClients"] = [marked_primary(client, ()) for client in after["activeClients"]]
    return after


ROOT: JsonObject = {
    "agents": [
        {
            "provider": "demo",
            "displayName": "Demo",
            "description": "",
            "models": [
                {"id": "small", "provider": "demo", "name": "Small"},
                {"id": "off", "provider": "demo", "name": "Off", "policyState": "disabled"},
            ],
        }
    ]
}


def session(**fields: Any) -> JsonObject:
    summary = {
        "resource": SESSION,
        "provider": "demo",
        "title": "T",
        "status": 1,
        "createdAt": 1,
        "modifiedAt": 1,
    }
    return {"summary": summary, "lifecycle": "ready", "chats": [], **fields}


def chat(**fields: Any) -> JsonObject:
    return {
        "resource": CHAT,
        "title": "T",
        "status": 1,
        "modifiedAt": "1970-01-01T00:00:00.000Z",
        "turns": [{"id": "t1", "message": message(), "responseParts": [], "state": "complete"}],
        **fields,
    }


def busy_chat(*tool_calls: JsonObject, **fields: Any) -> JsonObject:
    """A chat whose turn `t2` runs, with these tool calls."""
    parts = [{"kind": "toolCall", "toolCall": call} for call in tool_calls]
    text = {"kind": "markdown", "id": "p", "content": "hi"}
    return chat(activeTurn={"id": "t2", "message": message(), "responseParts": [text, *parts]}, **fields)


def tool_call(status: str, **fields: Any) -> JsonObject:
    return {"toolCallId": "c1", "toolName": "n", "displayName": "N", "status": status, **fields}


def message(kind: str = "user") -> JsonObject:
    return {"text": "hi", "origin": {"kind": kind}}
