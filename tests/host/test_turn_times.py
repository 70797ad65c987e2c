"""When the calls of a turn began, waited and ended: noted while it runs, and still known after a restart."""

from __future__ import annotations

from ahpkit.host.agent import Turn
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
