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
from ahpkit.testing.acp_agent import scripted_command
from support.agent_kinds import agent_of_kind
from support.raw_client import Json
from support.repository import Repository
from support.stage import Stage, TurnSeen, staged
from support.waiting import until


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
