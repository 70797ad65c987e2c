"""A small TCP proxy between clients and a host: its connections can be cut, delayed and stopped."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self

_CHUNK = 64 * 1024


class Proxy:
    """Listens on a port of its own inside its `async with`. Where it leads to may change: a host may start again."""

    def __init__(self) -> None:
        self.target: int | None = None
        """The port of the host; None: nobody is there."""
        self.delay = 0.0
        """Seconds that everything takes longer, in both directions."""
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections, without a word to either side."""
        for writer in list(self._writers):
            writer.transport.abort()

    def stall(self) -> None:
        """Nothing gets through, and nobody is told."""
        self._open.clear()

    def flow(self) -> None:
        self._open.set()
        self.delay = 0.0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self.target is not None:
                with suppress(OSError):
                    await self._join(reader, writer, self.target)
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", port)
        self._writers.add(ours)
        both = [asyncio.create_task(self._pump(reader, ours)), asyncio.create_task(self._pump(theirs, writer))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            ours.transport.abort()
            self._writers.discard(ours)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._open.wait()
                writer.write(data)
                await writer.drain()


__all__ = ["Proxy"]
