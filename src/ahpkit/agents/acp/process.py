"""The process of an ACP agent: a child process, and how much one message of it may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ahpkit.transports.process import ChildProcess

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one message: the largest seen is 0.6 MB; an image or a file in one message fits."""


class AgentProcess(ChildProcess):
    """`async with AgentProcess([...], env=…, cwd=…) as process`."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        super().__init__(command, env=env, cwd=cwd, max_line=MAX_LINE)


__all__ = ["MAX_LINE", "AgentProcess"]
