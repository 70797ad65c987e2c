"""Makes actions on `ahp-root://`: one function for each, with the fields as keywords. The result is a plain dict."""

from __future__ import annotations

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.root.actions import (
    RootActiveSessionsChangedAction,
    RootAgentsChangedAction,
    RootConfigChangedAction,
    RootTerminalsChangedAction,
)
from ahpkit.protocol.root.state import AgentInfo
from ahpkit.protocol.terminal.state import TerminalInfo

__all__ = ["root_active_sessions_changed", "root_agents_changed", "root_config_changed", "root_terminals_changed"]


def root_agents_changed(*, agents: list[AgentInfo]) -> RootAgentsChangedAction:
    """The agents were replaced."""
    return {"type": "root/agentsChanged", "agents": agents}


def root_active_sessions_changed(*, active_sessions: int) -> RootActiveSessionsChangedAction:
    """The number of sessions in memory."""
    return {"type": "root/activeSessionsChanged", "activeSessions": active_sessions}


def root_terminals_changed(*, terminals: list[TerminalInfo]) -> RootTerminalsChangedAction:
    """The terminals were replaced."""
    return {"type": "root/terminalsChanged", "terminals": terminals}


def root_config_changed(*, config: JsonObject, replace: bool | None = None) -> RootConfigChangedAction:
    """Settings changed: merged, or with `replace` exchanged as a whole."""
    action: RootConfigChangedAction = {"type": "root/configChanged", "config": config}
    if replace is not None:
        action["replace"] = replace
    return action
