"""How fast and how frugal a host is, each number beside its baseline in the same run.

    python bench/host.py [--quick] [--json FILE]

The host runs in a process of its own on SQLite with full durability; subscribers are real WebSocket connections in
another process that only count. The baseline is a loop that writes the same pre-framed bytes, coalesced the same way,
to the same number of connections on the same library, and does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ahpkit.host.agent import Agent, AgentChat, Chat, StopReason, Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.log.durability import open_storage
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.websocket import serve_websocket
from ahpkit.wire.transport import Transport

SESSION = "ahp-session:/bench"
DELTA = "twenty bytes of text"
FLOOD = "!60000"
"""Deltas that a stalled reader does not take: several times its budget."""
RUN = 1024
"""Deltas between two looks at whether the subscribers keep up."""
TARGETS = {
    "baseline_ratio": ("share of the raw loop's rate at 100 subscribers", ">=", 0.8),
    "durable": ("durable actions a second at 100 subscribers", ">=", 20_000),
    "echo_p50_ms": ("echo p50, ms", "<=", 2.0),
    "kib_per_subscriber": ("KiB for an idle subscriber", "<=", 16),
    "stalled_mib": ("MiB a stalled reader costs", "<=", 8),
    "restart_s": ("seconds to restart with 1 M actions", "<=", 1.0),
    "list_ms": ("ms for listSessions with 10 k sessions", "<=", 50),
}


# -- the host's process ------------------------------------------------------------------------------------------------


class Blaster(Agent):
    """Streams as many deltas as the prompt says, as fast as subscribers take them; with `!` without regard to them."""

    provider = "blaster"
    display_name = "Blaster"

    def __init__(self) -> None:
        self.host: Host

    async def open(self, chat: Chat) -> AgentChat:
        return BlasterChat(self, chat.uri)


class BlasterChat(AgentChat):
    def __init__(self, agent: Blaster, uri: str) -> None:
        self._agent = agent
        self._uri = uri

    async def run(self, turn: Turn) -> StopReason | None:
        paced = not turn.prompt.startswith("!")
        for number in range(int(turn.prompt.removeprefix("!"))):
            turn.text(DELTA)
            if number % RUN == 0:
                await (self._agent.host.room(self._uri) if paced else self._agent.host.durable())
        return None


async def host_process(directory: Path, durability: Any) -> None:
    """Serve, and answer questions about ourselves on standard input: one line, one line back."""
    agent = Blaster()
    host = Host(open_storage(directory, durability), agents=[agent], config=replace(HostConfig(), message_rate=1e9))
    agent.host = host
    async with host, serve_websocket(host.serve, auth=Authenticator(None)) as server:
        say(url=server.url)
        async for line in lines():
            say(**await answer(host, json.loads(line)))


async def answer(host: Host, question: dict[str, Any]) -> dict[str, Any]:
    if question.get("fill") == "actions":
        await fill_actions(host, question["count"])
    elif question.get("fill") == "sessions":
        await fill_sessions(host, question["count"])
    return {
        "cpu": time.process_time(),
        "rss": resident(),
        "clients": len(host.clients.clients()),
        "head": host.store.head,
    }


async def fill_actions(host: Host, count: int) -> None:
    await host.sessions.create({"channel": SESSION})
    for number in range(count):
        host.dispatch(SESSION, {"type": "session/titleChanged", "title": f"title {number}"})
        if number % 2000 == 0:
            await host.durable()
    await host.durable()


async def fill_sessions(host: Host, count: int) -> None:
    for number in range(count):
        await host.sessions.create({"channel": f"ahp-session:/filler-{number}"})
        if number % 200 == 0:
            await host.durable()
    await host.durable()


# -- the baseline's process --------------------------------------------------------------------------------------------


async def baseline_process(subscribers: int, frames: int, run: int) -> None:
    """Write the same frames, coalesced the same way, to everyone who connects; nothing else."""
    connected: list[Transport] = []
    complete, done = asyncio.Event(), asyncio.Event()

    async def take(transport: Transport) -> None:
        connected.append(transport)
        if len(connected) == subscribers:
            complete.set()
        await done.wait()

    async with serve_websocket(take, auth=Authenticator(None)) as server:
        say(url=server.url)
        await complete.wait()
        await asyncio.sleep(0.2)
        cpu, wall = time.process_time(), time.perf_counter()
        await broadcast(connected, frames, run)
        say(cpu=time.process_time() - cpu, wall=time.perf_counter() - wall)
        async for _ in lines():
            break
        done.set()


async def broadcast(connected: list[Transport], frames: int, run: int) -> None:
    action = {"type": "chat/delta", "turnId": "turn-1", "partId": "turn-1-part-1", "content": DELTA}
    envelope = {"channel": "ahp-chat:/" + "0" * 36, "action": action, "serverSeq": 123456}
    message = json.dumps({"jsonrpc": "2.0", "method": "action", "params": envelope}, separators=(",", ":")).encode()
    buffer = connected[0].frame(message) * run
    for _ in range(frames // run):
        for transport in connected:
            transport.write(buffer)
        while max(transport.buffered for transport in connected) > 1 << 20:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    end = connected[0].frame(message.replace(b"chat/delta", b"chat/turnComplete"))
    for transport in connected:
        transport.write(end)
    for transport in connected:
        await transport.drain()


# -- the subscribers' process ------------------------------------------------------------------------------------------


class Counter(asyncio.Protocol):
    """A WebSocket client that only counts what passes: the cheapest subscriber there is."""

    def __init__(self, hello: bytes, done: asyncio.Future[int]) -> None:
        self._hello = hello
        self._done = done
        self._tail = b""
        self.count = 0

    def connection_made(self, transport: Any) -> None:
        transport.write(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        if self._hello:
            transport.write(masked(self._hello))

    def data_received(self, data: bytes) -> None:
        seen = self._tail + data
        self.count += seen.count(b'"chat/delta"')
        if b'"chat/turnComplete"' in seen and not self._done.done():
            self._done.set_result(self.count)
        self._tail = seen[-20:].replace(b'"chat/delta"', b"")


def masked(message: bytes) -> bytes:
    """One text frame from a client; a mask of zeros leaves the bytes as they are."""
    size = bytes([0x80 | len(message)]) if len(message) < 126 else b"\xfe" + len(message).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + message


async def sink_process(url: str, count: int, channel: str | None) -> None:
    """Connect, subscribe, say so, and count to the end of the turn."""
    loop = asyncio.get_running_loop()
    port = int(url.rpartition(":")[2])
    counting: list[asyncio.Future[int]] = []
    for number in range(count):
        done: asyncio.Future[int] = loop.create_future()
        hello = b"" if channel is None else initialize(f"sink-{number}", channel)
        await loop.create_connection(lambda hello=hello, done=done: Counter(hello, done), "127.0.0.1", port)
        counting.append(done)
    say(connected=count)
    counts = await asyncio.gather(*counting)
    say(counted=sum(counts), cpu=time.process_time())


def initialize(client_id: str, *subscriptions: str) -> bytes:
    params = {"channel": "ahp-root://", "protocolVersions": ["0.4.0"], "clientId": client_id}
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    return json.dumps({**request, "params": {**params, "initialSubscriptions": list(subscriptions)}}).encode()


# -- small things ------------------------------------------------------------------------------------------------------


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


async def lines() -> AsyncGenerator[str]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode()


def resident() -> int:
    """Bytes of memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Child:
    """Another role of this file, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, *role: str) -> AsyncGenerator[Child]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, *role, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
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


class Caller:
    """A client that waits for each answer."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._number = 0

    @classmethod
    async def connect(cls, url: str, client_id: str = "caller", *, token: str | None = None) -> Caller:
        caller = cls(await connect_transport(url, token=token))
        await caller.call("initialize", protocolVersions=["0.4.0"], clientId=client_id)
        return caller

    def send(self, message: dict[str, Any]) -> None:
        self.transport.write(self.transport.frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def call(self, method: str, channel: str = "ahp-root://", **params: Any) -> Any:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": {"channel": channel, **params}})
        while True:
            message = json.loads(await self.transport.receive())
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    async def echo(self, number: int) -> None:
        """Dispatch and wait until the action comes back."""
        action = {"type": "session/titleChanged", "title": f"title {number}"}
        params = {"channel": SESSION, "clientSeq": number, "action": action}
        self.send({"method": "dispatchAction", "params": params})
        while json.loads(await self.transport.receive()).get("params", {}).get("origin", {}).get("clientSeq") != number:
            pass

    async def start_turn(self, chat: str, prompt: str, turn_id: str) -> None:
        message = {"text": prompt, "origin": {"kind": "user"}}
        action = {"type": "chat/turnStarted", "turnId": turn_id, "message": message}
        self._number += 1
        params = {"channel": chat, "clientSeq": 1_000_000 + self._number, "action": action}
        self.send({"method": "dispatchAction", "params": params})


async def ready_session(caller: Caller) -> str:
    """A session that is ready; the URI of its chat."""
    await caller.call("createSession", SESSION)
    while True:
        state = (await caller.call("subscribe", SESSION))["snapshot"]["state"]
        if state["lifecycle"] == "ready":
            caller.send({"method": "unsubscribe", "params": {"channel": SESSION}})
            return state["defaultChat"]
        await asyncio.sleep(0.01)


# -- what is measured --------------------------------------------------------------------------------------------------


async def measure_fanout(directory: Path, subscribers: int, deltas: int) -> dict[str, Any]:
    """Deliveries a second and CPU per delivery: the host, then the raw loop with the same numbers."""
    async with Child.start("--role", "host", "--dir", str(directory)) as host:
        url = (await host.said())["url"]
        caller = await Caller.connect(url)
        chat = await ready_session(caller)
        async with Child.start("--role", "sink", "--url", url, "--count", str(subscribers), "--channel", chat) as sink:
            await sink.said()
            await asyncio.sleep(0.3)
            before, begun = await host.ask(), time.perf_counter()
            await caller.start_turn(chat, str(deltas), "t")
            counted = await sink.said()
            wall, after = time.perf_counter() - begun, await host.ask()
        await caller.transport.aclose()
    deliveries = subscribers * deltas
    assert counted["counted"] == deliveries, (counted, deliveries)
    ours = {
        "rate": deliveries / wall,
        "cpu_us": (after["cpu"] - before["cpu"]) / deliveries * 1e6,
        "actions": deltas / wall,
    }
    return {"subscribers": subscribers, "host": ours, "raw": await measure_raw(subscribers, deltas)}


async def measure_raw(subscribers: int, deltas: int) -> dict[str, float]:
    deltas -= deltas % RUN
    arguments = ["--count", str(subscribers), "--frames", str(deltas)]
    async with Child.start("--role", "baseline", *arguments) as server:
        url = (await server.said())["url"]
        async with Child.start("--role", "sink", "--url", url, "--count", str(subscribers)) as sink:
            await sink.said()
            begun = time.perf_counter() + 0.2
            spent = await server.said()
            await sink.said()
            wall = max(spent["wall"], time.perf_counter() - begun)
    deliveries = subscribers * deltas
    return {"rate": deliveries / wall, "cpu_us": spent["cpu"] / deliveries * 1e6}


async def measure_latency(directory: Path, rounds: int) -> dict[str, float]:
    """Echo of a durable action against a ping, unloaded."""
    async with Child.start("--role", "host", "--dir", str(directory)) as host:
        caller = await Caller.connect((await host.said())["url"])
        await ready_session(caller)
        await caller.call("subscribe", SESSION)
        pings = [await timed(caller.call("ping")) for _ in range(rounds)]
        echoes = [await timed(caller.echo(number + 1)) for number in range(rounds)]
        await caller.transport.aclose()
    return {
        "ping_p50_ms": statistics.median(pings),
        "echo_p50_ms": statistics.median(echoes),
        "echo_p99_ms": statistics.quantiles(echoes, n=100)[98],
    }


async def timed(work: Any) -> float:
    begun = time.perf_counter()
    await work
    return (time.perf_counter() - begun) * 1000


async def measure_memory(directory: Path, count: int) -> dict[str, float]:
    """What an idle subscriber costs, and what one that never reads costs before it is dropped."""
    async with Child.start("--role", "host", "--dir", str(directory)) as host:
        url = (await host.said())["url"]
        caller = await Caller.connect(url)
        chat = await ready_session(caller)
        before = await host.ask()
        async with Child.start("--role", "sink", "--url", url, "--count", str(count), "--channel", chat) as sink:
            await sink.said()
            while (idle := await host.ask())["clients"] < count + 1:
                await asyncio.sleep(0.05)
        while (await host.ask())["clients"] > 1:
            await asyncio.sleep(0.05)
        stalled = await measure_stalled(host, url, caller, chat)
        await caller.transport.aclose()
    return {"kib_per_subscriber": (idle["rss"] - before["rss"]) / count / 1024, **stalled}


async def measure_stalled(host: Child, url: str, caller: Caller, chat: str) -> dict[str, float]:
    await caller.start_turn(chat, FLOOD, "warm")  # Once without it: the text itself takes memory too.
    await settle(caller, chat)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1024)
    Counter(initialize("stalled", chat), asyncio.get_running_loop().create_future()).connection_made(writer)
    while (before := await host.ask())["clients"] < 2:
        await asyncio.sleep(0.02)
    begun, most = time.perf_counter(), 0
    await caller.start_turn(chat, FLOOD, "flood")
    while (now := await host.ask())["clients"] > 1 and time.perf_counter() - begun < 60:
        most = max(most, now["rss"] - before["rss"])
        await asyncio.sleep(0.01)
    writer.transport.abort()
    del reader
    return {"stalled_mib": most / 2**20, "stalled_dropped_s": time.perf_counter() - begun}


