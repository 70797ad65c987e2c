"""When turns and their calls began, waited and ended: by the host's clock, and still known after a restart."""

from __future__ import annotations

import pytest

from ahpkit.dialects import Generation
from ahpkit.host.agent import Turn
from ahpkit.protocol.common.reducing import iso_time
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient


async def times(client: RawClient, chat: str, turn: str = "t1") -> Json:
    return (await client.ask("_ahpkit/turns/times", chat, turnId=turn))["calls"]


async def test_a_call_that_waited_says_when_and_for_how_long(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        quick = turn.tool_call("look", id="quick")
        quick.running(tool_input="{}")
        quick.complete()
        asked = turn.tool_call("remove", id="asked")
        if (await asked.confirm(tool_input="rm x")).approved:
            asked.complete()

    bench.agent.script = script
    client = await bench.client("ahp-root://")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go", "t1"))
    await client.action("chat/toolCallReady")
    await client.action(lambda said: said["action"].get("toolCallId") == "asked" and "options" in said["action"])
    running = await times(client, chat)
    assert running["quick"]["endedAt"] >= running["quick"]["startedAt"]
    assert "waited" not in running["quick"]
    assert running["asked"]["waited"][0][1] is None
    assert "endedAt" not in running["asked"]

    allow = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": "asked", "approved": True}
    await client.accepted(chat, {**allow, "confirmed": "user-action"})
    await client.action("chat/turnComplete")
    ended = (await times(client, chat))["asked"]
    assert ended["startedAt"] <= ended["waited"][0][0] <= ended["waited"][0][1] <= ended["endedAt"]

    await bench.restart()
    again = await bench.client("ahp-root://", client_id="again")
    assert (await times(again, chat))["asked"] == ended
    assert await times(again, chat, "another") == {}


async def test_a_turn_that_is_stopped_ends_its_calls_and_a_session_that_goes_takes_them_along(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.tool_call("remove", id="asked").confirm(tool_input="rm x")

    bench.agent.script = script
    client = await bench.client("ahp-root://")
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go", "t1"))
    await client.action("chat/toolCallReady")
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    ended = (await times(client, chat))["asked"]
    assert ended["endedAt"] == ended["waited"][0][1]
    await client.ask("disposeSession", session)
    assert bench.host.services.values.items("turn-times/") == []


# -- whose clock counts --------------------------------------------------------------------------------------------

VERSIONS = [generation.release for generation in Generation]
HOUR = 3_600_000
OFF = [-5 * HOUR, 5 * HOUR]
"""How wrong the clock of a client is, in milliseconds."""


class HostClock:
    """The host's clock, which the test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


async def with_clock(bench: Bench) -> HostClock:
    clock = HostClock()
    await bench.restart(now=clock)
    return clock


async def waits(turn: Turn) -> None:
    await turn.wait_steering()


def began(clock: HostClock, off: int, turn_id: str = "t1") -> Json:
    """A turn as a client begins it whose clock is wrong."""
    return say("go", turn_id, startedAt=iso_time(clock.now + off))


@requirement("gen:turn:duration-emitted")
@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_turn_begins_and_takes_as_long_as_the_host_says(bench: Bench, version: str, off: int) -> None:
    clock = await with_clock(bench)

    async def script(turn: Turn) -> None:
        clock.now += 2_000

    bench.agent.script = script
    client = await bench.client("ahp-root://", offer=[version])
    reader = await bench.client("ahp-root://", offer=["1.0.0"])
    _, chat = await bench.session(client)
    await reader.ask("subscribe", chat)
    at = clock.now
    await client.accepted(chat, began(clock, off))
    assert (await reader.action("chat/turnStarted"))["action"]["startedAt"] == iso_time(at)
    assert (await reader.action("chat/turnComplete"))["action"]["duration"] == 2_000
    state = await bench.state(reader, chat)
    assert (state["turns"][0]["startedAt"], state["turns"][0]["duration"]) == (iso_time(at), 2_000)
    assert state["modifiedAt"] == iso_time(at + 2_000)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_that_cancels_does_not_say_how_long_the_turn_took(bench: Bench, version: str) -> None:
    clock = await with_clock(bench)
    bench.agent.script = waits
    client = await bench.client("ahp-root://", offer=[version])
    _, chat = await bench.session(client)
    await client.accepted(chat, began(clock, 0))
    clock.now += 3_000
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 5 * HOUR})
    reader = await bench.client("ahp-root://", offer=["1.0.0"])
    assert (await bench.state(reader, chat))["turns"][0]["duration"] == 3_000


@pytest.mark.parametrize("version", VERSIONS)
async def test_sessions_are_sorted_by_true_time_whatever_the_clocks_of_clients(bench: Bench, version: str) -> None:
    clock = await with_clock(bench)
    sessions: list[str] = []
    for off in (5 * HOUR, 0, -5 * HOUR):
        client = await bench.client("ahp-root://", offer=[version])
        session, chat = await bench.session(client)
        clock.now += 1_000
        await client.accepted(chat, began(clock, off))
        await client.action("chat/turnComplete")
        sessions.append(session)
    reader = await bench.client("ahp-root://", offer=["1.0.0"])
    listed = (await reader.ask("listSessions"))["items"]
    assert [one["resource"] for one in listed] == sessions[::-1]
    assert [one["modifiedAt"] for one in listed] == [iso_time(clock.now - ago * 1_000) for ago in range(3)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_turn_that_is_sent_again_is_recognised_although_its_time_was_replaced(
    bench: Bench, version: str
) -> None:
    clock = await with_clock(bench)
    bench.agent.script = waits
    client = await bench.client("ahp-root://", offer=[version])
    _, chat = await bench.session(client)
    sent = began(clock, 5 * HOUR)
    first = await client.accepted(chat, sent)
    clock.now += 1_000
    since = len(client.received)
    client.post(chat, sent, client_seq=first["origin"]["clientSeq"])
    assert await client.action("chat/turnStarted", since=since) == first
