"""The processes that `bench/host.py` measures, and those it measures with. Each reports in lines of JSON.

    host    a host on SQLite with full durability and an agent that streams; answers questions on standard input
    raw     the baseline: writes the same frames to everyone who connects, a number of them at once, and nothing else
    sink    subscribers that read as cheaply as Python can: they count bytes and look for the end
    load    clients that dispatch: each always has a number of unanswered actions
    mirror  the baseline for them: reads each message, writes it as an action and sends it back, and nothing else
    bare    the same, but each action is a row in SQLite, durable before it is sent back: the least that a log takes
    gaps    a subscriber that measures how long it waits between two pieces

Sinks and loads run on the second core, so that the host has the first one to itself (its log's thread uses both).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import re
import select
import socket
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ahpkit.host.agent import Agent, AgentChat, Chat, StopReason, Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.datadir import open_storage
from ahpkit.platform.limits import Collections, give_freed_memory_back
from ahpkit.protocol.annotations import Annotation, annotations_set
from ahpkit.transports.auth import Authenticator
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import Transport

SESSION = "ahp-session:/bench"
REMARKS = f"{SESSION}/annotations"
DELTA = "twenty bytes of text"
RUN = 1024
"""Deltas between two looks at whether the disk and the subscribers keep up."""
END = b'"chat/turnComplete"'
_COUNTED = re.compile(rb'"chat/delta"|"annotations/set"')
IN_FLIGHT = 250
"""How many unanswered actions each dispatching client has at a time."""

# -- the host ----------------------------------------------------------------------------------------------------------


class Blaster(Agent):
    """Streams as many deltas as the prompt says, as fast as subscribers take them; with `!` it does not wait for them.

    With `~` it streams a longer one every millisecond, as fast as all subscribers take them. With `#` it changes that
    many remarks instead: actions that are translated for older clients.
    """

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
        if turn.prompt.startswith("~"):
            return await self._stream_evenly(turn, int(turn.prompt[1:]))
        if turn.prompt.startswith("#"):
            return await self._remark(int(turn.prompt[1:]))
        paced = not turn.prompt.startswith("!")
        for number in range(int(turn.prompt.removeprefix("!"))):
            turn.text(DELTA)
            if number % RUN == 0:
                await (self._agent.host.services.room(self._uri) if paced else self._agent.host.services.durable())
        return None

    async def _remark(self, count: int) -> None:
        services = self._agent.host.services
        for number in range(count):
            remark: Annotation = {
                "id": "n",
                "resource": "file:///x",
                "resolved": False,
                "entries": [{"id": "e", "text": DELTA}],
                "origin": {"session": SESSION, "turnId": f"turn-{number}"},
            }
            services.dispatch(REMARKS, annotations_set(annotation=remark))
            if number % RUN == 0:
                await services.room(REMARKS)

    async def _stream_evenly(self, turn: Turn, count: int) -> None:
        for _ in range(count):
            turn.text(DELTA * 200)
            await self._agent.host.services.room(self._uri)
            await asyncio.sleep(0.001)


async def host_role(directory: Path) -> None:
    give_freed_memory_back()
    agent = Blaster()
    host = Host(
        open_storage(directory, "full"), agents=[agent], config=replace(HostConfig(), message_rate=1e9, byte_rate=1e12)
    )
    agent.host = host
    async with host, serve_http(host.serve, auth=Authenticator(None)) as server:
        with Collections():
            say(url=server.url)
            async for line in lines():
                question = json.loads(line)
                if "actions" in question:
                    await fill_actions(host, question["actions"])
                if "sessions" in question:
                    await fill_sessions(host, question["sessions"])
                say(
                    cpu=time.process_time(),
                    rss=resident(),
                    clients=len(host.clients.clients()),
                    head=host.spine.log.head_seq,
                )


async def fill_actions(host: Host, count: int) -> None:
    for number in range(count):
        host.services.dispatch(SESSION, {"type": "session/titleChanged", "title": f"title {number}"})
        if number % 2000 == 0:
            await host.services.durable()
    await host.services.durable()


async def fill_sessions(host: Host, count: int) -> None:
    for number in range(count):
        await host.sessions.create({"channel": f"ahp-session:/filler-{number}"})
        if number % 200 == 0:
            await host.services.durable()
    await host.services.durable()


# -- the baseline ------------------------------------------------------------------------------------------------------


async def raw_role(subscribers: int, frames: int, batch: int) -> None:
    connected: list[Transport] = []
    complete, done = asyncio.Event(), asyncio.Event()

    async def take(transport: Transport) -> None:
        connected.append(transport)
        if len(connected) == subscribers:
            complete.set()
        await done.wait()

    async with serve_http(take, auth=Authenticator(None)) as server:
        say(url=server.url)
        await complete.wait()
        async for _ in lines():
            cpu = time.process_time()
            await broadcast(connected, frames, batch)
            say(cpu=time.process_time() - cpu)
            break
        done.set()


async def broadcast(connected: list[Transport], frames: int, batch: int) -> None:
    action = {"type": "chat/delta", "turnId": "turn-1", "partId": "turn-1-part-1", "content": DELTA}
    envelope = {"channel": "ahp-chat:/" + "0" * 36, "action": action, "serverSeq": 123456}
    message = compact({"jsonrpc": "2.0", "method": "action", "params": envelope})
    buffer = connected[0].frame(message) * batch
    for number in range(frames // batch):
        for transport in connected:
            transport.write(buffer)
        if number * batch % RUN:
            continue
        await asyncio.gather(*(transport.drain() for transport in connected if transport.buffered > 1 << 20))
        await asyncio.sleep(0)
    end = connected[0].frame(message.replace(b'"chat/delta"', END))
    for transport in connected:
        transport.write(end)
    for transport in connected:
        await transport.drain()


async def mirror_role() -> None:
    """The cost of an action that is only decoded, encoded, framed and sent."""

    async def echo(transport: Transport) -> None:
        with contextlib.suppress(TransportClosed):
            while True:
                call = decode_own(await transport.receive())
                transport.write(transport.frame(encode(_answer_to(call))))

    async with serve_http(echo, auth=Authenticator(None)) as server:
        say(url=server.url)
        async for _ in lines():
            say(cpu=time.process_time())


async def bare_role(directory: Path) -> None:
    """The cost of an action that is also durable before it is sent back. All actions that arrive during a commit share
    the next commit. There is one client, so nothing is sent to others, and nothing is checked or reduced.
    """
    database = sqlite3.connect(directory / "bare.db", isolation_level=None, check_same_thread=False)
    database.executescript(_BARE_TABLES)
    waiting: list[tuple[tuple[Any, ...], bytes]] = []
    numbers, some = itertools.count(), asyncio.Event()

    def store(rows: list[tuple[Any, ...]]) -> None:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        database.execute("COMMIT")

    async def write(transport: Transport) -> None:
        while True:
            await some.wait()
            some.clear()
            batch = waiting[:]
            waiting.clear()
            await asyncio.to_thread(store, [row for row, _ in batch])
            transport.write(b"".join([transport.frame(answer) for _, answer in batch]))

    async def echo(transport: Transport) -> None:
        writing = asyncio.create_task(write(transport))
        with contextlib.suppress(TransportClosed):
            while True:
                call = decode_own(await transport.receive())
                answer = encode(_answer_to(call))
                if call["method"] == "initialize":
                    transport.write(transport.frame(answer))
                else:
                    row = next(numbers), 1, "load-0", call["params"]["clientSeq"], answer
                    waiting.append((row, answer))
                    some.set()
        writing.cancel()

    async with serve_http(echo, auth=Authenticator(None)) as server:
        say(url=server.url)
        async for _ in lines():
            say(cpu=time.process_time())


_BARE_TABLES = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE entries (seq INTEGER PRIMARY KEY, channel, client_id, client_seq, payload);
    CREATE INDEX entries_by_channel ON entries (channel, seq);
    CREATE INDEX entries_by_client ON entries (client_id, client_seq);
"""
"""The same tables as in the log."""


