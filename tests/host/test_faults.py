"""Faults inside a running host: the disk, the clock, its own parts. Each is said clearly and loses nothing."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ahpkit.host.agent import AgentChat, Chat, Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.host import Host
from ahpkit.host.registration import Registration
from ahpkit.log.engine import LocalLog
from ahpkit.log.entry import Batch, Entry
from ahpkit.log.errors import NotInLog, StorageError
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.retention import Retention
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.session.actions import session_title_changed
from ahpkit.transports.memory import memory_pair
from support import requirement
from support.bench import Bench, ScriptedAgent, say
from support.clients import eventually
from support.raw_client import Json, RawClient
from support.waiting import BOUND


class Disk(MemoryStorage):
    """A storage that can be full, or slow."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.working = threading.Event()
        self.working.set()

    def commit(self, batch: Batch) -> None:
        assert self.working.wait(BOUND)
        if self.full:
            raise StorageError("the disk is full")
        super().commit(batch)


class DiskBench(Bench):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.storage = self.disk = Disk()


@asynccontextmanager
async def disk_bench(directory: Path, *, full: bool = False) -> AsyncGenerator[DiskBench]:
    bench = DiskBench(directory)
    bench.disk.full = full
    await bench.start()
    try:
        yield bench
    finally:
        bench.disk.full = False
        bench.disk.working.set()
        await bench.stop()


async def fill(bench: DiskBench, client: RawClient, session: str) -> int:
    """Fill the disk and find out with an action; its clientSeq: it is not answered before there is room."""
    bench.disk.full = True
    seq = client.post(session, title("too much"))
    await eventually(lambda: bench.host.spine.log.failing is not None)
    return seq


def title(text: str) -> Json:
    return {"type": "session/titleChanged", "title": text}


# -- the disk -------------------------------------------------------------------------------------------------------


