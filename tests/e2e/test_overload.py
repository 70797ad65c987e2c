"""Too much of everything, over real sockets: who asks for too much is stopped with a reason, the others go on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.host.turns.new_state import NO_CONFIG, new_chat, new_session
from ahpkit.http.server import serve_http
from ahpkit.log.datadir import open_storage
from ahpkit.log.entry import ChannelSnapshot
from ahpkit.log.memory import MemoryStorage
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from ahpkit.wire.codec import encode
from support import requirement
from support.bench import ScriptedAgent
from support.flow import open_session, remark, state_of, title
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.waiting import BOUND, until
from transports.raw import Raw, raw

ROOT = "ahp-root://"
MIB = 1024 * 1024


@asynccontextmanager
async def small_host(
    directory: Path, *, ping_interval: float = 20.0, **limits: float
) -> AsyncGenerator[tuple[Host, str]]:
    """A host in this process behind a real socket, with limits that a test can reach; its URL."""
    config = HostConfig(default_directory=directory, **limits)  # pyright: ignore[reportArgumentType]  # Limits of any kind.
    async with (
        Host(MemoryStorage(), agents=[ScriptedAgent()], config=config) as host,
        serve_http(host.serve, auth=Authenticator(None), ping_interval=ping_interval) as server,
    ):
        yield host, server.url


async def joined(url: str, client_id: str, *subscriptions: str) -> RawClient:
    client = RawClient(await connect_transport(url), client_id)
    await client.initialize(*subscriptions)
    return client


# -- floods -------------------------------------------------------------------------------------------------------


async def test_a_flood_closes_its_connection_with_the_reason_and_no_other(tmp_path: Path) -> None:
    async with small_host(tmp_path, message_rate=1, message_burst=200) as (_, url):
        other = await joined(url, "calm")
        flood = await joined(url, "flood")
        for number in range(300):
            flood.send({"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"channel": ROOT}})
        closed = await flood.wait_closed()
        assert (closed.code, closed.reason) == (1008, "too many messages: more than 1 a second")
        assert await other.ask("ping") is None
        again = await joined(url, "flood")
        assert await again.ask("ping") is None
        await other.aclose()
        await again.aclose()


async def test_what_a_flood_dispatched_before_it_was_closed_is_not_lost(tmp_path: Path) -> None:
    async with small_host(tmp_path, message_rate=1, message_burst=200) as (host, url):
        other = await joined(url, "calm")
        session, _ = await open_session(other)
        flood = await joined(url, "flood", session)
        for number in range(300):
            flood.post(session, title(str(number)))
        await flood.wait_closed()
        await host.services.durable()
        await other.ask("ping")  # The answer comes behind all of them.
        titles = [said["action"]["title"] for said in other.actions(session) if "origin" in said]
        assert titles == [str(number) for number in range(len(titles))]
        assert len(titles) >= 190
        assert [said["serverSeq"] for said in flood.actions(session)] == sorted(
            said["serverSeq"] for said in flood.actions(session)
        )
        await other.aclose()


# -- subscriptions ------------------------------------------------------------------------------------------------


def with_chats(data: Path, count: int) -> list[str]:
    """A data directory with one session of many chats."""
    session = "ahp-session:/full"
    chats = [new_chat(f"ahp-chat:/{number}", title="One of many", now=0) for number in range(count)]
    made = new_session(provider="demo", directories=None, project=None, config=NO_CONFIG)
    state: Json = {
        **made,
        "lifecycle": "ready",
        "defaultChat": chats[0]["resource"],
        "chats": [dict(chat) for chat in chats],
    }
    states: dict[str, Json] = {chat["resource"]: {**chat} for chat in chats}
    states |= {session: state, f"{session}/annotations": {"annotations": []}}
    data.mkdir(parents=True)
    storage = open_storage(data, "normal")
    storage.load()
    storage.commit([ChannelSnapshot(uri, 0, encode(made)) for uri, made in states.items()])
    storage.close()
    return [chat["resource"] for chat in chats]


@pytest.mark.slow
async def test_ten_thousand_subscriptions_on_one_connection_end_at_the_limit_and_lose_nothing(tmp_path: Path) -> None:
    chats = with_chats(tmp_path / "data", 10_000)
    async with host_process(tmp_path) as host:
        greedy, other = await host.client(client_id="greedy"), await host.client(client_id="other")
        for number, uri in enumerate(chats):
            greedy.send({"jsonrpc": "2.0", "id": f"s{number}", "method": "subscribe", "params": {"channel": uri}})
        await greedy.wait(lambda message: message.get("id") == "s9999")
        answers = {message["id"]: message for message in greedy.received if str(message.get("id")).startswith("s")}
        assert len(answers) == 10_000
        assert all("result" in answers[f"s{number}"] for number in range(4096))
        refused = [answers[f"s{number}"]["error"] for number in range(4096, 10_000)]
        assert {error["code"] for error in refused} == {-32600}
        assert "unsubscribe" in refused[0]["message"]

        greedy.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": chats[0]}})
        await greedy.ask("subscribe", chats[9_999])
        await other.ask("subscribe", chats[9_999])
        for chat in (chats[1], chats[4095], chats[9_999]):
            other.post(chat, {"type": "chat/turnStarted", "turnId": "t", "message": message_of("hello")})
            await greedy.action(lambda said, chat=chat: said["channel"] == chat and is_end(said))
        await greedy.aclose()
        assert await other.ask("ping") is None
        await other.aclose()


def message_of(text: str) -> Json:
    return {"text": text, "origin": {"kind": "user"}}


def is_end(said: Json) -> bool:
    return said["action"]["type"] == "chat/turnComplete"


# -- readers that stop ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def stalled(host: HostProcess, uri: str) -> AsyncGenerator[Raw]:
    """A client that subscribes and then never reads again."""
    async with raw(host.port, receive_buffer=4096) as client:
        await client.upgrade(Authorization=f"Bearer {host.token}")
        hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://","clientId":"s",'
        client.send(masked_long(hello + b'"protocolVersions":["0.4.0"],"initialSubscriptions":["%b"]}}' % uri.encode()))
        await client.frame()
        cast("asyncio.Transport", client.writer.transport).pause_reading()
        yield client


def masked_long(payload: bytes) -> bytes:
    """A client frame of 126 to 65535 bytes, with a mask that changes nothing."""
    return b"\x81\xfe" + len(payload).to_bytes(2, "big") + b"\0\0\0\0" + payload


@requirement("core:hardening:slow-reader-bounded")
async def test_a_reader_that_stops_is_dropped_and_costs_neither_memory_nor_the_others(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory") as host:
        client, other = await host.client(client_id="busy"), await host.client(client_id="other")
        session, _ = await open_session(client)
        await other.ask("subscribe", session)
        text = "x" * 64 * 1024
        await client.accepted(session, title(text))
        async with stalled(host, session) as reader:
            before = host.memory
            for number in range(160):
                seq = client.post(session, title(f"{number}{text}"))
                await other.action(lambda said, seq=seq: said.get("origin", {}).get("clientSeq") == seq)
                other.received.clear()
                client.received.clear()
            cast("asyncio.Transport", reader.writer.transport).resume_reading()
            async with asyncio.timeout(BOUND):
                got = 0
                try:
                    while chunk := await reader.reader.read(MIB):
                        got += len(chunk)
                except ConnectionResetError:
                    pass
            assert got < 8 * MIB
        # The log keeps 10 MiB of titles because it is in memory; the reader's share is less than that.
        assert host.memory - before < 40 * MIB
        await until(lambda: "stopped reading" in host.errors)
        assert await other.ask("ping") is None
        await client.aclose()
        await other.aclose()


async def test_a_snapshot_larger_than_what_may_be_left_unread_arrives(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(client_id="writer")
        session, _ = await open_session(client)
        text, notes = "x" * 7 * MIB, f"{session}/annotations"
        await client.ask("subscribe", notes)
        await client.accepted(notes, remark(text))
        for number in range(5):
            reader = await host.client(notes, client_id=f"reader-{number}")
            assert (await state_of(reader, notes))["annotations"][0]["entries"][0]["text"] == text
            await reader.aclose()
        await client.aclose()


async def test_a_client_that_vanished_without_a_word_is_noticed(tmp_path: Path) -> None:
    """Half-open: the socket is there, nobody answers."""
    async with small_host(tmp_path, ping_interval=0.2) as (host, url):
        async with raw(int(url.rpartition(":")[2])) as gone:
            await gone.upgrade()
            hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://",'
            gone.send(masked_long(hello + b'"clientId":"gone","protocolVersions":["0.4.0"]}}'))
            await until(lambda: host.services.client("gone") is not None)
            await until(lambda: host.services.client("gone") is None)


# -- connections ----------------------------------------------------------------------------------------------------


async def test_handshakes_that_never_end_keep_nobody_out_and_do_not_hold_up_the_stop(tmp_path: Path) -> None:
    """Slow loris: two hundred connections that say a little and then nothing."""
    async with host_process(tmp_path) as host, AsyncExitStack() as stack:
        for number in range(200):
            slow = await stack.enter_async_context(raw(host.port))
            slow.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "[: 1 + number % 40])
        client = await host.client()
        assert await client.ask("ping") is None
        await client.aclose()
        assert await host.stop() == 0


@pytest.mark.slow
async def test_a_crowd_that_comes_and_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory") as host:
        client = await host.client(client_id="stays")
        session, _ = await open_session(client)
        files = open_files(host)
        await crowd(host, session, 100)
        await closed(host, client, files)
        before = host.memory
        for _ in range(5):
            await crowd(host, session, 100)
        await closed(host, client, files)
        assert host.memory - before < 8 * MIB
        await client.accepted(session, title("alone again"))
        await client.aclose()


async def crowd(host: HostProcess, session: str, size: int) -> None:
    """Clients that come together; half of them leave without a goodbye."""
    clients = await asyncio.gather(*(host.client(session, client_id=f"crowd-{number}") for number in range(size)))
    for number, client in enumerate(clients):
        if number % 2:
            client.transport.abort()
    await asyncio.gather(*(client.aclose() for client in clients))


async def closed(host: HostProcess, client: RawClient, files: int) -> None:
    """Wait until the host has no more than that many files open."""
    async with asyncio.timeout(BOUND):
        while open_files(host) > files:
            await client.ask("ping")


def open_files(host: HostProcess) -> int:
    return len(list(Path(f"/proc/{host.process.pid}/fd").iterdir()))


async def test_who_connects_and_leaves_at_once_is_forgotten(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client()
        files = open_files(host)
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", host.port)):
                pass
        await closed(host, client, files)
        await client.aclose()
