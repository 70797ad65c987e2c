"""What clients may do about canvases: every row of the validation table."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from support import requirement
from support.policy_cases import SESSION, check, session

TO_ME: JsonObject = {"kind": "activeClient", "clientId": "me"}
TO_HOST: JsonObject = {"kind": "server"}
RESULT: JsonObject = {"result": {"kind": "open", "url": "https://example.com"}}
ERROR: JsonObject = {"error": {"code": "canvas_action_no_handler", "message": "no"}}


def asked(target: JsonObject, kind: str = "open") -> JsonObject:
    request = {"requestId": "r", "kind": kind, "instanceId": "i", "canvasId": "c", "extensionId": "e", "target": target}
    return session(canvasRequests=[request])


def complete(state: JsonObject, *, by: str = "me", **fields: Any) -> str | None:
    fields = {"requestId": "r", **fields}
    return check(SESSION, state, "session/canvasRequestCompleted", by=by, **fields)


@requirement("canvas:request:completed-by-target-only")
@requirement("canvas:roles:provider-answers")
def test_the_client_a_request_is_for_answers_it_and_nobody_else() -> None:
    assert complete(asked(TO_ME), **RESULT) is None
    assert complete(asked(TO_ME), **ERROR) is None
    assert complete(asked(TO_ME), by="other", **RESULT) == "this canvas request is for another client"
    rendered_elsewhere = {**shown(renderer={"clientId": "other"}), **asked(TO_ME)}
    assert complete(rendered_elsewhere, by="other", **RESULT) == "this canvas request is for another client"


@requirement("canvas:validate:unknown-request")
def test_a_request_that_is_not_there_cannot_be_completed() -> None:
    assert complete(asked(TO_ME), requestId="x", **RESULT) == "there is no canvas request 'x'"
    assert complete(session(), **RESULT) == "there is no canvas request 'r'"


@requirement("canvas:validate:neither-or-both")
@pytest.mark.parametrize("outcome", [{}, {**RESULT, **ERROR}, {"result": None, "error": None}])
def test_a_completion_has_a_result_or_an_error(outcome: JsonObject) -> None:
    assert complete(asked(TO_ME), **outcome) == "a completed canvas request has exactly one of result and error"


@requirement("canvas:request:server-target-rejects-clients")
def test_requests_to_the_host_are_not_answered_by_clients() -> None:
    assert complete(asked(TO_HOST), **RESULT) == "this canvas request is answered by the host"


@requirement("canvas:validate:kind-mismatch")
@pytest.mark.parametrize("answer", ["open", "action", "close"])
@pytest.mark.parametrize("kind", ["open", "action", "close"])
def test_the_result_is_of_the_requests_kind(kind: str, answer: str) -> None:
    expected = None if kind == answer else f"a canvas request of kind {kind} cannot have a result of kind {answer}"
    assert complete(asked(TO_ME, kind), result={"kind": answer}) == expected


def close(state: JsonObject, instance: str = "i", *, by: str = "me") -> str | None:
    return check(SESSION, state, "session/canvasInstanceCloseRequested", by=by, instanceId=instance)


def shown(**fields: Any) -> JsonObject:
    instance = {"instanceId": "i", "canvasId": "c", "extensionId": "e", "availability": "ready", **fields}
    return session(openCanvases=[instance])


@requirement("canvas:validate:close-unknown-instance")
def test_asking_to_close_what_is_not_open_is_no_mistake() -> None:
    assert close(session()) is None
    assert close(shown(renderer={"clientId": "other"}), "x") is None


@requirement("canvas:validate:close-by-other-than-renderer")
def test_only_the_renderer_asks_to_close_when_there_is_one() -> None:
    assert close(shown(renderer={"clientId": "me"})) is None
    assert close(shown(renderer={"clientId": "other"})) == "canvas instance 'i' is shown by another client"
    assert close(shown(), by="anyone") is None


def declare(*canvases: JsonObject, **fields: Any) -> str | None:
    active = {"clientId": "me", "tools": [], "canvasProviders": list(canvases), **fields}
    return check(SESSION, session(), "session/activeClientChanged", activeClient=active)


def canvas(id: str, *actions: str) -> JsonObject:
    names = [{"name": name} for name in actions]
    return {"canvasId": id, "displayName": id, "description": "", "actions": names}


def test_a_client_declares_canvases_says_it_renders_or_both() -> None:
    assert declare(canvas("chart", "add", "clear"), canvas("list", "add")) is None
    assert declare(canRenderCanvases=True) is None


@pytest.mark.parametrize(
    ("canvases", "reason"),
    [
        ([canvas("a"), canvas("a")], "canvas id 'a' is given twice"),
        ([canvas("")], "the canvas id must not be empty"),
        ([canvas("a", "x", "x")], "action name 'x' is given twice in canvas 'a'"),
    ],
)
def test_canvas_ids_and_action_names_identify(canvases: list[JsonObject], reason: str) -> None:
    assert declare(*canvases) == reason