async def test_a_full_disk_refuses_actions_with_the_reason_and_serves_reads(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client = await bench.client(ROOT_URI)
        session, chat = await bench.session(client)
        await fill(bench, client, session)

        assert "the disk is full" in await client.rejected(session, title("more"))
        assert "the disk is full" in await client.rejected(chat, say("hello"))
        for method, params in (("createSession", {}), ("disposeSession", {}), ("createChat", {"chat": "ahp-chat:/x"})):
            uri = "ahp-session:/new" if method == "createSession" else session
            assert "the disk is full" in (await client.refused(method, uri, **params))["message"]

        assert await client.ask("ping") is None
        assert (await client.ask("subscribe", session))["snapshot"]["state"]["summary"]["title"] != "too much"
        assert [item["resource"] for item in (await client.ask("listSessions"))["items"]] == [session]
        assert (await client.ask("fetchTurns", chat))["turns"] == []
        late = await bench.client(session, client_id="late")
        back = await bench.connect("back")
        result = await back.ask("reconnect", clientId="back", lastSeenServerSeq=0, subscriptions=[session])
        seen = [envelope["action"]["type"] for envelope in result["actions"]]
        assert "session/ready" in seen
        assert "session/titleChanged" not in seen  # It is not stored, so nobody is shown it.
        assert late.actions() == []


async def test_when_there_is_room_again_what_was_waiting_is_echoed_and_actions_are_taken(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        waiting = await fill(bench, client, session)
        bench.disk.full = False
        echo = await client.action(lambda envelope: envelope.get("origin", {}).get("clientSeq") == waiting)
        assert "rejectionReason" not in echo
        after = await client.accepted(session, title("fits"))
        assert after["serverSeq"] > echo["serverSeq"]


async def test_a_session_asked_for_at_the_very_moment_is_not_lost_and_not_promised(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client, other = await bench.client(ROOT_URI), await bench.client(ROOT_URI)
        await bench.host.services.durable()
        bench.disk.full = True
        error = await client.refused("createSession", "ahp-session:/s")
        assert "the disk is full" in error["message"]
        assert (await other.ask("listSessions"))["items"] == []
        assert (await other.refused("subscribe", "ahp-session:/s"))["code"] == -32001
        bench.disk.full = False
        added = await other.notification("root/sessionAdded")
        assert added["summary"]["resource"] == "ahp-session:/s"
        assert "snapshot" in await other.ask("subscribe", "ahp-session:/s")


async def test_a_turn_that_runs_while_the_disk_is_full_is_there_afterwards(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client = await bench.client()
        session, chat = await bench.session(client)
        go_on, said = asyncio.Event(), asyncio.Event()

        async def script(turn: Turn) -> None:
            turn.text("one ")
            await go_on.wait()
            turn.text("two")
            said.set()

        bench.agent.script = script
        await client.accepted(chat, say("count"))
        await fill(bench, client, session)
        go_on.set()
        await said.wait()
        bench.disk.full = False
        await client.action("chat/turnComplete")
        turn = (await bench.state(client, chat))["turns"][0]
        assert turn["responseParts"][0]["content"] == "one two"


async def test_a_host_that_starts_on_a_full_disk_serves_reads(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        await bench.stop()
        bench.agent.display_name = "Renamed"  # So that the start has something to write.
        bench.disk.full = True
        await bench.start()
        client = await bench.client(ROOT_URI)
        assert (await client.ask("subscribe", session))["snapshot"]["state"]["lifecycle"] == "ready"
        assert "the disk is full" in await client.rejected(session, title("no"))


async def test_a_host_stops_although_its_disk_is_full(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        await fill(bench, client, session)
        creating = await bench.client()
        creating.send({"jsonrpc": "2.0", "id": 1, "method": "createSession", "params": {"channel": "ahp-session:/n"}})
        async with asyncio.timeout(BOUND):
            await bench.stop()
        assert bench.host.spine.log.failing is not None


@requirement("core:connection:snapshot-then-actions")
async def test_nobody_hears_of_a_session_before_it_is_durable(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client, other = await bench.client(), await bench.client(ROOT_URI)
        bench.disk.working.clear()
        creating = asyncio.create_task(client.ask("createSession", "ahp-session:/s"))
        await eventually(lambda: bench.host.services.state("ahp-session:/s") is not None)
        assert (await other.ask("listSessions"))["items"] == []
        assert (await other.refused("subscribe", "ahp-session:/s"))["code"] == -32001
        assert not [message for message in other.received if message.get("method") == "root/sessionAdded"]
        bench.disk.working.set()
        await other.notification("root/sessionAdded")
        state = (await other.ask("subscribe", "ahp-session:/s"))["snapshot"]["state"]
        assert [chat["resource"] for chat in state["chats"]] == [state["defaultChat"]]
        await creating


class Torn(MemoryStorage):
    """Loses everything after a number of commits, as a machine that goes down does."""

    def __init__(self, commits: int) -> None:
        super().__init__()
        self.left = commits

    def commit(self, batch: Batch) -> None:
        if self.left <= 0:
            raise StorageError("gone")
        self.left -= 1
        super().commit(batch)


@pytest.mark.parametrize("commits", range(1, 12))
async def test_whenever_it_dies_a_session_has_its_chat_and_a_chat_its_session(tmp_path: Path, commits: int) -> None:
    bench = Bench(tmp_path)
    bench.storage = torn = Torn(commits)
    await bench.start()
    client = await bench.client()
    for number in range(3):
        await client.call("createSession", f"ahp-session:/{number}")
        await client.call("createChat", f"ahp-session:/{number}", chat=f"ahp-chat:/{number}")
        await client.call("disposeSession", f"ahp-session:/{number - 1}")
    await bench.stop()
    torn.left = 1000

    await bench.start()
    try:
        client = await bench.client()
        sessions = [item["resource"] for item in (await client.ask("listSessions"))["items"]]
        known = {ROOT_URI, *sessions, *(f"{uri}/annotations" for uri in sessions)}
        for uri in sessions:
            state = await bench.state(client, uri)
            chats = [chat["resource"] for chat in state["chats"]]
            assert state["defaultChat"] in chats
            for chat in chats:
                await client.ask("subscribe", chat)
            known.update(chats)
        assert set(bench.host.spine.store.channels()) == known
    finally:
        await bench.stop()


async def test_the_log_is_trimmed_past_channels_that_fell_silent(bench: Bench) -> None:
    await bench.stop()
    await bench.start(log=LocalLog(bench.storage, retention=Retention(max_entries=100)))
    client = await bench.client()
    silent, _ = await bench.session(client)
    await client.accepted(silent, title("once"))
    busy, _ = await bench.session(client)
    for number in range(30_000):
        bench.host.services.dispatch(busy, session_title_changed(title=str(number)))
        if number % 500 == 0:
            await bench.host.services.durable()
    await bench.host.services.durable()
    assert bench.host.spine.log.oldest_seq > 20_000
    assert (await bench.state(client, silent))["summary"]["title"] == "once"


# -- the clock -----------------------------------------------------------------------------------------------------


@requirement("core:connection:server-seq-monotonic")
async def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path) -> None:
    times = itertools.chain([2_000_000_000_000] * 30, itertools.repeat(1_999_999_940_000))
    ours, theirs = memory_pair()
    async with Host(MemoryStorage(), agents=[ScriptedAgent()], now=lambda: next(times)) as host:
        serving = asyncio.create_task(host.serve(theirs))
        client = RawClient(ours)
        await client.initialize(ROOT_URI)
        seen: list[int] = []
        for number in range(20):
            uri = f"ahp-session:/{number}"
            await client.ask("createSession", uri)
            summary = (await client.ask("subscribe", uri))["snapshot"]["state"]["summary"]
            assert summary["createdAt"] <= summary["modifiedAt"]
            seen.append(summary["modifiedAt"])
            await client.accepted(uri, title("again"))
        assert seen == sorted(seen)
        seqs = [envelope["serverSeq"] for envelope in client.actions()]
        assert seqs == sorted(set(seqs))
        await client.aclose()
        await serving


# -- its own parts ---------------------------------------------------------------------------------------------------


class Faulty(Feature):
    name = "faulty"

    def register(self, host: Registration, services: Services) -> None:
        host.actions.listen(self._fail)
        host.clients.gone.add(self._fail)

    def _fail(self, heard: object) -> None:
        raise ZeroDivisionError


class Listening(Feature):
    name = "listening"

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.gone: list[str] = []

    def register(self, host: Registration, services: Services) -> None:
        host.actions.listen(lambda applied: self.heard.append(applied.action["type"]))
        host.clients.gone.add(self.gone.append)


async def test_a_feature_that_fails_harms_neither_the_action_nor_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench, listening = Bench(tmp_path), Listening()
    bench.features = [Faulty(), listening]
    await bench.start()
    try:
        client = await bench.client(client_id="me")
        _, chat = await bench.session(client)
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        assert "chat/turnComplete" in listening.heard
        await client.aclose()
        await eventually(lambda: listening.gone == ["me"])
    finally:
        await bench.stop()
    assert "a listener failed" in caplog.text


async def test_an_action_that_cannot_be_reduced_is_rejected_and_the_connection_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)

    def broken(**_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("ahpkit.host.policy.check_action", broken)
        reason = await client.rejected(session, title("x"))
    assert "its log has the details" in reason
    assert "ZeroDivisionError" not in reason
    await client.accepted(session, title("y"))
    assert "ZeroDivisionError" in caplog.text


async def test_an_agent_that_says_what_is_not_json_fails_its_turn_and_nothing_else(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(turn: Turn) -> None:
        turn.notice("look", meta={"what": object()})

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("hello"))
    await client.action("chat/error")
    await client.accepted(session, title("still here"))
    assert "cannot be written as JSON" in caplog.text


# -- replays ---------------------------------------------------------------------------------------------------------


class Forgetful(MemoryStorage):
    """Has trimmed what is asked for by the time it is read."""

    def read(
        self, after: int, *, channels: object = None, limit: int | None = None, max_bytes: int | None = None
    ) -> list[Entry]:
        raise NotInLog(after, oldest_seq=after + 10, head_seq=after + 20)


@requirement("core:connection:reconnect-snapshot")
async def test_a_replay_that_was_trimmed_at_this_moment_becomes_snapshots(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path)
    bench.storage = Forgetful()
    await bench.start()
    try:
        client = await bench.client()
        session, _ = await bench.session(client)
        last = (await client.accepted(session, title("one")))["serverSeq"]
        back = await bench.connect("back")
        result = await back.ask("reconnect", clientId="back", lastSeenServerSeq=last - 1, subscriptions=[session])
        assert result["type"] == "snapshot"
        assert result["snapshots"][0]["fromSeq"] == last + 1, "the title, and the entry of the only chat after it"
        seq = (await client.accepted(session, title("two")))["serverSeq"]
        await back.action(lambda envelope: envelope["serverSeq"] == seq)
        assert back.actions()[0]["serverSeq"] == seq
    finally:
        await bench.stop()


@requirement("core:connection:reconnect-snapshot")
async def test_a_replay_that_no_client_would_take_becomes_snapshots(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    first = (await client.accepted(session, title("first")))["serverSeq"]
    for number in range(2500):
        bench.host.services.dispatch(session, session_title_changed(title=f"{number}" * 10))
    last = (await client.accepted(session, title("last")))["serverSeq"]

    async def replay(client_id: str) -> Json:
        back = await bench.connect(client_id)
        wish = {"ahpkit/missed": "actions"}
        return await back.ask(
            "reconnect", clientId=client_id, lastSeenServerSeq=first, subscriptions=[session], _meta=wish
        )

    result = await replay("patient")
    last += 1  # The entry of the only chat follows the title.
    assert [envelope["serverSeq"] for envelope in result["actions"]] == list(range(first + 1, last + 1))
    await bench.stop()
    bench.config = replace(bench.config, max_replay_bytes=100_000)
    await bench.start()
    result = await replay("hurried")
    assert (result["type"], result["snapshots"][0]["fromSeq"]) == ("snapshot", last)


@pytest.mark.parametrize("method", ["initialize", "reconnect"])
async def test_a_handshake_with_too_many_subscriptions_is_refused_and_may_be_repeated(
    bench: Bench, method: str
) -> None:
    client = await bench.connect("greedy")
    wanted = [f"ahp-chat:/{number}" for number in range(10_000)]
    params: Json = {
        "initialize": {"protocolVersions": ["0.4.0"], "initialSubscriptions": wanted},
        "reconnect": {"lastSeenServerSeq": 0, "subscriptions": wanted},
    }[method]
    error = await client.refused(method, clientId="greedy", **params)
    assert "subscriptions" in error["message"]
    await client.initialize(ROOT_URI)


# -- sessions that end while something is on its way -------------------------------------------------------------------


async def test_an_action_that_was_taken_is_echoed_although_its_session_is_disposed_of(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client, other = await bench.client(), await bench.client()
        session, chat = await bench.session(client)
        bench.disk.working.clear()
        seqs = [client.post(session, title("last words")), client.post(chat, say("last question"))]
        await eventually(lambda: "activeTurn" in (bench.host.services.state(chat) or {}))
        disposing = asyncio.create_task(other.ask("disposeSession", session))
        await eventually(lambda: bench.host.services.state(session) is None)
        too_late = await client.rejected(session, title("too late"))
        assert "no channel" in too_late
        bench.disk.working.set()
        for seq in seqs:
            echo = await client.action(lambda said, seq=seq: said.get("origin", {}).get("clientSeq") == seq)
            assert "rejectionReason" not in echo
        await client.notification("root/sessionRemoved")
        await disposing


async def test_a_session_whose_end_is_not_durable_yet_cannot_be_made_again(tmp_path: Path) -> None:
    async with disk_bench(tmp_path) as bench:
        client, other = await bench.client(), await bench.client()
        session, _ = await bench.session(client)
        bench.disk.working.clear()
        disposing = asyncio.create_task(client.ask("disposeSession", session))
        await eventually(lambda: bench.host.services.state(session) is None)
        assert (await other.refused("createSession", session))["code"] == -32003
        assert [item["resource"] for item in (await other.ask("listSessions"))["items"]] == [session]
        bench.disk.working.set()
        await disposing
        await other.ask("createSession", session)


async def _waiting(turn: Turn) -> None:
    await asyncio.Event().wait()


async def test_a_choice_that_waits_for_a_turn_is_answered_when_its_session_is_disposed_of(bench: Bench) -> None:
    bench.agent.script = _waiting
    client, other = await bench.client(), await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("wait"))
    seq = client.post(session, {"type": "session/modelChanged", "model": {"id": "large"}})
    await client.ask("ping")
    await other.ask("disposeSession", session)
    answer = await client.action(lambda said: said.get("origin", {}).get("clientSeq") == seq)
    assert "disposed" in answer["rejectionReason"]


async def test_a_choice_that_waits_for_a_turn_and_is_sent_again_is_applied_once(bench: Bench) -> None:
    bench.agent.script = _waiting
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("wait"))
    for _ in range(2):
        client.post(session, {"type": "session/modelChanged", "model": {"id": "large"}}, client_seq=500)
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    await client.accepted(session, title("afterwards"))
    types = [said["action"]["type"] for said in client.actions(session)]
    assert types.count("session/modelChanged") == 1


async def test_an_agent_that_opens_while_its_session_is_disposed_of_is_stopped(bench: Bench) -> None:
    opening, stopped = asyncio.Event(), asyncio.Event()

    async def slowly(chat: Chat) -> AgentChat:
        opening.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    bench.agent.open = slowly
    client = await bench.client()
    await client.ask("createSession", "ahp-session:/short")
    await opening.wait()
    await client.ask("disposeSession", "ahp-session:/short")
    async with asyncio.timeout(BOUND):
        await stopped.wait()


async def test_an_agent_that_opens_all_the_same_is_closed(bench: Bench) -> None:
    opening, opened = asyncio.Event(), asyncio.Event()
    open_chat = bench.agent.open

    async def stubbornly(chat: Chat) -> AgentChat:
        opening.set()
        with suppress(asyncio.CancelledError):
            await opened.wait()
        return await open_chat(chat)

    bench.agent.open = stubbornly
    client = await bench.client()
    await client.ask("createSession", "ahp-session:/short")
    await opening.wait()
    await client.ask("disposeSession", "ahp-session:/short")
    opened.set()
    await eventually(lambda: [chat.closed for chat in bench.agent.chats] == [True])


class Picky(MemoryStorage):
    """Cannot hold the action with one clientSeq."""

    unholdable = 4711

    def commit(self, batch: Batch) -> None:
        if any(type(step) is Entry and step.client_seq == self.unholdable for step in batch):
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        super().commit(batch)


@requirement("core:hardening:a-bad-entry-costs-itself")
async def test_an_action_that_cannot_be_stored_is_sent_back_and_the_rest_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.storage = Picky()
    await bench.start()
    one, two = await bench.client(ROOT_URI), await bench.client(ROOT_URI)
    session, _ = await bench.session(one)
    await two.ask("subscribe", session)
    one.post(session, {"type": "session/titleChanged", "title": "before"}, client_seq=1)
    one.post(session, {"type": "session/titleChanged", "title": "cannot be stored"}, client_seq=Picky.unholdable)
    one.post(session, {"type": "session/isReadChanged", "isRead": True}, client_seq=2)
    back = await one.action(lambda said: said.get("origin", {}).get("clientSeq") == Picky.unholdable)
    assert back["rejectionReason"] == "this action could not be stored, so it was not done"
    # Its number is below one that was used, so the host looks for it in the log first: that takes a moment.
    await one.action(lambda said: said.get("origin", {}).get("clientSeq") == 2)
    await two.accepted(session, {"type": "session/isArchivedChanged", "isArchived": True})
    assert "cannot be stored" not in str([said for said in two.actions(session) if "origin" in said])
    shown = await bench.state(two, session)
    assert shown["summary"]["title"] == "before"
    assert [chat["title"] for chat in shown["chats"]] == ["before"]
    mirrored = [said["action"]["changes"]["title"] for said in two.actions(session) if "changes" in said["action"]]
    assert mirrored[-1] == "before", "the only chat was told the title that was not stored, and then the one that was"
    await bench.stop()
    await bench.start()
    three = await bench.client()
    assert (await bench.state(three, session)) == shown
    await bench.stop()


class Slow(Picky):
    """Takes no step before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.working = threading.Event()
        self.working.set()

    def commit(self, batch: Batch) -> None:
        assert self.working.wait(BOUND)
        super().commit(batch)


@requirement("core:hardening:a-bad-entry-costs-itself")
async def test_a_checkpoint_holds_nothing_that_could_not_be_stored(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.storage = disk = Slow()
    await bench.start()
    client = await bench.client()
    session, _ = await bench.session(client)
    before = (await bench.state(client, session))["summary"]["title"]
    disk.working.clear()
    client.post(session, title("cannot be stored"), client_seq=Picky.unholdable)
    await client.ask("ping")
    await bench.host.spine.store.checkpoint(session)
    disk.working.set()
    await client.action(lambda said: "rejectionReason" in said)
    await bench.stop()
    await bench.start()
    assert (await bench.state(await bench.client(), session))["summary"]["title"] == before
    await bench.stop()
