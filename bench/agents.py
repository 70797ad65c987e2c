"""CPU of streaming from an ACP agent: our host against what the Python ACP SDK takes to decode the same updates.

    python bench/agents.py [--updates 2000] [--clients 10] [--rounds 5]

A real agent process streams the updates. The script measures the CPU of the process that receives them, from the prompt
to its result: (1) the SDK's client, which decodes and drops them; (2) our agent into a turn that drops them; (3) our
host: turn, reducer, log in memory, and one frame to each of the clients, which run in another process. The target is
(3) < 2 x (1).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import acp
from acp.schema import ClientCapabilities

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.client import connect
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.memory import MemoryStorage
from ahpkit.testing.acp_agent import scripted_command
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from ahpkit.transports.auth import Authenticator

Measure = Callable[[list[str], Path], Coroutine[Any, Any, float]]
TARGET = 2.0


class SilentTurn(RecordingTurn):
    """A turn that keeps nothing."""

    def text(self, delta: str) -> None:
        pass


class SilentClient:
    """A client of the SDK that does as little as it can."""

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        pass


def our_agent(command: list[str]) -> AcpAgent:
    return AcpAgent(AcpAgentConfig(name="bench", command=command[0], args=tuple(command[1:])))


async def sdk(command: list[str], directory: Path) -> float:
    client: Any = SilentClient()
    async with acp.spawn_agent_process(client, command[0], *command[1:], cwd=directory) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        session = await agent.new_session(cwd=str(directory), mcp_servers=[])
        before = time.process_time()
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
        return time.process_time() - before


async def adapter(command: list[str], directory: Path) -> float:
    agent = our_agent(command)
    chat = RecordingChat(working_directory=directory)
    try:
        opened = await agent.open(chat)
        before = time.process_time()
        await opened.run(SilentTurn("go", chat=chat))
        return time.process_time() - before
    finally:
        await agent.aclose()


def whole_host(clients: int, updates: int) -> Measure:
    async def measure(command: list[str], directory: Path) -> float:
        config = HostConfig(default_directory=directory)
        host = Host(MemoryStorage(), agents=[our_agent(command)], config=config)
        async with host, serve_http(host.serve, auth=Authenticator(None), host="127.0.0.1", port=0) as server:
            async with connect(server.url) as client:
                session = (await client.create_session()).uri
            return await asyncio.to_thread(cpu_while_watched, server.url, session, clients, updates)

    return measure


def cpu_while_watched(url: str, session: str, clients: int, updates: int) -> float:
    """CPU of this process while another one, with the clients, asks and gets the answer."""
    command = [sys.executable, __file__, "--watch", url, "--session", session]
    command += ["--clients", str(clients), "--updates", str(updates)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watchers:
        assert watchers.stdin is not None
        assert watchers.stdout is not None
        try:
            watchers.stdout.readline()
            before = time.process_time()
            watchers.stdin.write(b"go\n")
            watchers.stdin.flush()
            if watchers.wait(60) != 0:
                raise SystemExit("a client did not get everything")
            return time.process_time() - before
        finally:
            watchers.kill()


async def watch(url: str, session: str, clients: int, updates: int) -> None:
    """The other process: clients that wait until the whole answer has arrived; the first one asks."""
    expected = "".join(f"{number} " for number in range(updates))

    def complete(state: Any) -> bool:
        return bool(state["turns"]) and str(state["turns"][-1]["responseParts"][0]["content"]) == expected

    async def one(number: int) -> None:
        async with connect(url) as client:
            chat = await (await client.session(session)).chat()
            async with client.subscribe(chat.uri) as subscription:
                await ready.wait()
                await go.wait()
                if number == 0:
                    chat.send("go")
                await subscription.wait_for(complete)

    ready, go = asyncio.Barrier(clients + 1), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number in range(clients):
            tasks.create_task(one(number))
        await ready.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        go.set()


def run(updates: int, clients: int, rounds: int) -> None:
    measures: dict[str, Measure] = {
        "SDK decodes and drops": sdk,
        "our agent, turn drops": adapter,
        f"our host, {clients} clients": whole_host(clients, updates),
    }
    spent: dict[str, list[float]] = {name: [] for name in measures}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        steps = [{"repeat": updates, "steps": [{"text": "{i} "}]}]
        command = scripted_command(directory / "script.json", turns=[steps])
        for _ in range(rounds):
            for label, measure in measures.items():
                spent[label].append(asyncio.run(measure(command, directory)))
    base = statistics.median(spent["SDK decodes and drops"])
    print(f"{updates} updates, median of {rounds} rounds")
    for label, values in spent.items():
        median = statistics.median(values)
        each = median / updates * 1e6
        print(f"{label:28} {median * 1000:8.1f} ms CPU  {each:6.1f} us/update  {median / base:5.2f} x SDK")
    ratio = statistics.median(list(spent.values())[-1]) / base
    print(f"target: < {TARGET:g} x SDK: {'met' if ratio < TARGET else 'MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--watch", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--session", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        asyncio.run(watch(options.watch, options.session, options.clients, options.updates))
    else:
        run(options.updates, options.clients, 1 if options.quick else options.rounds)


if __name__ == "__main__":
    main()
