"""States and helpers for the policy tests: one check, who dispatches, what comes out."""

from __future__ import annotations

from typing import Any

from ahpkit.host.policy import check_action
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject

CHAT = "ahp-chat:/c"
SESSION = "ahp-session:/s"
ANNOTATIONS = "ahp-session:/s/annotations"
TERMINAL = "ahp-terminal:/t"


def check(
    channel: str, state: JsonObject, type: str, *, by: str = "me", session: JsonObject | None = None, **fields: Any
) -> str | None:
    """The policy's answer to `by` dispatching this action."""
    states = {channel: state} if channel == ROOT_URI else {channel: state, ROOT_URI: ROOT}
    action = {"type": type, **fields}
    return check_action(client_id=by, channel=channel, action=action, state=state, state_of=states.get, session=session)


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