def _answer_to(call: dict[str, Any]) -> dict[str, Any]:
    if call["method"] == "initialize":
        return {"jsonrpc": "2.0", "id": call["id"], "result": {"protocolVersion": "1.0.0"}}
    params = call["params"]
    origin = {"clientId": "load-0", "clientSeq": params["clientSeq"]}
    told = {"channel": params["channel"], "action": params["action"], "origin": origin, "serverSeq": 1}
    return {"jsonrpc": "2.0", "method": "action", "params": told}


# -- subscribers and clients -------------------------------------------------------------------------------------------


def connect(url: str, hello: bytes) -> socket.socket:
    """A WebSocket, open and initialized."""
    connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    connection.sendall(
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(4096)
    if hello:
        connection.sendall(masked(hello))
        while b'"protocolVersion"' not in received:
            received += connection.recv(65536)
    return connection


def masked(message: bytes) -> bytes:
    """One text frame from a client; a mask of zeros leaves the bytes as they are."""
    size = bytes([0x80 | len(message)]) if len(message) < 126 else b"\xfe" + len(message).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + message


def initialize(client_id: str, *subscriptions: str, version: str = "0.4.0") -> bytes:
    params = {"channel": "ahp-root://", "protocolVersions": [version], "clientId": client_id}
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    return json.dumps({**request, "params": {**params, "initialSubscriptions": list(subscriptions)}}).encode()


def sink_role(url: str, count: int, channel: str | None, versions: Sequence[str] = ("0.4.0",)) -> None:
    """Read until every subscriber has seen the end of the turn. The first subscriber also counts what it gets.

    The subscribers speak these versions of the protocol in turns.
    """
    hellos = [
        b"" if channel is None else initialize(f"sink-{number}", *channel.split(","), version=version)
        for number, version in zip(range(count), itertools.cycle(versions), strict=False)
    ]
    sockets = {one.fileno(): one for one in [connect(url, hello) for hello in hellos]}
    say(connected=count)
    epoll, tails, first, deltas = select.epoll(), dict.fromkeys(sockets, b""), next(iter(sockets)), 0
    for descriptor in sockets:
        epoll.register(descriptor, select.EPOLLIN)
    buffer = bytearray(1 << 20)
    while tails:
        for descriptor, _ in epoll.poll():
            size = sockets[descriptor].recv_into(buffer)
            if descriptor == first:
                seen = tails[first] + buffer[:size]
                deltas += len(_COUNTED.findall(seen)) - len(_COUNTED.findall(tails[first]))
            tails[descriptor] = (tails[descriptor] + bytes(buffer[max(0, size - 600) : size]))[-600:]
            if END in tails[descriptor] or not size:
                epoll.unregister(descriptor)
                del tails[descriptor]
    say(deltas=deltas, cpu=time.process_time())


def gaps_role(url: str, channel: str) -> None:
    """The longest wait between two pieces until the end of the turn, in milliseconds."""
    connection = connect(url, initialize("gaps", channel))
    say(connected=1)
    tail, waits = b"", list[float]()
    while END not in tail:
        begun = time.perf_counter()
        data = connection.recv(1 << 20)
        if waits or DELTA.encode() in data:  # From the first piece on.
            waits.append((time.perf_counter() - begun) * 1000)
        tail = (tail + data)[-600:]
    say(longest=max(waits[1:]), median=sorted(waits)[len(waits) // 2])


def load_role(url: str, count: int, frames: int) -> None:
    """Dispatch that many actions in all; return when each client has seen the echo of its last action."""
    clients = [Dispatcher(connect(url, initialize(f"load-{number}", SESSION)), number) for number in range(count)]
    say(connected=count)
    sys.stdin.readline()
    epoll, working = select.epoll(), {client.socket.fileno(): client for client in clients}
    for descriptor, client in working.items():
        epoll.register(descriptor, select.EPOLLIN)
        client.send(min(IN_FLIGHT, frames // count))
    while working:
        for descriptor, _ in epoll.poll():
            client = working[descriptor]
            client.receive()
            client.send(min(IN_FLIGHT - (client.sent - client.echoed), frames // count - client.sent))
            if client.echoed == frames // count:
                epoll.unregister(descriptor)
                del working[descriptor]
    say(echoed=sum(client.echoed for client in clients))


class Dispatcher:
    """A client that dispatches title changes and counts their echoes."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        self.socket = connection
        self.sent = self.echoed = 0
        self._origin = re.compile(rb'"clientId":"load-%d"' % number)
        self._tail = b""

    def send(self, count: int) -> None:
        frames: list[bytes] = []
        for _ in range(count):
            self.sent += 1
            action = {"type": "session/titleChanged", "title": f"title {self.sent}"}
            params = {"channel": SESSION, "clientSeq": self.sent, "action": action}
            frames.append(masked(compact({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})))
        self.socket.sendall(b"".join(frames))

    def receive(self) -> None:
        seen = self._tail + self.socket.recv(1 << 20)
        ends = [match.end() for match in self._origin.finditer(seen)]
        self.echoed += len(ends)
        self._tail = seen[max(ends[-1] if ends else 0, len(seen) - 40) :]


# -- talking to the parent ---------------------------------------------------------------------------------------------


def compact(message: dict[str, Any]) -> bytes:
    """JSON as clients write it."""
    return json.dumps(message, separators=(",", ":")).encode()


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["host", "raw", "mirror", "bare", "sink", "gaps", "load"])
    for name in ("--dir", "--url", "--channel"):
        parser.add_argument(name)
    parser.add_argument("--versions", default="0.4.0")
    for name in ("--count", "--frames", "--batch"):
        parser.add_argument(name, type=int, default=0)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    match options.role:
        case "host":
            Path(options.dir).mkdir()
            asyncio.run(host_role(Path(options.dir)))
        case "raw":
            asyncio.run(raw_role(options.count, options.frames, options.batch))
        case "mirror":
            asyncio.run(mirror_role())
        case "bare":
            Path(options.dir).mkdir()
            asyncio.run(bare_role(Path(options.dir)))
        case "gaps":
            os.sched_setaffinity(0, cores[-1:])
            gaps_role(options.url, options.channel)
        case "sink":
            os.sched_setaffinity(0, cores[-1:])
            sink_role(options.url, options.count, options.channel, options.versions.split(","))
        case _:
            os.sched_setaffinity(0, cores[-1:])
            load_role(options.url, options.count, options.frames)


if __name__ == "__main__":
    main()
