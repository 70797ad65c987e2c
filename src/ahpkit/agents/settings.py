"""An agent from what a user wrote: `--agent NAME[=…]` or an `[agents.NAME]` table. Imports only the kind that is meant.

NAME                           an agent that the registry knows
NAME=COMMAND ARGS              a program that speaks ACP
NAME=http://127.0.0.1:8080/v1  an endpoint that speaks OpenAI's chat completions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.host.agent import Agent

_SCHEMES = ("http://", "https://")


def agent_from_settings(name: str, fields: Mapping[str, Any]) -> Agent:
    """`fields` are the keys of the table, or `{"option": "NAME=…"}` for the option."""
    option = fields.get("option")
    url = option.partition("=")[2] if isinstance(option, str) else fields.get("url")
    if isinstance(fields.get("python"), str):
        from ahpkit.agents.python import load_agent

        return load_agent(fields["python"])
    if isinstance(url, str) and url.startswith(_SCHEMES):
        from ahpkit.agents.openai import OpenAiAgent, config_from_table

        table = {"url": url} if isinstance(option, str) else fields
        return OpenAiAgent(config_from_table(name, table))
    from ahpkit.agents.acp import AcpAgent, parse_agent_option
    from ahpkit.agents.acp import config_from_table as acp_config

    return AcpAgent(parse_agent_option(option) if isinstance(option, str) else acp_config(name, fields))


__all__ = ["agent_from_settings"]
