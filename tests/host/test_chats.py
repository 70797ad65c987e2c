"""Chats beside others: forks, side chats, moving, order, flags of one chat. On a host behind real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import agent
from ahpkit.client import connect
from ahpkit.client.errors import ChannelGone
from ahpkit.host.agent import Turn
from ahpkit.testing.fake_model import FakeModel
from ahpkit.wire.errors import LocalProtocolError
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.scripted_acp import Scripted
from support.waiting import until

STARTED = "2026-11-15T12:00:00.000Z"
NEW = "ahp-chat:/new"


def start(text: str, turn_id: str = "t1") -> Json:
    return say(text, turn_id, startedAt=STARTED)


def source(kind: str, chat: str, turn_id: str = "t1", **more: Any) -> Json:
    return {"kind": kind, "chat": chat, "turnId": turn_id, **more}


async def run_turn(client: RawClient, chat: str, text: str, turn_id: str) -> None:
    await client.accepted(chat, start(text, turn_id))
    await client.action(
        lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == turn_id
    )


async def opened(bench: Bench, *texts: str, client_id: str = "new") -> tuple[RawClient, str, str]:
    """A client of 1.0, its session and the chat with a turn for each text: `t1`, `t2` …"""
    client = await bench.client("ahp-root://", client_id=client_id, offer=["1.0.0"])
    session, chat = await bench.session(client)
    for number, text in enumerate(texts, 1):
        await run_turn(client, chat, text, f"t{number}")
    return client, session, chat


async def chats_of(bench: Bench, client: RawClient, session: str) -> list[str]:
    return [entry["resource"] for entry in (await bench.state(client, session))["chats"]]


# -- forks and side chats ------------------------------------------------------------------------------------------


@requirement("gen:chat:source-kind")
@pytest.mark.parametrize("version", ["0.7.0", "0.9.0", "1.0.0"])
async def test_a_source_names_a_known_kind(sockets: Bench, version: str) -> None:
    _, session, chat = await opened(sockets, "one")
    client = await sockets.client("ahp-root://", client_id="other", offer=[version])
    for wrong in ({"chat": chat, "turnId": "t1"}, source("mirror", chat), source("", chat)):
        assert (await client.refused("createChat", session, chat=NEW, source=wrong))["code"] == -32602
    assert await chats_of(sockets, client, session) == [chat]
    await client.ask("createChat", session, chat=NEW, source=source("fork", chat))


@requirement("gen:chat:fork-copies", "gen:chat:origin-constant", "core:chat:forks")
async def test_a_fork_copies_turns_and_directories_and_leaves_its_source(sockets: Bench, tmp_path: Path) -> None:
    sockets.agent.directories = {}
    await sockets.restart()
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    here, there = tmp_path.as_uri(), (tmp_path / "sub").as_uri()
    (tmp_path / "sub").mkdir()
    session, chat = await sockets.session(client, workingDirectories=[here, there])
    await client.accepted(chat, {"type": "chat/workingDirectorySet", "directory": there})
    for turn_id in ("t1", "t2", "t3"):
        await run_turn(client, chat, turn_id, turn_id)
    before = await sockets.state(client, chat)
    await client.ask("createChat", session, chat=NEW, source=source("fork", chat, "t2"))
    fork = await sockets.state(client, NEW)
    assert [turn["id"] for turn in fork["turns"]] == ["t1", "t2"]
    assert fork["workingDirectories"] == [there]
    assert fork["origin"] == source("fork", chat, "t2")
    after = await sockets.state(client, chat)
    assert {**after, "title": ""} == {**before, "title": ""}, "only the only chat is called like its session"
    await client.accepted(chat, {"type": "chat/truncated"})
    assert (await sockets.state(client, NEW))["origin"] == source("fork", chat, "t2"), "also when that is gone"
    await run_turn(client, NEW, "go on", "f1")
    assert [turn["message"]["text"] for turn in sockets.agent.turns[-1].chat.history] == ["t1", "t2", "go on"]


@requirement("gen:chat:fork-active-turn", "gen:chat:side-chat-active")
async def test_from_a_turn_that_runs_there_is_no_fork_but_a_side_chat(sockets: Bench) -> None:
    said: list[str] = []

    async def script(turn: Turn) -> None:
        if turn.prompt == "stream":
            turn.text("before ")
            await turn.wait_steering()
            turn.text("after")
        else:
            said.append("".join(str(part.get("content")) for part in turn.chat.history[-1]["responseParts"]))

    sockets.agent.script = script
    client, session, chat = await opened(sockets)
    await client.accepted(chat, start("stream"))
    await client.action("chat/delta")
    refused = await client.refused("createChat", session, chat=NEW, source=source("fork", chat))
    assert refused["code"] == -32602
    await client.ask("createChat", session, chat=NEW, source=source("sideChat", chat))
    assert (await sockets.state(client, NEW))["turns"] == []
    steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": start("x")["message"]}
    await client.accepted(chat, steer)
    await client.action("chat/turnComplete")
    await client.ask("subscribe", NEW)
    await run_turn(client, NEW, "what?", "s1")
    assert said == ["before "], "what was said later does not reach it"


@requirement("gen:chat:side-chat-selection", "gen:chat:side-chat-empty")
async def test_a_side_chat_keeps_the_selected_words(sockets: Bench) -> None:
    client, session, chat = await opened(sockets, "one", "two", "three")
    words = {"text": " You  said:\n one ", "responsePartId": "p"}
    for empty in ({"text": ""}, {}):
        wrong = source("sideChat", chat, "t2", selection=empty)
        assert (await client.refused("createChat", session, chat=NEW, source=wrong))["code"] == -32602
    asked = source("sideChat", chat, "t2", selection=words)
    await client.ask("createChat", session, chat=NEW, source=asked)
    state = (await client.ask("subscribe", NEW))["snapshot"]["state"]
    assert state["turns"] == []
    assert state["origin"] == asked
    await run_turn(client, NEW, "why?", "s1")
    turn = sockets.agent.turns[-1]
    assert [past["message"]["text"] for past in turn.chat.background] == ["one", "two"]
    assert "> one" in turn.prompt.replace(">  one", "> one")
    assert turn.prompt.endswith("why?")
    assert (await sockets.state(client, NEW))["turns"][0]["message"]["text"] == "why?"
    await run_turn(client, NEW, "and?", "s2")
    assert sockets.agent.turns[-1].prompt == "and?"
    await sockets.restart()
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await client.ask("subscribe", NEW)
    await run_turn(client, NEW, "still?", "s3")
    known = [past["message"]["text"] for past in sockets.agent.turns[-1].chat.history]
    assert known == ["one", "two", "why?", "and?", "still?"]


@pytest.mark.parametrize(("kind", "first"), [(None, "New chat"), ("sideChat", "Side chat"), ("fork", "one")])
async def test_a_further_chat_is_named_after_its_first_message(sockets: Bench, kind: str | None, first: str) -> None:
    """All side chats had one title, and a fork of the first chat was a `New session`."""
    client, session, chat = await opened(sockets, "one", "two")
    begins = {} if kind is None else {"source": source(kind, chat)}

    async def titles() -> list[str]:
        listed = (await sockets.state(client, session))["chats"]
        summary = next(one for one in (await client.ask("listSessions"))["items"] if one["resource"] == session)
        assert [one["title"] for one in summary["chats"]] == [one["title"] for one in listed]
        assert [(await sockets.state(client, one["resource"]))["title"] for one in listed] == [
            one["title"] for one in listed
        ]
        return [one["title"] for one in listed]

    for number in (1, 2):
        await client.ask("createChat", session, chat=f"{NEW}{number}", **begins)
    assert await titles() == ["one", first, first]
    await run_turn(client, f"{NEW}1", "/compact", "a1")
    assert await titles() == ["one", first, first], "a slash command is no title"
    await run_turn(client, f"{NEW}1", "Why so?\nPlease tell.", "a2")
    await run_turn(client, f"{NEW}1", "Really?", "a3")
    await run_turn(client, f"{NEW}2", "And then?", "b1")
    assert await titles() == ["one", "Why so?", "And then?"]
    moved = await client.ask("moveChat", f"{NEW}1", destination={"kind": "newSession"})
    assert (await sockets.state(client, moved["session"]))["title"] == "Why so?"
    other, _ = await sockets.session(client)
    await client.ask("moveChat", f"{NEW}2", destination={"kind": "session", "session": other})
    assert [one["title"] for one in (await sockets.state(client, other))["chats"]] == ["And then?", "New session"]


@pytest.mark.parametrize("kind", [None, "sideChat"])
async def test_a_chat_that_moves_without_a_name_gets_one_in_its_own_session(sockets: Bench, kind: str | None) -> None:
    client, session, chat = await opened(sockets, "one")
    begins = {} if kind is None else {"source": source(kind, chat)}
    await client.ask("createChat", session, chat=NEW, **begins)
    moved = (await client.ask("moveChat", NEW, destination={"kind": "newSession"}))["session"]
    assert (await sockets.state(client, moved))["title"] == "New session"
    await client.ask("subscribe", NEW)
    await run_turn(client, NEW, "Why so?", "a1")
    titles = [(await sockets.state(client, uri))["title"] for uri in (moved, NEW)]
    assert titles == ["Why so?", "Why so?"]


@requirement("gen:chat:side-chat-empty")
async def test_every_kind_of_agent_knows_what_a_side_chat_is_beside(sockets: Bench, tmp_path: Path) -> None:
    histories: list[list[str]] = []

    @agent(name="function")
    async def function(turn: Turn) -> str:
        histories.append([past["message"]["text"] for past in turn.chat.history])
        return "done"

    acp = Scripted(tmp_path)
    async with FakeModel() as model:
        endpoint = OpenAiAgent(OpenAiConfig(name="endpoint", base_url=model.url))
        sockets.agents = [function, endpoint, acp.agent(config={"name": "acp"})]
        await sockets.restart()
        async with connect(sockets.url) as client:
            for provider in ("function", "endpoint", "acp"):
                session = await client.create_session(provider=provider)
                chat = await session.chat()
                await chat.ask("secret word")
                turn_id = chat.state["turns"][-1]["id"]
                side = await session.create_chat(beside=(chat.uri, turn_id), selection="secret")
                assert side.state["turns"] == []
                await side.ask("which?")
                assert len(side.state["turns"]) == 1
                assert all(part["kind"] != "systemNotification" for part in side.state["turns"][0]["responseParts"])
        assert histories[-1] == ["secret word"]
        assert "secret word" in str(model.requests[-1].body["messages"][0])
        assert "secret word" in str(acp.received("session/prompt")[-1]["prompt"][0])


@requirement("gen:chat:source-gated", "gen:chat:gate-client")
async def test_what_an_agent_does_not_offer_is_refused(sockets: Bench) -> None:
    @agent(name="plain")
    async def plain(turn: Turn) -> str:
        return "done"

    @agent(name="forks")
    async def forks(turn: Turn) -> str:
        return "done"

    plain.further_chats, forks.further_chats = None, {"fork": True}
    sockets.agents = [plain, forks]
    await sockets.restart()
    raw = await sockets.client("ahp-root://", client_id="raw", offer=["1.0.0"])
    async with connect(sockets.url) as client:
        for provider, kinds in (("plain", []), ("forks", ["none", "fork"])):
            session = await client.create_session(provider=provider)
            chat = await session.chat()
            await chat.ask("hi")
            about = (chat.uri, chat.state["turns"][-1]["id"])
            for kind in ("none", "fork", "sideChat"):
                given: Any = {"none": {}, "fork": {"fork": about}, "sideChat": {"beside": about}}[kind]
                asked = {} if kind == "none" else {"source": source(kind, *about)}
                if kind in kinds:
                    await session.create_chat(**given)
                    await raw.ask("createChat", session.uri, chat=f"ahp-chat:/{provider}-{kind}", **asked)
                else:
                    count = len(session.chats)
                    with pytest.raises(LocalProtocolError):
                        await session.create_chat(**given)
                    refused = await raw.refused("createChat", session.uri, chat=NEW, **asked)
                    assert refused["code"] == -32602
                    assert len(session.chats) == count


@requirement("gen:chat:source-gated")
async def test_a_source_is_another_chat_of_the_same_session(sockets: Bench) -> None:
    client, session, chat = await opened(sockets, "one")
    _, elsewhere = await sockets.session(client)
    await run_turn(client, elsewhere, "one", "e1")
    for kind in ("fork", "sideChat"):
        for wrong, code in (
            (source(kind, elsewhere, "e1"), -32602),
            (source(kind, NEW), -32602),
            (source(kind, "ahp-chat:/none"), -32008),
            (source(kind, chat, "t9"), -32008),
        ):
            assert (await client.refused("createChat", session, chat=NEW, source=wrong))["code"] == code
    assert await chats_of(sockets, client, session) == [chat]


@requirement("gen:project-state:side-chat")
async def test_older_clients_see_a_side_chat_as_a_fork(sockets: Bench) -> None:
    client, session, chat = await opened(sockets, "one")
    versions = ("0.4.0", "0.6.0", "0.7.0", "0.9.0")
    readers = [await sockets.client("ahp-root://", session, client_id=one, offer=[one]) for one in versions]
    asked = source("sideChat", chat, selection={"text": "one"})
    await client.ask("createChat", session, chat=NEW, source=asked)
    fork = source("fork", chat)
    for one, origin in zip(readers, (fork, fork, asked, asked), strict=True):
        assert (await one.action("session/chatAdded"))["action"]["summary"]["origin"] == origin
        assert (await sockets.state(one, NEW))["origin"] == origin


@requirement("gen:chat:read-only", "gen:tool:subagent-edge")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_a_chat_of_a_sub_agent_takes_answers_and_no_messages(sockets: Bench, version: str) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("delegate")
        call.running(tool_input="{}")
        helper = await turn.subchat("Helper", "help", tool_call=call)
        call.content([{"type": "subagent", "resource": helper.uri, "title": "Helper", "agentName": "helper"}])
        async with helper as helping:
            answer = await helping.ask([{"id": "q", "kind": "text", "message": "?", "required": True}])
            helping.text(answer.response)
        shown: Any = {"type": "subagent", "resource": helper.uri, "title": "Helper", "agentName": "helper"}
        call.complete(content=[shown])

    sockets.agent.script = script
    client = await sockets.client("ahp-root://", client_id="any", offer=[version])
    session, chat = await sockets.session(client)
    await client.accepted(chat, start("go"))
    added = (await client.action(lambda said: said["action"]["type"] == "session/chatAdded"))["action"]["summary"]
    helper = added["resource"]
    begun = (await client.action("chat/toolCallStart"))["action"]
    assert added["origin"] == {"kind": "tool", "chat": chat, "toolCallId": begun["toolCallId"]}
    await client.ask("subscribe", helper)
    queued = {"type": "chat/pendingMessageSet", "id": "q", "message": start("x")["message"]}
    for wrong in (start("x", "x"), {**queued, "kind": "queued"}, {**queued, "kind": "steering"}):
        assert "read-only" in await client.rejected(helper, wrong)
    state = await sockets.state(client, helper)
    request = state["inputRequests"][0] if version == "0.4.0" else state["activeTurn"]["responseParts"][0]["request"]
    answers = {"q": {"state": "submitted", "value": {"kind": "text", "value": "yes"}}}
    done = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept", "answers": answers}
    await client.accepted(helper, done)
    await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
    call = (await sockets.state(client, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert call["content"][0]["resource"] == helper
    assert session


# -- read and archived ---------------------------------------------------------------------------------------------


@requirement("gen:chat:is-read-mirrored")
async def test_flags_of_one_chat_are_its_own(sockets: Bench) -> None:
    client, session, chat = await opened(sockets, "one")
    await client.ask("createChat", session, chat=NEW)
    await client.ask("subscribe", NEW)
    old = await sockets.client("ahp-root://", client_id="old")
    await old.ask("subscribe", NEW)
    before = await sockets.state(client, session)
    for kind, key, bit in (("isReadChanged", "isRead", 32), ("isArchivedChanged", "isArchived", 64)):
        await client.accepted(NEW, {"type": f"chat/{kind}", key: True})
        after = await sockets.state(client, session)
        entries = {entry["resource"]: entry for entry in after["chats"]}
        assert entries[NEW]["status"] & bit
        assert not entries[chat]["status"] & bit
        assert after["status"] & bit == before["status"] & bit
        await client.wait(lambda said, bit=bit: _told(said, NEW) & bit > 0)
        listed = (await client.ask("listSessions"))["items"][0]
        assert [one["resource"] for one in listed["chats"]] == [chat, NEW]
        assert listed["chats"][1]["status"] & bit
        assert "has no such action" in await old.rejected(NEW, {"type": f"chat/{kind}", key: False})
        await client.accepted(NEW, {"type": f"chat/{kind}", key: False})
        assert not (await sockets.state(client, NEW))["status"] & bit
    async with connect(sockets.url) as sdk:
        held = await (await sdk.session(session)).chat(NEW)
        await held.mark_read().accepted()
        await held.archive().accepted()
        assert held.confirmed["status"] & 96 == 96


def _told(said: Json, chat: str) -> int:
    """The status of a chat in a change of a summary."""
    told = said.get("method") == "root/sessionSummaryChanged"
    changes: Json = said.get("params", {}).get("changes", {}) if told else {}
    return next((one["status"] for one in changes.get("chats", ()) if one["resource"] == chat), 0)


# -- moving --------------------------------------------------------------------------------------------------------


def into(session: str, after: str | None = None) -> Json:
    there = {"kind": "session", "session": session}
    return there if after is None else {**there, "after": after}


async def with_chats(bench: Bench, *names: str) -> tuple[RawClient, str, str, list[str]]:
    client, session, chat = await opened(bench, "one")
    uris = [f"ahp-chat:/{name}" for name in names]
    for uri in uris:
        await client.ask("createChat", session, chat=uri)
        await client.ask("subscribe", uri)
    return client, session, chat, uris


@requirement("gen:chat:movable-default")
async def test_every_chat_but_the_default_one_can_be_moved(sockets: Bench) -> None:
    client, session, chat, [uri] = await with_chats(sockets, "a")
    entries = {entry["resource"]: entry for entry in (await sockets.state(client, session))["chats"]}
    assert entries[uri]["movable"] is True
    assert not entries[chat].get("movable")
    moved = (await client.ask("moveChat", uri, destination={"kind": "newSession"}))["session"]
    changed = await client.action(lambda said: said["action"]["type"] == "chat/movableChanged")
    assert (changed["channel"], changed["action"]["movable"]) == (uri, False)
    there = await sockets.state(client, moved)
    assert there["defaultChat"] == uri
    assert there["chats"][0]["movable"] is False
    await client.ask("createChat", session, chat=NEW)
    await client.ask("disposeChat", chat)
    freed = await client.action(lambda said: said["channel"] == chat and "movable" in said["action"])
    assert freed["action"] == {"type": "chat/movableChanged", "movable": True}
    mirrored = {"type": "session/chatUpdated", "chat": chat, "changes": {"movable": True}}
    assert (await client.action(lambda said: said["action"] == mirrored))["channel"] == session


async def test_the_last_chat_of_a_session_stays_in_it(sockets: Bench) -> None:
    """As one cannot be disposed: a session without chats would be of no use to anybody."""
    client, session, chat, [a] = await with_chats(sockets, "a")
    await client.ask("disposeChat", chat)
    other, _ = await sockets.session(client)
    for destination in (into(other), {"kind": "newSession"}):
        refused = await client.refused("moveChat", a, destination=destination)
        assert (refused["code"], "a session keeps one" in refused["message"]) == (-32602, True)
    assert await chats_of(sockets, client, session) == [a]
    assert await client.ask("moveChat", a, destination=into(session)) == {"session": session}
    await client.ask("createChat", session, chat=NEW)
    assert await client.ask("moveChat", a, destination=into(other)) == {"session": other}


@requirement("gen:chat:move-reorder", "gen:chat:reordered-permutation")
async def test_a_chat_gets_another_place_in_its_session(sockets: Bench) -> None:
    client, session, chat, [a, b, c] = await with_chats(sockets, "a", "b", "c")
    old = await sockets.client("ahp-root://", client_id="old")
    await old.ask("subscribe", session)
    for uri, after, order in (
        (c, chat, [chat, c, a, b]),
        (b, None, [b, chat, c, a]),
        (b, a, [chat, c, a, b]),
    ):
        count = len([one for one in client.actions(session) if "chatsReordered" in one["action"]["type"]])
        assert await client.ask("moveChat", uri, destination=into(session, after)) == {"session": session}
        assert await chats_of(sockets, client, session) == order
        said = [one["action"]["chats"] for one in client.actions(session) if "chatsReordered" in one["action"]["type"]]
        assert said[count:] == [order]
    assert old.actions(session) == []
    await client.wait(lambda said: _order(said) == [chat, c, a, b])
    await sockets.restart()
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    assert await chats_of(sockets, client, session) == [chat, c, a, b]
    assert (await sockets.state(client, session))["defaultChat"] == chat


def _order(said: Json) -> list[str]:
    told = said.get("method") == "root/sessionSummaryChanged"
    changes: Json = said.get("params", {}).get("changes", {}) if told else {}
    return [one["resource"] for one in changes.get("chats", ())]


@requirement("gen:chat:move-session", "gen:chat:origin-constant", "gen:chat:move-legacy")
async def test_a_chat_moves_to_another_session_as_it_is(sockets: Bench) -> None:
    client, session, chat, [a] = await with_chats(sockets, "a")
    await client.ask("createChat", session, chat=NEW, source=source("fork", chat))
    await client.ask("subscribe", NEW)
    target, first = await sockets.session(client)
    watchers = {
        version: await sockets.client("ahp-root://", client_id=version, offer=[version])
        for version in ("0.4.0", "0.7.0", "0.9.0")
    }
    for watcher in watchers.values():
        for uri in (session, target, NEW):
            await watcher.ask("subscribe", uri)
        refused = await watcher.refused("moveChat", NEW, destination=into(target))
        assert refused["code"] == -32601
    before = await sockets.state(client, NEW)
    assert await client.ask("moveChat", NEW, destination=into(target, first)) == {"session": target}
    assert await chats_of(sockets, client, session) == [chat, a]
    assert await chats_of(sockets, client, target) == [first, NEW]
    assert await sockets.state(client, NEW) == before
    for watcher in watchers.values():
        gone = await watcher.action(lambda said: said["action"]["type"] == "session/chatRemoved")
        come = await watcher.action(lambda said: said["action"]["type"] == "session/chatAdded")
        assert (gone["channel"], gone["action"]["chat"]) == (session, NEW)
        assert (come["channel"], come["action"]["summary"]["resource"]) == (target, NEW)
        assert not any(said["action"]["type"] == "session/chatsReordered" for said in watcher.actions())
    await run_turn(client, NEW, "go on", "m1")
    assert sockets.agent.turns[-1].chat.session_uri == target
    assert len(sockets.agent.turns[-1].chat.history) == 2
    await client.ask("disposeSession", session)
    await run_turn(client, NEW, "alone", "m2")
    await sockets.restart()
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await client.ask("subscribe", NEW)
    await run_turn(client, NEW, "again", "m3")
    assert (await sockets.state(client, NEW))["origin"] == source("fork", chat)


@requirement("gen:chat:move-new-session")
async def test_a_chat_gets_a_session_of_its_own(sockets: Bench) -> None:
    client, session, chat, [a] = await with_chats(sockets, "a")
    await run_turn(client, a, "hello", "a1")
    moved = (await client.ask("moveChat", a, destination={"kind": "newSession"}))["session"]
    assert moved != session
    state = (await client.ask("subscribe", moved))["snapshot"]["state"]
    assert (state["defaultChat"], [one["resource"] for one in state["chats"]]) == (a, [a])
    assert state["provider"] == (await sockets.state(client, session))["provider"]
    if state["lifecycle"] == "creating":
        await client.action(lambda said: said["channel"] == moved and said["action"]["type"] == "session/ready")
    assert await chats_of(sockets, client, session) == [chat]
    await client.wait(
        lambda said: said.get("method") == "root/sessionAdded" and said["params"]["summary"]["resource"] == moved
    )
    await run_turn(client, a, "again", "a2")
    assert [turn["id"] for turn in (await sockets.state(client, a))["turns"]] == ["a1", "a2"]


@requirement("gen:chat:move-descendants")
async def test_chats_of_sub_agents_move_along(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "delegate":
            call = turn.tool_call("delegate")
            call.running(tool_input="{}")
            async with await turn.subchat("Helper", "help", tool_call=call) as helping:
                async with await helping.subchat("Helper's helper", "help too") as deeper:
                    deeper.text("done")
            call.complete()

    sockets.agent.script = script
    client, session, chat, [a, b] = await with_chats(sockets, "a", "b")
    await run_turn(client, a, "delegate", "a1")
    workers = [uri for uri in await chats_of(sockets, client, session) if uri not in (chat, a, b)]
    assert len(workers) == 2
    target, first = await sockets.session(client)
    await client.ask("moveChat", a, destination=into(target, first))
    assert await chats_of(sockets, client, session) == [chat, b]
    assert await chats_of(sockets, client, target) == [first, a, *workers]
    assert (await sockets.state(client, workers[0]))["turns"]


@requirement("gen:chat:move-refused")
async def test_a_move_that_cannot_be_changes_nothing(sockets: Bench) -> None:
    async def waits(turn: Turn) -> None:
        await turn.wait_steering()

    @agent(name="other")
    async def other(turn: Turn) -> str:
        return "done"

    sockets.agents = [other]
    await sockets.restart()
    client, session, chat, [a, b] = await with_chats(sockets, "a", "b")
    target, first = await sockets.session(client)
    foreign, _ = await sockets.session(client, provider="other")
    sockets.agent.script = waits
    await client.accepted(b, start("wait", "b1"))
    uris = (session, target, foreign, chat, a, b)
    before = [await sockets.state(client, uri) for uri in uris]
    for uri, destination, code in (
        ("ahp-chat:/none", into(target), -32008),
        (chat, into(target), -32602),
        (chat, {"kind": "newSession"}, -32602),
        (a, into("ahp-session:/none"), -32008),
        (a, into(target, a), -32602),
        (a, into(session, a), -32602),
        (a, into(target, b), -32602),
        (a, into(session, first), -32602),
        (a, into(target, "ahp-chat:/none"), -32602),
        (a, into(foreign), -32602),
        (a, {"kind": "elsewhere"}, -32602),
        (b, into(target), -32004),
        (b, {"kind": "newSession"}, -32004),
    ):
        assert (await client.refused("moveChat", uri, destination=destination))["code"] == code, destination
    assert [await sockets.state(client, uri) for uri in uris] == before
    assert len((await client.ask("listSessions"))["items"]) == 3


@requirement("gen:chat:move-session")
async def test_every_kind_of_agent_goes_on_after_a_move(sockets: Bench, tmp_path: Path) -> None:
    @agent(name="function")
    async def function(turn: Turn) -> str:
        return f"after {len(turn.chat.history)}"

    acp = Scripted(tmp_path)
    async with FakeModel() as model:
        endpoint = OpenAiAgent(OpenAiConfig(name="endpoint", base_url=model.url))
        sockets.agents = [function, endpoint, acp.agent(config={"name": "acp"})]
        await sockets.restart()
        async with connect(sockets.url) as client:
            for provider in ("function", "endpoint", "acp"):
                here = await client.create_session(provider=provider)
                there = await client.create_session(provider=provider)
                chat = await here.create_chat()
                await chat.ask("one")
                assert await chat.move(there.uri) == there.uri
                assert await chat.ask("two")
                assert [turn["message"]["text"] for turn in chat.state["turns"]] == ["one", "two"]


async def test_our_client_keeps_a_chat_that_moved_and_loses_one_that_is_gone(sockets: Bench) -> None:
    async with connect(sockets.url) as client:
        session, target = await client.create_session(), await client.create_session()
        moved, gone = await session.create_chat(), await session.create_chat()
        raw = await sockets.client("ahp-root://", client_id="raw", offer=["1.0.0"])
        await raw.ask("moveChat", moved.uri, destination=into(target.uri))
        await until(lambda: [chat["resource"] for chat in target.chats][:1] == [moved.uri])
        assert await moved.ask("hello") == "You said: hello"
        await raw.ask("disposeChat", gone.uri)
        with pytest.raises(ChannelGone):
            async with asyncio.timeout(30):
                while True:
                    await gone.ask("anybody?")
