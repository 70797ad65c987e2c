"""A real host process for tests: `ahpkit serve` on a free port with its own directories, always ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ahpkit.transports.connect import connect_transport
from support.raw_client import Json, RawClient
from support.template import Started, start
from support.waiting import BOUND

_TESTS = str(Path(__file__).parents[1])


def environment(home: Path) -> dict[str, str]:
    """The environment of the process: of the environment of the tests it has only the path."""
    runtime = home / "runtime"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LANG": "C.UTF-8"}
    return {**known, "AHPKIT_AUTO_START": "0"}  # No test starts a host without knowing it.


class HostProcess:
    """A running `ahpkit serve --json`."""

    def __init__(self, process: Started, announced: Json, home: Path) -> None:
        self.process = process
        self.url: str = announced["url"]
        self.token: str | None = announced["token"]
        self.announced = announced
        self.home = home
        self._errors: list[str] = []
        self._clients: list[RawClient] = []
        self._reader = asyncio.create_task(self._read_errors(), name="errors of the host")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def _read_errors(self) -> None:
        """Read all the time, because the host would stop when the pipe is full."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self._errors.append(line.decode())

    @property
    def errors(self) -> str:
        """What it has written to standard error so far; all of it once it has ended."""
        return "".join(self._errors)

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        used = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    async def connect(self, client_id: str = "tester") -> RawClient:
        client = RawClient(await connect_transport(self.url, token=self.token), client_id)
        self._clients.append(client)
        return client

    async def client(self, *subscriptions: str, client_id: str = "tester") -> RawClient:
        client = await self.connect(client_id)
        await client.initialize(*subscriptions)
        return client

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    async def ended(self) -> int:
        """Wait for the end; its exit code. Its clients have heard all it said, and no socket of theirs stays open."""
        async with asyncio.timeout(BOUND):
            await self._reader
            code = await self.process.wait()
            for client in self._clients:
                await client.finish()
            return code

    async def stop(self, signum: int = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(signum)
        return await self.ended()


async def start_host(home: Path, *options: str, through: Sequence[str] = ("ahpkit",)) -> HostProcess:
    """Start a host and wait until it accepts connections; its data is below `home`.

    `through` is the module that runs it, with its own arguments: see `support.timed_host`.
    """
    module, *arguments = through
    command = [*arguments, "serve", "--port", "0", "--json", "--data-dir", str(home / "data"), *options]
    process = await run_cli(command, home, module=module, PYTHONPATH=_TESTS)
    assert process.stdout is not None
    async with asyncio.timeout(BOUND):
        line = await process.stdout.readline()
    if not line:
        _, errors = await process.communicate()
        raise AssertionError(f"the host did not start: {errors.decode()}")
    return HostProcess(process, json.loads(line), home)


async def run_cli(
    arguments: Sequence[str], home: Path, *, module: str = "ahpkit", directory: Path | str | None = None, **extra: str
) -> Started:
    """Start the command line with pipes, in a directory or at home."""
    limit = 16 * 1024 * 1024  # A log line may show a whole message.
    variables = {**environment(home), **extra}
    return await start(module, arguments, directory=Path(directory or home), environment=variables, limit=limit)


async def finish_cli(
    arguments: Sequence[str], home: Path, *, input: str = "", directory: Path | str | None = None, **extra: str
) -> tuple[int, str, str]:
    """Run a command to its end: exit code, output, errors."""
    process = await run_cli(arguments, home, directory=directory, **extra)
    try:
        async with asyncio.timeout(BOUND):
            output, errors = await process.communicate(input.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, output.decode(), errors.decode()


@asynccontextmanager
async def host_process(home: Path, *options: str, through: Sequence[str] = ("ahpkit",)) -> AsyncGenerator[HostProcess]:
    host = await start_host(home, *options, through=through)
    try:
        yield host
    finally:
        if host.process.returncode is None:
            host.kill()
        await host.ended()


__all__ = ["HostProcess", "environment", "finish_cli", "host_process", "run_cli", "start_host"]
