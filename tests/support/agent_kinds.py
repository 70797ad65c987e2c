"""The kinds of agents that a host has, each driven by the same words: `CALL name {json}` calls a tool."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import PythonAgent
from ahpkit.agents.tools import Toolbox, text_of
from ahpkit.host.agent import Agent, Turn
from ahpkit.testing.fake_model import FakeModel
from support.scripted_acp import scripted_command
from support.stage import calling

KINDS = ("python", "model", "demo", "acp-silent", "acp-announced", "acp-asking")
"""Agents of other people are tested in `test_real_agents_tools.py`."""


@asynccontextmanager
async def agent_of_kind(
    kind: str, directory: Path, *, tools: Toolbox | None = None, **settings: Any
) -> AsyncGenerator[Agent]:
    """An agent. `tools` are its own (the demo agent always has the same).

    `settings` are those of an ACP agent, whose script is kept in the directory.
    """
    own = tools or Toolbox()

    async def _function(turn: Turn) -> str:
        wanted = re.search(r"CALL ([\w-]+) (\{.*\})", turn.prompt, re.DOTALL)
        if wanted is None:
            return f"You said: {turn.prompt}"
        return f"The tool returned: {text_of(await own.call(turn, wanted[1], wanted[2]))}"

    if kind == "python":
        yield PythonAgent(_function, name="python", tools=tools)
    elif kind == "demo":
        yield DemoAgent()
    elif kind == "model":
        async with FakeModel(calling) as model:
            yield OpenAiAgent(OpenAiConfig(name="model", base_url=model.url), tools=tools)
    else:
        script = {"mcp": kind.removeprefix("acp-"), "record": str(directory / "record.jsonl")}
        command = scripted_command(directory / "script.json", **script)
        yield AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:]), **settings))


__all__ = ["KINDS", "agent_of_kind"]
