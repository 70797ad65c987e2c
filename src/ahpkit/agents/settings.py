"""Makes an agent from what a user configured: `--agent NAME[=…]` or an `[agents.NAME]` table. Only modules of that kind
are imported.

NAME                           an agent that the registry knows
NAME=COMMAND ARGS              a program that speaks ACP
NAME=http://127.0.0.1:8080/v1  an endpoint that speaks OpenAI's chat completions
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ahpkit.host.agent import Agent

if TYPE_CHECKING:
    from ahpkit.agents.acp import AcpAgentConfig
    from ahpkit.host.resources.feature import Resources
    from ahpkit.host.terminals.feature import Terminals

_SCHEMES = ("http://", "https://")


def agent_from_settings(
    name: str,
    fields: Mapping[str, Any],
    *,
    resources: Resources | None = None,
    terminals: Terminals | None = None,
    environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
) -> Agent:
    """`fields` are the keys of the table, or `{"option": "NAME=…"}` for the option.

    ACP agents reach files through the host's `resources`, and run commands in its `terminals` where there are any.
    `environ` returns the part of the environment that the agents of a session may see.
    """
    match _kind(fields):
        case "python":
            return _python_agent(name, fields)
        case "openai":
            return _openai_agent(name, {"url": _url(fields)} if "option" in fields else fields, environ)
        case _:
            return _acp_agent(_acp_config(name, fields), resources, terminals, environ)


def missing_program(name: str, fields: Mapping[str, Any]) -> str | None:
    """Says which program of an ACP agent is not installed, and how to install it if that is known."""
    if _kind(fields) != "acp":
        return None
    from ahpkit.agents.acp.registry import KNOWN_AGENTS

    config = _acp_config(name, fields)
    relative = "/" in config.command and not config.command.startswith(
        "/"
    )  # The path may be relative to the chat's directory.
    if relative or shutil.which(config.command, path=config.env.get("PATH")) is not None:
        return None
    known = KNOWN_AGENTS.get(name)
    advice = f"; install it with:  {known.install}" if known is not None and known.command == config.command else ""
    return f"{config.command} is not installed{advice}"


def _kind(fields: Mapping[str, Any]) -> Literal["python", "openai", "acp"]:
    if isinstance(fields.get("python"), str):
        return "python"
    return "openai" if "url" in fields or _url(fields).startswith(_SCHEMES) else "acp"


def _url(fields: Mapping[str, Any]) -> str:
    option = fields.get("option")
    url = option.partition("=")[2] if isinstance(option, str) else fields.get("url")
    return url if isinstance(url, str) else ""


def _python_agent(name: str, table: Mapping[str, Any]) -> Agent:
    from ahpkit.agents.python import AgentNotLoaded, load_agent

    if unknown := sorted(table.keys() - {"python"}):
        raise AgentNotLoaded(f"agents.{name}.{unknown[0]}: unknown key; a table with python has no other key")
    agent = load_agent(table["python"])
    if agent.provider != name:
        raise AgentNotLoaded(f"agents.{name}: the agent calls itself {agent.provider}; use [agents.{agent.provider}]")
    return agent


def _openai_agent(name: str, table: Mapping[str, Any], environ: Callable[[str], Mapping[str, str]]) -> Agent:
    from ahpkit.agents.openai import OpenAiAgent, config_from_table

    return OpenAiAgent(config_from_table(name, table), environ=environ)


def _acp_config(name: str, fields: Mapping[str, Any]) -> AcpAgentConfig:
    from ahpkit.agents.acp import config_from_table, parse_agent_option

    option = fields.get("option")
    return parse_agent_option(option) if isinstance(option, str) else config_from_table(name, fields)


def _acp_agent(
    config: AcpAgentConfig,
    resources: Resources | None,
    terminals: Terminals | None,
    environ: Callable[[str], Mapping[str, str]],
) -> Agent:
    from ahpkit.agents.acp import AcpAgent, HostTerminals

    return AcpAgent(
        config,
        files=resources.agent_files if resources else None,
        terminals=(lambda chat: HostTerminals(terminals, chat)) if terminals else None,
        environ=environ,
    )


__all__ = ["agent_from_settings", "missing_program"]
