"""Conversations that an agent keeps: listed, opened with their history, gone when they are disposed of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import AgentError, AgentSession, Chat, History
from ahpkit.protocol.common.state import JsonObject
from support.bench import Bench, ScriptedAgent, say
from support.flow import begun
from support.raw_client import Json, RawClient
from support.waiting import until


class Keeper(ScriptedAgent):
    """Keeps conversations; remembers what was asked of it."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.kept: Sequence[AgentSession] | None = [
            AgentSession(memory={"id": "k1"}, working_directory=directory, title="Old talk", modified_at=5),
            AgentSession(memory={"id": "k2"}, working_directory=directory),
        ]
        self.asked: list[bool] = []
        self.told = [("hello", "Hi."), ("more", "More.")]
        self.recalling = asyncio.Event()
        self.may_tell = asyncio.Event()
        self.may_tell.set()
        self.failure: Exception | None = None

    async def sessions(self, directory: Path, *, start: bool) -> Sequence[AgentSession] | None:
        self.asked.append(start)
        if self.failure is not None:
            raise self.failure
        return self.kept

    async def recall(self, chat: Chat, memory: JsonObject, history: History) -> None:
        self.recalling.set()
        await self.may_tell.wait()
        if self.failure is not None:
            raise self.failure
        for said, answered in self.told:
            history.turn(said).text(f"{answered} ({memory['id']})")


class KeeperBench(Bench):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.keeper = Keeper(directory)
        self.agent = self.keeper


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[KeeperBench]:
    made = KeeperBench(tmp_path)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def listed(client: RawClient, **params: Any) -> list[Json]:
    return (await client.ask("listSessions", **params))["items"]


async def opened(client: RawClient, uri: str) -> tuple[Json, Json]:
    """The session and its chat, once it is ready."""
    session = await begun(client, uri)
    chat = (await client.ask("subscribe", session["defaultChat"]))["snapshot"]["state"]
    return session, chat


async def test_what_an_agent_keeps_is_listed_beside_the_sessions_of_the_host(
    bench: KeeperBench, tmp_path: Path
) -> None:
    client = await bench.client()
    own, _ = await bench.session(client)

    first, kept, untitled = await listed(client)

    assert first["resource"] == own
    assert (kept["title"], kept["provider"], kept["modifiedAt"]) == ("Old talk", "scripted", 5)
    assert kept["workingDirectory"] == tmp_path.as_uri()
    assert untitled["title"] == "New session"
    assert (await bench.state(client, "ahp-root://"))["activeSessions"] == 1


async def test_an_opened_one_is_a_session_with_its_history_and_goes_on(bench: KeeperBench) -> None:
    client, other = await bench.client(), await bench.client()
    [kept, _] = await listed(client)

    session, chat = await opened(client, kept["resource"])

    assert session["summary"]["title"] == "Old talk"
    texts = [(turn["message"]["text"], turn["responseParts"][0]["content"]) for turn in chat["turns"]]
    assert texts == [("hello", "Hi. (k1)"), ("more", "More. (k1)")]
    assert bench.agent.chats[0].chat.memory == {"id": "k1"}
    assert (await other.notification("root/sessionAdded"))["summary"]["resource"] == kept["resource"]
    await client.accepted(chat["resource"], say("go on"))
    await client.action("chat/turnComplete")
    assert len((await bench.state(client, chat["resource"]))["turns"]) == 3


async def test_it_is_listed_once_before_while_and_after_it_is_opened(bench: KeeperBench) -> None:
    client = await bench.client()
    uris = [one["resource"] for one in await listed(client)]
    bench.keeper.may_tell.clear()
    await client.ask("subscribe", uris[0])
    await bench.keeper.recalling.wait()

    assert sorted(one["resource"] for one in await listed(client)) == sorted(uris)
    bench.keeper.may_tell.set()
    await opened(client, uris[0])
    assert sorted(one["resource"] for one in await listed(client)) == sorted(uris)


