"""Actions on `ahp-root://`. `ahpkit.protocol.registry` says which of them a client may dispatch."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.root.state import AgentInfo
from ahpkit.protocol.terminal.state import TerminalInfo


class RootAgentsChangedAction(TypedDict):
    """The agents were replaced."""

    type: Literal["root/agentsChanged"]
    agents: list[AgentInfo]


class RootActiveSessionsChangedAction(TypedDict):
    """The number of sessions in memory."""

    type: Literal["root/activeSessionsChanged"]
    activeSessions: int


class RootTerminalsChangedAction(TypedDict):
    """The terminals were replaced."""

    type: Literal["root/terminalsChanged"]
    terminals: list[TerminalInfo]


class RootConfigChangedAction(TypedDict):
    """Settings changed: merged, or with `replace` exchanged as a whole."""

    type: Literal["root/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]


RootAction = (
    RootAgentsChangedAction | RootActiveSessionsChangedAction | RootTerminalsChangedAction | RootConfigChangedAction
)


__all__ = [
    "RootAction",
    "RootActiveSessionsChangedAction",
    "RootAgentsChangedAction",
    "RootConfigChangedAction",
    "RootTerminalsChangedAction",
]
