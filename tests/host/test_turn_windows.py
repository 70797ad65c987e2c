"""Long chats in windows: the newest turns first, older ones by cursor, for one connection alone. Over real sockets."""

from __future__ import annotations

import pytest

from ahpkit.client import connect
from ahpkit.protocol.chat.reducer import chat_reducer
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.schemas import wrong_action

STARTED = "2026-11-15T12:00:00.000Z"


def start(turn_id: str) -> Json:
    return say("hi", turn_id, startedAt=STARTED)


async def chat_with(bench: Bench, count: int) -> tuple[RawClient, str, str]:
    """A client of 1.0 that has everything, the session and its chat with so many turns."""
    client = await bench.client("ahp-root://", client_id="full", offer=["1.0.0"])
    session, chat = await bench.session(client)
    for number in range(count):
        await run_turn(client, chat, f"t{number}")
    return client, session, chat


async def run_turn(client: RawClient, chat: str, turn_id: str) -> None:
    await client.accepted(chat, start(turn_id))
    await client.action(
        lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == turn_id
    )


class Replica:
    """What a strict client has of a chat: it takes actions only when their numbers rise."""

    def __init__(self, client: RawClient, chat: str, snapshot: Json) -> None:
        self.client = client
        self._chat = chat
        self.snapshot = snapshot

    @property
    def state(self) -> Json:
        state, seen = self.snapshot["state"], self.snapshot["fromSeq"]
        for said in self.client.actions(self._chat):
            if said["serverSeq"] > seen and "rejectionReason" not in said:
                state, seen = chat_reducer(state, said["action"]), said["serverSeq"]
        return state

    @property
    def ids(self) -> list[str]:
        return [turn["id"] for turn in self.state["turns"]]

    @property
    def cursor(self) -> str | None:
        return self.state.get("turnsNextCursor")


async def window(bench: Bench, chat: str, turns: int, client_id: str = "small", version: str = "1.0.0") -> Replica:
    client = await bench.client("ahp-root://", client_id=client_id, offer=[version])
    snapshot = (await client.ask("subscribe", chat, view={"turns": turns}))["snapshot"]
    return Replica(client, chat, snapshot)


@requirement("gen:view:tail")
@pytest.mark.parametrize("version", ["0.5.1", "0.7.0", "0.9.0", "1.0.0"])
async def test_a_snapshot_has_the_newest_turns_and_a_cursor_when_there_are_older_ones(
    sockets: Bench, version: str
) -> None:
    _, _, chat = await chat_with(sockets, 5)
    small = await window(sockets, chat, 2, version=version)
    assert small.ids == ["t3", "t4"]
    assert small.cursor
    for number, turns in enumerate((5, 6, 100)):
        whole = await window(sockets, chat, turns, client_id=f"whole-{number}", version=version)
        assert whole.ids == ["t0", "t1", "t2", "t3", "t4"]
        assert whole.cursor is None


@requirement("gen:view:absent-means-all")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_without_a_wish_a_snapshot_has_all_turns(sockets: Bench, version: str) -> None:
    _, _, chat = await chat_with(sockets, 3)
    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    wishes: list[Json] = [{}, {"view": {}}]
    for params in wishes:
        state = (await client.ask("subscribe", chat, **params))["snapshot"]["state"]
        assert [turn["id"] for turn in state["turns"]] == ["t0", "t1", "t2"]
        assert "turnsNextCursor" not in state


async def test_a_negative_number_of_turns_is_refused(sockets: Bench) -> None:
    full, _, chat = await chat_with(sockets, 1)
    assert (await full.refused("subscribe", chat, view={"turns": -1}))["code"] == -32602


@requirement("gen:turns:fetch-order", "gen:turns:walk", "gen:turns:fetch-without-cursor")
@pytest.mark.parametrize(("with_cursor", "version"), [(True, "1.0.0"), (False, "0.5.1")])
async def test_fetching_until_the_cursor_is_gone_gives_everything(
    sockets: Bench, with_cursor: bool, version: str
) -> None:
    full, _, chat = await chat_with(sockets, 120)
    small = await window(sockets, chat, 3, version=version)
    client = small.client
    pages = 0
    while cursor := small.cursor:
        answer = await client.call("fetchTurns", chat, **({"cursor": cursor} if with_cursor else {}))
        assert answer["result"] == {}
        loaded = [said for said in client.received if said.get("params", {}).get("action", {}).get("turns")]
        assert client.received.index(loaded[-1]) < client.received.index(answer), "the turns come before the answer"
        assert "origin" not in loaded[-1]["params"]
        pages += 1
    assert small.ids == [f"t{number}" for number in range(120)]
    assert pages > 1
    count = len(client.actions(chat))
    assert await client.ask("fetchTurns", chat) == {}
    assert len(client.actions(chat)) == count, "nothing older is left to send"
    assert small.state["turns"] == (await sockets.state(full, chat))["turns"]


