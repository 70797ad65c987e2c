"""Shapes that requirements spell out: which members a type always has, and which it may have."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from ahpkit.dialects.v0_4.registry import ACTIONS, TYPES
from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import decode_json, encode
from support import requirement

BASE = {"id": "1", "uri": "file:///x", "name": "X"}
CHILD_OPTIONS = {
    "icons": [{"src": "data:,"}],
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}},
    "enabled": False,
}
CONTAINER_OPTIONS: dict[str, Any] = {
    "icons": [],
    "range": CHILD_OPTIONS["range"],
    "clientId": "c",
    "load": {"kind": "loading"},
    "children": [],
}


def refusal(name: str, value: Any) -> str:
    with pytest.raises(InvalidParams) as caught:
        check(TYPES[name], value)
    return caught.value.message


def assert_shape(name: str, required: dict[str, Any], optional: dict[str, Any]) -> None:
    """The type has exactly these members; each required one is missed, the optional ones survive the codec."""
    assert get_type_hints(TYPES[name]).keys() - {"_meta"} == required.keys() | optional.keys()
    check(TYPES[name], required)
    whole = {**required, **optional, "_meta": {"x": 1}, "later": [None]}
    check(TYPES[name], whole)
    assert decode_json(encode(whole)) == whole
    for key in required:
        assert refusal(name, {member: required[member] for member in required if member != key}) == f"{key}: missing"


# -- connection -------------------------------------------------------------------------------------------------------


@requirement("core:connection:initialize-params")
def test_initialize_has_these_params() -> None:
    assert_shape(
        "InitializeParams",
        {"channel": "ahp-root://", "protocolVersions": ["0.4.0"], "clientId": "c"},
        {"initialSubscriptions": ["ahp-root://"], "locale": "de", "capabilities": {"mcpApps": {}}},
    )


def test_initialize_has_this_result() -> None:
    assert_shape(
        "InitializeResult",
        {"protocolVersion": "0.4.0", "serverSeq": 1, "snapshots": []},
        {
            "defaultDirectory": "file:///home",
            "completionTriggerCharacters": ["@"],
            "telemetry": {"logs": "ahp-otlp:/logs", "traces": "ahp-otlp:/traces", "metrics": "ahp-otlp:/metrics"},
        },
    )


def test_an_envelope_needs_no_origin() -> None:
    assert_shape(
        "ActionEnvelope",
        {"channel": "ahp-session:/s", "action": {"type": "session/ready"}, "serverSeq": 2**40},
        {"origin": {"clientId": "c", "clientSeq": 1}, "rejectionReason": "no"},
    )


# -- sessions ---------------------------------------------------------------------------------------------------------

SUMMARY = {
    "resource": "ahp-session:/s",
    "provider": "demo",
    "title": "T",
    "status": 1,
    "createdAt": 1,
    "modifiedAt": 2,
}


@requirement("session:summary:required-fields")
def test_a_session_summary_has_these_members() -> None:
    assert_shape(
        "SessionSummary",
        SUMMARY,
        {
            "activity": "thinking",
            "project": {"uri": "file:///p", "displayName": "P"},
            "model": {"id": "m", "config": {"effort": "high"}},
            "agent": {"uri": "file:///a.md"},
            "workingDirectory": "file:///p",
            "changes": {"additions": 1, "deletions": 2, "files": 3},
            "annotations": {"resource": "ahp-session:/s/annotations", "annotationCount": 1, "entryCount": 2},
        },
    )
    assert refusal("SessionSummary", {**SUMMARY, "createdAt": "today"}) == "createdAt: expected number, got string"


@requirement("session:state:required-fields")
def test_a_session_state_has_these_members() -> None:
    assert_shape(
        "SessionState",
        {"summary": SUMMARY, "lifecycle": "ready", "chats": []},
        {
            "creationError": {"errorType": "e", "message": "m"},
            "serverTools": [],
            "activeClient": {"clientId": "c", "tools": []},
            "defaultChat": "ahp-chat:/c",
            "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
            "customizations": [],
            "changesets": [],
            "canvasRegistry": [],
            "openCanvases": [],
            "canvasRequests": [],
        },
    )


@requirement("session:lifecycle:values")
def test_a_session_has_one_of_three_lifecycles() -> None:
    assert get_args(TYPES["SessionLifecycle"]) == ("creating", "ready", "creationFailed")
    assert "lifecycle" in refusal("SessionState", {"summary": SUMMARY, "lifecycle": "gone", "chats": []})


@requirement("session:active-client:shape")
def test_an_active_client_has_these_members() -> None:
    assert_shape(
        "SessionActiveClient",
        {"clientId": "c", "tools": []},
        {
            "displayName": "Editor",
            "customizations": [{"type": "plugin", **BASE, "enabled": True}],
            "canvasProviders": [{"canvasId": "v", "displayName": "V", "description": "d"}],
            "canRenderCanvases": True,
        },
    )


@requirement("session:tool:definition-shape")
def test_a_tool_definition_has_these_members() -> None:
    assert_shape(
        "ToolDefinition",
        {"name": "grep"},
        {
            "title": "Search",
            "description": "searches",
            "inputSchema": {"type": "object", "properties": {}, "required": []},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
    )


@requirement("session:config:state-shape")
def test_a_configuration_has_a_schema_and_values() -> None:
    assert_shape("SessionConfigState", {"schema": {"type": "object", "properties": {}}, "values": {"a": 1}}, {})


@requirement("session:config:schema-shape")
def test_a_configuration_schema_is_an_object() -> None:
    properties = {"branch": {"type": "string", "title": "Branch", "enumDynamic": True, "sessionMutable": False}}
    assert_shape("SessionConfigSchema", {"type": "object", "properties": properties}, {"required": ["branch"]})
    assert "type: expected" in refusal("SessionConfigSchema", {"type": "array", "properties": {}})


# -- customizations ---------------------------------------------------------------------------------------------------


@requirement("session:customization:type-values")
def test_a_customization_has_one_of_eight_types() -> None:
    assert get_args(TYPES["CustomizationType"]) == (
        "plugin",
        "directory",
        "agent",
        "skill",
        "prompt",
        "rule",
        "hook",
        "mcpServer",
    )
    assert set(get_args(TYPES["ChildCustomizationType"])) == set(get_args(TYPES["CustomizationType"])) - {
        "plugin",
        "directory",
    }


@requirement("customizations:container:plugin-fields")
def test_a_plugin_has_these_members() -> None:
    assert_shape("PluginCustomization", {"type": "plugin", **BASE, "enabled": True}, CONTAINER_OPTIONS)


@requirement("customizations:publish:nonce-optional")
def test_a_published_plugin_may_have_a_nonce() -> None:
    assert_shape(
        "ClientPluginCustomization",
        {"type": "plugin", **BASE, "enabled": True},
        {**CONTAINER_OPTIONS, "nonce": "sha256:0"},
    )


@requirement("customizations:container:directory-fields")
def test_a_directory_has_these_members() -> None:
    directory = {"type": "directory", **BASE, "enabled": True, "contents": "skill", "writable": False}
    assert_shape("DirectoryCustomization", directory, CONTAINER_OPTIONS)
    assert refusal("DirectoryCustomization", {**directory, "contents": "plugin"}).startswith(
        "contents: expected one of"
    )


CHILDREN = {
    "agent": {"description": "d", "disableModelInvocation": True, "disableUserInvocation": True},
    "skill": {"description": "d", "disableModelInvocation": True, "disableUserInvocation": True},
    "prompt": {"description": "d"},
    "rule": {"description": "d", "alwaysApply": True, "globs": ["*.py"]},
    "hook": {"event": "PostToolUse", "matcher": "Write"},
}


@requirement(
    "customizations:children:base-fields",
    "customizations:children:agent-and-prompt-fields",
    "customizations:children:skill-fields",
    "customizations:children:rule-fields",
    "customizations:children:hook-fields",
    "enablement:child:shared-base",
    "enablement:child:flag-on-every-type",
)
@pytest.mark.parametrize("kind", CHILDREN)
def test_a_child_has_these_members(kind: str) -> None:
    name = f"{kind[0].upper()}{kind[1:]}Customization"
    assert_shape(name, {"type": kind, **BASE}, CHILD_OPTIONS | CHILDREN[kind])


@requirement("mcp:server:shape", "customizations:children:mcp-server-fields")
def test_an_mcp_server_has_these_members() -> None:
    assert_shape(
        "McpServerCustomization",
        {"type": "mcpServer", **BASE, "enabled": True, "state": {"kind": "ready"}},
        {
            "icons": [],
            "range": CHILD_OPTIONS["range"],
            "channel": "mcp://x",
            "mcpApp": {
                "capabilities": {"serverTools": {"listChanged": True}, "sampling": {"tools": {}}, "logging": {}}
            },
        },
    )


@requirement("customizations:identity:id-and-uri-everywhere")
@pytest.mark.parametrize("name", [name for name in TYPES if name.endswith("Customization") and "Child" not in name])
def test_every_customization_has_id_and_uri(name: str) -> None:
    for member in get_args(TYPES[name]) or (TYPES[name],):
        assert {"id", "uri", "name"} <= get_type_hints(member).keys()
        with pytest.raises(InvalidParams, match="id: missing; uri: missing"):
            check(member, {"type": get_args(get_type_hints(member)["type"])[0]})


@requirement("customizations:tree:type-discriminates")
def test_the_type_alone_decides_the_shape() -> None:
    plugin = {"type": "plugin", **BASE, "enabled": True}
    check(TYPES["Customization"], plugin)
    assert "contents: missing" in refusal("Customization", {**plugin, "type": "directory"})
    assert refusal("Customization", {**plugin, "type": "mcpServer"}) == "state: missing"


@requirement("customizations:load:kinds")
def test_a_load_that_failed_has_a_message() -> None:
    plugin = {"type": "plugin", **BASE, "enabled": True}
    for load in ({"kind": "loading"}, {"kind": "loaded"}, {"kind": "degraded", "message": "m"}):
        check(TYPES["PluginCustomization"], {**plugin, "load": load})
    assert refusal("PluginCustomization", {**plugin, "load": {"kind": "error"}}) == "load.message: missing"
    assert get_args(TYPES["CustomizationLoadStatus"]) == ("loading", "loaded", "degraded", "error")


@requirement("mcp:state:discriminant")
def test_an_mcp_server_has_one_of_five_states() -> None:
    assert get_args(TYPES["McpServerStatus"]) == ("starting", "ready", "authRequired", "error", "stopped")
    for kind in ("starting", "ready", "stopped"):
        check(TYPES["McpServerState"], {"kind": kind})
    assert "reason: missing" in refusal("McpServerState", {"kind": "authRequired"})
    assert refusal("McpServerState", {"kind": "error"}) == "error: missing"


# -- canvases ---------------------------------------------------------------------------------------------------------


@requirement("canvas:state:declaration-shape")
def test_a_canvas_declaration_has_these_members() -> None:
    assert_shape(
        "SessionCanvasDeclaration",
        {"extensionId": "e", "canvasId": "v", "displayName": "V", "description": "d", "source": "server"},
        {"extensionName": "E", "inputSchema": {"type": "object"}, "actions": [{"name": "zoom"}], "clientId": "c"},
    )


@requirement("canvas:state:action-shape", "canvas:state:schemas-opaque")
@pytest.mark.parametrize("schema", [{"type": "object"}, True, None, "anything", [1]])
def test_a_canvas_action_has_these_members(schema: Any) -> None:
    assert_shape("SessionCanvasAction", {"name": "zoom"}, {"description": "d", "inputSchema": schema})


@requirement("canvas:state:open-shape", "canvas:url:plain-string")
def test_an_open_canvas_has_these_members() -> None:
    assert_shape(
        "SessionOpenCanvas",
        {"instanceId": "i", "canvasId": "v", "extensionId": "e", "availability": "ready"},
        {
            "extensionName": "E",
            "input": None,
            "title": "T",
            "status": "s",
            "url": "anything at all",
            "renderer": {"clientId": "c"},
        },
    )


@requirement("canvas:state:availability-values")
def test_a_canvas_is_ready_or_stale() -> None:
    instance = {"instanceId": "i", "canvasId": "v", "extensionId": "e"}
    for availability in ("ready", "stale"):
        check(TYPES["SessionOpenCanvas"], {**instance, "availability": availability})
    assert refusal("SessionOpenCanvas", {**instance, "availability": "busy"}).startswith(
        "availability: expected one of"
    )


@requirement("canvas:state:request-shape")
def test_a_canvas_request_has_these_members() -> None:
    request: dict[str, Any] = {
        "requestId": "r",
        "kind": "open",
        "instanceId": "i",
        "canvasId": "v",
        "extensionId": "e",
        "target": {"kind": "server"},
    }
    assert_shape("SessionCanvasRequest", request, {"actionName": "zoom", "input": {"x": 1}, "deadlineMs": 9})
    check(TYPES["SessionCanvasRequest"], {**request, "target": {"kind": "activeClient", "clientId": "c"}})
    assert (
        refusal("SessionCanvasRequest", {**request, "target": {"kind": "activeClient"}}) == "target.clientId: missing"
    )
    assert refusal("SessionCanvasRequest", {**request, "kind": "paint"}).startswith("kind: expected one of")


@requirement("canvas:action:payload-fields", "canvas:action:instance-updated-payload")
def test_actions_on_canvases_carry_these_members() -> None:
    payloads = {
        spec.type: get_type_hints(spec.shape).keys() - {"type"} for spec in ACTIONS.values() if "canvas" in spec.type
    }
    assert payloads == {
        "session/canvasRegistryChanged": {"canvases"},
        "session/canvasInstanceOpened": {"instance"},
        "session/canvasInstanceUpdated": {"instanceId", "changes"},
        "session/canvasInstanceClosed": {"instanceId"},
        "session/canvasInstanceCloseRequested": {"instanceId"},
        "session/canvasRequestCreated": {"request"},
        "session/canvasRequestCompleted": {"requestId", "result", "error"},
        "session/canvasRequestCancelled": {"requestId", "reason"},
    }
    nulls = {"title": None, "status": None, "url": None}
    assert_shape("SessionOpenCanvasUpdate", {}, {**nulls, "availability": "stale"})
    assert refusal("SessionOpenCanvasUpdate", {"availability": None}).startswith("availability: expected one of")
    reasons = get_args(TYPES["CanvasCancellationReason"])
    assert reasons == ("timeout", "providerDisconnected", "instanceClosed", "hostShutdown")


def test_each_kind_of_canvas_request_has_its_result() -> None:
    assert_shape("CanvasOpenResult", {"kind": "open"}, {"url": "u", "title": "t", "status": "s"})
    assert_shape("CanvasActionResult", {"kind": "action"}, {"value": [None]})
    assert_shape("CanvasCloseResult", {"kind": "close"}, {})


@requirement("canvas:action:error-shape")
def test_a_canvas_error_has_these_members() -> None:
    assert_shape("CanvasErrorPayload", {"code": "canvas_provider_unavailable", "message": "gone"}, {})
    check(TYPES["CanvasErrorPayload"], {"code": "anything_else", "message": ""})
