from __future__ import annotations

from typing import NotRequired

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.state import TerminalClaim


class CreateTerminalParams(BaseParams):
    claim: TerminalClaim
    name: NotRequired[str]
    cwd: NotRequired[URI]
    cols: NotRequired[int | float]
    rows: NotRequired[int | float]


class DisposeTerminalParams(BaseParams):
    pass
