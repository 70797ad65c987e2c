"""An agent from what a user wrote: `--agent NAME[=…]` or an `[agents.NAME]` table. Imports only the kind that is meant.

NAME                           an agent that the registry knows
NAME=COMMAND ARGS              a program that speaks ACP
NAME=http://127.0.0.1:8080/v1  an endpoint that speaks OpenAI's chat completions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ahpkit.host.agent import Agent

if TYPE_CHECKING:
    from ahpkit.agents.acp import AcpAgentConfig
    from ahpkit.host.resources import Resources
    from ahpkit.host.terminals import Terminals

_SCHEMES = ("http://", "https://")


def agent_from_settings(
    name: str, fields: Mapping[str, Any], *, resources: Resources | None = None, terminals: Terminals | None = None
) -> Agent:
    """`fields` are the keys of the table, or `{"option": "NAME=…"}` for the option.

    ACP agents reach files through the host's `resources`, and run commands in its `terminals` where there are any.
    """
    option = fields.get("option")
    url = option.partition("=")[2] if isinstance(option, str) else fields.get("url")
    if isinstance(fields.get("python"), str):
        return _python_agent(fields["python"])
    if isinstance(url, str) and url.startswith(_SCHEMES):
        return _openai_agent(name, {"url": url} if isinstance(option, str) else fields)
    config = _acp_config(name, option, fields)
    return _acp_agent(config, resources, terminals)


def _python_agent(reference: str) -> Agent:
    from ahpkit.agents.python import load_agent

    return load_agent(reference)


def _openai_agent(name: str, table: Mapping[str, Any]) -> Agent:
    from ahpkit.agents.openai import OpenAiAgent, config_from_table

    return OpenAiAgent(config_from_table(name, table))


def _acp_config(name: str, option: Any, table: Mapping[str, Any]) -> AcpAgentConfig:
    from ahpkit.agents.acp import config_from_table, parse_agent_option

    return parse_agent_option(option) if isinstance(option, str) else config_from_table(name, table)


def _acp_agent(config: AcpAgentConfig, resources: Resources | None, terminals: Terminals | None) -> Agent:
    from ahpkit.agents.acp import AcpAgent, HostTerminals

    return AcpAgent(
        config,
        files=resources.agent_files if resources else None,
        terminals=(lambda chat: HostTerminals(terminals, chat.session_uri)) if terminals else None,
    )


__all__ = ["agent_from_settings"]
