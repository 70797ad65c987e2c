"""The wire types as a whole: named, documented, complete."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any, get_type_hints, is_typeddict

import pytest

import ahpkit.dialects.v0_4
import ahpkit.protocol
from ahpkit.dialects.v0_4.registry import TYPES as TYPES_0_4
from ahpkit.protocol.session.state import SessionStatus
from ahpkit.protocol.types import TYPES as TYPES_1_0
from support import requirement

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
