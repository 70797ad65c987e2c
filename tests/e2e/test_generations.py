"""One live session with clients of 0.4, 0.7, 0.9 and 1.0 on a real host: each acts, all see it, and all end equal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ahpkit.dialects import states_up
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.registry import ACTIONS
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import decode_own
from support import requirement
from support.mirrors import Mirror, reduced_by_0_4, reduced_by_1_0
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
        return {key: value for key, value in part.items() if key != "resumable"}  # 0.4 has no word for it.
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


async def test_truncation_and_fork_are_the_same_for_all(
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


# -- one long conversation ------------------------------------------------------------------------------------------


class Conversation:
    """Four clients in one session, on a host that may be killed meanwhile."""

    def __init__(self, host: HostProcess, clients: dict[str, RawClient], chat: str) -> None:
        self.host, self.clients, self.chat = host, clients, chat
        self.ids: list[str] = []
        """The turns, in order."""
        self.mirrors = {name: Mirror(clients[name], VERSIONS[name], reduced_by_1_0) for name in ("vscode", "new")}
        self.mirrors["old"] = Mirror(clients["old"], VERSIONS["old"], reduced_by_0_4)
        """What the clients have that only reduce what they are sent. Nobody has reducers of 0.7."""

    async def follow(self, *uris: str) -> None:
        for mirror in self.mirrors.values():
            await mirror.follow(*uris)

    async def begin(self, name: str, text: str) -> str:
        """A turn by one of them, which all see begin."""
        turn_id = f"{len(self.ids)}-{name}"
        self.ids.append(turn_id)
        await self.clients[name].accepted(self.chat, start(name, turn_id, text))
        await everyone_sees(self.clients, "chat/turnStarted", turn_id)
        return turn_id

    async def each_says_something(self) -> None:
        for name in self.clients:
            turn_id = await self.begin(name, f"/usage {name}")
            await everyone_sees(self.clients, "chat/turnComplete", turn_id)

    async def decide(self, asks: str, decides: str, **answer: object) -> None:
        turn_id = await self.begin(asks, '/tool calculate {"expression": "6*7"}')
        ready = await everyone_sees(self.clients, "chat/toolCallReady", turn_id)
        ids = {"turnId": turn_id, "toolCallId": ready["toolCallId"]}
        await self.clients[decides].accepted(self.chat, {"type": "chat/toolCallConfirmed", **ids, **answer})
        seen = await everyone_sees(self.clients, "chat/toolCallConfirmed", turn_id)
        assert seen["approved"] is answer["approved"]
        await everyone_sees(self.clients, "chat/turnComplete", turn_id)

    async def bring_tools(self) -> None:
        entries = {name: {"clientId": name, "tools": [{"name": f"{name}_tool"}]} for name in ("new", "old")}
        for name, kind in (("new", "session/activeClientSet"), ("old", "session/activeClientChanged")):
            await self.clients[name].accepted(SESSION, {"type": kind, "activeClient": entries[name]})

    async def use_tool(self, asks: str, owner: str) -> None:
        """A tool of one client in the turn of another one; a third one allows it."""
        turn_id = await self.begin(asks, f"/tool {owner}_tool {{}}")
        ready = await everyone_sees(self.clients, "chat/toolCallReady", turn_id)
        ids = {"turnId": turn_id, "toolCallId": ready["toolCallId"]}
        if "confirmed" not in ready:
            allowed = {"type": "chat/toolCallConfirmed", **ids, "approved": True, "confirmed": "user-action"}
            await self.clients["middle"].accepted(self.chat, allowed)
        result = {"success": True, "pastTenseMessage": "Done", "content": [{"type": "text", "text": owner}]}
        done = {"type": "chat/toolCallComplete", **ids, "result": result}
        for name in self.clients.keys() - {owner}:
            assert await self.clients[name].rejected(self.chat, done)
        await self.clients[owner].accepted(self.chat, done)
        seen = await everyone_sees(self.clients, "chat/toolCallComplete", turn_id)
        assert seen["result"]["content"] == result["content"]
        await everyone_sees(self.clients, "chat/turnComplete", turn_id)

    async def answer(self, asks: str, answers: str, response: str) -> None:
        turn_id = await self.begin(asks, "/ask")
        requests: list[str] = []
        for client in self.clients.values():
            asked = await client.action(_first_after(client, self.chat, turn_id, "chat/inputRequested"))
            requests.append(asked["action"]["request"]["id"])
        assert len(set(requests)) == 1
        ended = {"type": "chat/inputCompleted", "requestId": requests[0], "response": response}
        await self.clients[answers].accepted(self.chat, ended)
        for client in self.clients.values():
            await client.action(_first_after(client, self.chat, turn_id, "chat/inputCompleted"))
        await everyone_sees(self.clients, "chat/turnComplete", turn_id)

    async def queue(self) -> None:
        """Messages of several wait behind a turn, in the order that another one gives them."""
        turn_id = await self.begin("vscode", "/sleep 60")
        for name in ("old", "middle", "new"):
            message = {"text": f"/usage queued by {name}", "origin": {"kind": "user"}}
            queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": name, "message": message}
            await self.clients[name].accepted(self.chat, queued)
        order = ["new", "old", "middle"]
        await self.clients["vscode"].accepted(self.chat, {"type": "chat/queuedMessagesReordered", "order": order})
        await self.clients["old"].accepted(self.chat, {"type": "chat/turnCancelled", "turnId": turn_id})
        await everyone_sees(self.clients, "chat/turnCancelled", turn_id)
        for name in order:
            told = [await client.action(_is_message(f"/usage queued by {name}")) for client in self.clients.values()]
            self.ids.append(told[0]["action"]["turnId"])
            await everyone_sees(self.clients, "chat/turnComplete", self.ids[-1])

    async def truncate(self, name: str, turns: int) -> None:
        self.ids = self.ids[:turns]
        await self.clients[name].accepted(self.chat, {"type": "chat/truncated", "turnId": self.ids[-1]})
        for client in self.clients.values():
            await client.action("chat/truncated")

    async def fork(self, name: str, turns: int) -> str:
        forked = "ahp-chat:/forked"
        source = {"kind": "fork", "chat": self.chat, "turnId": self.ids[turns - 1]}
        await self.clients[name].ask("createChat", SESSION, chat=forked, source=source)
        for client in self.clients.values():
            await client.action("session/chatAdded")
        return forked

    @asynccontextmanager
    async def survive_a_kill(self, home: Path) -> AsyncGenerator[None]:
        """The host is killed in the middle of a turn; everybody comes back to another one."""
        await self.begin("middle", "/sleep 60")
        seen = {name: max(said["serverSeq"] for said in client.actions()) for name, client in self.clients.items()}
        self.host.kill()
        await self.host.ended()
        async with host_process(home) as self.host:
            for name, last in seen.items():
                self.clients[name] = await self.host.connect(name)
                back: Json = {"clientId": name, "lastSeenServerSeq": last, "subscriptions": [SESSION, self.chat]}
                found = await self.clients[name].ask("reconnect", **back)
                assert found["type"] in ("replay", "snapshot")
                if name in self.mirrors:
                    self.mirrors[name].come_back(self.clients[name], found)
            yield

    async def ends_equal(self, chat: str, ids: list[str]) -> None:
        first, *others = await histories(self.clients, chat)
        assert [turn["id"] for turn in first] == ids
        assert all(other == first for other in others)

    async def everyone_has_what_the_host_has(self) -> None:
        """What a client made of the actions it was sent is what a new snapshot shows it."""
        assert [place for mirror in self.mirrors.values() for place in await mirror.wrong()] == []

    async def sessions_are_equal(self) -> None:
        found: list[Json] = []
        for name, client in self.clients.items():
            state = (await client.ask("subscribe", SESSION))["snapshot"]["state"]
            assert name == "old" or wrong(VERSIONS[name], "SessionState", state) == []
            new = states_up.state_of_kind("session", state, session=SESSION, default_chat=lambda _: self.chat)
            chats = [(one["resource"], one["title"]) for one in new["chats"]]
            found.append({"title": new["title"], "defaultChat": new["defaultChat"], "chats": chats})
        assert all(one == found[0] for one in found)


def _is_canonical(path: Path) -> bool:
    """Whether every action and every state in a log fits 1.0.0. At least one of each is there."""
    storage = SqliteStorage(path)
    kept = storage.load()
    entries = storage.read(kept.oldest_seq - 1)
    storage.close()
    for entry in entries:
        action = decode_own(entry.payload)["action"]
        check(ACTIONS[action["type"]].shape, action)
    states = {"session": "SessionState", "chat": "ChatState"}
    for uri, snapshot in kept.snapshots.items():
        channel = channel_of(uri)
        if channel is not None and channel.name in states:
            assert wrong("1.0.0", states[channel.name], decode_own(snapshot.state)) == [], uri
    return bool(entries) and SESSION in kept.snapshots


def _is_message(text: str) -> Callable[[Json], bool]:
    return lambda said: said["action"]["type"] == "chat/turnStarted" and said["action"]["message"]["text"] == text


def _first_after(client: RawClient, chat: str, turn_id: str, kind: str) -> Callable[[Json], bool]:
    """The first action of a type since a turn began."""
    [began] = [said["serverSeq"] for said in client.actions(chat) if of_turn("chat/turnStarted", turn_id)(said)]
    return lambda said: said["action"]["type"] == kind and said["serverSeq"] > began


@pytest.mark.slow
@requirement("gen:project:canonical-log")
async def test_one_session_through_everything_with_a_kill_ends_equal_for_all(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        clients = await connected(host)
        await clients["old"].ask("createSession", SESSION, provider="demo")
        chat = ""
        for client in clients.values():
            chat = (await client.ask("subscribe", SESSION))["snapshot"]["state"]["defaultChat"]
            await client.ask("subscribe", chat)
        talk = Conversation(host, clients, chat)
        await talk.follow(SESSION, chat)
        await talk.each_says_something()
        await talk.decide("old", "vscode", approved=True, confirmed="user-action")
        await talk.decide("new", "middle", approved=False, reason="denied")
        await talk.bring_tools()
        await talk.use_tool("vscode", "old")
        await talk.use_tool("old", "new")
        await talk.answer("middle", "old", "decline")
        await talk.answer("old", "new", "cancel")
        await talk.queue()
        await talk.truncate("middle", len(talk.ids) - 1)
        forked = await talk.fork("vscode", 6)
        await talk.everyone_has_what_the_host_has()
        await talk.ends_equal(talk.chat, talk.ids)
        await talk.ends_equal(forked, talk.ids[:6])
        async with talk.survive_a_kill(tmp_path):
            await talk.each_says_something()
            failed = await talk.begin("new", "/fail on purpose")
            for name, client in talk.clients.items():
                error = (await client.action(of_turn("chat/error", failed)))["action"]
                assert ("error" in error, "part" in error) == (name in ("old", "middle"), name != "old")
            await talk.ends_equal(talk.chat, talk.ids)
            await talk.ends_equal(forked, talk.ids[:6])
            await talk.sessions_are_equal()
            await talk.everyone_has_what_the_host_has()
    assert _is_canonical(tmp_path / "data" / "log.db")
