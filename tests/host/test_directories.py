"""Several working directories: added, exchanged and removed, inside the roots, and with the agent's consent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import PythonAgent
from ahpkit.changes.feature import Changesets
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Agent, AgentError, Turn
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.fence import ExcludedPlaces, Fence
from ahpkit.mcp.feature import McpServers
from mcp_servers.running import PROGRAM, QUICK
from support import requirement
from support.bench import Bench, ScriptedChat, say
from support.raw_client import Json, RawClient
from support.repository import Repository
from support.waiting import BOUND

ROOT = "ahp-root://"
CAPABLE: Json = {}
FIRST_STAYS: Json = {"immutablePrimary": True}
EXCHANGED: Json = {"immutablePrimary": True, "primaryReplacement": True}


class Place:
    """A bench whose agent can work in several directories below one root."""

    def __init__(self, bench: Bench, base: Path) -> None:
        self.bench = bench
        self.base = base
        for name in ("a", "b", "c"):
            (base / "root" / name).mkdir(parents=True)
        (base / "outside").mkdir()

    def uri(self, name: str) -> str:
        return (self.base / "root" / name).as_uri()

    def uris(self, names: str) -> list[str]:
        return [self.uri(name) for name in names]

    async def session(self, names: str, *, version: str = "1.0.0") -> tuple[RawClient, str, str]:
        client = await self.bench.client(ROOT, offer=[version])
        session, chat = await self.bench.session(client, workingDirectories=self.uris(names))
        return client, session, chat

    async def names(self, client: RawClient, channel: str) -> str | None:
        """The directories in a state, by their names."""
        found: Sequence[str] | None = (await self.bench.state(client, channel)).get("workingDirectories")
        return None if found is None else "".join(uri.rpartition("/")[2] for uri in found)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place]:
    bench = Bench(tmp_path / "root")
    place = Place(bench, tmp_path)
    bench.features = [
        Resources(
            content_directory=tmp_path / "content",
            fence=Fence(ExcludedPlaces(Path("/nowhere")), start=[tmp_path / "root"]),
        )
    ]
    bench.agent.directories = dict(CAPABLE)  # pyright: ignore[reportAttributeAccessIssue]  # Less than a whole capability.
    await bench.start()
    try:
        yield place
    finally:
        await bench.stop()


def change(kind: str, directory: str, replacement: str | None = None) -> Json:
    found = {"type": f"session/workingDirectory{kind}", "directory": directory}
    return found if replacement is None else {**found, "replacement": replacement}


async def with_capability(place: Place, capability: Json | None) -> None:
    await place.bench.stop()
    place.bench.features = [
        Resources(
            content_directory=place.base / "content",
            fence=Fence(ExcludedPlaces(Path("/nowhere")), start=[place.base / "root"]),
        ),
    ]
    place.bench.agent.directories = capability  # type: ignore[assignment]  # Less than a whole capability.
    await place.bench.start()


async def test_directories_are_added_exchanged_and_removed(place: Place) -> None:
    client, session, _ = await place.session("a")
    await client.accepted(session, change("Set", place.uri("b")))
    assert await place.names(client, session) == "ab"
    await client.accepted(session, change("Set", place.uri("b")))
    assert await place.names(client, session) == "ab"
    await client.accepted(session, change("Replaced", place.uri("b"), place.uri("c")))
    assert await place.names(client, session) == "ac"
    await client.accepted(session, change("Removed", place.uri("a")))
    assert await place.names(client, session) == "c"
    [listed] = (await client.ask("listSessions"))["items"]
    assert listed["workingDirectories"] == place.uris("c")


@requirement("gen:workdir:chat-inherits")
@pytest.mark.parametrize("agent", ["demo", "python", "openai"])
async def test_agents_of_ours_work_in_several_directories_and_keep_the_first(place: Place, agent: str) -> None:
    made: dict[str, Agent] = {
        "demo": DemoAgent(),
        "python": PythonAgent(lambda turn: str([path.name for path in turn.working_directories]), name="python"),
        "openai": OpenAiAgent(OpenAiConfig(name="openai", base_url="http://127.0.0.1:9")),
    }
    await place.bench.stop()
    place.bench.features = []
    place.bench.agent = made[agent]  # type: ignore[assignment]  # A bench is typed for its usual agent.
    await place.bench.start()
    client, session, chat = await place.session("ab")
    assert await place.names(client, session) == "ab"
    await client.accepted(session, change("Set", place.uri("c")))
    await client.accepted(session, change("Removed", place.uri("b")))
    assert "first" in await client.rejected(session, change("Removed", place.uri("a")))
    assert await place.names(client, session) == "ac"
    if agent == "python":
        await client.accepted(chat, say("where", "t1", startedAt="2026-11-15T12:00:00.000Z"))
        await client.action("chat/turnComplete")
        assert "['a', 'c']" in str((await place.bench.state(client, chat))["turns"])


@requirement("gen:project-state:directory", "gen:project-command:directory-up", "gen:session:flat")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.5.2", "0.6.0", "0.7.0", "0.9.0", "1.0.0"])
async def test_one_directory_is_all_that_clients_before_0_7_see(place: Place, version: str) -> None:
    """In sessions, chats, their entries and lists; and a session of theirs has that one."""
    client, session, chat = await place.session("ab")
    reader = await place.bench.client(ROOT, session, chat, client_id="reader", offer=[version])
    await client.accepted(chat, {"type": "chat/workingDirectorySet", "directory": place.uri("b")})
    state = await place.bench.state(reader, session)
    [listed] = (await reader.ask("listSessions"))["items"]
    own = state["summary"] if version == "0.4.0" else state
    shown = [own, listed, await place.bench.state(reader, chat), state["chats"][0]]
    expected = [place.uris("ab"), place.uris("ab"), place.uris("b"), place.uris("b")]
    if version < "0.7.0":
        assert [one.get("workingDirectory") for one in shown] == [uris[0] for uris in expected]
        made, _ = await place.bench.session(reader, workingDirectory=place.uri("c"))
        assert await place.names(client, made) == "c"
    else:
        assert [one.get("workingDirectories") for one in shown] == expected
        assert not any("workingDirectory" in one for one in shown)
    if version != "0.4.0":
        assert {"provider", "title", "status", "lifecycle", "activeClients", "chats"} <= state.keys()
        assert state.keys().isdisjoint({"summary", "createdAt", "modifiedAt", "resource"})
        assert state["activeClients"] == []


@requirement("gen:create:single-directory", "gen:workdir:capability")
async def test_an_agent_without_the_capability_has_one_directory(place: Place) -> None:
    await with_capability(place, None)
    client, session, chat = await place.session("ab")
    assert await place.names(client, session) == "a"
    for action in (
        change("Set", place.uri("b")),
        change("Removed", place.uri("a")),
        change("Replaced", place.uri("a"), place.uri("b")),
    ):
        assert "one working directory" in await client.rejected(session, action)
    assert await client.rejected(chat, {"type": "chat/workingDirectorySet", "directory": place.uri("a")})
    assert await place.names(client, session) == "a"


@requirement("gen:workdir:immutable-primary")
async def test_a_first_directory_that_is_fixed_stays(place: Place) -> None:
    await with_capability(place, FIRST_STAYS)
    client, session, _ = await place.session("ab")
    assert await client.rejected(session, change("Removed", place.uri("a")))
    assert await client.rejected(session, change("Replaced", place.uri("a"), place.uri("c")))
    await client.accepted(session, change("Replaced", place.uri("b"), place.uri("c")))
    assert await place.names(client, session) == "ac"


@requirement("gen:workdir:primary-replacement")
async def test_a_first_directory_may_be_exchangeable_and_still_not_removable(place: Place) -> None:
    await with_capability(place, EXCHANGED)
    client, session, _ = await place.session("ab")
    assert await client.rejected(session, change("Removed", place.uri("a")))
    await client.accepted(session, change("Replaced", place.uri("a"), place.uri("c")))
    assert await place.names(client, session) == "cb"


async def test_no_directory_lies_outside_the_roots_or_does_not_exist(place: Place) -> None:
    client, session, _ = await place.session("a")
    link = place.base / "root" / "link"
    link.symlink_to(place.base / "outside")
    places = [(place.base / "outside").as_uri(), link.as_uri(), place.uri("missing"), "https://example.com/x"]
    places.append(place.uri("n" * 256))  # Longer than any file system takes.
    for uri in places:
        assert await client.rejected(session, change("Set", uri))
        assert await client.rejected(session, change("Replaced", place.uri("a"), uri))
    for uri in places[:2]:
        error = await client.refused("createSession", "ahp-session:/no", workingDirectories=[place.uri("a"), uri])
        assert error["code"] == -32009
    assert await place.names(client, session) == "a"


async def test_a_fault_of_the_host_is_an_answer_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    client, session, _ = await place.session("a")
    monkeypatch.delattr(Fence, "check")
    reason = await client.rejected(session, change("Set", place.uri("b")))
    assert reason == "the host failed to apply this action; its log has the details"


async def test_a_session_in_a_directory_with_too_long_a_name_says_that_it_is_not_there(rooted: Place) -> None:
    client = await rooted.bench.client(ROOT, offer=["1.0.0"])
    uri = "ahp-session:/long"
    await client.ask("createSession", uri, workingDirectories=[rooted.uri("n" * 256)])
    if (await client.ask("subscribe", uri))["snapshot"]["state"]["lifecycle"] == "creating":
        await client.action("session/creationFailed")
    state = await rooted.bench.state(client, uri)
    assert "does not exist" in state["creationError"]["message"]


async def test_a_session_has_no_more_directories_than_a_limit(place: Place) -> None:
    many = [place.base / "root" / f"d{number}" for number in range(33)]
    for path in many:
        path.mkdir()
    client = await place.bench.client(ROOT, offer=["1.0.0"])
    uris = [path.as_uri() for path in many]
    error = await client.refused("createSession", "ahp-session:/no", workingDirectories=uris)
    assert "32" in error["message"]
    session, _ = await place.bench.session(client, workingDirectories=uris[:32])
    assert "32" in await client.rejected(session, change("Set", uris[32]))


@requirement("gen:workdir:effect-first")
async def test_the_agent_has_the_new_directory_before_anybody_hears_of_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    taken: list[list[str]] = []

    async def work_in(chat: ScriptedChat, directories: Sequence[Path]) -> None:
        begun.set()
        await go.wait()
        taken.append([path.name for path in directories])
        if "c" in taken[-1]:
            raise AgentError("Not in there.")

    monkeypatch.setattr(ScriptedChat, "work_in", work_in)
    client, session, _ = await place.session("a")
    watcher = await place.bench.client(session, offer=["1.0.0"])
    client.post(session, change("Replaced", place.uri("a"), place.uri("b")))
    await begun.wait()
    assert await place.names(watcher, session) == "a"
    go.set()
    told = await watcher.action("session/workingDirectoryReplaced")
    assert told["action"]["replacement"] == place.uri("b")
    assert taken == [["b"]]
    refused = await client.dispatch(session, change("Replaced", place.uri("b"), place.uri("c")))
    assert refused["rejectionReason"] == "Not in there."
    assert await place.names(watcher, session) == "b"


async def test_when_one_chat_cannot_move_the_others_stay(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, list[str]]] = []

    async def work_in(chat: ScriptedChat, directories: Sequence[Path]) -> None:
        taken.append((chat.chat.uri, [path.name for path in directories]))
        if chat.chat.uri == "ahp-chat:/second":
            raise AgentError("No.")

    monkeypatch.setattr(ScriptedChat, "work_in", work_in)
    client, session, chat = await place.session("a")
    await client.ask("createChat", session, chat="ahp-chat:/second")
    await client.ask("subscribe", "ahp-chat:/second")
    start = say("hello", startedAt="2026-11-15T12:00:00.000Z")
    await client.accepted("ahp-chat:/second", start)
    await client.action("chat/turnComplete")
    assert await client.rejected(session, change("Set", place.uri("b"))) == "No."
    assert taken == [(chat, ["a", "b"]), ("ahp-chat:/second", ["a", "b"]), (chat, ["a"])]


async def test_nothing_is_taken_from_a_turn_that_runs(place: Place) -> None:
    go = asyncio.Event()

    async def script(turn: Turn) -> None:
        await go.wait()

    place.bench.agent.script = script
    client, session, chat = await place.session("ab")
    await client.accepted(chat, say("hello", startedAt="2026-11-15T12:00:00.000Z"))
    assert "turn is running" in await client.rejected(session, change("Removed", place.uri("b")))
    assert "turn is running" in await client.rejected(session, change("Replaced", place.uri("b"), place.uri("c")))
    await client.accepted(session, change("Set", place.uri("c")))
    go.set()
    await client.action("chat/turnComplete")
    await client.accepted(session, change("Removed", place.uri("b")))
    assert await place.names(client, session) == "ac"


@requirement("gen:workdir:chat-subset", "gen:workdir:chat-inherits")
async def test_a_chat_works_in_some_of_its_sessions_directories(place: Place) -> None:
    seen: list[list[str]] = []

    async def script(turn: Turn) -> None:
        seen.append([path.name for path in turn.chat.working_directories])

    place.bench.agent.script = script
    client, session, chat = await place.session("ab")
    outside = {"chat": "ahp-chat:/no", "workingDirectories": place.uris("c")}
    assert (await client.refused("createChat", session, **outside))["code"] == -32602
    directory = {"type": "chat/workingDirectorySet", "directory": place.uri("c")}
    assert await client.rejected(chat, directory)
    for name, directories in (("one", place.uris("b")), ("none", [])):
        await client.ask("createChat", session, chat=f"ahp-chat:/{name}", workingDirectories=directories)
        await client.ask("subscribe", f"ahp-chat:/{name}")
    for number, one in enumerate((chat, "ahp-chat:/one", "ahp-chat:/none")):
        await client.accepted(one, say("hello", f"t{number}", startedAt="2026-11-15T12:00:00.000Z"))
        await client.action(lambda said, one=one: said["channel"] == one and "Complete" in said["action"]["type"])
    assert seen == [["a", "b"], ["b"], []]
    await client.accepted(chat, {**directory, "directory": place.uri("b")})
    assert await place.names(client, chat) == "b"


@requirement("gen:workdir:shrink")
@pytest.mark.parametrize(("action", "session_after", "chat_after"), [("Removed", "ac", "a"), ("Replaced", "adc", "ad")])
async def test_no_chat_keeps_a_directory_that_its_session_lost(
    place: Place, action: str, session_after: str, chat_after: str
) -> None:
    (place.base / "root" / "d").mkdir()
    client, session, _ = await place.session("abc")
    await client.ask("createChat", session, chat="ahp-chat:/narrow", workingDirectories=place.uris("ab"))
    await client.ask("subscribe", "ahp-chat:/narrow")
    replacement = place.uri("d") if action == "Replaced" else None
    await client.accepted(session, change(action, place.uri("b"), replacement))
    assert await place.names(client, session) == session_after
    assert await place.names(client, "ahp-chat:/narrow") == chat_after
    removed = await client.action("chat/workingDirectoryRemoved")
    lost = await client.action(f"session/workingDirectory{action}")
    assert removed["serverSeq"] < lost["serverSeq"]


@requirement("gen:project-action:directory-notice")
@pytest.mark.parametrize("action", ["Replaced", "Removed"])
@pytest.mark.parametrize("version", ["0.4.0", "0.5.2", "0.6.0"])
async def test_clients_that_know_one_directory_hear_when_the_first_changes(
    place: Place, version: str, action: str
) -> None:
    client, session, _ = await place.session("ab")
    old = await place.bench.client(ROOT, session, client_id="old", offer=[version])
    await client.accepted(session, change(action, place.uri("a"), place.uri("c") if action == "Replaced" else None))
    told: Any = await old.wait(
        lambda said: said.get("method") == "root/sessionSummaryChanged" and "workingDirectory" in str(said["params"])
    )
    assert told["params"]["changes"]["workingDirectory"] == place.uri("c" if action == "Replaced" else "b")
    assert [said["action"]["type"] for said in old.actions(session)] == []


@pytest.fixture
async def rooted(tmp_path: Path) -> AsyncGenerator[Place]:
    """Directories with customizations, a server and a repository of their own."""
    bench = Bench(tmp_path / "root", sockets=True)
    place = Place(bench, tmp_path)
    for name in ("a", "b"):
        skills = tmp_path / "root" / name / ".claude" / "skills" / f"skill-{name}"
        skills.mkdir(parents=True)
        (skills / "SKILL.md").write_text(f"---\nname: skill-{name}\ndescription: of {name}\n---\nDo {name}.")
        server = {
            "command": sys.executable,
            "args": [PROGRAM],
            "env": {"TEST_STARTED": str(tmp_path / f"started-{name}")},
        }
        (tmp_path / "root" / name / ".mcp.json").write_text(json.dumps({"mcpServers": {f"server-{name}": server}}))
        Repository(tmp_path / "root" / name).commit(file_txt=name)
    trusted = [tmp_path / "root" / "a", tmp_path / "root" / "b"]
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path / "root", trusted=trusted))
    servers = McpServers(customizations.servers, directory=tmp_path / "root", limits=QUICK)
    changesets = Changesets(tmp_path / "ours", default_directory=tmp_path / "root")
    bench.features = [Resources(content_directory=tmp_path / "content"), customizations, servers, changesets]
    bench.agent.directories = {"primaryReplacement": True}
    await bench.start()
    try:
        yield place
    finally:
        await bench.stop()


def listed(session: Json) -> dict[str, Json]:
    containers: list[Json] = session.get("customizations", [])
    return {
        one["name"]: one for one in (*containers, *(each for one in containers for each in one.get("children", ())))
    }


async def changed_files(place: Place, client: RawClient, session: str, chat: str, turn_id: str) -> list[str]:
    """Have the agent write a file where it works, and read what the session's changeset has then."""

    async def script(turn: Turn) -> None:
        (turn.chat.working_directory / f"new-{turn.id}.txt").write_text("new")

    place.bench.agent.script = script
    await client.accepted(chat, say("go", turn_id, startedAt="2026-11-15T12:00:00.000Z"))
    await client.action(lambda said: said["action"].get("turnId") == turn_id and "Complete" in said["action"]["type"])
    catalogue = (await place.bench.state(client, session))["changesets"]
    [uri] = [entry["uriTemplate"] for entry in catalogue if entry["changeKind"] == "session"]
    async with asyncio.timeout(BOUND):
        while True:
            state = (await client.ask("subscribe", uri))["snapshot"]["state"]
            if state["status"] == "ready" and state["files"]:
                return [file["id"] for file in state["files"]]
            await asyncio.sleep(0.05)


