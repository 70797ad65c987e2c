"""Output waits for its readers, but not for one that stopped reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.protocol.terminal import terminal_data
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.transport import Transport
from support.raw_client import RawClient
from support.terminals import Shell, TerminalBench, terminal_bench
from support.waiting import BOUND

MEGABYTE = terminal_data(data="x" * 1_000_000)


class Gated:
    """A transport whose reader can stop."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.open = asyncio.Event()
        self.open.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> bytes:
        await self.open.wait()
        data = await self._inner.receive()
        await self.open.wait()
        return data


class Slow:
    """A client that watches a terminal and can stop reading."""

    def __init__(self, bench: TerminalBench) -> None:
        ours, theirs = memory_pair()
        self.gate = Gated(ours)
        self.serving = asyncio.create_task(bench.host.serve(theirs))
        self.client = RawClient(cast("Transport", self.gate), "slow")

    async def aclose(self) -> None:
        self.gate.open.set()
        await self.client.aclose()
        await asyncio.wait([self.serving], timeout=BOUND)


@pytest.fixture
def patience() -> float:
    """Seconds that a stalled reader is waited for."""
    return BOUND


@pytest.fixture
def program() -> str:
    """Says nothing by itself: output of its own, which may come late, waits for readers as well."""
    return "/bin/cat"


@pytest.fixture
async def bench(tmp_path: Path, patience: float, program: str) -> AsyncGenerator[TerminalBench]:
    async with terminal_bench(tmp_path, reader_patience=patience, shell=program) as made:
        yield made


@pytest.fixture
async def shell(bench: TerminalBench) -> Shell:
    return await Shell.open(await bench.client(client_id="me"))


@pytest.fixture
async def slow(bench: TerminalBench, shell: Shell) -> AsyncGenerator[Slow]:
    made = Slow(bench)
    try:
        await made.client.initialize(shell.uri)
        made.gate.open.clear()
        yield made
    finally:
        await made.aclose()


async def test_a_reader_that_is_far_behind_is_waited_for(bench: TerminalBench, shell: Shell, slow: Slow) -> None:
    for _ in range(3):
        bench.host.services.dispatch(shell.uri, MEGABYTE)
    room = asyncio.create_task(bench.host.services.room(shell.uri))
    await shell.client.wait(lambda _: len(shell.shown()) >= 3_000_000)
    await shell.client.ask("ping")
    assert not room.done()
    slow.gate.open.set()
    async with asyncio.timeout(BOUND):
        await room


async def test_all_who_wait_for_a_reader_wait_for_it(bench: TerminalBench, shell: Shell, slow: Slow) -> None:
    other = await Shell.open(shell.client, "other")
    slow.gate.open.set()
    await slow.client.ask("subscribe", other.uri)
    slow.gate.open.clear()
    for _ in range(3):
        bench.host.services.dispatch(shell.uri, MEGABYTE)
    rooms = [asyncio.create_task(bench.host.services.room(one.uri)) for one in (shell, other)]
    await shell.client.wait(lambda _: len(shell.shown()) >= 3_000_000)
    await shell.client.ask("ping")
    assert [room.done() for room in rooms] == [False, False]
    slow.gate.open.set()
    async with asyncio.timeout(BOUND):
        await asyncio.gather(*rooms)


async def test_a_reader_that_stopped_is_not_waited_for_again(bench: TerminalBench, shell: Shell, slow: Slow) -> None:
    for _ in range(3):
        bench.host.services.dispatch(shell.uri, MEGABYTE)
    await shell.client.wait(lambda _: len(shell.shown()) >= 3_000_000)
    async with asyncio.timeout(BOUND):
        done = False
        while not done:  # What it took before it stopped counts once.
            room = asyncio.create_task(bench.host.services.room(shell.uri))
            await shell.client.ask("ping")
            await shell.client.ask("ping")
            done = room.done()
            room.cancel()


async def test_a_reader_that_is_a_little_behind_is_not(bench: TerminalBench, shell: Shell, slow: Slow) -> None:
    bench.host.services.dispatch(shell.uri, terminal_data(data="x" * 100_000))
    async with asyncio.timeout(BOUND):
        await bench.host.services.room(shell.uri)


@pytest.mark.parametrize(("patience", "program"), [(0.005, "/bin/sh")])
async def test_a_reader_that_stopped_loses_its_connection_and_the_output_goes_on(shell: Shell, slow: Slow) -> None:
    await shell.type("yes | head -c 4M; exit\n")
    async with asyncio.timeout(BOUND):
        while not shell.has_exited():
            await shell.client.ask("ping")
    slow.gate.open.set()
    assert (await slow.client.wait_closed()).reason == "connection aborted"
