"""Agents that speak the Agent Client Protocol (ACP), as agents of the host."""

from ahpkit.agents.acp.access import FileAccess, HostTerminals, TerminalAccess, TerminalOutput
from ahpkit.agents.acp.agent import AcpAgent
from ahpkit.agents.acp.config import AcpAgentConfig, AcpConfigError, config_from_table, parse_agent_option
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent

__all__ = [
    "KNOWN_AGENTS",
    "AcpAgent",
    "AcpAgentConfig",
    "AcpConfigError",
    "FileAccess",
    "HostTerminals",
    "KnownAgent",
    "TerminalAccess",
    "TerminalOutput",
    "config_from_table",
    "parse_agent_option",
]