async def settle(caller: Caller, chat: str) -> None:
    """Wait until no turn runs."""
    while "activeTurn" in (await caller.call("subscribe", chat))["snapshot"]["state"]:
        await asyncio.sleep(0.1)
    caller.send({"method": "unsubscribe", "params": {"channel": chat}})


async def measure_start(directory: Path) -> float:
    """Seconds from starting `ahpkit serve` to an answered initialize."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "ahpkit", "serve", "--port", "0", "--json", "--data-dir", str(directory)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(directory)}
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        announced = json.loads(await process.stdout.readline())
        caller = await Caller.connect(announced["url"], token=announced["token"])
        seconds = time.perf_counter() - begun
        await caller.transport.aclose()
    finally:
        process.terminate()
        await process.wait()
    return seconds


async def measure_restart(directory: Path, actions: int, fresh: float) -> dict[str, float]:
    """A restart on a long log, beside a start on an empty one."""
    async with Child.start("--role", "host", "--dir", str(directory)) as host:
        await host.said()
        await host.ask(fill="actions", count=actions)
    return {"restart_s": await measure_start(directory), "start_s": fresh}


async def measure_listing(directory: Path, sessions: int) -> dict[str, float]:
    async with Child.start("--role", "host", "--dir", str(directory)) as host:
        url = (await host.said())["url"]
        await host.ask(fill="sessions", count=sessions)
        caller = await Caller.connect(url)
        taken = [await timed(caller.call("listSessions")) for _ in range(5)]
        await caller.transport.aclose()
    return {"list_ms": statistics.median(taken)}


# -- reporting ---------------------------------------------------------------------------------------------------------


async def measure_all(directory: Path, *, quick: bool) -> dict[str, Any]:
    def fresh(name: str) -> Path:
        made = directory / name
        made.mkdir()
        return made

    counts = [1, 10, 100] if quick else [1, 10, 50, 100, 1000]
    fanout = []
    for count in counts:
        deltas = max(2_000, min(40_000, 4_000_000 // count)) // (8 if quick else 1)
        fanout.append(await measure_fanout(fresh(f"fanout-{count}"), count, deltas))
    at_100 = next(one for one in fanout if one["subscribers"] == 100)
    return {
        "fanout": fanout,
        "baseline_ratio": at_100["host"]["rate"] / at_100["raw"]["rate"],
        "durable": at_100["host"]["actions"],
        **await measure_latency(fresh("latency"), 200 if quick else 1000),
        **await measure_memory(fresh("memory"), 200 if quick else 1000),
        **await measure_restart(fresh("restart"), 50_000 if quick else 1_000_000, await measure_start(fresh("start"))),
        **await measure_listing(fresh("listing"), 1_000 if quick else 10_000),
    }


def show(result: dict[str, Any]) -> None:
    print("subscribers      host/s       raw/s  ratio   host µs  raw µs  actions/s")
    for one in result["fanout"]:
        host, raw = one["host"], one["raw"]
        rates = f"{host['rate']:>10,.0f}  {raw['rate']:>10,.0f}  {host['rate'] / raw['rate']:>5.2f}"
        costs = f"{host['cpu_us']:>8.2f}  {raw['cpu_us']:>6.2f}  {host['actions']:>9,.0f}"
        print(f"{one['subscribers']:>11}  {rates}  {costs}")
    print()
    for key, (what, relation, target) in TARGETS.items():
        value = result[key]
        met = value >= target if relation == ">=" else value <= target
        print(f"{what:<50} {value:>12,.2f}   target {relation} {target:<8,} {'ok' if met else 'MISSED'}")
    for key in ("ping_p50_ms", "echo_p99_ms", "stalled_dropped_s", "start_s"):
        print(f"{key:<50} {result[key]:>12,.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured here")
    parser.add_argument("--role", choices=["host", "sink", "baseline"], help=argparse.SUPPRESS)
    for name in ("--dir", "--url", "--channel"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    for name in ("--count", "--frames"):
        parser.add_argument(name, type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.role:
        case "host":
            asyncio.run(host_process(Path(options.dir), "full"))
        case "sink":
            asyncio.run(sink_process(options.url, options.count, options.channel))
        case "baseline":
            asyncio.run(baseline_process(options.count, options.frames, RUN))
        case _:
            report(quick=options.quick, file=options.json)


def report(*, quick: bool, file: Path | None) -> None:
    directory = Path(tempfile.mkdtemp(prefix="ahpkit-bench-"))
    try:
        result = asyncio.run(measure_all(directory, quick=quick))
    finally:
        shutil.rmtree(directory)
    show(result)
    if file is not None:
        file.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
