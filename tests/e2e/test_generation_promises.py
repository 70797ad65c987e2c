"""What is promised to each generation, seen on connections to a real host: negotiation, what is told, what is taken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ahpkit.dialects.v0_4.registry import ACTIONS as OLD_ACTIONS
from ahpkit.protocol.registry import ACTIONS
from customizations.builders import skill, write
from support import requirement
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

SESSION = "ahp-session:/promises"
VERSIONS = ("0.4.0", "0.7.0", "0.9.0", "1.0.0")
STARTED = "2026-11-15T12:00:00.000Z"


class Room:
    """A host, one client of each version, and the session they all follow."""

    def __init__(self, host: HostProcess, clients: dict[str, RawClient], chat: str, folder: Path) -> None:
        self.host, self.clients, self.chat, self.folder = host, clients, chat, folder
        self.old, self.middle, self.vscode, self.new = clients.values()

    async def states(self, uri: str) -> dict[str, Json]:
        return {
            version: (await client.ask("subscribe", uri))["snapshot"]["state"]
            for version, client in self.clients.items()
        }

    async def everyone(self, kind: str, **having: Any) -> dict[str, Json]:
        """The first action of a type, as each client got it."""

        def found(said: Json) -> bool:
            action = said["action"]
            return action["type"] == kind and all(action.get(key) == value for key, value in having.items())

        return {version: (await client.action(found))["action"] for version, client in self.clients.items()}

    async def turn(self, version: str, text: str, turn_id: str = "t1") -> None:
        await self.clients[version].accepted(self.chat, started(version, text, turn_id))


def started(version: str, text: str, turn_id: str = "t1") -> Json:
    action = {"type": "chat/turnStarted", "turnId": turn_id, "message": {"text": text, "origin": {"kind": "user"}}}
    return action if version == "0.4.0" else {**action, "startedAt": STARTED}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncGenerator[Room]:
    folder = write(tmp_path / "work", {".github/skills/tidy/SKILL.md": skill("tidy")})
    async with host_process(tmp_path) as host:
        clients: dict[str, RawClient] = {}
        for version in VERSIONS:
            clients[version] = await host.connect(version)
            await clients[version].ask(
                "initialize", clientId=version, protocolVersions=[version], initialSubscriptions=["ahp-root://"]
            )
        await clients["0.4.0"].ask("createSession", SESSION, provider="demo", workingDirectory=folder.as_uri())
        chat = ""
        for client in clients.values():
            chat = (await client.ask("subscribe", SESSION))["snapshot"]["state"]["defaultChat"]
            await client.ask("subscribe", chat)
        yield Room(host, clients, chat, folder)
        for client in clients.values():
            await client.aclose()


@requirement("gen:negotiation:draft-one", "gen:negotiation:echo-exact", "gen:negotiation:malformed-offer")
async def test_a_host_answers_one_of_the_offered_versions(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        chosen = {
            ("1.0.0", "0.9.0", "0.8.0"): "0.9.0",
            ("1.10.0", "1.0.0"): "1.10.0",
            ("0.4.9", "0.4.0"): "0.4.9",
            ("0.9.0", "1.0.0"): "1.0.0",
        }
        for offer, version in chosen.items():
            client = await host.connect("asker")
            answer = await client.ask("initialize", clientId="asker", protocolVersions=list(offer))
            assert answer["protocolVersion"] == version
            await client.aclose()
        for wrong in ("1.0", "1.0.0-beta", "01.0.0", "1.0.0\n", "v1.0.0"):
            client = await host.connect("asker")
            error = await client.refused("initialize", clientId="asker", protocolVersions=["1.0.0", wrong])
            assert error["code"] == -32602
            await client.aclose()


@requirement(
    "gen:negotiation:dispatchable-by-version",
    "gen:negotiation:known-actions-only",
    "gen:project-action:new-ten",
    "gen:project:one-envelope",
    "gen:project-action:canvas-capability",
    "gen:forward:closed-enum",
    "gen:project:validate-own-shape",
)
async def test_each_generation_says_and_hears_what_it_knows(room: Room) -> None:
    read = {"type": "chat/isReadChanged", "isRead": True}
    assert "chat/isReadChanged" in await room.vscode.rejected(room.chat, read)
    await room.new.accepted(room.chat, read)
    await room.new.ask("createChat", SESSION, chat="ahp-chat:/two")
    await room.new.ask("moveChat", "ahp-chat:/two", destination={"kind": "session", "session": SESSION})
    claim: Json = {"clientId": "0.4.0", "tools": [], "canRenderCanvases": True}
    await room.old.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": claim})
    await room.turn("0.4.0", "/fail no")
    errors = await room.everyone("chat/error", turnId="t1")
    assert all(("error" in error) == (version < "0.9.0") for version, error in errors.items())
    for version, client in room.clients.items():
        told = [said["action"]["type"] for said in client.actions() if "rejectionReason" not in said]
        known = (
            OLD_ACTIONS.keys() if version == "0.4.0" else {type for type in ACTIONS if _since(type) <= _parts(version)}
        )
        assert set(told) <= set(known), version
        assert any(type.startswith("session/canvas") for type in told) == (version == "0.4.0"), "nobody else asked"
        seqs = [(said["channel"], said["serverSeq"]) for said in client.actions()]
        assert len(seqs) == len(set(seqs)), "one envelope for each action"
    odd = {
        "type": "chat/pendingMessageSet",
        "kind": "odd",
        "id": "p",
        "message": {"text": "x", "origin": {"kind": "user"}},
    }
    for client in room.clients.values():
        assert "kind" in await client.rejected(room.chat, odd)
    assert "enabled" in await room.old.rejected(SESSION, {"type": "session/customizationToggled", "id": "x"})
    assert "enablement" in await room.new.rejected(SESSION, {"type": "session/customizationToggled", "id": "x"})


def _since(action_type: str) -> list[int]:
    return _parts(ACTIONS[action_type].since)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@requirement("gen:project-action:error-alias", "gen:project-action:input-identical")
@requirement("gen:project-state:input-requests", "gen:project-state:input-part-cut")
async def test_an_open_question_has_the_place_that_each_generation_knows(room: Room) -> None:
    await room.turn("1.0.0", "/ask")
    asked = await room.everyone("chat/inputRequested")
    assert all(action == asked["1.0.0"] for action in asked.values())
    id = asked["1.0.0"]["request"]["id"]
    for version, state in (await room.states(room.chat)).items():
        parts = [part for part in state["activeTurn"]["responseParts"] if part["kind"] == "inputRequest"]
        assert [one["id"] for one in state.get("inputRequests", ())] == ([id] if version == "0.4.0" else [])
        assert len(parts) == (0 if version == "0.4.0" else 1), version
    answer = {"type": "chat/inputCompleted", "requestId": id, "response": "decline"}
    await room.old.accepted(room.chat, answer)
    completed = await room.everyone("chat/inputCompleted")
    assert all(action == completed["1.0.0"] for action in completed.values())
    await room.everyone("chat/turnComplete", turnId="t1")
    await room.turn("0.9.0", "/fail no", "t2")
    errors = await room.everyone("chat/error", turnId="t2")
    assert {version: "error" in error for version, error in errors.items()} == {
        "0.4.0": True,
        "0.7.0": True,
        "0.9.0": False,
        "1.0.0": False,
    }


@requirement("gen:project-action:active-client-up", "gen:project-action:active-client-0-4")
async def test_a_client_of_0_4_takes_and_leaves_the_role_for_itself_alone(room: Room) -> None:
    entry = {"clientId": "1.0.0", "tools": [{"name": "newer"}]}
    await room.new.accepted(SESSION, {"type": "session/activeClientSet", "activeClient": entry})
    own = {"clientId": "0.4.0", "tools": [{"name": "older"}]}
    await room.old.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": own})
    await room.old.accepted(SESSION, {"type": "session/activeClientToolsChanged", "tools": [{"name": "later"}]})
    state = (await room.states(SESSION))["1.0.0"]
    tools = {one["clientId"]: [tool["name"] for tool in one["tools"]] for one in state["activeClients"]}
    assert tools == {"1.0.0": ["newer"], "0.4.0": ["later"]}
    await room.old.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": None})
    state = (await room.states(SESSION))["1.0.0"]
    assert [one["clientId"] for one in state["activeClients"]] == ["1.0.0"]
    await room.new.accepted(SESSION, {"type": "session/activeClientRemoved", "clientId": "1.0.0"})
    left = {"type": "session/activeClientChanged", "activeClient": None}
    await room.old.action(lambda said: said["action"] == left and said.get("origin", {}).get("clientId") != "0.4.0")
    seen = [said["action"] for said in room.old.actions(SESSION) if "activeClient" in said["action"]["type"]]
    clients = [action["activeClient"]["clientId"] if action["activeClient"] else None for action in seen]
    assert clients == ["1.0.0", "0.4.0", "0.4.0", "1.0.0", None], "the first, its own, its tools, the next one, nobody"


@requirement("gen:project-action:selection-0-4", "gen:project:repeat-detection")
async def test_a_model_that_0_4_chose_is_used_and_a_repeated_message_is_taken_once(room: Room) -> None:
    other = await room.host.connect("other")
    await other.ask("initialize", clientId="other", protocolVersions=["0.4.0"], initialSubscriptions=[SESSION])
    await room.old.accepted(SESSION, {"type": "session/modelChanged", "model": {"id": "demo-large"}})
    assert (await other.action("session/modelChanged"))["action"]["model"] == {"id": "demo-large"}
    for _ in range(2):
        room.old.post(room.chat, started("0.4.0", "hello"), client_seq=77)
    await room.everyone("chat/turnComplete", turnId="t1")
    turns = (await room.states(room.chat))["1.0.0"]["turns"]
    assert [turn["id"] for turn in turns] == ["t1"]
    assert "demo-large" in str(turns[0]["responseParts"])
    assert [said for said in room.old.actions(room.chat) if "rejectionReason" in said] == []
    assert len([said for said in room.new.actions(room.chat) if said["action"]["type"] == "chat/turnStarted"]) == 1
    await other.aclose()


@requirement("gen:project-action:toggle-up", "gen:enablement:effective", "gen:enablement:toggle-malformed")
async def test_a_plain_switch_stands_before_the_decisions_of_wider_scopes(tmp_path: Path) -> None:
    plugin = write(tmp_path / "plugin", {".plugin/plugin.json": {"name": "p"}, "skills/a/SKILL.md": skill("a")})
    async with host_process(tmp_path, "--plugin", str(plugin)) as host:
        old, new = await host.connect("old"), await host.connect("new")
        await old.ask("initialize", clientId="old", protocolVersions=["0.4.0"])
        await new.ask("initialize", clientId="new", protocolVersions=["1.0.0"])
        await new.ask("createSession", SESSION, provider="demo")

        async def entry(client: RawClient) -> Json:
            while True:
                state = (await client.ask("subscribe", SESSION))["snapshot"]["state"]
                for one in state.get("customizations", ()):
                    if one["name"] == "p" and one["load"]["kind"] == "loaded":
                        return one

        id = (await entry(new))["id"]
        await entry(old)
        wide = [{"kind": "global", "enabled": False}]
        toggle = {"type": "session/customizationToggled", "id": id}
        await new.accepted(SESSION, {**toggle, "enablement": wide})
        assert (await entry(old))["enabled"] is False
        await old.accepted(SESSION, {**toggle, "enabled": True})
        assert (await entry(new))["enablement"] == [{"kind": "session", "enabled": True}, *wide]
        assert (await entry(old))["enabled"] is True
        assert "enablement" in await new.rejected(SESSION, {**toggle, "enabled": True})
        for client in (old, new):
            await client.aclose()


@requirement(
    "gen:project-command:directory-up",
    "gen:project-command:source-without-kind",
    "gen:project-state:directory",
    "gen:project-state:summary-times",
    "gen:summary:iso-times",
)
async def test_directories_forks_and_times_have_the_form_of_each_generation(room: Room) -> None:
    here = room.folder.as_uri()
    await room.turn("0.4.0", "/usage")
    await room.everyone("chat/turnComplete", turnId="t1")
    for version, state in (await room.states(SESSION)).items():
        shown = state["summary"] if version == "0.4.0" else state
        assert shown.get("workingDirectory") == (here if version < "0.7.0" else None), version
        assert shown.get("workingDirectories", [here]) == [here]
    fork = {"chat": room.chat, "turnId": "t1"}
    await room.old.ask("createChat", SESSION, chat="ahp-chat:/fork", source=fork)
    forked = (await room.new.action("session/chatAdded"))["action"]["summary"]
    assert forked["origin"] == {"kind": "fork", **fork}
    entries = [(await client.ask("listSessions"))["items"][0] for client in room.clients.values()]
    oldest, *others = [(entry["createdAt"], entry["modifiedAt"]) for entry in entries]
    assert all(isinstance(time, int) for time in oldest)
    for created, modified in others:
        assert created.endswith("Z")
        assert [_milliseconds(created), _milliseconds(modified)] == list(oldest)


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@requirement("gen:project-state:lifecycle", "gen:errors:content-not-found")
async def test_a_failed_session_and_missing_content_have_the_name_of_each_generation(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--agent", "broken=/nonexistent/agent") as host:
        names: dict[str, tuple[str, int]] = {}
        for version in (*VERSIONS, "0.8.0"):
            client = await host.connect(version)
            await client.ask("initialize", clientId=version, protocolVersions=[version])
            session = f"ahp-session:/{version}"
            await client.ask("createSession", session, provider="broken")
            state = (await client.ask("subscribe", session))["snapshot"]["state"]
            while state["lifecycle"] == "creating":
                state = (await client.ask("subscribe", session))["snapshot"]["state"]
            error = await client.refused("resourceRead", uri="ahp-changed-file:/none/none")
            names[version] = state["lifecycle"], error["code"]
            await client.aclose()
    assert {version: lifecycle for version, (lifecycle, _) in names.items()} == {
        "0.4.0": "creationFailed",
        "0.7.0": "creationFailed",
        "0.8.0": "creationFailed",
        "0.9.0": "failed",
        "1.0.0": "failed",
    }
    assert {version: code for version, (_, code) in names.items()} == {
        "0.4.0": -32006,
        "0.7.0": -32006,
        "0.8.0": -32006,
        "0.9.0": -32008,
        "1.0.0": -32008,
    }
