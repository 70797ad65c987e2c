import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp.config import AcpAgentConfig
from ahpkit.agents.acp.connection import AUTH_REQUIRED, EXITED, AcpConnection
from ahpkit.host.agent import AgentError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.testing.acp_agent import CAPABILITIES, scripted_command
from ahpkit.wire.errors import RpcError
from support import requirement


async def nobody(method: str, params: JsonObject) -> Any:
    raise AssertionError(method)


def connection(
    directory: Path, *, config: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **script: Any
) -> AcpConnection:
    command = scripted_command(directory / "script.json", record=str(directory / "record"), **script)
    settings: dict[str, Any] = {"name": "scripted", "command": command[0], "args": tuple(command[1:]), **(config or {})}
    return AcpConnection(
        AcpAgentConfig(**settings),
        cwd=directory,
        on_request=nobody,
        on_notification=lambda method, params: None,
        extensions={"example.com/analytics": {"version": "1.0"}},
        **(limits or {}),
    )


@requirement("extensibility:capabilities:advertised")
@requirement("extensibility:capabilities:in-capability-meta")
@requirement("extensibility:practice:versioned")
async def test_the_host_introduces_itself_and_announces_extensions_in_the_meta_of_its_capabilities(
    tmp_path: Path,
) -> None:
    async with connection(tmp_path):
        pass

    hello = json.loads((tmp_path / "record").read_text().splitlines()[0])["params"]
    capabilities = hello["clientCapabilities"]
    assert hello["protocolVersion"] == 1
    assert hello["clientInfo"]["name"] == "ahpkit"
    assert capabilities["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert capabilities["terminal"] is False
    assert capabilities["elicitation"] == {"form": {}, "url": {}}
    assert capabilities["_meta"] == {
        "ahpkit/permission-answer": {"version": "1"},
        "terminal_output": True,
        "terminal_output_delta": True,
        "example.com/analytics": {"version": "1.0"},
    }


@requirement("extensibility:capabilities:any-announcement-value")
async def test_what_the_agent_announces_is_read_as_it_is(tmp_path: Path) -> None:
    announced = {**CAPABILITIES, "subagents": True, "_meta": {"example.com/x": [1, {"deep": None}], "zed.dev": True}}
    initialize = {"agentCapabilities": announced, "_meta": {"steering": {"supported": True}}, "unheardOf": 1}
    async with connection(tmp_path, initialize=initialize) as agent:
        assert agent.capabilities == announced
        assert agent.steers
        assert agent.loads
        assert agent.session_can("resume")
        assert not agent.session_can("teleport")
        assert agent.facts()["capabilities"]["_meta"] == announced["_meta"]


async def test_an_agent_that_promises_nothing_is_asked_for_nothing(tmp_path: Path) -> None:
    async with connection(tmp_path, methods={"initialize": [{"result": {"protocolVersion": 1}}]}) as agent:
        assert not agent.loads
        assert not agent.steers
        assert not agent.session_can("close")
        assert agent.auth_methods == []


async def test_an_agent_that_echoes_a_version_number_is_judged_by_its_shape(tmp_path: Path) -> None:
    async with connection(tmp_path, initialize={"protocolVersion": 99}):
        pass
    second: dict[str, Any] = {"protocolVersion": 2, "capabilities": {}, "info": {}}
    with pytest.raises(AgentError, match="speaks ACP version 2") as error:
        async with connection(tmp_path, methods={"initialize": [{"result": second}]}):
            pass
    assert error.value.error_type == "acp/version"


async def test_a_program_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    missing = AcpAgentConfig(name="goose", command="/nowhere/goose")
    agent = AcpConnection(missing, cwd=tmp_path, on_request=nobody, on_notification=lambda method, params: None)
    with pytest.raises(AgentError, match="is not installed; install it with: curl") as error:
        async with agent:
            pass
    assert error.value.error_type == "acp/start"


async def test_a_program_that_cannot_be_run_and_a_missing_directory_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AgentError, match="Permission denied"):
        async with connection(tmp_path, config={"command": str(tmp_path / "file")}):
            pass
    with pytest.raises(AgentError, match=r"working directory .* does not exist"):
        async with connection(tmp_path, config={"cwd": tmp_path / "missing"}):
            pass


async def test_an_agent_that_never_answers_is_given_up(tmp_path: Path) -> None:
    silent = {"initialize": [{"sleep": None}]}
    with pytest.raises(AgentError, match=r"did not answer initialize within 0\.1 seconds") as error:
        async with connection(tmp_path, config={"start_timeout": 0.1}, methods=silent):
            pass
    assert error.value.error_type == "acp/timeout"


