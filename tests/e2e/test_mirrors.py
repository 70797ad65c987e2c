"""Readers of 0.4.0, 0.9.0 and 1.0.0 reduce what a real host sends. After each step they have what its snapshots show.

0.9.0 is read by VS Code's own reducers where they were fetched (`python tools/vscode_protocol.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from customizations.builders import skill, write
from dialects.test_squares_vscode import running_vscode
from support import requirement
from support.frames import wrong_frames
from support.mirrors import Mirror, Reduce, reduced_by_0_4, reduced_by_1_0
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.repository import Repository
from support.waiting import BOUND

SESSION = "ahp-session:/mirrored"
VERSIONS = ("0.4.0", "0.9.0", "1.0.0")


@contextmanager
def reducer_of(version: str) -> Generator[Reduce]:
    if version == "0.4.0":
        yield reduced_by_0_4
    elif version == "1.0.0":
        yield reduced_by_1_0
    else:
        with running_vscode() as vscode:
            yield vscode.reduce


class Scene:
    """A host with a workspace, somebody who acts, and one who looks."""

    def __init__(self, host: HostProcess, actor: RawClient, mirror: Mirror, repo: Repository) -> None:
        self.host, self.actor, self.mirror, self.repo = host, actor, mirror, repo
        self.chat = ""
        self._turns = 0

    async def turn(self, text: str, until: str = "", chat: str = "") -> Json:
        """Say something and wait for its end, or for an action."""
        self._turns += 1
        turn_id = f"t{self._turns}"
        message = {"text": text, "origin": {"kind": "user"}}
        await self.actor.accepted(
            chat or self.chat, {"type": "chat/turnStarted", "turnId": turn_id, "message": message}
        )
        ends = (until,) if until else ("chat/turnComplete", "chat/error")
        return (
            await self.actor.action(
                lambda said: said["action"]["type"] in ends and said["action"].get("turnId", turn_id) == turn_id
            )
        )["action"]

    async def agrees(self) -> None:
        assert await self.mirror.wrong() == []


@pytest.fixture(params=VERSIONS)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Scene]:
    repo = Repository(tmp_path / "work")
    write(repo.root, {".github/skills/tidy/SKILL.md": skill("tidy"), "AGENTS.md": "Be kind.", "a.txt": "1\n"})
    repo.commit()
    version: str = request.param
    with reducer_of(version) as reduce:
        async with host_process(tmp_path) as host:
            actor = await host.client("ahp-root://", client_id="actor")
            eye = await host.connect("eye")
            await eye.ask("initialize", clientId="eye", protocolVersions=[version])
            scene = Scene(host, actor, Mirror(eye, version, reduce), repo)
            await actor.ask("createSession", SESSION, provider="demo", workingDirectory=repo.root.as_uri())
            await scene.mirror.follow("ahp-root://", SESSION, f"{SESSION}/annotations")
            scene.chat = (await _prepared(actor))["defaultChat"]
            await actor.ask("subscribe", scene.chat)
            await actor.ask("subscribe", f"{SESSION}/annotations")
            await scene.mirror.follow(scene.chat)
            yield scene
            assert wrong_frames([actor, eye], strictly=True)[:5] == []
            await eye.aclose()
            await actor.aclose()


async def _prepared(client: RawClient) -> Json:
    """The session, once it is ready, its skills are read and its changesets are offered."""
    async with asyncio.timeout(BOUND):
        while True:
            state = (await client.ask("subscribe", SESSION))["snapshot"]["state"]
            skills = [entry for entry in state.get("customizations", ()) if entry["name"] == ".github/skills"]
            if state["lifecycle"] == "ready" and "changesets" in state and skills and skills[0].get("children"):
                return state


@requirement("gen:mirror:running-host", "extensibility:meta:no-custom-root-fields")
async def test_the_states_of_a_conversation_are_those_of_its_snapshots(scene: Scene) -> None:
    for text in ("/help", "hello", "/think", "/stream 5", "/usage", "/fail no", "/subagent look", "/stumble"):
        await scene.turn(text)
        await scene.agrees()
    for answer in ({"approved": True, "confirmed": "user-action"}, {"approved": False, "reason": "denied"}):
        ready = await scene.turn('/tool calculate {"expression": "1+2"}', "chat/toolCallReady")
        await scene.agrees()
        ids = {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}
        await scene.actor.accepted(scene.chat, {"type": "chat/toolCallConfirmed", **ids, **answer})
        await scene.actor.action(_end_of(ready["turnId"]))
        await scene.agrees()
    request = (await scene.turn("/ask", "chat/inputRequested"))["request"]
    await scene.agrees()
    declined = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"}
    await scene.actor.accepted(scene.chat, declined)
    await scene.agrees()
    await scene.actor.accepted(scene.chat, {"type": "chat/truncated", "turnId": "t2"})
    await scene.agrees()


@requirement("gen:mirror:running-host", "extensibility:meta:no-custom-root-fields")
async def test_the_states_of_chats_queues_and_a_session_are_those_of_their_snapshots(scene: Scene) -> None:
    actor, chat = scene.actor, scene.chat
    started = await scene.turn("/sleep 60", "chat/turnStarted")
    for kind, id in (("queued", "q1"), ("queued", "q2"), ("steering", "s")):
        message = {"text": f"/usage {id}", "origin": {"kind": "user"}}
        await actor.accepted(chat, {"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message})
    await actor.accepted(chat, {"type": "chat/queuedMessagesReordered", "order": ["q2", "q1"]})
    await scene.agrees()
    await actor.accepted(chat, {"type": "chat/turnCancelled", "turnId": started["turnId"]})
    await scene.agrees()
    second = "ahp-chat:/aside"
    await actor.ask("createChat", SESSION, chat=second)
    await actor.ask("subscribe", second)
    await scene.mirror.follow(second)
    await scene.turn("/fail no", chat=second)
    await scene.agrees()
    model = {"type": "session/modelChanged", "model": {"id": "demo-large"}}
    flags = (
        {"type": "session/isReadChanged", "isRead": True},
        {"type": "session/isArchivedChanged", "isArchived": True},
    )
    settings = {"type": "session/configChanged", "config": {"greeting": "Hola"}}
    for action in ({"type": "session/titleChanged", "title": "Mine"}, *flags, model, settings):
        await actor.accepted(SESSION, action)
        await scene.agrees()
    note = {
        "id": "n",
        "turnId": "t1",
        "resource": "file:///a",
        "resolved": False,
        "entries": [{"id": "e", "text": "?"}],
    }
    await actor.accepted(f"{SESSION}/annotations", {"type": "annotations/set", "annotation": note})
    await scene.agrees()
    del scene.mirror.states[second]
    await actor.ask("disposeChat", second)
    await scene.agrees()


@requirement("gen:mirror:running-host", "extensibility:meta:no-custom-root-fields")
async def test_the_states_of_customizations_clients_and_changesets_are_those_of_their_snapshots(scene: Scene) -> None:
    actor = scene.actor
    state = await _prepared(actor)
    [skills] = [entry for entry in state["customizations"] if entry["name"] == ".github/skills"]
    for id, on in ((skills["children"][0]["id"], False), (skills["id"], False), (skills["id"], True), ("none", False)):
        await actor.accepted(SESSION, {"type": "session/customizationToggled", "id": id, "enabled": on})
        await scene.agrees()
    scene.repo.write(".github/skills/new/SKILL.md", skill("new"))
    await actor.action(lambda said: "new/SKILL.md" in str(said["action"].get("customization")))
    await scene.agrees()
    plugin = {"type": "plugin", "id": "mine", "uri": "virtual://actor/p", "name": "Mine", "enabled": True}
    active = {"clientId": "actor", "tools": [{"name": "own"}], "customizations": [plugin]}
    await actor.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": active})
    await scene.agrees()
    views = [view["uriTemplate"] for view in state["changesets"] if "{" not in view["uriTemplate"]]
    assert len(views) == 2
    await scene.mirror.follow(*views)
    ready = await scene.turn("/tool own {}", "chat/toolCallReady")
    assert ready["confirmed"] == "not-needed"
    scene.repo.write("a.txt", "2\n3\n")  # A call runs, so what changes now is this turn's.
    ids = {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}
    done = {"success": True, "pastTenseMessage": "Wrote a file"}
    await actor.accepted(scene.chat, {"type": "chat/toolCallComplete", **ids, "result": done})
    await actor.action(_end_of(ready["turnId"]))
    for view in views:
        await scene.mirror.client.action(_shows(view, "a.txt"))
    await scene.agrees()


def _shows(view: str, name: str) -> Callable[[Json], bool]:
    return lambda said: said["channel"] == view and name in str(said["action"])


def _end_of(turn_id: str) -> Callable[[Json], bool]:
    return lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == turn_id
