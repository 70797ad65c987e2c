"""Terminals that clients open and that agents run their commands in."""

from ahpkit.host.terminals.agent import AgentOutput, AgentTerminal
from ahpkit.host.terminals.feature import Terminals
from ahpkit.platform.pty import ExitStatus

__all__ = ["AgentOutput", "AgentTerminal", "ExitStatus", "Terminals"]