async def test_two_clients_that_open_it_at_once_share_one_session(bench: KeeperBench) -> None:
    one, two = await bench.client(), await bench.client()
    [kept, _] = await listed(one)

    (session, chat), (same, same_chat) = await asyncio.gather(
        opened(one, kept["resource"]), opened(two, kept["resource"])
    )

    assert (session["defaultChat"], chat["turns"]) == (same["defaultChat"], same_chat["turns"])
    assert len(bench.agent.chats) == 1


async def test_it_has_the_same_uri_after_a_restart_and_an_opened_one_is_still_there(bench: KeeperBench) -> None:
    client = await bench.client()
    before = [one["resource"] for one in await listed(client)]
    _, chat = await opened(client, before[0])
    await bench.stop()

    await bench.start()
    client = await bench.client()

    assert sorted(one["resource"] for one in await listed(client)) == sorted(before)
    assert (await opened(client, before[0]))[1]["turns"] == chat["turns"]


async def test_a_host_that_dies_while_the_history_is_told_starts_the_telling_again(bench: KeeperBench) -> None:
    client = await bench.client()
    [kept, _] = await listed(client)
    bench.keeper.may_tell.clear()
    await client.ask("subscribe", kept["resource"])
    await bench.keeper.recalling.wait()
    await bench.stop()

    bench.keeper.may_tell.set()
    await bench.start()
    client = await bench.client()

    _, chat = await opened(client, kept["resource"])
    assert [turn["message"]["text"] for turn in chat["turns"]] == ["hello", "more"]


async def test_one_that_cannot_be_told_says_why_and_can_be_disposed_of(bench: KeeperBench) -> None:
    client = await bench.client()
    [kept, _] = await listed(client)
    bench.keeper.failure = AgentError("It was deleted.", error_type="x")

    state = await begun(client, kept["resource"])

    assert state["creationError"]["message"] == "It was deleted."
    await client.ask("disposeSession", kept["resource"])
    assert kept["resource"] not in [one["resource"] for one in await listed(client)]


async def test_one_that_is_disposed_of_while_it_is_told_is_gone(bench: KeeperBench) -> None:
    client = await bench.client()
    [kept, other] = await listed(client)
    bench.keeper.may_tell.clear()
    await client.ask("subscribe", kept["resource"])
    await bench.keeper.recalling.wait()

    await client.ask("disposeSession", kept["resource"])
    bench.keeper.may_tell.set()
    await client.ask("ping")

    assert [one["resource"] for one in await listed(client)] == [other["resource"]]
    assert (await bench.state(client, "ahp-root://"))["activeSessions"] == 0


async def test_disposed_ones_are_not_listed_again_opened_before_or_not(bench: KeeperBench) -> None:
    client = await bench.client()
    [first, second] = [one["resource"] for one in await listed(client)]
    await opened(client, first)

    await client.ask("disposeSession", first)
    await client.ask("disposeSession", second)

    assert await listed(client) == []
    await bench.stop()
    await bench.start()
    assert await listed(await bench.client()) == []


async def test_agents_are_started_for_a_list_only_when_the_client_says_so(bench: KeeperBench) -> None:
    bench.keeper.kept = None
    client = await bench.client()

    assert await listed(client) == []
    await listed(client, _meta={"ahpkit/ask-agents": True})
    await listed(client)  # It was asked a moment ago.

    assert bench.keeper.asked == [False, True]


async def test_an_agent_that_fails_to_list_spoils_nothing(bench: KeeperBench) -> None:
    client = await bench.client()
    own, _ = await bench.session(client)
    bench.keeper.failure = AgentError("no")

    assert [one["resource"] for one in await listed(client)] == [own]


async def test_a_uri_that_nobody_keeps_is_no_session(bench: KeeperBench) -> None:
    client = await bench.client()
    await listed(client)

    assert (await client.refused("subscribe", "ahp-session:/unknown"))["code"] == -32001
    assert (await client.refused("disposeSession", "ahp-session:/unknown"))["code"] == -32001


async def test_an_agent_that_does_not_answer_in_time_is_named_with_the_reason(
    bench: KeeperBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.keeper.failure = TimeoutError()
    await listed(await bench.client())
    await until(lambda: "did not list its sessions: no answer in time" in caplog.text)
