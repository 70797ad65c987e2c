from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.root.state import AgentInfo
from ahpkit.protocol.terminal.state import TerminalInfo


class RootAgentsChangedAction(TypedDict):
    type: Literal["root/agentsChanged"]
    agents: list[AgentInfo]


class RootActiveSessionsChangedAction(TypedDict):
    type: Literal["root/activeSessionsChanged"]
    activeSessions: int | float


class RootTerminalsChangedAction(TypedDict):
    type: Literal["root/terminalsChanged"]
    terminals: list[TerminalInfo]


class RootConfigChangedAction(TypedDict):
    type: Literal["root/configChanged"]
    config: JsonObject
    replace: NotRequired[bool]
