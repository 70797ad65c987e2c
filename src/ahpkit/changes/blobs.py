"""Reads contents of files from git's objects. One process reads many files, because starting a process takes long."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from ahpkit.changes.git import Git
from ahpkit.changes.sides import LINK, SUBMODULE, Side


class Blobs:
    """Reads the contents of files in trees, one after another, inside its `async with`."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._running = AsyncExitStack()
        self._readers: dict[bool, asyncio.subprocess.Process] = {}
        """Two git processes: one reads files in the form that they have on disk, the other in the form that git
        stores."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.begin_anew()

    async def begin_anew(self) -> None:
        """End git. The next read starts a new process, which uses the attributes that files have by then."""
        self._readers.clear()
        await self._running.aclose()

    async def read(self, side: Side, *, on_disk_form: bool = True) -> bytes:
        """The bytes of a file in a tree; `on_disk_form`: with the line ends it has in the work tree."""
        if side.mode == SUBMODULE:
            return f"Subproject commit {side.oid}\n".encode()
        converted = on_disk_form and side.mode != LINK
        one_line = not converted or _fits_in_a_line(side.path)
        data = await self._ask(side, converted) if one_line else None
        return await self._read_alone(side, converted) if data is None else data

    async def _ask(self, side: Side, converted: bool) -> bytes | None:
        """The content that git answers; None: it has none, or git has ended.

        The length in git's answer is the length before a conversion. So git is also asked for an object that cannot
        exist: its message about that object marks the end of the answer.
        """
        process = self._readers.get(converted) or await self._start(converted)
        assert process.stdin is not None
        assert process.stdout is not None
        wanted = f"{side.oid} {side.path}" if converted else side.oid
        nothing = f"nothing-{secrets.token_hex(16)}"
        end = f"\n{nothing} missing\n".encode()
        try:
            process.stdin.write(os.fsencode(f"{wanted}\n{nothing}\n"))
            async with asyncio.timeout(self._git.deadline):
                answer = await process.stdout.readuntil(end)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            await self.begin_anew()
            return None
        header, _, data = answer.removesuffix(end).partition(b"\n")
        return data if header.startswith(f"{side.oid} blob ".encode()) else None

    async def _start(self, converted: bool) -> asyncio.subprocess.Process:
        form = ("--filters",) if converted else ()
        started = self._git.started("cat-file", "--batch", *form)
        self._readers[converted] = await self._running.enter_async_context(started)
        return self._readers[converted]

    async def _read_alone(self, side: Side, converted: bool) -> bytes:
        """Read one file with its own process, which reports why a file cannot be read."""
        form = ("--filters", f"--path={side.path}") if converted else ("blob",)
        return await self._git.run("cat-file", *form, side.oid)


def _fits_in_a_line(path: str) -> bool:
    """Whether git reads this path unchanged from a line of a request."""
    return "\n" not in path and path == path.strip()


__all__ = ["Blobs"]
