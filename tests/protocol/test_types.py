"""The wire types as a whole: named, documented, complete."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any, get_type_hints, is_typeddict

import pytest

import ahpkit.protocol
from ahpkit.protocol.session.state import SessionStatus
from ahpkit.protocol.types import TYPES
from support import requirement

PLACES = ("state", "actions", "commands", "notifications", "messages", "errors")


def wire_modules() -> dict[str, ModuleType]:
    """The modules in which wire types are written down, by channel and place."""
    names = [info.name for info in pkgutil.walk_packages(ahpkit.protocol.__path__, "ahpkit.protocol.")]
    return {name: importlib.import_module(name) for name in names if name.rpartition(".")[2] in PLACES}


MODULES = wire_modules()


def own_types(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if is_typeddict(value) and not name.startswith("_")]


@pytest.mark.parametrize("module", MODULES)
def test_every_type_of_a_module_is_public_documented_and_found_by_name(module: str) -> None:
    namespace = MODULES[module]
    for name in own_types(namespace):
        value = getattr(namespace, name)
        assert TYPES[name] is value
        assert value.__doc__, name
        if value.__module__ == module:
            assert name in namespace.__all__


def test_no_two_types_have_the_same_name() -> None:
    seen: dict[str, Any] = {}
    for module in MODULES.values():
        for name in own_types(module):
            assert seen.setdefault(name, getattr(module, name)) is getattr(module, name)


def test_every_hint_can_be_evaluated() -> None:
    for name, shape in TYPES.items():
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
    assert name in TYPES


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
    summary, state = get_type_hints(TYPES["ChatSummary"]), get_type_hints(TYPES["ChatState"])
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
    assert get_type_hints(TYPES[f"Partial{name}"]) == get_type_hints(TYPES[name])
