"""Whatever passes the check of its shape, the policy answers: a reason or None, never an exception."""

from __future__ import annotations

import copy
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.dialects.v0_4.registry import ACTIONS as OLDEST
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams
from support import for_each, oldest
from support.policy_cases import (
    ANNOTATIONS,
    CHAT,
    ROOT,
    SESSION,
    TERMINAL,
    busy_chat,
    check,
    message,
    session,
    tool_call,
)

QUESTION = {"id": "q", "message": "?", "kind": "multi-select", "options": [{"id": "a", "label": "A"}], "required": True}
CLAIM = {"kind": "client", "clientId": "me"}
CONFIG: JsonObject = {
    "schema": {"type": "object", "properties": {"mode": {"type": "string", "title": "M", "sessionMutable": True}}},
    "values": {},
}
CALL: JsonObject = {"turnId": "t2", "toolCallId": "c1"}

STATES: dict[str, JsonObject] = {
    ROOT_URI: {**ROOT, "config": CONFIG},
    SESSION: session(
        config=CONFIG,
        activeClient={"clientId": "me", "tools": []},
        customizations=[{"type": "plugin", "id": "p", "uri": "x:p", "name": "P", "enabled": True}],
        canvasRequests=[{"requestId": "r", "kind": "open", "target": {"kind": "activeClient", "clientId": "me"}}],
        openCanvases=[{"instanceId": "i", "renderer": {"clientId": "me"}}],
    ),
    CHAT: busy_chat(
        tool_call("running", contributor=CLAIM),
        inputRequests=[{"id": "r", "questions": [QUESTION]}],
        queuedMessages=[{"id": "q", "message": message()}],
    ),
    TERMINAL: {"title": "T", "content": [], "claim": CLAIM},
    ANNOTATIONS: {"annotations": [{"id": "n", "entries": [{"id": "e", "text": "x"}]}]},
}
ANSWER = {"state": "submitted", "value": {"kind": "selected-many", "value": ["a"], "freeformValues": []}}

ACTIONS: dict[str, tuple[str, JsonObject]] = {
    "root/configChanged": (ROOT_URI, {"config": {"mode": "x"}, "replace": True}),
    "session/titleChanged": (SESSION, {"title": "x"}),
    "session/modelChanged": (SESSION, {"model": {"id": "small"}}),
    "session/agentChanged": (SESSION, {"agent": {"uri": "file:///a"}}),
    "session/isReadChanged": (SESSION, {"isRead": True}),
    "session/isArchivedChanged": (SESSION, {"isArchived": True}),
    "session/configChanged": (SESSION, {"config": {"mode": "x"}, "replace": False}),
    "session/activeClientChanged": (
        SESSION,
        {
            "activeClient": {
                "clientId": "me",
                "tools": [{"name": "t"}],
                "customizations": [{"type": "plugin", "id": "c", "uri": "x:c", "name": "C", "enabled": True}],
                "canvasProviders": [
                    {"canvasId": "c", "displayName": "C", "description": "", "actions": [{"name": "a"}]}
                ],
            }
        },
    ),
    "session/activeClientToolsChanged": (SESSION, {"tools": [{"name": "t"}]}),
    "session/customizationToggled": (SESSION, {"id": "p", "enabled": True}),
    "session/canvasRequestCompleted": (SESSION, {"requestId": "r", "result": {"kind": "open", "url": "x"}}),
    "session/canvasInstanceCloseRequested": (SESSION, {"instanceId": "i"}),
    "chat/turnStarted": (CHAT, {"turnId": "t3", "message": message(), "queuedMessageId": "q"}),
    "chat/turnCancelled": (CHAT, {"turnId": "t2"}),
    "chat/truncated": (CHAT, {"turnId": "t1"}),
    "chat/pendingMessageSet": (CHAT, {"kind": "queued", "id": "q", "message": message()}),
    "chat/pendingMessageRemoved": (CHAT, {"kind": "queued", "id": "q"}),
    "chat/queuedMessagesReordered": (CHAT, {"order": ["q"]}),
    "chat/toolCallConfirmed": (CHAT, {**CALL, "approved": True, "confirmed": "user-action", "selectedOptionId": "o"}),
    "chat/toolCallResultConfirmed": (CHAT, {**CALL, "approved": True}),
    "chat/toolCallComplete": (CHAT, {**CALL, "result": {"success": True, "pastTenseMessage": "x"}}),
    "chat/toolCallContentChanged": (CHAT, {**CALL, "content": [{"type": "text", "text": "x"}]}),
    "chat/inputAnswerChanged": (CHAT, {"requestId": "r", "questionId": "q", "answer": ANSWER}),
    "chat/inputCompleted": (CHAT, {"requestId": "r", "response": "accept", "answers": {"q": ANSWER}}),
    "terminal/input": (TERMINAL, {"data": "x"}),
    "terminal/resized": (TERMINAL, {"cols": 1, "rows": 1}),
    "terminal/claimed": (TERMINAL, {"claim": CLAIM}),
    "terminal/cleared": (TERMINAL, {}),
    "terminal/titleChanged": (TERMINAL, {"title": "x"}),
    "annotations/set": (
        ANNOTATIONS,
        {
            "annotation": {
                "id": "m",
                "turnId": "t",
                "resource": "x:",
                "resolved": False,
                "entries": [{"id": "e", "text": ""}],
            }
        },
    ),
    "annotations/updated": (ANNOTATIONS, {"annotationId": "n", "resolved": True}),
    "annotations/removed": (ANNOTATIONS, {"annotationId": "n"}),
    "annotations/entrySet": (ANNOTATIONS, {"annotationId": "n", "entry": {"id": "f", "text": "x"}}),
    "annotations/entryRemoved": (ANNOTATIONS, {"annotationId": "n", "entryId": "e"}),
}

WRONG = st.sampled_from([None, True, 0, -1.5, "", "x", [], ["x"], {}, {"kind": "odd"}, {"state": "odd"}, {"id": "q"}])


def test_there_is_an_example_of_every_action() -> None:
    assert {kind for kind, spec in OLDEST.items() if spec.client_dispatchable} == set(ACTIONS)


@for_each(ACTIONS)
def test_every_example_has_the_right_shape(type: str) -> None:
    oldest.check_action({"type": type, **ACTIONS[type][1]})


@given(st.sampled_from(sorted(ACTIONS)), st.data())
def test_an_action_with_something_odd_in_it_is_answered(type: str, data: st.DataObject) -> None:
    channel, fields = ACTIONS[type]
    action: JsonObject = {"type": type, **copy.deepcopy(fields)}
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(action, data)
    try:
        oldest.check_action(action)
    except InvalidParams:
        return
    answer = check(channel, STATES[channel], **action)
    assert answer is None or answer


def spoil(action: JsonObject, data: st.DataObject) -> None:
    """Change or remove one member, somewhere."""
    places = [(node, key) for node, key in walk(action) if not (node is action and key == "type")]
    if not places:
        return
    node, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        node[key] = copy.deepcopy(data.draw(WRONG))
    else:
        del node[key]


def walk(node: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: what holds it, and under which key."""
    if not isinstance(node, dict | list):
        return []
    holder = cast(Any, node)
    keys = list(holder) if isinstance(node, dict) else list(range(len(holder)))
    return [(holder, key) for key in keys] + [place for key in keys for place in walk(holder[key])]