@requirement("gen:turns:fetch-only-asker")
async def test_only_the_asker_is_told_and_nothing_is_logged_or_replayed(sockets: Bench) -> None:
    full, session, chat = await chat_with(sockets, 5)
    asker, other = await window(sockets, chat, 1, "asker"), await window(sockets, chat, 2, "other")
    before = (full.actions(chat)[-1]["serverSeq"], other.cursor)
    await asker.client.ask("fetchTurns", chat, cursor=asker.cursor)
    loaded = asker.client.actions(chat)[-1]
    assert loaded["action"]["type"] == "chat/turnsLoaded"
    assert loaded["serverSeq"] > before[0], "its number is its own"
    await run_turn(full, chat, "t5")
    numbers = [said["serverSeq"] for said in asker.client.actions(chat)]
    assert numbers == sorted(set(numbers)), "and nobody else's"
    for client in (full, other.client):
        assert not any(said["action"]["type"] == "chat/turnsLoaded" for said in client.actions())
    assert other.cursor == before[1]
    assert asker.state == await sockets.state(full, chat)
    logged = await sockets.host.spine.log.read(0)
    assert not any(b"turnsLoaded" in entry.payload for entry in logged)
    await asker.client.aclose()
    back = await sockets.connect("asker")
    found = await back.ask("reconnect", clientId="asker", lastSeenServerSeq=before[0], subscriptions=[session, chat])
    assert found["type"] == "replay"
    assert "chat/turnStarted" in {said["action"]["type"] for said in found["actions"]}
    assert "chat/turnsLoaded" not in {said["action"]["type"] for said in found["actions"]}


@requirement("gen:turns:fetch-only-asker")
async def test_the_number_of_loaded_turns_is_not_given_again_after_a_restart(sockets: Bench) -> None:
    _, session, chat = await chat_with(sockets, 3)
    asker = await window(sockets, chat, 1, "asker")
    await asker.client.ask("fetchTurns", chat, cursor=asker.cursor)
    seen = asker.client.actions(chat)[-1]["serverSeq"]
    await sockets.restart()
    full = await sockets.client("ahp-root://", client_id="full", offer=["1.0.0"])
    await full.ask("subscribe", chat)
    await run_turn(full, chat, "t3")
    back = await sockets.connect("asker")
    found = await back.ask("reconnect", clientId="asker", lastSeenServerSeq=seen, subscriptions=[session, chat])
    assert found["type"] == "replay"
    missed = [said for said in found["actions"] if said["channel"] == chat]
    assert missed[0]["action"]["type"] == "chat/turnStarted"


@requirement("gen:turns:fetch-unknown-cursor")
async def test_a_cursor_that_was_not_given_for_the_chat_is_refused(sockets: Bench) -> None:
    full, session, chat = await chat_with(sockets, 4)
    small = await window(sockets, chat, 1)
    await full.ask("createChat", session, chat="ahp-chat:/other")
    await full.ask("subscribe", "ahp-chat:/other")
    await run_turn(full, "ahp-chat:/other", "o1")
    for uri, cursor in ((chat, "nonsense"), (chat, ""), (chat, "WzFd"), ("ahp-chat:/other", small.cursor)):
        assert (await full.refused("fetchTurns", uri, cursor=cursor))["code"] == -32602
    assert (await full.refused("fetchTurns", "ahp-chat:/none"))["code"] == -32008


