"""Clients of older versions in their own words: what is refused comes back as it was sent; sessions fork."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ahpkit.host.agent import Turn
from ahpkit.protocol.changeset import ChangesetState, changeset_cleared, changeset_files_review_changed
from ahpkit.protocol.common.reducing import is_duration, is_time
from ahpkit.protocol.session.actions import session_customization_updated, session_customizations_changed
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


@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.5.2"])
async def test_times_that_a_version_does_not_have_are_the_hosts_when_they_cannot_be_read(
    sockets: Bench, version: str
) -> None:
    """To its client a member like that is unknown, so it is no reason to refuse a message."""
    sockets.agent.script = until_cancelled
    client = await sockets.client("ahp-root://", client_id="old", offer=[version])
    _, chat = await sockets.session(client)
    for number, odd in enumerate(("yesterday", 7, None, "2026-W46-2")):
        await client.accepted(chat, say("hi", f"t{number}", startedAt=odd))
        cancelled = {"type": "chat/turnCancelled", "turnId": f"t{number}"}
        await client.accepted(chat, {**cancelled, "duration": "long" if odd is None else odd})
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    turns = (await sockets.state(new, chat))["turns"]
    assert all(is_time(turn["startedAt"]) and is_duration(turn["duration"]) for turn in turns)


async def until_cancelled(turn: Turn) -> None:
    await asyncio.Event().wait()


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


BEFORE_SCOPES = ("0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0")
SCOPED: list[Json] = [
    {"type": "plugin", "id": "p1", "uri": "file:///p1", "name": "on"},
    {
        "type": "plugin",
        "id": "p2",
        "uri": "file:///p2",
        "name": "off",
        "enablement": [{"kind": "global", "enabled": False}],
    },
    {
        "type": "plugin",
        "id": "p3",
        "uri": "file:///p3",
        "name": "nearest",
        "enablement": [{"kind": "session", "enabled": True}, {"kind": "global", "enabled": False}],
        "children": [
            {
                "type": "mcpServer",
                "id": "m1",
                "uri": "file:///m1",
                "name": "child",
                "state": {"kind": "stopped"},
                "enablement": [{"kind": "workspace", "uri": "file:///w", "enabled": False}],
            }
        ],
    },
    {"type": "mcpServer", "id": "m2", "uri": "file:///m2", "name": "bare", "state": {"kind": "stopped"}},
]
EFFECTIVE = {"p1": True, "p2": False, "p3": True, "m1": False, "m2": True}


def switches(customizations: list[Json]) -> dict[str, Any]:
    every = [*customizations, *(child for one in customizations for child in one.get("children", ()))]
    return {one["id"]: one.get("enabled") for one in every}


@requirement("gen:project-state:enabled")
@pytest.mark.parametrize("version", BEFORE_SCOPES)
async def test_before_scopes_a_customization_says_whether_it_is_on(sockets: Bench, version: str) -> None:
    """In the actions, in a snapshot, for plugins, for their servers, and for servers of their own."""
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    old = await sockets.client("ahp-root://", client_id="old", offer=[version])
    session, _ = await sockets.session(new)
    await old.ask("subscribe", session)
    all_of_them = cast("Any", SCOPED)
    sockets.host.services.dispatch(session, session_customizations_changed(customizations=all_of_them))
    told = (await old.action("session/customizationsChanged"))["action"]["customizations"]
    assert switches(told) == EFFECTIVE
    off: Any = {**SCOPED[0], "enablement": [{"kind": "session", "enabled": False}]}
    sockets.host.services.dispatch(session, session_customization_updated(customization=off))
    assert (await old.action("session/customizationUpdated"))["action"]["customization"]["enabled"] is False
    assert switches((await sockets.state(old, session))["customizations"]) == {**EFFECTIVE, "p1": False}
    assert "enabled" not in (await sockets.state(new, session))["customizations"][0]


@requirement("gen:project-action:toggle-alias")
@pytest.mark.parametrize("version", BEFORE_SCOPES)
async def test_before_scopes_a_toggle_says_on_or_off(sockets: Bench, version: str) -> None:
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    old = await sockets.client("ahp-root://", client_id="old", offer=[version])
    session, _ = await sockets.session(new)
    all_of_them = cast("Any", SCOPED)
    sockets.host.services.dispatch(session, session_customizations_changed(customizations=all_of_them))
    await old.ask("subscribe", session)
    said: tuple[list[Json], ...] = ([{"kind": "session", "enabled": False}, {"kind": "global", "enabled": True}], [])
    for enablement, expected in zip(said, (False, True), strict=True):
        toggle = {"type": "session/customizationToggled", "id": "p1", "enablement": enablement}
        seq = (await new.accepted(session, toggle))["serverSeq"]
        told = (await old.action(lambda envelope, seq=seq: envelope["serverSeq"] == seq))["action"]
        assert (told["type"], told["id"], told["enabled"]) == ("session/customizationToggled", "p1", expected)
        assert ("enablement" in told) == (version != "0.4.0")
    echo = await old.accepted(session, {"type": "session/customizationToggled", "id": "p1", "enabled": False})
    assert echo["action"]["enabled"] is False


@requirement("gen:project-action:reviewed-0-5-2")
async def test_a_review_is_told_to_0_5_2_by_its_own_name_and_to_nobody_older(sockets: Bench) -> None:
    versions = ("0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.9.0", "1.0.0")
    uri, file = (
        "ahp-changeset:/c",
        {"id": "f1", "edit": {"after": {"uri": "file:///f", "content": {"uri": "file:///f"}}}},
    )
    state = cast("ChangesetState", {"status": "ready", "files": [file, {**file, "id": "f2"}]})
    sockets.host.services.open_channel(uri, state)
    clients = {version: await sockets.client("ahp-root://", client_id=version, offer=[version]) for version in versions}
    await sockets.host.services.durable()
    for client in clients.values():
        await client.ask("subscribe", uri)
    review = changeset_files_review_changed(files=["f1", "f2"], reviewed=True)
    sockets.host.services.dispatch(uri, review)
    sockets.host.services.dispatch(uri, changeset_cleared())
    newer = {**cast("Json", review)}
    expected = dict.fromkeys(versions[4:], newer) | {
        "0.5.2": {"type": "changeset/filesReviewedChanged", "fileIds": ["f1", "f2"], "reviewed": True}
    }
    for version, client in clients.items():
        await client.action("changeset/cleared")
        told = [said["action"] for said in client.actions(uri) if said["action"]["type"] != "changeset/cleared"]
        assert told == ([expected[version]] if version in expected else []), version
