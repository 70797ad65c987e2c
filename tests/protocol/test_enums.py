"""Open enumerations let unknown values pass, closed ones do not; unknown members of unions survive, closed ones not."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.errors import InvalidParams
from ahpkit.protocol.registry import ACTIONS, TYPES
from ahpkit.protocol.validation import check
from support import requirement

CLOSED: dict[str, Any] = {
    "AutomationRunLifecycle": {"status": "future", "createdAt": "x"},
    "AutomationRunOrigin": {"kind": "future"},
    "AutomationTrigger": {"kind": "future", "id": "x"},
    "ChatInputAnswer": {"state": "future"},
    "ChatInputResponseKind": "future",
    "ChatInteractivity": "future",
    "ContentEncoding": "future",
    "CustomizationLoadState": {"kind": "future"},
    "CustomizationLoadStatus": "future",
    "PendingMessageKind": "future",
    "PolicyState": "future",
    "ReconnectResult": {"type": "future"},
    "ReconnectResultType": "future",
    "ResourceChangeType": "future",
    "ResourceWriteMode": "future",
    "TerminalClaim": {"kind": "future"},
    "TerminalLifecycleState": {"status": "future"},
    "ToolCallCancellationReason": "future",
    "TurnState": "future",
}

OPEN: dict[str, Any] = {
    "ChangesetStatus": "future",
    "ChatOrigin": {"kind": "future", "more": 1},
    "ConfirmationOptionKind": "future",
    "Customization": {"type": "future", "x": 1},
    "CustomizationEnablement": {"kind": "future", "enabled": True},
    "McpServerState": {"kind": "future"},
    "MessageAttachment": {"type": "future"},
    "MessageKind": "future",
    "ResponsePart": {"kind": "future"},
    "SessionInputRequest": {"kind": "future"},
    "SessionLifecycle": "future",
    "ToolCallConfirmationReason": "future",
    "ToolCallContributor": {"kind": "future"},
    "ToolCallState": {"status": "future"},
    "ToolResultContent": {"type": "future"},
}


@requirement("gen:forward:closed-enum")
@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_enumeration_refuses_what_it_does_not_list(name: str) -> None:
    with pytest.raises(InvalidParams):
        check(TYPES[name], CLOSED[name])


@requirement("gen:forward:open-enum")
@pytest.mark.parametrize("name", OPEN)
def test_an_open_enumeration_lets_it_pass(name: str) -> None:
    check(TYPES[name], OPEN[name])


def test_a_known_member_of_a_closed_union_must_be_right() -> None:
    check(TYPES["TerminalClaim"], {"kind": "client", "clientId": "c"})
    with pytest.raises(InvalidParams, match="chat: missing"):
        check(TYPES["TerminalClaim"], {"kind": "session", "session": "s"})


def test_an_error_names_what_a_closed_union_knows() -> None:
    claimed = {"type": "terminal/claimed", "claim": {"kind": "future"}}
    with pytest.raises(InvalidParams, match=r'claim\.kind: expected one of "client", "session", got "future"'):
        check(ACTIONS["terminal/claimed"].shape, claimed)


@requirement("gen:message:primitive-config")
def test_values_of_model_settings_are_any_primitive() -> None:
    check(TYPES["ModelSelection"], {"id": "m", "config": {"a": 1, "b": True, "c": None, "d": "x"}})
    with pytest.raises(InvalidParams):
        check(TYPES["ModelSelection"], {"id": "m", "config": {"a": []}})
