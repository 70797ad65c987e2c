"""An edit is a change of its turn that is shown and taken back, whoever made it: each kind of agent, in its own way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.python import PythonAgent
from ahpkit.agents.tools import Toolbox
from ahpkit.changes.feature import Changesets
from ahpkit.host.agent import Agent, Turn
from ahpkit.host.resources.feature import Resources
from support import requirement
from support.agent_kinds import agent_of_kind
from support.raw_client import Json
from support.repository import Repository
from support.scripted_acp import scripted_command
from support.stage import Stage, TurnSeen, staged
from support.waiting import a_moment, until


@asynccontextmanager
async def editor(kind: str, directory: Path, target: Path) -> AsyncGenerator[Agent]:
    """An agent that writes the file when it is asked to, with a tool of its own where it has one."""
    tools = Toolbox()

    @tools.tool(approval=False)
    def write() -> str:
        "Write the file."
        target.write_text("hello")
        return "written"

    async def function(turn: Turn) -> str:
        await asyncio.to_thread(target.write_text, "hello")
        return "written"

    if kind == "python":
        yield PythonAgent(function, name="python")
    elif kind == "demo":
        yield DemoAgent()  # It has no tool that writes: the tool of a client does.
    elif kind == "model":
        async with agent_of_kind("model", directory, tools=tools) as agent:
            yield agent
    else:
        shown = {"type": "diff", "path": str(target), "oldText": None, "newText": "hello"}
        call = {"toolCallId": "1", "title": "Write", "kind": "edit", "status": "in_progress", "content": [shown]}
        steps = [
            {"update": {"sessionUpdate": "tool_call", **call}},
            {"file": str(target), "content": "hello"},
            {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}},
            {"text": "written"},
        ]
        command = scripted_command(directory / "script.json", turns=[steps])
        yield AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:])))


@pytest.mark.parametrize("kind", ["python", "model", "demo", "acp"])
async def test_an_edit_is_a_change_of_its_turn_and_is_undone(tmp_path: Path, kind: str) -> None:
    repository = Repository(tmp_path / "work")
    repository.commit(kept_txt="as it was\n")
    target = repository.root / "written.txt"

    def write(given: Json) -> str:
        target.write_text("hello")
        return "written"

    changes = Changesets(tmp_path / "ours", default_directory=repository.root)
    resources = Resources(content_directory=tmp_path / "content")
    async with editor(kind, tmp_path, target) as agent, staged(agent, tmp_path, features=[resources, changes]) as stage:
        stage.tools = {"show_note": write}
        turn = await stage.turn('CALL show_note {"text": "x"}' if kind == "demo" else "CALL write {}")
        assert target.read_text() == "hello"
        await is_undone(stage, turn, target)
        assert (repository.root / "kept.txt").read_text() == "as it was\n"


async def is_undone(stage: Stage, turn: TurnSeen, target: Path) -> None:
    """The new file is the one change of the turn, with its content, and gone after the undo."""
    catalogue = (await stage.state())["changesets"]
    [of_turn] = [entry["uriTemplate"] for entry in catalogue if entry["changeKind"] == "turn"]
    uri = of_turn.replace("{turnId}", turn.record["id"])
    files = await _files(stage, uri, lambda files: bool(files))
    assert [file["id"] for file in files] == [target.as_uri()]
    assert "before" not in files[0]["edit"]
    shown = files[0]["edit"]["after"]["content"]["uri"]
    assert (await stage.client.ask("resourceRead", uri=shown, encoding="utf-8"))["data"].strip() == "hello"
    await stage.client.ask("invokeChangesetOperation", uri, operationId="undo")
    await until(lambda: not target.exists())


async def _files(stage: Stage, uri: str, found: Callable[[list[Json]], bool]) -> list[Json]:
    """The files of a changeset, once they are as wanted."""
    async with asyncio.timeout(stage.seconds):
        while True:
            state = (await stage.client.ask("subscribe", uri))["snapshot"]["state"]
            if state["status"] == "ready" and found(state["files"]):
                return state["files"]
            await asyncio.sleep(0.1)


WORK = "".join(f"{number}\n" for number in range(20))


@asynccontextmanager
async def asking_editor(kind: str, directory: Path, target: Path) -> AsyncGenerator[Agent]:
    """An agent that asks before it changes the first line of a file that it names."""
    tools = Toolbox()

    def change() -> None:
        target.write_text(target.read_text().replace("0\n", "agent\n", 1))

    @tools.tool
    async def edit(path: str) -> str:
        "Change the file."
        change()
        await a_moment()
        return "changed"

    if kind == "acp":
        shown = {"type": "diff", "path": str(target), "oldText": "0\n", "newText": "agent\n"}
        call = {"toolCallId": "1", "title": "Edit", "kind": "edit", "rawInput": {"file_path": str(target)}}
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        asked = {"sessionId": "{session}", "toolCall": {**call, "content": [shown]}, "options": options}
        steps = [
            {"update": {"sessionUpdate": "tool_call", **call, "status": "pending"}},
            {"request": "session/request_permission", "params": asked},
            {"edit": str(target), "old": "0\n", "new": "agent\n"},
            {"sleep": 0.1},
            {
                "update": {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": "1",
                    "status": "completed",
                    "content": [shown],
                }
            },
            {"text": "changed"},
        ]
        command = scripted_command(directory / "script.json", turns=[steps])
        yield AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:])))
    elif kind == "alone":

        async def alone(turn: Turn) -> str:
            call = turn.tool_call("think")
            await call.confirm(tool_input="{}", title="May I?")
            change()
            call.complete()
            return "changed"

        yield PythonAgent(alone, name="python")
    else:
        async with agent_of_kind(kind, directory, tools=tools) as agent:
            yield agent


@requirement("changesets:undo:while-a-turn-runs")
@pytest.mark.parametrize("kind", ["alone", "model", "demo", "acp"])
async def test_what_a_person_writes_while_they_are_asked_outlives_the_undo_of_the_turn(
    tmp_path: Path, kind: str
) -> None:
    """Into the very file that the agent asks about, and into another one. An agent that writes by itself is told apart
    from nobody: then the undo says so, and can be brought back."""
    repository = Repository(tmp_path / "work")
    repository.commit(a_txt=WORK)
    target, mine = repository.root / "a.txt", repository.root / "mine.txt"

    def write() -> None:
        target.write_text(target.read_text() + "me\n")
        mine.write_text("me\n")

    prompt = 'CALL calculate {"expression": "1+1"}' if kind == "demo" else 'CALL edit {"path": "a.txt"}'
    changes = Changesets(tmp_path / "ours", default_directory=repository.root)
    features = [Resources(content_directory=tmp_path / "content"), changes]
    async with asking_editor(kind, tmp_path, target) as agent, staged(agent, tmp_path, features=features) as stage:
        turn = await stage.turn(prompt, decisions=["allow-once"], meanwhile=write)
        [of_turn] = [one["uriTemplate"] for one in (await stage.state())["changesets"] if one["changeKind"] == "turn"]
        uri = of_turn.replace("{turnId}", turn.record["id"])
        if kind == "demo":  # It has no tool that writes.
            assert await _files(stage, uri, lambda files: True) == []
            return
        shown = {file["id"] for file in await _files(stage, uri, lambda files: bool(files))}
        said = (await stage.client.ask("invokeChangesetOperation", uri, operationId="undo"))["message"]
        if kind == "alone":
            assert shown == {target.as_uri(), mine.as_uri()}
            assert said == "Undid 2 files. It is not known who wrote a.txt, mine.txt; redo brings the content back."
            await stage.client.ask("invokeChangesetOperation", uri, operationId="redo")
            assert target.read_text() == WORK.replace("0\n", "agent\n", 1) + "me\n"
        else:
            assert shown == {target.as_uri()}
            assert "mine.txt: somebody else wrote it while the turn ran" in said
            assert target.read_text() == WORK + "me\n"
        assert mine.read_text() == "me\n"
