"""The page about the demo agent lists what the agent has."""

from __future__ import annotations

from pathlib import Path

from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.demo_commands import COMMANDS
from ahpkit.agents.demo_tools import demo_tools

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "demo-agent.md").read_text()


def test_every_command_is_documented_as_it_is_typed() -> None:
    for command in COMMANDS.values():
        typed = f"/{command.name} {command.usage}".rstrip().replace("|", "\\|")
        assert f"| `{typed}` |" in PAGE, typed


def test_every_tool_model_and_setting_is_documented() -> None:
    names = [tool["name"] for tool in demo_tools().definitions()]
    names += [model["id"] for model in DemoAgent.models]
    for name in [*names, "greeting", "topic"]:
        assert f"`{name}`" in PAGE, name
