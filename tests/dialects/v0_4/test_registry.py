"""The tables hold everything there is, and nothing else."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from ahpkit.dialects.v0_4.channels import CHANNELS
from ahpkit.dialects.v0_4.messages import StateAction
from ahpkit.dialects.v0_4.registry import ACTIONS, COMMANDS, NOTIFICATIONS, TYPES
from support import for_each, requirement

CANVAS = {
    "session/canvasRegistryChanged": False,
    "session/canvasInstanceOpened": False,
    "session/canvasInstanceUpdated": False,
    "session/canvasInstanceClosed": False,
    "session/canvasInstanceCloseRequested": True,
    "session/canvasRequestCreated": False,
    "session/canvasRequestCompleted": True,
    "session/canvasRequestCancelled": False,
}
"""The actions that the canvas proposal adds, and whether clients may dispatch them."""

CLIENT_REQUESTS = [
    "initialize",
    "ping",
    "reconnect",
    "subscribe",
    "createSession",
    "disposeSession",
    "createChat",
    "disposeChat",
    "createTerminal",
    "disposeTerminal",
    "createResourceWatch",
    "listSessions",
    "resourceRead",
    "resourceWrite",
    "resourceList",
    "resourceCopy",
    "resourceDelete",
    "resourceMove",
    "resourceResolve",
    "resourceMkdir",
    "resourceRequest",
    "fetchTurns",
    "authenticate",
    "resolveSessionConfig",
    "sessionConfigCompletions",
    "completions",
    "invokeChangesetOperation",
]

HOST_REQUESTS = [method for method in CLIENT_REQUESTS if method.startswith("resource")] + ["createResourceWatch"]

HOST_NOTIFICATIONS = {
    "action": "0.1.0",
    "root/sessionAdded": "0.1.0",
    "root/sessionRemoved": "0.1.0",
    "root/sessionSummaryChanged": "0.1.0",
    "auth/required": "0.1.0",
    "otlp/exportLogs": "0.2.0",
    "otlp/exportTraces": "0.2.0",
    "otlp/exportMetrics": "0.2.0",
}


def action_types(shape: Any) -> set[str]:
    """The `type` values of an action shape or of a union of them."""
    if is_typeddict(shape):
        return set(get_args(get_type_hints(shape)["type"]))
    return {value for member in get_args(shape) for value in action_types(member)}


def typed_actions() -> dict[str, str]:
    """Every `…Action` type with its `type` value."""
    return {
        name: value
        for name, shape in TYPES.items()
        if name.endswith("Action") and is_typeddict(shape) and "type" in get_type_hints(shape)
        for value in action_types(shape)
    }


def test_every_action_type_is_in_the_table_and_every_row_has_a_type() -> None:
    assert set(typed_actions().values()) == set(ACTIONS)


def test_the_union_of_all_actions_is_the_table() -> None:
    assert action_types(StateAction) == set(ACTIONS)


@for_each(ACTIONS)
def test_an_action_is_named_after_its_type_and_belongs_to_the_channel_of_its_prefix(action: str) -> None:
    spec = ACTIONS[action]
    assert spec.type == action
    assert action_types(spec.shape) == {action}
    assert spec.channel == action.partition("/")[0]
    assert action in CHANNELS[spec.channel].actions


@requirement("canvas:surface:eight-action-types", "canvas:surface:introduced-in")
def test_the_canvas_proposal_adds_eight_actions_in_0_3_0_and_nothing_else() -> None:
    ours = {spec.type: spec.client_dispatchable for spec in ACTIONS.values() if "canvas" in spec.type.lower()}
    assert ours == CANVAS
    assert {ACTIONS[action].since for action in CANVAS} == {"0.3.0"}
    assert not [method for method in (*COMMANDS, *NOTIFICATIONS) if "canvas" in method.lower()]


def test_tool_calls_and_turns_have_only_their_chat_names() -> None:
    assert not [
        action for action in ACTIONS if action.startswith(("session/toolCall", "session/turn", "session/delta"))
    ]


@requirement("customizations:save:no-save-action")
def test_there_is_no_action_and_no_method_to_save_a_customization() -> None:
    assert not [name for name in (*ACTIONS, *COMMANDS) if "save" in name.lower()]
    about = {action for action in ACTIONS if "customization" in action.lower()}
    assert about == {
        "session/customizationsChanged",
        "session/customizationToggled",
        "session/customizationUpdated",
        "session/customizationRemoved",
    }


def test_every_method_of_the_protocol_is_in_the_table_with_its_direction() -> None:
    requests = {spec.method: spec.direction for spec in COMMANDS.values() if spec.kind == "request"}
    notices = {spec.method: spec.direction for spec in COMMANDS.values() if spec.kind == "notification"}
    assert sorted(requests) == sorted(CLIENT_REQUESTS)
    assert sorted(method for method, direction in requests.items() if direction == "both") == sorted(HOST_REQUESTS)
    assert notices == {"unsubscribe": "client-to-host", "dispatchAction": "client-to-host"}


def test_every_notification_of_a_host_is_in_the_table_with_its_version() -> None:
    assert {spec.method: spec.since for spec in NOTIFICATIONS.values()} == HOST_NOTIFICATIONS


@requirement("extensibility:methods:underscore-is-for-extensions")
def test_no_method_of_the_protocol_begins_with_an_underscore() -> None:
    assert not [method for method in (*COMMANDS, *NOTIFICATIONS) if method.startswith("_")]


@requirement("core:wire:channel-in-params")
def test_the_params_of_every_method_have_a_channel() -> None:
    for spec in (*COMMANDS.values(), *NOTIFICATIONS.values()):
        hint = get_type_hints(spec.params)["channel"]
        assert hint is str or get_args(hint) == ("ahp-root://",), spec.method


@requirement("core:wire:root-channel")
def test_methods_about_the_connection_or_the_host_name_the_root_channel() -> None:
    literal = {
        spec.method
        for spec in COMMANDS.values()
        if get_args(get_type_hints(spec.params)["channel"]) == ("ahp-root://",)
    }
    assert literal == {spec.method for spec in COMMANDS.values() if spec.channel == "root"}
    assert {"initialize", "ping", "reconnect", "authenticate", "listSessions"} <= literal


def test_params_and_results_are_named_after_their_method() -> None:
    for spec in COMMANDS.values():
        name = spec.method[0].upper() + spec.method[1:]
        assert spec.params is TYPES[f"{name}Params"]
        assert spec.result is TYPES.get(f"{name}Result")


def test_every_params_and_result_type_belongs_to_a_method() -> None:
    used = {spec.params for spec in (*COMMANDS.values(), *NOTIFICATIONS.values())}
    used |= {spec.result for spec in COMMANDS.values()}
    bases = {"BaseParams", "RootParams"}
    parts = {"ReconnectReplayResult", "ReconnectSnapshotResult", "ToolCallResult"} | {
        name for name in TYPES if name.startswith("Canvas")
    }
    for name, shape in TYPES.items():
        if name.endswith(("Params", "Result")) and name not in bases | parts:
            assert shape in used, name


def test_channels_of_commands_and_notifications_exist() -> None:
    for spec in (*COMMANDS.values(), *NOTIFICATIONS.values()):
        assert spec.channel is None or spec.channel in CHANNELS


def test_the_tables_cannot_be_changed() -> None:
    for table in (ACTIONS, COMMANDS, NOTIFICATIONS):
        with pytest.raises(TypeError):
            table["x"] = None  # type: ignore[index]  # Wrong on purpose.
