"""Commands on terminals."""

from __future__ import annotations

from typing import NotRequired

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.terminal.state import TerminalClaim


class CreateTerminalParams(BaseParams):
    """`createTerminal`: `channel` is the URI that the client chooses. Answered with null."""

    claim: TerminalClaim
    name: NotRequired[str]
    cwd: NotRequired[URI]
    cols: NotRequired[int]
    rows: NotRequired[int]


class DisposeTerminalParams(BaseParams):
    """`disposeTerminal`. Answered with null."""


__all__ = [
    "CreateTerminalParams",
    "DisposeTerminalParams",
]
