"""How late actions may come: a few classes, written together, never merged, never out of order. Over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.host.spine.fanout import LATENCIES, latency_class
from ahpkit.log.engine import LocalLog
from ahpkit.protocol.chat.reducer import chat_reducer
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

STARTED = "2026-11-15T12:00:00.000Z"
WORDS = [f"word{number} " for number in range(40)]


def start(turn_id: str = "t1") -> Json:
    return say("go", turn_id, startedAt=STARTED)


async def streaming(turn: Turn) -> None:
    for word in WORDS:
        turn.text(word)
        await asyncio.sleep(0)
    await turn.wait_steering()


async def steer(client: RawClient, chat: str) -> None:
    message = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": start()["message"]}
    await client.accepted(chat, message)


async def follower(bench: Bench, chat: str, latency: float | None, client_id: str, version: str = "1.0.0") -> RawClient:
    client = await bench.client("ahp-root://", client_id=client_id, offer=[version])
    delivery = {} if latency is None else {"delivery": {"maxLatencyMs": latency}}
    snapshot = (await client.ask("subscribe", chat, **delivery))["snapshot"]
    client.__dict__["snapshot"] = snapshot
    return client


def heard(client: RawClient, chat: str) -> list[Json]:
    return [said for said in client.actions(chat) if "rejectionReason" not in said]


def replica(client: RawClient, chat: str) -> Json:
    state, seen = client.__dict__["snapshot"]["state"], client.__dict__["snapshot"]["fromSeq"]
    for said in heard(client, chat):
        assert said["serverSeq"] > seen, "numbers rise"
        state, seen = chat_reducer(state, said["action"]), said["serverSeq"]
    return state


@requirement("gen:delivery:bound")
def test_nobody_is_put_into_a_class_that_waits_longer_than_allowed() -> None:
    for milliseconds in (0, 1, 49, 50, 51, 249, 250, 999, 1000, 1_000_000, 0.5, 1e300):
        assert latency_class(milliseconds) * 1000 <= milliseconds
    assert len({latency_class(milliseconds) for milliseconds in range(2000)}) == len(LATENCIES)


@requirement(
    "gen:delivery:same-state", "gen:delivery:own-echo-kept", "gen:delivery:zero-is-immediate", "gen:delivery:bound"
)
@pytest.mark.parametrize("latency", [None, 0, 50, 250, 1000, 60_000])
@pytest.mark.parametrize("version", ["0.7.0", "0.9.0", "1.0.0"])
async def test_every_action_is_its_own_envelope_whatever_the_latency(
    sockets: Bench, latency: float | None, version: str
) -> None:
    sockets.agent.script = streaming
    full = await sockets.client("ahp-root://", client_id="full", offer=["1.0.0"])
    _, chat = await sockets.session(full)
    late = await follower(sockets, chat, latency, "late", version)
    own = await late.dispatch(chat, start())
    assert own["origin"]["clientId"] == "late", "an own action is answered as itself"
    refused = await late.dispatch(chat, start())
    assert refused["rejectionReason"], "and so is one that is refused"
    assert refused["action"] == start()
    await late.action(lambda said: said["action"].get("content") == WORDS[-1])
    words = [said["action"]["content"] for said in heard(late, chat) if said["action"]["type"] == "chat/delta"]
    assert words == WORDS, "nothing is merged, nothing is lost"
    await steer(full, chat)
    await late.action("chat/turnComplete")
    assert [said["serverSeq"] for said in heard(late, chat)] == [said["serverSeq"] for said in heard(full, chat)]
    assert replica(late, chat)["turns"] == (await sockets.state(late, chat))["turns"]


class Patient(Feature):
    """Allows everything to wait in the step in which a client writes a draft, as the end of a tool call does."""

    def register(self, host: Registration, services: Services) -> None:
        host.actions.listen(lambda applied: services.may_wait(), "chat/draftChanged")


async def test_a_client_never_waits_for_what_an_agent_may_do_next(tmp_path: Path) -> None:
    """Calls of an agent in a row share a commit. What a person does in the same step of the event loop is stored at
    once."""
    bench = Bench(tmp_path)
    bench.features = [Patient()]
    await bench.start(log=LocalLog(bench.storage, moment=2 * BOUND))
    try:
        client = await bench.client(offer=["1.0.0"])
        _, chat = await bench.session(client)
        await client.accepted(chat, {"type": "chat/draftChanged"})
    finally:
        await bench.stop()


async def test_writes_are_joined_for_whoever_may_wait(bench: Bench) -> None:
    written: dict[str, int] = {}

    def counted(client: RawClient) -> None:
        transport: Any = bench.host.clients.get(client.client_id)
        transport = transport.transport
        real = transport.write

        def write(frames: bytes) -> None:
            written[client.client_id] = written.get(client.client_id, 0) + 1
            real(frames)

        transport.write = write

    async def script(turn: Turn) -> None:
        for word in WORDS:
            turn.text(word)
            await bench.host.services.durable()

    bench.agent.script = script
    full = await bench.client("ahp-root://", client_id="full", offer=["1.0.0"])
    _, chat = await bench.session(full)
    clients = [await follower(bench, chat, latency, f"late-{latency}") for latency in (0, 1000)]
    for client in clients:
        counted(client)
    await full.accepted(chat, start())
    for client in clients:
        await client.action("chat/turnComplete")
        assert len([said for said in client.actions(chat) if said["action"]["type"] == "chat/delta"]) == len(WORDS)
    assert written["late-0"] >= len(WORDS)
    assert written["late-1000"] < len(WORDS) / 2


async def test_an_answer_never_overtakes_what_came_before_it(sockets: Bench) -> None:
    sockets.agent.script = streaming
    full = await sockets.client("ahp-root://", client_id="full", offer=["1.0.0"])
    session, chat = await sockets.session(full)
    late = await follower(sockets, chat, 1000, "late")
    await late.ask("subscribe", session)
    await full.accepted(chat, start())
    await full.action(lambda said: said["action"].get("content") == WORDS[-1])
    await late.ask("ping")
    words = [said["action"]["content"] for said in heard(late, chat) if said["action"]["type"] == "chat/delta"]
    assert words == WORDS
    numbers = [said["serverSeq"] for said in late.actions()]
    assert numbers == sorted(numbers), "also between channels, so that a reconnect misses nothing"


async def test_a_negative_latency_is_refused(sockets: Bench) -> None:
    full = await sockets.client("ahp-root://", client_id="full", offer=["1.0.0"])
    _, chat = await sockets.session(full)
    assert (await full.refused("subscribe", chat, delivery={"maxLatencyMs": -1}))["code"] == -32602


async def test_our_client_may_wait(sockets: Bench) -> None:
    async with connect(sockets.url) as client:
        session = await client.create_session()
        chat = await session.chat(max_latency_ms=250)
        assert await chat.ask("hello") == "You said: hello"
