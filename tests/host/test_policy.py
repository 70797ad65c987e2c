"""Which actions and methods a client may use at all, whatever the state."""

from __future__ import annotations

import pytest

from ahpkit.host.policy import BEFORE_HANDSHAKE, RULES, check_method
from ahpkit.protocol.registry import ACTIONS
from support import requirement
from support.policy_cases import CHAT, SESSION, busy_chat, chat, check, session

HOST_ONLY = sorted(type for type, spec in ACTIONS.items() if not spec.client_dispatchable)


def test_every_action_that_clients_may_dispatch_has_a_rule_and_no_other_has() -> None:
    assert set(RULES) == {type for type, spec in ACTIONS.items() if spec.client_dispatchable}


@requirement("core:chat:reject-not-dispatchable")
@requirement("customizations:actions:host-only")
@requirement("canvas:surface:server-only-actions")
@pytest.mark.parametrize("type", HOST_ONLY)
def test_actions_of_the_host_are_refused_from_clients(type: str) -> None:
    assert check(SESSION, session(), type) == f"{type} is dispatched by the host, not by clients"


@requirement("client-tools:actions:start-is-host-only")
def test_a_client_cannot_start_a_tool_call() -> None:
    reason = check(CHAT, busy_chat(), "chat/toolCallStart", turnId="t2", toolCallId="c", toolName="n", displayName="N")
    assert reason is not None


def test_unknown_action_types_are_refused() -> None:
    assert check(CHAT, chat(), "chat/explode") == "unknown action type 'chat/explode'"


@requirement("core:chat:only-new-names")
@pytest.mark.parametrize("name", ["toolCallStart", "toolCallConfirmed", "toolCallComplete", "turnStarted"])
def test_the_old_session_names_of_chat_actions_are_unknown(name: str) -> None:
    assert check(SESSION, session(), f"session/{name}") == f"unknown action type 'session/{name}'"


def test_an_action_of_another_kind_of_channel_is_refused() -> None:
    reason = check(CHAT, chat(), "session/titleChanged", title="x")
    assert reason == f"session/titleChanged is an action of session channels; {CHAT} is not one"


@requirement("core:connection:before-initialize")
def test_before_the_handshake_only_three_methods_are_served() -> None:
    assert {"initialize", "ping", "reconnect"} == BEFORE_HANDSHAKE
    assert [check_method(method, initialized=False) for method in sorted(BEFORE_HANDSHAKE)] == [None] * 3
    assert check_method("subscribe", initialized=False) == "subscribe is not served before initialize"


@pytest.mark.parametrize("method", ["initialize", "reconnect"])
def test_a_second_handshake_is_refused(method: str) -> None:
    assert check_method(method, initialized=True) == "this connection is initialized already"


def test_after_the_handshake_every_other_method_may_be_tried() -> None:
    assert check_method("subscribe", initialized=True) is None
    assert check_method("ping", initialized=True) is None
