"""Shapes on the wire: what passes, what does not, and what the error says."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, cast, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS, TYPES
from ahpkit.protocol.validation import check, check_action, check_params, make_whole
from support import for_each, requirement

DELTA: dict[str, Any] = {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"}
PART: dict[str, Any] = {
    "type": "chat/responsePart",
    "turnId": "t",
    "part": {"kind": "markdown", "id": "p", "content": ""},
}
APPROVED: dict[str, Any] = {
    "type": "chat/toolCallConfirmed",
    "turnId": "t",
    "toolCallId": "c",
    "approved": True,
    "confirmed": "user-action",
}
DENIED: dict[str, Any] = {
    "type": "chat/toolCallConfirmed",
    "turnId": "t",
    "toolCallId": "c",
    "approved": False,
    "reason": "denied",
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["turnId", "message", "part", "kind", "content", "approved", "summary", "customization", "_meta"]
)

STARTED = "2026-01-01T00:00:00.000Z"


def action_error(action: Any) -> str:
    with pytest.raises(InvalidParams) as caught:
        check_action(action)
    return caught.value.message


def params_error(method: str, params: Any) -> str:
    with pytest.raises(InvalidParams) as caught:
        check_params(method, params)
    return caught.value.message


@pytest.mark.parametrize("action", [DELTA, PART, APPROVED, DENIED])
def test_a_well_formed_action_passes(action: dict[str, Any]) -> None:
    check_action(action)


MALFORMED: list[tuple[Any, str]] = [
    (PART | {"part": {"kind": "markdown", "id": 5, "content": ""}}, "action.part.id: expected string, got number"),
    ({key: DELTA[key] for key in DELTA if key != "turnId"}, "action.turnId: missing"),
    (DELTA | {"content": None}, "action.content: expected string, got null"),
    (DELTA | {"content": True}, "action.content: expected string, got boolean"),
    (PART | {"part": []}, "action.part: expected object, got array"),
    (PART | {"part": {"id": "p"}}, "action.part.kind: missing"),
    (PART | {"part": {"kind": {}}}, "action.part.kind: expected string, got object"),
    (
        {"type": "chat/queuedMessagesReordered", "order": ["a", 2]},
        "action.order[1]: expected string, got number",
    ),
    (
        {"type": "chat/inputCompleted", "requestId": "r", "response": "maybe"},
        'action.response: expected one of "accept", "decline", "cancel", got "maybe"',
    ),
    (
        {"type": "chat/toolCallDelta", "turnId": "t", "toolCallId": "c", "content": "", "invocationMessage": 1},
        "action.invocationMessage: expected string or object, got number",
    ),
    (
        {"type": "chat/toolCallDelta", "turnId": "t", "toolCallId": "c", "content": "", "invocationMessage": {}},
        "action.invocationMessage.markdown: missing",
    ),
    (
        {"type": "root/activeSessionsChanged", "activeSessions": 1.5},
        "action.activeSessions: expected integer, got number",
    ),
]


@pytest.mark.parametrize(("action", "message"), MALFORMED)
def test_a_malformed_action_is_refused_with_the_path(action: Any, message: str) -> None:
    assert action_error(action) == message


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([], "action: expected object, got array"),
        (None, "action: expected object, got null"),
        ({}, "action.type: missing"),
        ({"type": 5}, "action.type: expected string, got number"),
    ],
)
def test_what_is_no_action_at_all_is_refused(action: Any, message: str) -> None:
    assert action_error(action) == message


def test_a_confirmation_has_the_shape_of_its_decision() -> None:
    assert action_error({**DENIED, "approved": True}) == "action.confirmed: missing"
    assert action_error({**APPROVED, "approved": False}) == "action.reason: missing"
    assert action_error({**APPROVED, "approved": 1}) == "action.approved: expected boolean, got number"


def test_an_action_of_unknown_type_passes() -> None:
    check_action({"type": "chat/hologram", "turnId": 5, "_meta": {"x": 1}})


@pytest.mark.parametrize(
    "action",
    [
        PART | {"part": {"kind": "hologram", "id": 5}},
        {"type": "session/customizationUpdated", "customization": {"type": "theme", "colour": 7}},
        {
            "type": "chat/responsePart",
            "turnId": "t",
            "part": {"kind": "toolCall", "toolCall": {"status": "paused", "toolCallId": 1}},
        },
    ],
)
def test_an_unknown_variant_inside_a_known_action_passes(action: dict[str, Any]) -> None:
    check_action(action)


def test_a_malformed_known_variant_deep_inside_does_not() -> None:
    call = {"status": "streaming", "toolCallId": "c", "toolName": "n"}
    action = {"type": "chat/responsePart", "turnId": "t", "part": {"kind": "toolCall", "toolCall": call}}
    assert action_error(action) == "action.part.toolCall.displayName: missing"


@requirement("extensibility:meta:on-every-type", "extensibility:meta:any-json-values")
def test_meta_is_an_object_on_anything_and_holds_anything() -> None:
    meta = {"_meta": {"example.com/x": [None, {"deep": 1.5}], "": True}}
    message = {"text": "hi", "origin": {"kind": "user", **meta}, **meta}
    check_action({"type": "chat/turnStarted", "turnId": "t", "startedAt": STARTED, "message": message, **meta})
    check_params(
        "initialize",
        {
            "channel": "ahp-root://",
            "protocolVersions": [],
            "clientId": "c",
            "capabilities": {"mcpApps": {}, **meta},
            **meta,
        },
    )
    check(TYPES["InitializeResult"], {"protocolVersion": "0.4.0", "serverSeq": 0, "snapshots": [], **meta})
    check_params("root/sessionRemoved", {"channel": "ahp-root://", "session": "ahp-session:/s", **meta})
    for shape in filter(is_typeddict, TYPES.values()):
        with pytest.raises(InvalidParams):
            check(shape, {"_meta": 5})


def test_members_nobody_knows_pass_everywhere() -> None:
    check_action({**PART, "part": {**PART["part"], "shiny": [1]}, "later": {}})
    check_params("ping", {"channel": "ahp-root://", "later": 1})


@for_each([*COMMANDS, *NOTIFICATIONS])
def test_every_method_needs_a_channel(method: str) -> None:
    assert params_error(method, {}).startswith("channel: missing")
    assert "channel: expected " in params_error(method, {"channel": 5})


@for_each([spec.method for spec in COMMANDS.values() if spec.channel == "root"])
def test_methods_of_the_connection_name_the_root_channel(method: str) -> None:
    refused = params_error(method, {"channel": "ahp-session:/s"})
    assert 'channel: expected "ahp-root://", got "ahp-session:/s"' in refused


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("subscribe", [], "params: expected object, got array"),
        ("ping", {"channel": "ahp-chat:/c"}, 'channel: expected "ahp-root://", got "ahp-chat:/c"'),
        ("ping", {"channel": "x" * 100}, f'channel: expected "ahp-root://", got "{"x" * 60}…"'),
        (
            "dispatchAction",
            {"channel": "c", "clientSeq": "1", "action": {}},
            "clientSeq: expected integer, got string",
        ),
        ("dispatchAction", {"channel": "c", "clientSeq": 1, "action": 7}, "action: expected object, got number"),
        (
            "createSession",
            {"channel": "c", "workingDirectories": "file:///x"},
            "workingDirectories: expected array, got string",
        ),
        (
            "resourceRead",
            {"channel": "ahp-root://", "uri": "file:///x", "encoding": "latin-1"},
            'encoding: expected one of "base64", "utf-8", got "latin-1"',
        ),
        (
            "invokeChangesetOperation",
            {"channel": "c", "operationId": "o", "target": {"kind": "range", "resource": "r"}},
            "target.range: missing",
        ),
        (
            "root/sessionSummaryChanged",
            {"channel": "ahp-root://", "session": "s", "changes": {"status": "idle"}},
            "changes.status: expected integer, got string",
        ),
    ],
)
def test_malformed_params_are_refused_with_the_path(method: str, params: Any, message: str) -> None:
    assert params_error(method, params) == message


def test_the_action_of_a_dispatch_is_left_to_its_own_check() -> None:
    check_params("dispatchAction", {"channel": "c", "clientSeq": 1, "action": {"type": "chat/delta"}})


@requirement("core:connection:dispatch-shape")
def test_a_dispatch_has_channel_number_and_action() -> None:
    for missing in ("channel", "clientSeq", "action"):
        params: dict[str, Any] = {"channel": "c", "clientSeq": 1, "action": DELTA}
        del params[missing]
        assert params_error("dispatchAction", params) == f"{missing}: missing"


def test_methods_nobody_knows_may_omit_the_channel() -> None:
    check_params("_example.com/x", {})
    check_params("tools/list", {})
    assert params_error("_example.com/x", {"channel": 5}) == "channel: expected string, got number"


def test_an_envelope_of_the_host_is_checked_with_its_action() -> None:
    envelope = {"channel": "ahp-chat:/c", "serverSeq": 1, "action": DELTA}
    check_params("action", envelope)
    check_params("action", {**envelope, "action": {"type": "later/thing"}})
    assert params_error("action", {**envelope, "action": {**DELTA, "partId": 1}}).startswith("action.partId: ")
    assert params_error("action", {**envelope, "origin": {"clientId": "c"}}) == "origin.clientSeq: missing"


def test_null_is_not_absent() -> None:
    check_action({"type": "session/activityChanged"})
    reason = action_error({"type": "session/activityChanged", "activity": None})
    assert reason == "action.activity: expected string, got null"


@requirement("core:wire:whole-numbers")
@pytest.mark.parametrize("sent", [7.0, 1e3, -0.0, float(2**53 - 2)])
def test_an_integer_written_with_a_point_becomes_one(sent: float) -> None:
    params = {"channel": "c", "clientSeq": sent, "action": {"type": "x", "free": 7.0}, "_meta": {"free": 1.0}}
    check_params("dispatchAction", params)
    assert (type(params["clientSeq"]), params["clientSeq"]) == (int, sent)
    assert type(cast("Any", params["action"])["free"]) is float
    assert type(cast("Any", params["_meta"])["free"]) is float


@requirement("core:wire:whole-numbers")
def test_integers_deep_inside_an_action_become_whole_and_free_json_beside_them_stays() -> None:
    place = {"line": 1.0, "character": 2e0}
    attachment: dict[str, Any] = {"type": "resource", "label": "a", "uri": "file:///x", "_meta": {"free": 1.0}}
    attachment["selection"] = {"range": {"start": place, "end": dict(place)}}
    message = {"text": "hi", "origin": {"kind": "user"}, "attachments": [attachment]}
    check_action({"type": "chat/turnStarted", "turnId": "t", "startedAt": STARTED, "message": message})
    assert json.dumps(place) == '{"line": 1, "character": 2}'
    assert json.dumps(attachment["_meta"]) == '{"free": 1.0}'


@requirement("core:wire:whole-numbers")
@pytest.mark.parametrize("shape", sorted(name for name, spec in COMMANDS.items() if spec.params))
def test_no_command_is_made_whole_where_its_type_is_not_an_integer(shape: str) -> None:
    make_whole(shape, params := {"channel": "c", "text": 7.0, "_meta": {"x": 1.0}})
    assert json.dumps(params) == '{"channel": "c", "text": 7.0, "_meta": {"x": 1.0}}'


@requirement("core:wire:whole-numbers")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (2**53, "clientSeq: must be at most 9007199254740991, got 9007199254740992"),
        (1e18, "clientSeq: must be at most 9007199254740991, got 1000000000000000000"),
        (2**63, "clientSeq: must be at most 9007199254740991, got 9223372036854775808"),
        (-1, "clientSeq: must be at least 0, got -1"),
        (-(2.0**60), "clientSeq: must be at least 0, got -1152921504606846976"),
        (7.5, "clientSeq: expected integer, got number"),
    ],
)
def test_a_number_outside_what_json_keeps_exact_is_refused(sent: float, reason: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        check_params("dispatchAction", {"channel": "c", "clientSeq": sent, "action": {}})
    assert caught.value.message == reason


def test_other_integers_may_be_negative_but_not_beyond_what_json_keeps_exact() -> None:
    check_action({"type": "terminal/exited", "exitCode": -9.0})
    assert "exitCode: must be at least -9007199254740991" in action_error(
        {"type": "terminal/exited", "exitCode": -(2**53)}
    )


def test_what_did_not_come_through_the_codec_is_refused_not_raised() -> None:
    assert action_error({**DELTA, "turnId": object()}).startswith("action: ")


@given(st.sampled_from(sorted(ACTIONS)), st.dictionaries(FIELDS, JSON))
def test_no_json_makes_the_check_of_an_action_raise_anything_else(kind: str, fields: dict[str, Any]) -> None:
    with suppress(InvalidParams):
        check_action({"type": kind, **fields})


@given(JSON)
def test_no_json_at_all_makes_the_check_of_an_action_raise_anything_else(value: Any) -> None:
    with suppress(InvalidParams):
        check_action(value)


@given(st.sampled_from([*COMMANDS, *NOTIFICATIONS, "_x", "y"]), JSON)
def test_no_json_makes_the_check_of_params_raise_anything_else(method: str, value: Any) -> None:
    with suppress(InvalidParams):
        check_params(method, value)


def test_a_wrong_number_is_quoted() -> None:
    with pytest.raises(InvalidParams, match=r"^code: expected one of -32700, .*-32603, got 5$"):
        check(TYPES["JsonRpcErrorCode"], 5, at="code")
