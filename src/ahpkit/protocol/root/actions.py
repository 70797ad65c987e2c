"""Actions on `ahp-root://`, each with its constructor. The registry says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.root.state import AgentInfo
from ahpkit.protocol.terminal.state import TerminalInfo


class RootAgentsChangedAction(TypedDict):
    """The agents were replaced."""

    type: Literal["root/agentsChanged"]
    agents: list[AgentInfo]


def root_agents_changed(*, agents: list[AgentInfo]) -> RootAgentsChangedAction:
    """The agents were replaced."""
    return {"type": "root/agentsChanged", "agents": agents}


class RootActiveSessionsChangedAction(TypedDict):
    """The number of sessions in memory."""

    type: Literal["root/activeSessionsChanged"]
    activeSessions: int


def root_active_sessions_changed(*, active_sessions: int) -> RootActiveSessionsChangedAction:
    """The number of sessions in memory."""
    return {"type": "root/activeSessionsChanged", "activeSessions": active_sessions}


class RootTerminalsChangedAction(TypedDict):
    """The terminals were replaced."""

    type: Literal["root/terminalsChanged"]
    terminals: list[TerminalInfo]


def root_terminals_changed(*, terminals: list[TerminalInfo]) -> RootTerminalsChangedAction:
    """The terminals were replaced."""
    return {"type": "root/terminalsChanged", "terminals": terminals}


class RootConfigChangedAction(TypedDict):
    """Settings changed: merged, or with `replace` exchanged as a whole."""

    type: Literal["root/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


def root_config_changed(*, config: JsonObject, replace: bool | None = None) -> RootConfigChangedAction:
    """Settings changed: merged, or with `replace` exchanged as a whole."""
    action: RootConfigChangedAction = {"type": "root/configChanged", "config": config}
    if replace is not None:
        action["replace"] = replace
    return action


RootAction = (
    RootAgentsChangedAction | RootActiveSessionsChangedAction | RootTerminalsChangedAction | RootConfigChangedAction
)


__all__ = [
    "RootAction",
    "RootActiveSessionsChangedAction",
    "RootAgentsChangedAction",
    "RootConfigChangedAction",
    "RootTerminalsChangedAction",
    "root_active_sessions_changed",
    "root_agents_changed",
    "root_config_changed",
    "root_terminals_changed",
]