@requirement("gen:turns:eager-load")
@pytest.mark.parametrize("target", ["t0", "t2", "t6", "t8"])
async def test_a_truncation_outside_a_window_ends_equal_everywhere(sockets: Bench, target: str) -> None:
    full, _, chat = await chat_with(sockets, 9)
    small, none = await window(sockets, chat, 2, "small"), await window(sockets, chat, 0, "none")
    old = await sockets.client("ahp-root://", client_id="old")
    await old.ask("subscribe", chat)
    await full.accepted(chat, {"type": "chat/truncated", "turnId": target})
    await run_turn(full, chat, "after")
    ids = [turn["id"] for turn in (await sockets.state(full, chat))["turns"]]
    for replica in (small, none):
        await replica.client.action(lambda said: said["action"].get("turnId") == "after")
        await replica.client.ask("ping")
        while replica.cursor:
            await replica.client.ask("fetchTurns", chat, cursor=replica.cursor)
        assert replica.ids == ids
        assert [wrong_action("1.0.0", said["action"]) for said in replica.client.actions(chat)] == (
            [[]] * len(replica.client.actions(chat))
        )
    assert not any(said["action"]["type"] == "chat/turnsLoaded" for said in old.actions() + full.actions())


@requirement("gen:turns:eager-load")
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_truncation_that_a_window_missed_is_made_up_for_by_a_snapshot(sockets: Bench, restarted: bool) -> None:
    full, session, chat = await chat_with(sockets, 5)
    small = await window(sockets, chat, 1)
    seen = (await sockets.state(full, chat), small.snapshot["fromSeq"])[1]
    await small.client.aclose()
    await full.accepted(chat, {"type": "chat/truncated", "turnId": "t1"})
    if restarted:
        await sockets.restart()
    back = await sockets.connect("small")
    found = await back.ask("reconnect", clientId="small", lastSeenServerSeq=seen, subscriptions=[session, chat])
    assert found["type"] == "snapshot"
    state = next(one["state"] for one in found["snapshots"] if one["resource"] == chat)
    assert [turn["id"] for turn in state["turns"]] == ["t0", "t1"]
    assert "turnsNextCursor" not in state


@requirement("gen:turns:eager-load")
async def test_a_client_from_before_a_restart_gets_what_it_may_lack(sockets: Bench) -> None:
    _, session, chat = await chat_with(sockets, 5)
    small = await window(sockets, chat, 1)
    await sockets.restart()
    back = await sockets.connect("small")
    seen = small.snapshot["fromSeq"]
    found = await back.ask("reconnect", clientId="small", lastSeenServerSeq=seen, subscriptions=[session, chat])
    assert found["type"] == "replay"
    full = await sockets.client("ahp-root://", client_id="full", offer=["1.0.0"])
    await full.ask("subscribe", chat)
    await full.accepted(chat, {"type": "chat/truncated", "turnId": "t1"})
    await back.action("chat/truncated")
    again = Replica(back, chat, {**small.snapshot, "state": small.state})
    assert again.ids == ["t0", "t1"]
    assert again.cursor is None


@requirement("gen:turns:legacy-fetch")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0"])
async def test_older_clients_ask_by_turn_and_get_no_action(sockets: Bench, version: str) -> None:
    _, _, chat = await chat_with(sockets, 5)
    old = await sockets.client("ahp-root://", client_id="old", offer=[version])
    state = (await old.ask("subscribe", chat, view={"turns": 1}))["snapshot"]["state"]
    assert len(state["turns"]) == 5, "it does not know windows"
    unknown: Json = {"view": {"turns": "x"}, "delivery": {"maxLatencyMs": -5}}
    assert len((await old.ask("subscribe", chat, **unknown))["snapshot"]["state"]["turns"]) == 5
    assert len((await old.ask("listSessions", limit="x", cursor=1))["items"]) == 1
    page = await old.ask("fetchTurns", chat, before="t3", limit=2)
    assert [turn["id"] for turn in page["turns"]] == ["t1", "t2"]
    assert page["hasMore"] is True
    assert (await old.ask("fetchTurns", chat, before="t1", limit=2))["hasMore"] is False
    assert old.actions() == []


@requirement("gen:view:client-tolerates-more", "gen:turns:walk")
async def test_our_client_opens_the_end_of_a_chat_and_looks_back(sockets: Bench) -> None:
    _, session, _ = await chat_with(sockets, 60)
    async with connect(sockets.url) as client:
        held = await (await client.session(session)).chat(turns=3)
        assert [turn["id"] for turn in held.state["turns"]] == ["t57", "t58", "t59"]
        assert await held.ask("more") == "You said: more"
        assert len(held.state["turns"]) == 4
        seen = [turn["id"] async for turn in held.history(page=20)]
        assert seen[1:] == [f"t{number}" for number in reversed(range(60))]
        assert "turnsNextCursor" not in held.confirmed
    async with connect(sockets.url) as client:
        held = await (await client.session(session)).chat(turns=1000)
        assert len(held.state["turns"]) == 61
