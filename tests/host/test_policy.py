"""Which actions and methods a client may use at all, whatever the state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ahpkit.changes.feature import Changesets
from ahpkit.host.host import Host
from ahpkit.host.policy import RULES
from ahpkit.host.policy.methods import Call, MethodRule, known_client
from ahpkit.host.registration import Command
from ahpkit.host.resources.feature import Resources
from ahpkit.host.terminals.feature import Terminals
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.errors import InvalidRequest
from ahpkit.protocol.registry import ACTIONS, COMMANDS
from support import for_each, requirement
from support.policy_cases import CHAT, SESSION, busy_chat, chat, check, session

NOT_HERE = {type for type in ACTIONS if type.startswith("automation")}
"""Actions on channels that this host does not have."""

FROM_0_4 = {"session/metaChanged"}
"""What a 0.4 client's choice of a model or an agent becomes. Clients of no version dispatch it themselves."""

FROM_PROVIDERS = {"session/canvasInstanceUpdated"}
"""What a client may say of the canvases that it provides itself. The proposal leaves it to the host."""

HOST_ONLY = sorted(
    type for type, spec in ACTIONS.items() if not spec.client_dispatchable and type not in FROM_PROVIDERS
)


def test_every_action_that_clients_may_dispatch_has_a_rule_and_no_other_has() -> None:
    wishes = {type for type, spec in ACTIONS.items() if spec.client_dispatchable}
    assert set(RULES) == wishes - NOT_HERE | FROM_0_4 | FROM_PROVIDERS


@requirement("core:chat:reject-not-dispatchable")
@requirement("customizations:actions:host-only")
@requirement("canvas:surface:server-only-actions")
@for_each(HOST_ONLY)
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
def test_before_the_handshake_only_three_methods_are_served(tmp_path: Path) -> None:
    early = Call("x", "", {})
    served = {name for name, row in table(tmp_path).items() if _allows(row.policy, early)}
    assert served == {"initialize", "ping", "reconnect"}
    with pytest.raises(InvalidRequest, match="subscribe is not served before initialize"):
        known_client(Call("subscribe", "", {}))


@pytest.mark.parametrize("method", ["initialize", "reconnect"])
def test_a_second_handshake_is_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="this connection is initialized already"):
        table(tmp_path)[method].policy(Call(method, "me", {}))


def test_after_the_handshake_every_other_method_may_be_tried(tmp_path: Path) -> None:
    rows = table(tmp_path)
    late = {name for name, row in rows.items() if _allows(row.policy, Call(name, "me", {}))}
    assert late == rows.keys() - {"initialize", "reconnect"}


def test_every_command_of_the_protocol_has_its_row(tmp_path: Path) -> None:
    requests = {name for name, spec in COMMANDS.items() if spec.kind == "request"}
    rows = {name for name in table(tmp_path) if not name.startswith("_")}
    assert rows == requests - {name for name in requests if "Automation" in name}


def table(directory: Path) -> Mapping[str, Command]:
    """The table of commands of a host with files, terminals and changesets."""
    resources = Resources()
    terminals = Terminals(resources.reading, directory=directory)
    changesets = Changesets(directory, default_directory=directory)
    host = Host(MemoryStorage(), agents=[], features=[resources, terminals, changesets])
    return {command.name: command for command in host.registered.commands}


def _allows(rule: MethodRule, call: Call) -> bool:
    try:
        rule(call)
    except InvalidRequest:
        return False
    return True
