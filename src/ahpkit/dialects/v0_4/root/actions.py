"""Actions on `ahp-root://`. Which of them a client may dispatch says `ahpkit.dialects.v0_4.registry`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.state import JsonObject
from ahpkit.dialects.v0_4.root.state import AgentInfo
from ahpkit.dialects.v0_4.terminal.state import TerminalInfo


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
