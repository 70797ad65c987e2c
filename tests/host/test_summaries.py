"""What the list of sessions says of a session and its chats, and when it says so. On a host behind real sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.session.constructors import session_chat_updated
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
    await seen(client, "defaultChat", lambda default: not default)
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
