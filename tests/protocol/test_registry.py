"""The tables of 1.0.0: the wire types, which release brought an action, and which of them clients may dispatch."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

import ahpkit.dialects.v0_4
import ahpkit.protocol
from ahpkit.dialects.v0_4.registry import TYPES as TYPES_0_4
from ahpkit.protocol.channels import CHANNELS, channel_of
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS, TYPES
from ahpkit.protocol.registry import TYPES as TYPES_1_0
from ahpkit.protocol.session.state import SessionStatus
from ahpkit.protocol.version import Version
from support import requirement

NEW_IN = {
    "0.5.0": "chat/activityChanged chat/draftChanged session/activeClientRemoved session/activeClientSet",
    "0.5.1": "chat/turnsLoaded session/inputNeededRemoved session/inputNeededSet",
    "0.5.2": "session/mcpServerStartRequested session/mcpServerStopRequested",
    "0.6.0": "changeset/filesReviewChanged chat/toolCallAuthRequired chat/toolCallAuthResolved",
    "0.7.0": (
        "chat/workingDirectoryRemoved chat/workingDirectorySet session/workingDirectoryRemoved "
        "session/workingDirectorySet"
    ),
    "0.8.0": "session/workingDirectoryReplaced",
    "0.9.0": (
        "automation/createRequested automation/removed automation/set automation/updateRequested "
        "automationRun/cancelRequested automationRun/lifecycleChanged automationRun/primarySessionChanged "
        "automationRun/sessionRemoved automationRun/sessionSet chat/turnResume"
    ),
    "1.0.0": (
        "canvas/stateChanged chat/backgroundWorkRemoved chat/backgroundWorkSet chat/canvasesChanged "
        "chat/changesetsChanged chat/isArchivedChanged chat/isReadChanged chat/movableChanged "
        "session/chatsReordered session/mcpServerBackgroundRequested"
    ),
}
"""Release → the actions that it brought, 0.4.0 left out."""

BY_CLIENT = {
    "annotations": "entryRemoved entrySet removed set updated",
    "automation": "createRequested removed updateRequested",
    "automationRun": "cancelRequested",
    "changeset": "filesReviewChanged",
    "chat": (
        "draftChanged inputAnswerChanged inputCompleted isArchivedChanged isReadChanged pendingMessageRemoved "
        "pendingMessageSet queuedMessagesReordered toolCallComplete toolCallConfirmed toolCallContentChanged "
        "toolCallResultConfirmed truncated turnCancelled turnResume turnStarted workingDirectoryRemoved "
        "workingDirectorySet"
    ),
    "root": "configChanged",
    "session": (
        "activeClientRemoved activeClientSet canvasInstanceCloseRequested canvasRequestCompleted configChanged "
        "customizationToggled isArchivedChanged isReadChanged mcpServerBackgroundRequested mcpServerStartRequested "
        "mcpServerStopRequested titleChanged workingDirectoryRemoved workingDirectoryReplaced workingDirectorySet"
    ),
    "terminal": "claimed cleared input resized titleChanged",
}
"""Channel → the actions that clients may dispatch."""


OF_1_0 = {kind: spec for kind, spec in ACTIONS.items() if Version.parse(spec.since) <= Version.parse("1.0.0")}
"""A later release brings actions of its own, which change nothing about these."""


def action_types(shape: Any) -> set[str]:
    if is_typeddict(shape):
        return set(get_args(get_type_hints(shape)["type"]))
    return {value for member in get_args(shape) for value in action_types(member)}


def test_every_new_action_has_the_release_that_brought_it() -> None:
    for release, names in NEW_IN.items():
        assert {kind for kind, spec in ACTIONS.items() if spec.since == release} == set(names.split())
    assert len(OF_1_0) == 106 + 8  # ours are those of the canvas proposal
    assert len([kind for kind in ACTIONS if kind.startswith("session/canvas")]) == 8


def test_clients_may_dispatch_these_and_no_others() -> None:
    allowed = {f"{channel}/{name}" for channel, names in BY_CLIENT.items() for name in names.split()}
    assert {kind for kind, spec in OF_1_0.items() if spec.client_dispatchable} == allowed
    assert len(allowed) == 47 + 2


def test_the_union_of_all_actions_is_the_table_and_each_row_has_its_own_shape() -> None:
    assert action_types(StateAction) == set(ACTIONS)
    for kind, spec in ACTIONS.items():
        assert action_types(spec.shape) == {kind}
        assert kind in CHANNELS[spec.channel].actions
        assert spec.channel == kind.partition("/")[0]


def test_methods_and_notifications_that_0_4_0_did_not_have() -> None:
    assert {"moveChat", "listAutomationTriggerDefinitions", "runAutomation", "fetchAutomationRuns"} <= COMMANDS.keys()
    assert NOTIFICATIONS["root/progress"].since == "0.5.0"
    for spec in COMMANDS.values():
        name = spec.method[0].upper() + spec.method[1:]
        assert spec.params is TYPES[f"{name}Params"]
        assert spec.result is TYPES.get(f"{name}Result")


def test_the_new_channels_have_addresses() -> None:
    for uri, name in (
        ("ahp-canvas:/x", "canvas"),
        ("ahp-automations://", "automation"),
        ("ahp-automation-run:/1", "automationRun"),
    ):
        channel = channel_of(uri)
        assert channel is not None
        assert channel.name == name


PLACES = ("state", "actions", "commands", "messages")
SMALL_CHANNELS = ("root", "terminal", "changeset", "annotations", "resource_watch", "canvas", "telemetry")


def wire_modules(package: ModuleType) -> dict[str, ModuleType]:
    """The modules in which wire types are written down: those of large channels by place, small channels as a whole."""
    names = [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return {
        name: importlib.import_module(name) for name in names if name.rpartition(".")[2] in (*PLACES, *SMALL_CHANNELS)
    }


VERSIONS = {
    "1.0.0": (wire_modules(ahpkit.protocol), TYPES_1_0),
    "0.4.0": (wire_modules(ahpkit.dialects.v0_4), TYPES_0_4),
}
MODULES = [(module, version) for version, (modules, _) in VERSIONS.items() for module in modules]


def own_types(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if is_typeddict(value) and not name.startswith("_")]


@pytest.mark.parametrize(("module", "version"), MODULES)
def test_every_type_of_a_module_is_public_documented_and_found_by_name(module: str, version: str) -> None:
    modules, types = VERSIONS[version]
    namespace = modules[module]
    for name in own_types(namespace):
        value = getattr(namespace, name)
        assert types[name] is value
        assert value.__doc__, name
        if value.__module__ == module:
            assert name in namespace.__all__


@pytest.mark.parametrize("version", VERSIONS)
def test_no_two_types_of_a_version_have_the_same_name(version: str) -> None:
    seen: dict[str, Any] = {}
    for module in VERSIONS[version][0].values():
        for name in own_types(module):
            assert seen.setdefault(name, getattr(module, name)) is getattr(module, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_hint_can_be_evaluated(version: str) -> None:
    for name, shape in VERSIONS[version][1].items():
        if is_typeddict(shape):
            assert isinstance(get_type_hints(shape), dict), name


@pytest.mark.parametrize(
    "name",
    [
        "ActionEnvelope",
        "Customization",
        "StringOrMarkdown",
        "JsonRpcMessage",
        "ChangesetOperationTarget",
        "ChatInputQuestion",
        "SessionSummary",
        "PartialSessionSummary",
        "PartialChatSummary",
        "StateAction",
        "ReconnectResult",
        "SessionStatus",
        "ToolCallState",
        "URI",
    ],
)
def test_names_of_the_specification_are_found(name: str) -> None:
    assert name in TYPES_0_4
    assert name in TYPES_1_0


@requirement("session:status:bit-values")
def test_the_status_is_a_bitset_that_keeps_bits_nobody_knows() -> None:
    assert {flag: int(SessionStatus[flag]) for flag in SessionStatus.__members__} == {
        "Idle": 1,
        "Error": 2,
        "InProgress": 8,
        "InputNeeded": 24,
        "IsRead": 32,
        "IsArchived": 64,
    }
    assert int(SessionStatus(1 << 20 | 24) | SessionStatus.IsRead) == 1 << 20 | 24 | 32


@requirement("core:chat:state-repeats-summary")
def test_a_chat_state_repeats_its_summary() -> None:
    summary, state = get_type_hints(TYPES_0_4["ChatSummary"]), get_type_hints(TYPES_0_4["ChatState"])
    assert summary.keys() == {
        "resource",
        "title",
        "status",
        "activity",
        "modifiedAt",
        "model",
        "agent",
        "origin",
        "interactivity",
        "workingDirectory",
    }
    assert state.keys() == summary.keys() | {
        "turns",
        "activeTurn",
        "steeringMessage",
        "queuedMessages",
        "inputRequests",
        "_meta",
    }


@pytest.mark.parametrize("name", ["SessionSummary", "ChatSummary"])
def test_a_partial_summary_has_the_fields_of_the_summary(name: str) -> None:
    assert get_type_hints(TYPES_0_4[f"Partial{name}"]) == get_type_hints(TYPES_0_4[name])