async def test_a_replaced_first_directory_brings_its_own_customizations_servers_and_changes(rooted: Place) -> None:
    client, session, chat = await rooted.session("a")

    async def until_shown(name: str, other: str) -> Json:
        async with asyncio.timeout(BOUND):
            while True:
                state = await rooted.bench.state(client, session)
                found = listed(state)
                server: Json = found.get(f"server-{name}") or {"state": {"kind": ""}}
                tools = {tool["name"] for tool in state.get("serverTools", ())}
                if f"skill-{name}" in found and server["state"]["kind"] == "ready" and f"server-{name}_add" in tools:
                    assert f"skill-{other}" not in found
                    assert f"server-{other}" not in found
                    assert f"server-{other}_add" not in tools
                    return state
                await asyncio.sleep(0.05)

    await until_shown("a", "b")
    assert not (rooted.base / "started-b").exists()
    assert await changed_files(rooted, client, session, chat, "t1") == [(rooted.base / "root/a/new-t1.txt").as_uri()]
    await client.accepted(session, change("Replaced", rooted.uri("a"), rooted.uri("b")))
    second = await until_shown("b", "a")
    assert await changed_files(rooted, client, session, chat, "t2") == [(rooted.base / "root/b/new-t2.txt").as_uri()]
    toggle = {"type": "session/customizationToggled", "id": listed(second)["skill-b"]["id"]}
    await client.accepted(session, {**toggle, "enablement": [{"kind": "session", "enabled": False}]})
    assert listed(await rooted.bench.state(client, session))["skill-b"]["enabled"] is False
    await client.accepted(session, change("Replaced", rooted.uri("b"), rooted.uri("a")))
    await until_shown("a", "b")
