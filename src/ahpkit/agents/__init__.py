"""Everything that the author of an agent imports, in one place.

    from ahpkit.agents import Turn, agent

A name is loaded when it is first used, so that importing one kind of agent does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ahpkit.agents.acp.agent import AcpAgent
    from ahpkit.agents.demo import DemoAgent
    from ahpkit.agents.openai import OpenAiAgent
    from ahpkit.agents.python import PythonAgent, TurnView, agent, load_agent
    from ahpkit.agents.tools import Tool, Toolbox, ToolError, outcome_of, text_of
    from ahpkit.host.agent import (
        Agent,
        AgentChat,
        AgentError,
        Chat,
        Command,
        Confirmation,
        InputAnswers,
        LoginNeeded,
        StopReason,
        SubChat,
        ToolCall,
        ToolOutcome,
        Turn,
        TurnContext,
    )

_HOMES = {
    "ahpkit.agents.acp.agent": ["AcpAgent"],
    "ahpkit.agents.demo": ["DemoAgent"],
    "ahpkit.agents.openai": ["OpenAiAgent"],
    "ahpkit.agents.python": ["PythonAgent", "TurnView", "agent", "load_agent"],
    "ahpkit.agents.tools": ["Tool", "ToolError", "Toolbox", "outcome_of", "text_of"],
    "ahpkit.host.agent": [
        "Agent",
        "AgentChat",
        "AgentError",
        "Chat",
        "Command",
        "Confirmation",
        "InputAnswers",
        "LoginNeeded",
        "StopReason",
        "SubChat",
        "ToolCall",
        "ToolOutcome",
        "Turn",
        "TurnContext",
    ],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


__all__ = [
    "AcpAgent",
    "Agent",
    "AgentChat",
    "AgentError",
    "Chat",
    "Command",
    "Confirmation",
    "DemoAgent",
    "InputAnswers",
    "LoginNeeded",
    "OpenAiAgent",
    "PythonAgent",
    "StopReason",
    "SubChat",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutcome",
    "Toolbox",
    "Turn",
    "TurnContext",
    "TurnView",
    "agent",
    "load_agent",
    "outcome_of",
    "text_of",
]
