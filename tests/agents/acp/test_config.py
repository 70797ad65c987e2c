from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp.config import AcpAgentConfig, AcpConfigError, config_from_table, parse_agent_option
from ahpkit.agents.acp.registry import KNOWN_AGENTS


def test_an_option_is_a_name_and_a_command_line_split_as_a_shell_would() -> None:
    config = parse_agent_option("mine=my-agent --flag 'two words' a=b")

    assert (config.name, config.command, config.args) == ("mine", "my-agent", ("--flag", "two words", "a=b"))


@pytest.mark.parametrize(
    "name", ["gemini", "claude", "codex", "opencode", "copilot", "goose", "qwen", "kimi", "cursor"]
)
def test_a_known_name_needs_no_command(name: str) -> None:
    config = parse_agent_option(name)

    assert config.command == KNOWN_AGENTS[name].command
    assert config.pass_env == KNOWN_AGENTS[name].variables


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("nobody", "no known agent 'nobody'"),
        ("mine=", "command is empty"),
        ("mine='open", "No closing quotation"),
        ("=x", "is not an agent name"),
        ("a b=x", "is not an agent name"),
    ],
)
def test_an_option_that_cannot_be_used_says_why(option: str, complaint: str) -> None:
    with pytest.raises(AcpConfigError, match=complaint):
        parse_agent_option(option)


def test_a_table_sets_everything() -> None:
    table = {
        "command": "~/bin/agent",
        "args": ["--acp"],
        "env": {"A": "b"},
        "pass_env": ["KEY"],
        "cwd": "/srv",
        "default_model": "m",
        "permissions": "deny",
        "files": True,
        "start_timeout": 5,
    }

    config = config_from_table("mine", table)

    assert config == AcpAgentConfig(
        name="mine",
        command=str(Path("~/bin/agent").expanduser()),
        args=("--acp",),
        env={"A": "b"},
        pass_env=("KEY",),
        cwd=Path("/srv"),
        default_model="m",
        permissions="deny",
        files=True,
        start_timeout=5,
    )


def test_a_table_for_a_known_agent_changes_only_what_it_says() -> None:
    config = config_from_table("gemini", {"default_model": "flash"})

    assert (config.command, config.args, config.default_model) == ("gemini", ("--acp",), "flash")
    assert config_from_table("gemini", {"command": "other"}).args == ()


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({}, "agents.mine: give a command"),
        ({"comand": "x"}, r"agents\.mine\.comand: unknown key"),
        ({"command": 5}, r"agents\.mine\.command: expected a string, got 5"),
        ({"command": "x", "args": "y"}, r"agents\.mine\.args: expected a list"),
        ({"command": "x", "args": [1]}, r"agents\.mine\.args: expected strings only"),
        ({"command": "x", "env": {"A": 1}}, r"agents\.mine\.env: expected strings only"),
        ({"command": "x", "files": 1}, r"agents\.mine\.files: expected a boolean"),
        ({"command": "x", "start_timeout": True}, r"agents\.mine\.start_timeout: expected a number"),
        ({"command": "x", "permissions": "maybe"}, r"agents\.mine\.permissions: expected one of ask, allow, deny"),
    ],
)
def test_a_table_that_cannot_be_used_names_the_key(table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AcpConfigError, match=complaint):
        config_from_table("mine", table)


def test_the_environment_is_what_every_program_needs_and_what_is_named() -> None:
    host = {"PATH": "/bin", "LC_ALL": "C", "https_proxy": "p", "KEY": "k", "OTHER_SECRET": "s", "AWS_TOKEN": "t"}
    config = AcpAgentConfig(name="a", command="x", pass_env=("KEY",), env={"PATH": "/mine", "NEW": "n"})

    assert config.environment(host) == {"PATH": "/mine", "LC_ALL": "C", "https_proxy": "p", "KEY": "k", "NEW": "n"}


def test_a_program_that_is_known_gets_its_variables_under_any_name() -> None:
    host = {"GOOSE_MODE": "approve", "OPENAI_API_KEY": "k", "GOOSEBERRY": "b", "AWS_TOKEN": "t"}

    assert parse_agent_option("mine=/opt/bin/goose acp").environment(host) == {
        "GOOSE_MODE": "approve",
        "OPENAI_API_KEY": "k",
    }
    assert parse_agent_option("mine=python3 agent.py").environment(host) == {}
