"""One live session with clients of 0.4, 0.7, 0.9 and 1.0 on a real host: each acts, all see it, and all end equal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path

import pytest

from ahpkit.dialects import states_up
from support import requirement
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.schemas import wrong

SESSION = "ahp-session:/together"
VERSIONS = {"old": "0.4.0", "middle": "0.7.0", "vscode": "0.9.0", "new": "1.0.0"}
"""Client id → the only version it offers."""

Clients = Mapping[str, RawClient]


async def connected(host: HostProcess) -> dict[str, RawClient]:
    clients: dict[str, RawClient] = {}
    for name, version in VERSIONS.items():
        clients[name] = await host.connect(name)
        found = await clients[name].ask("initialize", clientId=name, protocolVersions=[version])
        assert found["protocolVersion"] == version
    return clients


@pytest.fixture
async def together(tmp_path: Path) -> AsyncGenerator[tuple[HostProcess, dict[str, RawClient], str]]:
    """A host, its four clients, and the chat they all follow."""
    async with host_process(tmp_path) as host:
        clients = await connected(host)
        await clients["old"].ask("createSession", SESSION, provider="demo")
        chat = ""
        for client in clients.values():
            chat = (await client.ask("subscribe", SESSION))["snapshot"]["state"]["defaultChat"]
            await client.ask("subscribe", chat)
        yield host, clients, chat
        for client in clients.values():
            await client.aclose()


def start(name: str, turn_id: str, text: str) -> Json:
    """How a client of that version starts a turn."""
    action = {"type": "chat/turnStarted", "turnId": turn_id, "message": {"text": text, "origin": {"kind": "user"}}}
    return action if name == "old" else {**action, "startedAt": "2026-11-15T12:00:00.000Z"}


def of_turn(kind: str, turn_id: str) -> Callable[[Json], bool]:
    def found(said: Json) -> bool:
        return said["action"]["type"] == kind and said["action"].get("turnId") == turn_id

    return found


async def everyone_sees(clients: Clients, kind: str, turn_id: str) -> Json:
    """Wait until all clients got an action of a turn; it, as the last of them got it."""
    seen: Json = {}
    for client in clients.values():
        seen = (await client.action(of_turn(kind, turn_id)))["action"]
    return seen


async def histories(clients: Clients, chat: str) -> list[list[Json]]:
    """What each client has of the conversation, in the newest form and without what its version cannot know."""
    found: list[list[Json]] = []
    for name, client in clients.items():
        state = (await client.ask("subscribe", chat))["snapshot"]["state"]
        assert "activeTurn" not in state
        assert name == "old" or wrong(VERSIONS[name], "ChatState", state) == []
        found.append([common(states_up.turn(turn)) for turn in state["turns"]])
    return found


def common(turn: Json) -> Json:
    parts = [_common_part(part) for part in turn["responseParts"] if part["kind"] != "inputRequest"]
    return {"id": turn["id"], "text": turn["message"]["text"], "state": turn["state"], "parts": parts}


def _common_part(part: Json) -> Json:
    if part["kind"] != "toolCall":
        return part
    return {key: part["toolCall"][key] for key in ("toolCallId", "toolName", "status")}


@requirement("gen:project:canonical-log")
async def test_turns_of_each_are_seen_by_all(together: tuple[HostProcess, dict[str, RawClient], str]) -> None:
    _, clients, chat = together
    for name, client in clients.items():
        await client.accepted(chat, start(name, f"by-{name}", f"/usage from {name}"))
        await everyone_sees(clients, "chat/turnComplete", f"by-{name}")
    first, *others = await histories(clients, chat)
    assert [turn["id"] for turn in first] == [f"by-{name}" for name in clients]
    assert all(other == first for other in others)


async def test_an_approval_by_one_and_an_error_are_seen_by_all(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    _, clients, chat = together
    await clients["old"].accepted(chat, start("old", "t1", '/tool calculate {"expression": "6*7"}'))
    ready = await everyone_sees(clients, "chat/toolCallReady", "t1")
    confirmed = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": ready["toolCallId"], "approved": True}
    await clients["vscode"].accepted(chat, {**confirmed, "confirmed": "user-action"})
    await everyone_sees(clients, "chat/toolCallConfirmed", "t1")
    await everyone_sees(clients, "chat/turnComplete", "t1")
    await clients["new"].accepted(chat, start("new", "t2", "/fail badly"))
    await everyone_sees(clients, "chat/error", "t2")
    first, *others = await histories(clients, chat)
    assert [turn["state"] for turn in first] == ["complete", "error"]
    assert all(other == first for other in others)


async def test_a_question_of_a_turn_is_answered_by_another_generation(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    _, clients, chat = together
    await clients["middle"].accepted(chat, start("middle", "t1", "/ask"))
    asked = [(await client.action("chat/inputRequested"))["action"]["request"] for client in clients.values()]
    assert all(request == asked[0] for request in asked)
    await clients["old"].accepted(
        chat, {"type": "chat/inputCompleted", "requestId": asked[0]["id"], "response": "decline"}
    )
    for client in clients.values():
        await client.action("chat/inputCompleted")
    await everyone_sees(clients, "chat/turnComplete", "t1")
    first, *others = await histories(clients, chat)
    assert all(other == first for other in others)


async def test_tools_of_two_generations_are_run_by_their_owners(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    _, clients, chat = together
    old, new = clients["old"], clients["new"]
    entry = {"clientId": "new", "tools": [{"name": "newer"}]}
    await new.accepted(SESSION, {"type": "session/activeClientSet", "activeClient": entry})
    entry = {"clientId": "old", "tools": [{"name": "older"}]}
    await old.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": entry})
    for number, (name, tool) in enumerate((("old", "older"), ("new", "newer"))):
        turn_id, owner = f"t{number}", clients[name]
        await clients["vscode"].accepted(chat, start("vscode", turn_id, f"/tool {tool} {{}}"))
        call = (await owner.action(of_turn("chat/toolCallStart", turn_id)))["action"]
        assert call["contributor"] == {"kind": "client", "clientId": name}
        ids = {"turnId": turn_id, "toolCallId": call["toolCallId"]}
        ready = (await owner.action(of_turn("chat/toolCallReady", turn_id)))["action"]
        if "confirmed" not in ready:
            approval = {"type": "chat/toolCallConfirmed", **ids, "approved": True, "confirmed": "user-action"}
            await clients["middle"].accepted(chat, approval)
        result = {"success": True, "pastTenseMessage": "Done", "content": [{"type": "text", "text": tool}]}
        await owner.accepted(chat, {"type": "chat/toolCallComplete", **ids, "result": result})
        await everyone_sees(clients, "chat/turnComplete", turn_id)
    first, *others = await histories(clients, chat)
    assert all(other == first for other in others)


async def test_queue_truncation_and_fork_are_the_same_for_all(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    _, clients, chat = together
    for number, name in enumerate(("old", "new")):
        await clients[name].accepted(chat, start(name, f"t{number}", "/usage"))
        await everyone_sees(clients, "chat/turnComplete", f"t{number}")
    await clients["middle"].accepted(chat, {"type": "chat/truncated", "turnId": "t0"})
    for client in clients.values():
        await client.action("chat/truncated")
    forked = "ahp-chat:/forked"
    await clients["old"].ask("createChat", SESSION, chat=forked, source={"chat": chat, "turnId": "t0"})
    for client in clients.values():
        await client.action("session/chatAdded")
    for where in (chat, forked):
        first, *others = await histories(clients, where)
        assert len(first) == 1
        assert all(other == first for other in others)


def texts(state: Json) -> list[str]:
    return [part["content"] for turn in state["turns"] for part in turn["responseParts"] if part["kind"] == "markdown"]


@requirement("gen:resume:reopens", "gen:project:resync")
async def test_a_turn_that_goes_on_ends_equal_for_all(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    host, clients, chat = together
    await clients["old"].accepted(chat, start("old", "t1", "/stumble"))
    await everyone_sees(clients, "chat/error", "t1")
    await clients["vscode"].accepted(chat, {"type": "chat/turnResume", "turnId": "t1"})
    for name in ("old", "middle"):
        assert (await clients[name].wait_closed()).code == 1012, "its reducer cannot express it"
        seen = max(said["serverSeq"] for said in clients[name].actions())  # Nothing newer, in whatever channel.
        clients[name] = await host.connect(name)
        found = await clients[name].ask(
            "reconnect", clientId=name, lastSeenServerSeq=seen, subscriptions=[SESSION, chat]
        )
        assert found["type"] == "snapshot"
    for name in ("vscode", "new"):
        await clients[name].action(of_turn("chat/turnComplete", "t1"))
    states = [(await client.ask("subscribe", chat))["snapshot"]["state"] for client in clients.values()]
    assert all(texts(state) == ["This is the first half. ", "And here is the second half."] for state in states)
    assert all(state["turns"][0]["state"] == "complete" for state in states)


@requirement("gen:draft:survives-restart", "gen:view:tail", "gen:turns:fetch-only-asker", "gen:chat:move-legacy")
async def test_what_only_newer_clients_know_leaves_the_older_ones_in_step(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    host, clients, chat = together
    for number, name in enumerate(clients):
        await clients[name].accepted(chat, start(name, f"t{number}", f"/usage {name}"))
        await everyone_sees(clients, "chat/turnComplete", f"t{number}")
    new = clients["new"]
    await new.accepted(chat, {"type": "chat/draftChanged", "draft": start("new", "x", "half")["message"]})
    assert (await clients["vscode"].action("chat/draftChanged"))["action"]["draft"]["text"] == "half"
    side = "ahp-chat:/aside"
    about = {"kind": "sideChat", "chat": chat, "turnId": "t1", "selection": {"text": "tokens"}}
    await new.ask("createChat", SESSION, chat=side, source=about)
    for name, client in clients.items():
        added = (await client.action("session/chatAdded"))["action"]["summary"]
        assert added["origin"]["kind"] == ("fork" if name == "old" else "sideChat")
    await new.ask("moveChat", side, destination={"kind": "session", "session": SESSION})
    await new.ask("subscribe", side)
    await new.accepted(side, {"type": "chat/isReadChanged", "isRead": True})
    small = await host.connect("small")
    await small.ask("initialize", clientId="small", protocolVersions=["1.0.0"])
    state = (await small.ask("subscribe", chat, view={"turns": 1}))["snapshot"]["state"]
    assert [turn["id"] for turn in state["turns"]] == ["t3"]
    await small.ask("fetchTurns", chat, cursor=state["turnsNextCursor"])
    loaded = small.actions(chat)[-1]["action"]
    assert [turn["id"] for turn in loaded["turns"]] == ["t0", "t1", "t2"]
    await clients["old"].accepted(chat, {"type": "chat/truncated", "turnId": "t2"})
    for client in (*clients.values(), small):
        await client.action("chat/truncated")
    first, *others = await histories(clients, chat)
    assert [turn["id"] for turn in first] == ["t0", "t1", "t2"]
    assert all(other == first for other in others)
    for name in ("old", "middle", "vscode"):
        told = {said["action"]["type"] for said in clients[name].actions()}
        assert told.isdisjoint({"chat/turnsLoaded", "session/chatsReordered", "chat/isReadChanged"})
    await small.aclose()


@requirement("gen:project:pure")
async def test_what_a_replay_says_is_what_was_said_before(
    together: tuple[HostProcess, dict[str, RawClient], str],
) -> None:
    host, clients, chat = together
    remarks = f"{SESSION}/annotations"
    first = max([(await client.ask("subscribe", remarks))["snapshot"]["fromSeq"] for client in clients.values()])
    new = clients["new"]
    entry = {"clientId": "new", "tools": [{"name": "newer"}]}
    await new.accepted(SESSION, {"type": "session/activeClientSet", "activeClient": entry})
    await clients["old"].accepted(SESSION, {"type": "session/modelChanged", "model": {"id": "demo-large"}})
    await clients["middle"].accepted(chat, start("middle", "t1", '/tool calculate {"expression": "6*7"}'))
    ready = await everyone_sees(clients, "chat/toolCallReady", "t1")
    refused = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": ready["toolCallId"], "approved": False}
    await clients["vscode"].accepted(chat, {**refused, "reason": "denied"})
    await everyone_sees(clients, "chat/turnComplete", "t1")
    remark = {"id": "a", "resource": "file:///a", "resolved": False, "entries": [{"id": "e", "text": "?"}]}
    about = {**remark, "origin": {"session": SESSION, "turnId": "t1"}}
    await new.ask(
        "createChat", SESSION, chat="ahp-chat:/side", source={"kind": "sideChat", "chat": chat, "turnId": "t1"}
    )
    await new.accepted(SESSION, {"type": "session/activeClientRemoved", "clientId": "new"})
    await clients["old"].accepted(chat, start("old", "t2", "/fail no"))
    await everyone_sees(clients, "chat/error", "t2")
    last = (await new.accepted(remarks, {"type": "annotations/set", "annotation": about}))["serverSeq"]
    for name, client in clients.items():
        await client.action(lambda said: said["serverSeq"] == last)
        said = [one for one in client.actions() if first < one["serverSeq"] <= last]
        await client.aclose()
        clients[name] = await host.connect(name)
        again = await clients[name].ask(
            "reconnect",
            clientId=name,
            lastSeenServerSeq=first,
            subscriptions=[SESSION, chat, remarks],
            _meta={"ahpkit/missed": "actions"},
        )
        assert [one for one in again["actions"] if one["serverSeq"] <= last] == said, name


@pytest.mark.slow
async def test_after_a_kill_every_generation_goes_on(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        clients = await connected(host)
        await clients["old"].ask("createSession", SESSION, provider="demo")
        chat = ""
        for client in clients.values():
            chat = (await client.ask("subscribe", SESSION))["snapshot"]["state"]["defaultChat"]
            await client.ask("subscribe", chat)
        await clients["vscode"].accepted(chat, start("vscode", "t1", "/usage"))
        await everyone_sees(clients, "chat/turnComplete", "t1")
        seen = max(said["serverSeq"] for said in clients["old"].actions(chat))
        host.kill()
        await host.ended()
    async with host_process(tmp_path) as host:
        back: dict[str, RawClient] = {}
        for name in VERSIONS:
            back[name] = await host.connect(name)
            found = await back[name].ask(
                "reconnect", clientId=name, lastSeenServerSeq=seen, subscriptions=[SESSION, chat]
            )
            assert found["type"] in ("replay", "snapshot")
        await back["new"].accepted(chat, start("new", "t2", "/fail on purpose"))
        for name, client in back.items():
            error = (await client.action(of_turn("chat/error", "t2")))["action"]
            assert ("error" in error, "part" in error) == (name in ("old", "middle"), name != "old")
        first, *others = await histories(back, chat)
        assert [turn["id"] for turn in first] == ["t1", "t2"]
        assert all(other == first for other in others)
        for client in back.values():
            await client.aclose()
