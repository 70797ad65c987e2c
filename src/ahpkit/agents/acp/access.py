"""What an agent may reach through the host: files and terminals. Interfaces, and files limited to one directory.

Without access an agent's requests are refused as unknown methods, which is what agents expect of a client that did not
offer them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ahpkit.protocol.errors import InvalidParams, PermissionDenied, RpcError

RESOURCE_NOT_FOUND = -32002
"""ACP's code for a file that is not there."""

MAX_FILE = 16 * 1024 * 1024
"""Bytes of a file read or written in one request."""


class FileAccess(Protocol):
    """Text files as one chat's agent sees them. Refuse with an `RpcError`."""

    async def read(self, path: Path) -> str: ...

    async def write(self, path: Path, content: str) -> None: ...


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What a terminal has shown, and how its command ended if it did."""

    output: str
    truncated: bool = False
    exit_code: int | None = None
    signal: str | None = None
    exited: bool = False


class TerminalAccess(Protocol):
    """Terminals run for one chat's agent. Refuse with an `RpcError`."""

    async def create(
        self, command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: Path, output_limit: int | None
    ) -> str:
        """Run a command; returns the terminal's id."""
        ...

    async def output(self, id: str) -> TerminalOutput: ...

    async def wait(self, id: str) -> TerminalOutput:
        """Wait until the command has ended."""
        ...

    async def kill(self, id: str) -> None: ...

    async def release(self, id: str) -> None:
        """The agent needs it no more: end the command if it runs."""
        ...

    def uri(self, id: str) -> str | None:
        """The terminal channel that clients may subscribe to."""
        ...


class DirectoryFiles:
    """Files inside one directory, links followed first: what they lead to counts."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    async def read(self, path: Path) -> str:
        return await asyncio.to_thread(self._read, self._inside(path))

    async def write(self, path: Path, content: str) -> None:
        await asyncio.to_thread(self._write, self._inside(path), content)

    def _inside(self, path: Path) -> Path:
        if not path.is_absolute():
            raise InvalidParams(f"path: {path} is not absolute")
        target = path.resolve()
        if not target.is_relative_to(self._root):
            raise PermissionDenied(f"{path} is outside the working directory {self._root}")
        return target

    def _read(self, path: Path) -> str:
        try:
            if path.stat().st_size > MAX_FILE:
                raise InvalidParams(f"{path} is larger than {MAX_FILE} bytes")
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RpcError(RESOURCE_NOT_FOUND, f"{path} does not exist") from None
        except UnicodeDecodeError:
            raise InvalidParams(f"{path} is not a text file in UTF-8") from None
        except OSError as error:
            raise RpcError(RESOURCE_NOT_FOUND, f"{path}: {error.strerror}") from None

    def _write(self, path: Path, content: str) -> None:
        if len(content) > MAX_FILE:
            raise InvalidParams(f"content: more than {MAX_FILE} characters")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise RpcError(RESOURCE_NOT_FOUND, f"{path}: {error.strerror}") from None


__all__ = ["MAX_FILE", "RESOURCE_NOT_FOUND", "DirectoryFiles", "FileAccess", "TerminalAccess", "TerminalOutput"]
