"""What measurements share: a client that waits for each answer, starts of `ahpkit serve` up to its first answer, and
the processes of `host_roles.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from host_roles import SESSION

from ahpkit.transports.connect import connect_transport
from ahpkit.wire.transport import Transport

Result = dict[str, Any]

ROLES = Path(__file__).with_name("host_roles.py")


class Caller:
    """A client that waits for each answer."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._number = 0

    @classmethod
    async def connect(cls, url: str, *, token: str | None = None) -> Caller:
        caller = cls(await connect_transport(url, token=token))
        await caller.call("initialize", protocolVersions=["0.4.0"], clientId="caller")
        return caller

    def send(self, message: Result) -> None:
        self.transport.write(self.transport.frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def answer(self, method: str, channel: str = "ahp-root://", **params: Any) -> bytes:
        """Ask, and return the answer as it came."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": {"channel": channel, **params}})
        while True:
            data = await self.transport.receive()
            if data.startswith(b'{"jsonrpc":"2.0","id":%d,' % self._number):
                return data

    async def call(self, method: str, channel: str = "ahp-root://", **params: Any) -> Any:
        return json.loads(await self.answer(method, channel, **params))["result"]

    def dispatch(self, channel: str, action: Result) -> int:
        self._number += 1
        self.send(
            {
                "method": "dispatchAction",
                "params": {"channel": channel, "clientSeq": self._number, "action": action},
            }
        )
        return self._number

    async def echo(self) -> None:
        """Dispatch and wait until the action comes back."""
        seq = self.dispatch(SESSION, {"type": "session/titleChanged", "title": "a title like any other"})
        while b'"clientSeq":%d}' % seq not in await self.transport.receive():
            pass

    def start_turn(self, chat: str, prompt: str) -> None:
        message = {"text": prompt, "origin": {"kind": "user"}}
        self.dispatch(chat, {"type": "chat/turnStarted", "turnId": f"turn-{self._number}", "message": message})


async def milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return (time.perf_counter() - begun) * 1000


class Start(NamedTuple):
    """How long a start of `ahpkit serve` took until it answered `initialize`, in seconds."""

    wall: float
    cpu: float
    listed: float
    """From there to the answer to `listSessions`."""


async def measure_start(directory: Path) -> Start:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "ahpkit", "serve", "--port", "0", "--json", "--data-dir", str(directory)]
    # Bytecode is kept between starts, as it is for an installed package.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory.parent / "bytecode")}
    environment = {**os.environ, **bytecode, "XDG_RUNTIME_DIR": str(directory.parent)}
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        announced = json.loads(await process.stdout.readline())
        caller = await Caller.connect(announced["url"], token=announced["token"])
        wall, cpu = time.perf_counter() - begun, cpu_of(process.pid)
        listed = await milliseconds(lambda: caller.answer("listSessions")) / 1000
        await caller.transport.aclose()
    finally:
        process.terminate()
        await process.wait()
    return Start(wall, cpu, listed)


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- processes of host_roles.py --------------------------------------------------------------------------------------


class Child:
    """A process of `host_roles.py`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, role: str, **options: object) -> AsyncGenerator[Child]:
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        process = await asyncio.create_subprocess_exec(
            sys.executable, ROLES, role, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def said(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(300):
            return json.loads(await self._process.stdout.readline())

    async def ask(self, **question: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        return await self.said()


@contextlib.asynccontextmanager
async def running_host(directory: Path) -> AsyncGenerator[tuple[Child, str, Caller, str]]:
    """A host with a session that is ready: the process, its URL, a client, the chat."""
    async with Child.start("host", dir=directory) as host:
        url = (await host.said())["url"]
        caller = await Caller.connect(url)
        await caller.call("createSession", SESSION)
        while (state := await state_of(caller, SESSION))["lifecycle"] != "ready":
            await asyncio.sleep(0.01)
        caller.send({"method": "unsubscribe", "params": {"channel": SESSION}})
        yield host, url, caller, state["defaultChat"]
        await caller.transport.aclose()


async def state_of(caller: Caller, uri: str) -> Result:
    return (await caller.call("subscribe", uri))["snapshot"]["state"]
