"""The tables of 1.0.0: which release brought an action, and which of them clients may dispatch."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints, is_typeddict

from ahpkit.protocol.channels import CHANNELS, channel_of
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.registry import ACTIONS, COMMANDS, NOTIFICATIONS
from ahpkit.protocol.types import TYPES
from ahpkit.protocol.version import Version

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
