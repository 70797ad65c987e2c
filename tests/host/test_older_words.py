"""Clients of older versions in their own words: what is refused comes back as it was sent; sessions fork."""

from __future__ import annotations

import pytest

from support import requirement
from support.bench import Bench, say
from support.raw_client import Json

STARTED = "2026-11-15T12:00:00.000Z"


@requirement("gen:project:reject-original")
async def test_a_refused_action_comes_back_as_it_was_sent(sockets: Bench) -> None:
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    session, chat = await sockets.session(new)
    said: list[tuple[str, list[tuple[str, Json]]]] = [
        (
            "0.4.0",
            [
                (chat, {**say("hi", ""), "extra": 1}),
                (session, {"type": "session/modelChanged", "model": {"id": "none"}}),
                (session, {"type": "session/agentChanged", "agent": {"uri": "file:///none"}}),
                (session, {"type": "session/activeClientChanged", "activeClient": {"clientId": "other", "tools": []}}),
                (f"{session}/annotations", {"type": "annotations/updated", "annotationId": "none", "turnId": "t"}),
            ],
        ),
        (
            "0.7.0",
            [
                (chat, say("hi", "", startedAt=STARTED)),
                (f"{session}/annotations", {"type": "annotations/updated", "annotationId": "none", "turnId": "t"}),
            ],
        ),
    ]
    for version, actions in said:
        client = await sockets.client("ahp-root://", client_id=f"v{version}", offer=[version])
        for uri in (session, chat, f"{session}/annotations"):
            await client.ask("subscribe", uri)
        for uri, action in actions:
            echo = await client.dispatch(uri, action)
            assert echo.get("rejectionReason"), action
            assert echo["action"] == action


@requirement("gen:project-command:fork-session")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "0.8.0"])
async def test_an_older_client_forks_a_session(sockets: Bench, version: str) -> None:
    client = await sockets.client("ahp-root://", client_id="old", offer=[version])
    session, chat = await sockets.session(client)
    for turn_id in ("t1", "t2", "t3"):
        await client.accepted(chat, say(turn_id, turn_id, startedAt=STARTED))
        await client.action(
            lambda said, turn_id=turn_id: (
                said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == turn_id
            )
        )
    fork = {"session": session, "turnId": "t2"}
    copy, copied = await sockets.session(client, fork=fork)
    turns = (await sockets.state(client, copied))["turns"]
    assert [turn["id"] for turn in turns] == ["t1", "t2"]
    assert len((await sockets.state(client, chat))["turns"]) == 3
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    state = await sockets.state(new, copy)
    assert state["defaultChat"] == copied
    assert state["chats"][0]["origin"] == {"kind": "fork", "chat": chat, "turnId": "t2"}
    await client.accepted(copied, say("on", "t9", startedAt=STARTED))
    await client.action(lambda said: said["channel"] == copied and said["action"]["type"] == "chat/turnComplete")
    assert [turn["message"]["text"] for turn in sockets.agent.turns[-1].chat.history][:2] == ["t1", "t2"]
