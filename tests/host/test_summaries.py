"""What the list of sessions says of a session and its chats, and when it says so. On a host behind real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.session.actions import session_chat_updated, session_customizations_changed
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import until

STARTED = "2026-11-15T12:00:00.000Z"
LISTED = ("resource", "title", "origin", "interactivity", "status", "changes")


async def delegating(turn: Turn) -> None:
    if turn.prompt == "delegate":
        call = turn.tool_call("delegate")
        call.running(tool_input="{}")
        async with await turn.subchat("Helper", "help", tool_call=call) as helping:
            helping.text("done")
        call.complete()


def changes_told(client: RawClient) -> list[Json]:
    told = (said for said in client.received if said.get("method") == "root/sessionSummaryChanged")
    return [said["params"]["changes"] for said in told]


async def seen(client: RawClient, key: str, check: Callable[[Any], object]) -> None:
    """Wait until a change of a summary says so."""
    await client.wait(
        lambda said: (
            said.get("method") == "root/sessionSummaryChanged"
            and key in said["params"]["changes"]
            and bool(check(said["params"]["changes"][key]))
        )
    )


@requirement("gen:summary:chats", "gen:summary:chats-in-step", "gen:summary:identity-omitted")
async def test_a_summary_lists_the_chats_as_the_session_does_and_keeps_in_step(sockets: Bench) -> None:
    sockets.agent.script = delegating
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    session, chat = await sockets.session(client)
    await client.accepted(chat, say("delegate", "t1", startedAt=STARTED))
    await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
    fork = {"kind": "fork", "chat": chat, "turnId": "t1"}
    await client.ask("createChat", session, chat="ahp-chat:/fork", source=fork)
    await client.ask("subscribe", "ahp-chat:/fork")
    await seen(client, "chats", lambda chats: len(chats) == 3)
    count = {"additions": 3, "deletions": 1, "files": 2}
    update: Any = {"title": "Renamed", "changes": count}
    sockets.host.services.dispatch(session, session_chat_updated(chat="ahp-chat:/fork", changes=update))
    await seen(client, "chats", lambda chats: chats[-1].get("changes") == count and chats[-1]["title"] == "Renamed")
    await client.accepted("ahp-chat:/fork", {"type": "chat/isReadChanged", "isRead": True})
    await seen(client, "chats", lambda chats: chats[-1]["status"] & 32)
    await client.ask("moveChat", "ahp-chat:/fork", destination={"kind": "session", "session": session})
    await seen(client, "chats", lambda chats: chats[0]["resource"] == "ahp-chat:/fork")
    catalogue = (await sockets.state(client, session))["chats"]
    listed = (await client.ask("listSessions"))["items"][0]
    assert listed["chats"] == [{key: one[key] for key in LISTED if key in one} for one in catalogue]
    helper = next(one for one in listed["chats"] if one.get("interactivity") == "read-only")
    assert helper["origin"]["kind"] == "tool"
    assert listed["defaultChat"] == chat
    await client.ask("disposeChat", chat)
    await client.wait(lambda said: "defaultChat" not in entry_of(client, session))
    assert not any({"resource", "provider", "createdAt"} & changes.keys() for changes in changes_told(client))


@requirement("gen:summary:identity-omitted")
async def test_our_client_does_not_let_a_session_become_another_one(sockets: Bench) -> None:
    async with connect(sockets.url) as client, client.session_list() as sessions:
        session = await client.create_session()
        await until(lambda: sessions.items)
        before = sessions.items[0]
        changes = {"resource": "ahp-session:/x", "provider": "x", "createdAt": "x", "title": "Another title"}
        params = {"channel": "ahp-root://", "session": session.uri, "changes": changes}
        sockets.host.clients.to_root("root/sessionSummaryChanged", params)
        await until(lambda: sessions.items[0]["title"] == "Another title")
        after = sessions.items[0]
        assert [after[key] for key in ("resource", "provider", "createdAt")] == [
            before[key] for key in ("resource", "provider", "createdAt")
        ]


def empties(value: Any) -> list[Any]:
    """Everything in a message that stands for "nothing" in place of being absent."""
    found: list[Any] = []
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            if key in ("activity", "agent", "defaultChat", "workingDirectory") and inner in ("", None, {"uri": ""}):
                found.append((key, inner))
            found += empties(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            found += empties(inner)
    return found


@requirement("gen:activity:cleared-at-end")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.2", "0.7.0", "0.9.0", "1.0.0"])
async def test_what_is_cleared_is_absent_everywhere(sockets: Bench, version: str) -> None:
    """A partial update cannot say that a field is gone: then the whole entry of the list is told again."""
    going = asyncio.Event()

    async def busy(turn: Turn) -> None:
        turn.activity("Reading")
        await going.wait()

    sockets.agent.script = busy
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    session, chat = await sockets.session(client)
    role: Any = {"type": "agent", "id": "a", "uri": "file:///a.md", "name": "critic"}
    folder: Any = {
        "type": "directory",
        "id": "d",
        "uri": "file:///d",
        "name": "d",
        "enabled": True,
        "contents": "agent",
    }
    folder |= {"writable": False, "children": [role]}
    sockets.host.services.dispatch(session, session_customizations_changed(customizations=[folder]))
    async with connect(sockets.url) as sdk, sdk.session_list() as listed:
        if version == "0.4.0":
            await client.accepted(session, {"type": "session/agentChanged", "agent": {"uri": "file:///a.md"}})
            await seen(client, "agent", lambda agent: agent == {"uri": "file:///a.md"})
        await client.accepted(chat, say("go", "t1", startedAt=STARTED))
        await seen(client, "activity", lambda activity: activity == "Reading")
        await until(lambda: [one.get("activity") for one in listed.items] == ["Reading"])
        going.set()
        await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
        await client.wait(lambda said: len(whole(client)) > 1 and "activity" not in entry_of(client, session))
        if version == "0.4.0":
            await client.accepted(session, {"type": "session/agentChanged"})
            await client.wait(lambda said: "agent" not in entry_of(client, session))
        await until(lambda: all("activity" not in one for one in listed.items))
    [now] = (await client.ask("listSessions"))["items"]
    assert entry_of(client, session) == now
    for uri in (session, chat, "ahp-root://"):
        await sockets.state(client, uri)
    assert [message for message in client.received if empties(message)] == []


def whole(client: RawClient) -> list[Json]:
    return [said["params"]["summary"] for said in client.received if said.get("method") == "root/sessionAdded"]


def entry_of(client: RawClient, session: str) -> Json:
    """A session's entry as a client has it that overlays what it is told."""
    entry: Json = {}
    for said in client.received:
        params: Json = said.get("params") or {}
        if said.get("method") == "root/sessionAdded" and params["summary"]["resource"] == session:
            entry = params["summary"]
        elif said.get("method") == "root/sessionSummaryChanged" and params["session"] == session:
            entry = {**entry, **params["changes"]}
    return entry


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_the_title_of_an_only_chat_follows_its_session_by_an_action(sockets: Bench, version: str) -> None:
    """A client that only reduces actions shows the same title as a snapshot."""
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    session, chat = await sockets.session(client)

    async def retitled(title: str, change: Any) -> None:
        await change
        told = await client.action(
            lambda said: (
                said["action"]["type"] == "session/chatUpdated" and said["action"]["changes"].get("title") == title
            )
        )
        assert (told["channel"], told["action"]["chat"]) == (session, chat)
        state = await sockets.state(client, session)
        assert (state.get("summary") or state)["title"] == state["chats"][0]["title"] == title

    await retitled("First words", client.accepted(chat, say("First words", "t1", startedAt=STARTED)))
    renamed = {"type": "session/titleChanged", "title": "Renamed"}
    await retitled("Renamed", client.accepted(session, renamed))
    await client.ask("createChat", session, chat="ahp-chat:/second")
    before = len(client.actions(session))
    await client.accepted(session, {"type": "session/titleChanged", "title": "Of two chats"})
    await client.ask("ping")
    told = [said["action"]["type"] for said in client.actions(session)[before:]]
    assert told == ["session/titleChanged"]