async def test_an_agent_that_dies_at_the_start_shows_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"exited with code 3.\nIts last output:\nno config") as error:
        async with connection(tmp_path, methods={"initialize": [{"stderr": "no config\n"}, {"exit": 3}]}):
            pass
    assert error.value.error_type == EXITED
    assert error.value.meta == {"ahpkit/acp": {"exitCode": 3}}


async def test_keys_do_not_appear_in_its_last_words(tmp_path: Path) -> None:
    dying = {"initialize": [{"stderr": "bad key sk-very-secret-1\n"}, {"exit": 1}]}
    with pytest.raises(AgentError) as error:
        async with connection(tmp_path, config={"env": {"KEY": "sk-very-secret-1"}}, methods=dying):
            pass
    assert "bad key …" in error.value.message
    assert "sk-very-secret" not in error.value.message


async def test_an_error_of_the_agent_keeps_its_code_and_data(tmp_path: Path) -> None:
    failing = {"session/list": [{"error": {"code": 400, "message": "quota", "data": {"left": 0, "token": "x"}}}]}
    async with connection(tmp_path, methods=failing) as agent:
        with pytest.raises(AgentError, match="answered session/list with an error: quota") as error:
            await agent.request("session/list", {})
    assert error.value.error_type == "acp/400"
    assert error.value.meta == {"ahpkit/acp": {"code": 400, "data": {"left": 0}}}


@pytest.mark.parametrize("data", ["no credit", {"details": "no credit", "code": 1}])
async def test_the_details_of_an_error_are_shown(tmp_path: Path, data: Any) -> None:
    failing = {"session/list": [{"error": {"code": -32603, "message": "Internal error", "data": data}}]}
    async with connection(tmp_path, methods=failing) as agent:
        with pytest.raises(AgentError, match="Internal error: no credit"):
            await agent.request("session/list", {})


async def test_a_missing_login_names_the_ways_to_log_in(tmp_path: Path) -> None:
    methods = [{"id": "key", "name": "API key"}, {"id": "web", "name": "Browser"}]
    async with connection(tmp_path, initialize={"authMethods": methods}, requires_env="NO_SUCH_KEY") as agent:
        with pytest.raises(AgentError, match="Log in first: API key, Browser") as error:
            await agent.request("session/new", {"cwd": "/", "mcpServers": []})
    assert error.value.error_type == AUTH_REQUIRED


async def test_what_an_agent_says_about_a_login_ends_with_one_full_stop(tmp_path: Path) -> None:
    failing = {"session/list": [{"error": {"code": -32000, "message": "No key is configured."}}]}
    async with connection(tmp_path, methods=failing) as agent:
        with pytest.raises(AgentError, match=r"No key is configured\. Log in first$"):
            await agent.request("session/list", {})


async def test_an_agent_that_names_no_way_to_log_in_is_told_with_its_key(tmp_path: Path) -> None:
    config = {"keys": ("FIRST_KEY", "SECOND_KEY")}
    silent: dict[str, Any] = {"authMethods": []}
    async with connection(tmp_path, config=config, initialize=silent, requires_env="NO_SUCH_KEY") as agent:
        with pytest.raises(AgentError, match=r"Log in first with its own program, or set FIRST_KEY$"):
            await agent.request("session/new", {"cwd": "/", "mcpServers": []})


async def test_a_message_over_the_limit_ends_the_connection_with_a_clear_error(tmp_path: Path) -> None:
    flood = {"session/list": [{"zeros": 3_000_000}, {"sleep": None}]}
    async with connection(tmp_path, methods=flood, limits={"max_line": 1_000_000}) as agent:
        with pytest.raises(AgentError, match="sent a message of more than") as error:
            await agent.request("session/list", {})
        assert agent.closed
    assert error.value.error_type == "acp/message-too-long"


async def test_an_agent_that_closes_its_output_and_stays_is_noticed(tmp_path: Path) -> None:
    code = "import os, sys, time; os.close(1); time.sleep(600)"
    with pytest.raises(AgentError, match="closed its output") as error:
        config = {"command": sys.executable, "args": ("-c", code)}
        async with connection(tmp_path, config=config, limits={"exit_patience": 0.1}):
            pass
    assert error.value.error_type == EXITED


async def test_the_code_of_an_acp_agent_is_not_read_as_one_of_ahp(tmp_path: Path) -> None:
    """-32002 is a file that does not exist; in AHP it would be an unknown provider."""
    missing = {"code": -32002, "message": "no such file", "data": {"uri": "file:///gone"}}
    async with connection(tmp_path, methods={"session/load": [{"error": missing}]}) as agent:
        with pytest.raises(AgentError, match="no such file") as caught:
            await agent.request("session/load", {"sessionId": "s"})
    assert type(caught.value.__cause__) is RpcError
    assert caught.value.error_type == "acp/-32002"
