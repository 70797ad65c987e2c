"""Sessions at rest: after a restart only those are live in which something was under way, or that somebody wants."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from ahpkit.host.agent import AgentChat, Chat, Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.store import Store
from ahpkit.log.engine import LocalLog
from ahpkit.log.entry import Batch
from ahpkit.log.errors import StorageError
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.retention import Retention
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.root import RootState
from ahpkit.protocol.session.actions import session_title_changed
from support.bench import Bench, ScriptedAgent, ScriptedChat, say
from support.clients import eventually
from support.late_log import LateLog
from support.raw_client import Json, RawClient

COUNT = 40


class Mortal(MemoryStorage):
    """While it is dead, nothing becomes durable."""

    dead = False

    def commit(self, batch: Batch) -> None:
        if self.dead:
            raise StorageError("the host is dead")
        super().commit(batch)


class Preparing(Feature):
    """Notes which sessions are prepared."""

    name = "preparing"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.prepared: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    def register(self, host: Registration, services: Services) -> None:
        host.sessions.prepare.add(self._prepare)

    async def _prepare(self, session_uri: str) -> None:
        self.begun.append(session_uri)
        await self.go_on.wait()
        self.prepared.append(session_uri)


class Announcing(Preparing):
    """Also says something in a session once it is prepared."""

    def register(self, host: Registration, services: Services) -> None:
        super().register(host, services)
        self._services = services

    async def _prepare(self, session_uri: str) -> None:
        await super()._prepare(session_uri)
        self._services.dispatch(session_uri, session_title_changed(title="prepared"))


async def restart(bench: Bench, feature: type[Preparing] = Preparing) -> Preparing:
    await bench.stop()
    bench.features = [preparing := feature()]
    await bench.start()
    return preparing


async def filled(bench: Bench) -> list[tuple[str, str]]:
    """Sessions and their chats; nobody looks at them any more."""
    client = await bench.client()
    return [await bench.session(client) for _ in range(COUNT)]


async def test_after_a_restart_sessions_rest_until_somebody_looks(bench: Bench) -> None:
    made = await filled(bench)
    preparing = await restart(bench)
    client = await bench.client(ROOT_URI)
    listed = (await client.ask("listSessions"))["items"]
    assert {item["resource"] for item in listed} == {session for session, _ in made}
    assert preparing.prepared == []

    session, chat = made[7]
    shown = (await client.ask("subscribe", chat))["snapshot"]["state"]
    assert shown["turns"] == []
    await eventually(lambda: preparing.prepared == [session])


async def test_of_many_that_wake_at_once_few_are_prepared_and_the_one_that_is_used_comes_first(bench: Bench) -> None:
    """Otherwise one client that follows thousands of sessions holds up everyone."""
    client = await bench.client(ROOT_URI)
    uris = [(await bench.session(client))[0] for _ in range(COUNT)]
    preparing = await restart(bench)
    preparing.go_on.clear()
    back = await bench.client(*uris)
    await eventually(lambda: len(preparing.begun) == 8)
    used = next(uri for uri in uris if uri not in preparing.begun)
    await back.ask("subscribe", used)
    preparing.go_on.set()
    await eventually(lambda: len(preparing.prepared) == COUNT)
    assert preparing.begun[8] == used


async def test_a_session_that_is_deleted_while_it_wakes_is_no_error(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    [(session, _), *_] = await filled(bench)
    preparing = await restart(bench, Announcing)
    preparing.go_on.clear()
    client = await bench.client(ROOT_URI)
    await client.ask("subscribe", session)
    await client.ask("disposeSession", session)
    preparing.go_on.set()
    await eventually(lambda: preparing.prepared == [session])
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_turn_that_was_open_is_ended_although_nobody_looks_at_the_others(bench: Bench) -> None:
    async def wait(turn: Turn) -> None:
        turn.activity("thinking")
        await asyncio.Event().wait()

    await bench.stop()
    bench.storage, bench.agent.script = (storage := Mortal()), wait
    await bench.start()
    made = await filled(bench)
    session, chat = made[3]
    client = await bench.client()
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("wait"))
    await eventually(lambda: (bench.host.services.state(session) or {}).get("activity") == "thinking")
    await bench.host.services.durable()
    storage.dead = True
    await bench.stop()
    storage.dead = False

    preparing = await restart(bench)
    assert preparing.prepared == [session]
    client = await bench.client()
    assert (await bench.state(client, chat))["turns"][0]["state"] == "error"
    assert "activity" not in (await bench.state(client, session))
    assert bench.host.services.unsettled() == []


async def test_a_message_in_a_session_at_rest_is_answered(bench: Bench) -> None:
    made = await filled(bench)
    await restart(bench)
    client = await bench.client()
    session, chat = made[-1]
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    assert (await bench.state(client, chat))["turns"][0]["responseParts"][0]["content"] == "You said: hello"
    assert (await bench.state(client, session))["summary"]["title"] == "hello"


async def test_an_action_in_a_session_at_rest_waits_until_its_features_can_hear_it(bench: Bench) -> None:
    made = await filled(bench)
    preparing = await restart(bench)
    preparing.go_on.clear()
    client = await bench.client(ROOT_URI)
    client.post(made[0][0], {"type": "session/titleChanged", "title": "other"})
    other = await bench.client(ROOT_URI)
    assert (await other.ask("ping")) is None  # Nobody else waits for it.
    preparing.go_on.set()
    await client.ask("subscribe", made[0][0])
    assert (await bench.state(client, made[0][0]))["summary"]["title"] == "other"


async def test_sessions_at_rest_are_disposed_of_and_get_chats(bench: Bench) -> None:
    made = await filled(bench)
    await restart(bench)
    client = await bench.client(ROOT_URI)
    await client.ask("disposeSession", made[0][0])
    await client.ask("createChat", made[1][0], chat="ahp-chat:/new")
    listed = [item["resource"] for item in (await client.ask("listSessions"))["items"]]
    assert made[0][0] not in listed
    assert len(listed) == COUNT - 1
    assert (await client.refused("subscribe", made[0][1]))["code"] == -32008
    await restart(bench)
    client = await bench.client()
    chats = [chat["resource"] for chat in (await bench.state(client, made[1][0]))["chats"]]
    assert chats == [made[1][1], "ahp-chat:/new"]


async def test_a_log_without_an_index_is_read_once(bench: Bench) -> None:
    made = await filled(bench)
    values = bench.host.services.values
    for group in ("session-known/", "chat-session/", "index-kept/", "unsettled/"):
        for key in list(values.keys(group)):
            values.set(key, None)
    await restart(bench)
    client = await bench.client()
    assert len((await client.ask("listSessions"))["items"]) == COUNT
    assert await chats_of(bench, client, made) == [chat for _, chat in made]
    assert len(bench.host.services.values.keys("session-known/")) == COUNT


async def chats_of(bench: Bench, client: RawClient, made: list[tuple[str, str]]) -> list[str]:
    states: list[Json] = [await bench.state(client, session) for session, _ in made]
    return [state["defaultChat"] for state in states]


# -- while the host runs -----------------------------------------------------------------------------------------------


class Idle(ScriptedAgent):
    """Its chats can rest, and say whether they were closed."""

    async def open(self, chat: Chat) -> AgentChat:
        opened = IdleChat(self, chat)
        self.chats.append(opened)
        return opened


class IdleChat(ScriptedChat):
    @property
    def can_rest(self) -> bool:
        return True


async def resting(bench: Bench, *, max_idle: int = 0) -> Preparing:
    """A host whose sessions rest as soon as nobody uses them."""
    await bench.stop()
    bench.agent = Idle()
    bench.config = replace(bench.config, max_idle=max_idle)
    bench.features = [preparing := Preparing()]
    await bench.start()
    return preparing


def leave(client: RawClient, *channels: str) -> None:
    for uri in channels:
        client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})


async def test_a_session_that_nobody_uses_rests_and_goes_on_where_it_was(bench: Bench) -> None:
    preparing = await resting(bench)
    client = await bench.client(ROOT_URI)
    session, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/turnComplete")
    before = await bench.state(client, chat)
    await bench.session(client)  # A further one: a look is taken at those that are there.
    assert not bench.host.sessions.live.rests(chat), "somebody is subscribed"

    leave(client, session, chat)
    await client.ask("ping")
    bench.host.sessions.live.rest_unused()
    assert bench.host.sessions.live.rests(chat)
    await eventually(lambda: bench.agent.chats[0].closed)

    assert (await client.ask("subscribe", chat))["snapshot"]["state"] == before
    await eventually(lambda: preparing.prepared.count(session) == 2)
    await client.accepted(chat, say("again", "t2"))
    await client.action(lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == "t2")
    turns = (await bench.state(client, chat))["turns"]
    assert [turn["responseParts"][0]["content"] for turn in turns] == ["You said: hello", "You said: again"]


@pytest.mark.parametrize("what", ["a turn", "a role", "an agent that would lose something"])
async def test_a_session_in_which_something_is_under_way_does_not_rest(bench: Bench, what: str) -> None:
    await resting(bench)
    client = await bench.client(ROOT_URI, client_id="me")
    if what == "an agent that would lose something":
        bench.agent.open = partial(ScriptedAgent.open, bench.agent)
    session, chat = await bench.session(client)
    if what == "a turn":
        go_on = asyncio.Event()
        bench.agent.script = lambda turn: go_on.wait()
        await client.accepted(chat, say("wait"))
    elif what == "a role":
        role: Json = {"clientId": "me", "tools": []}
        await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": role})
    leave(client, session, chat)
    await client.ask("ping")
    await bench.host.services.durable()
    bench.host.sessions.live.rest_unused()
    assert not bench.host.sessions.live.rests(chat)


async def test_a_chat_moves_to_a_session_that_rests(bench: Bench) -> None:
    await resting(bench)
    client = await bench.client(ROOT_URI, offer=["1.0.0"])
    target, first = await bench.session(client)
    source, _ = await bench.session(client)
    await client.ask("createChat", source, chat="ahp-chat:/traveller")
    leave(client, target, first)
    await client.ask("ping")
    await bench.host.services.durable()
    bench.host.sessions.live.rest_unused()
    assert bench.host.sessions.live.rests(target)
    destination = {"kind": "session", "session": target, "after": first}
    assert await client.ask("moveChat", "ahp-chat:/traveller", destination=destination) == {"session": target}
    chats = (await bench.state(client, target))["chats"]
    assert [chat["resource"] for chat in chats] == [first, "ahp-chat:/traveller"]


async def test_few_sessions_stay_live_for_a_while(bench: Bench) -> None:
    await resting(bench, max_idle=5)
    client = await bench.client(ROOT_URI)
    made = [await bench.session(client) for _ in range(10)]
    leave(client, *(uri for pair in made for uri in pair))
    await client.ask("ping")
    await bench.host.services.durable()
    bench.host.sessions.live.rest_unused()
    assert sum(bench.host.sessions.live.rests(chat) for _, chat in made) == 5


async def test_the_log_is_trimmed_past_sessions_at_rest(bench: Bench) -> None:
    await resting(bench)
    await bench.stop()
    bench.features = []
    await bench.start(log=LocalLog(bench.storage, retention=Retention(max_entries=100)))
    client = await bench.client(ROOT_URI)
    session, chat = await bench.session(client)
    await client.accepted(session, {"type": "session/titleChanged", "title": "once"})
    leave(client, session, chat)
    await client.ask("ping")
    bench.host.sessions.live.rest_unused()
    assert bench.host.sessions.live.rests(chat)
    busy, _ = await bench.session(client)
    for number in range(25_000):
        bench.host.services.dispatch(busy, session_title_changed(title=str(number)))
        if number % 500 == 0:
            await bench.host.services.durable()
    await bench.host.services.durable()
    assert bench.host.spine.log.oldest_seq > 15_000
    assert (await bench.state(client, session))["summary"]["title"] == "once"


# -- the store -------------------------------------------------------------------------------------------------------


async def test_a_channel_at_rest_is_its_text_until_the_next_action() -> None:
    log = LateLog(gap=0, by_hand=True)
    store = Store(log, ChannelKinds(DurableValues(log.set_value)), now=lambda: 7)
    state: RootState = {"agents": [], "activeSessions": 0}
    store.open(ROOT_URI, state)
    await store.rest(ROOT_URI)  # Not durable: it is kept as it is.
    assert store.state(ROOT_URI) is state
    store.commit(log.commit())
    await store.rest(ROOT_URI)
    assert store.state(ROOT_URI) == store.committed(ROOT_URI) == state
    assert store.state(ROOT_URI) is not store.state(ROOT_URI)
    assert store.shown(ROOT_URI)
    before, after, _ = store.apply(ROOT_URI, {"type": "root/activeSessionsChanged", "activeSessions": 3})
    assert (before, after) == (state, {**state, "activeSessions": 3})
    assert store.committed(ROOT_URI) == state
    await store.rest(ROOT_URI)
    assert store.state(ROOT_URI) is after


async def test_a_large_channel_is_read_before_it_wakes_and_may_change_its_mind_before_it_rests() -> None:
    log = LateLog(gap=0, by_hand=True)
    store = Store(log, ChannelKinds(DurableValues(log.set_value)), now=lambda: 7)
    state: RootState = {"agents": [], "activeSessions": 0, "_meta": {"long": ["x" * 1000] * 1000}}
    store.open(ROOT_URI, state)
    store.commit(log.commit())
    await store.rest(ROOT_URI, still=lambda: False)
    assert store.state(ROOT_URI) is state, "somebody woke it while its text was written"
    await store.rest(ROOT_URI)
    async with store.reading(ROOT_URI):
        read = store.state(ROOT_URI)
        assert read == state
        async with store.reading(ROOT_URI):
            assert store.state(ROOT_URI) is read
        assert store.state(ROOT_URI) is read, "the other one still uses it"
    assert store.state(ROOT_URI) is not read
    async with store.reading(ROOT_URI):
        read = store.state(ROOT_URI)
        store.wake(ROOT_URI)
    assert store.state(ROOT_URI) is store.committed(ROOT_URI) is read
