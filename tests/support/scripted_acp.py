"""Scripted ACP agents for tests: made from scripts, talked to over real pipes."""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.agents.acp.chat import AcpChat
from ahpkit.host.agent import Chat
from ahpkit.host.resources.access import Access
from ahpkit.host.resources.agent_files import AgentFiles
from ahpkit.host.resources.session_directories import NamedDirectory, OpenedDirectories, real_places
from ahpkit.testing import acp_agent
from ahpkit.testing.recording import RecordingChat, RecordingTurn
from support.template import command

MARK = "AHPKIT_TEST"

_OF_THE_PROCESS = ('"spawn"', '"kill"')
"""Steps that affect the process itself or its child processes."""


def scripted_command(path: Path, **script: Any) -> list[str]:
    """Write a script and return the command line that plays it.

    A copy of the template plays it, because a fresh process spends 0.15 s of CPU on imports. If a test looks at the
    process itself, a fresh process plays it.
    """
    fresh = acp_agent.scripted_command(path, **script)
    if any(step in path.read_text() for step in _OF_THE_PROCESS):
        return fresh
    return [*command(acp_agent.__name__), str(path)]


def directory_files(chat: Chat) -> AgentFiles:
    """The files of a chat's working directory, as the host's resources serve them to agents."""
    opened = OpenedDirectories()
    opened.set("session", real_places([NamedDirectory("work", chat.working_directory)]))

    async def nothing_unsaved(uri: str) -> None:
        return None

    return AgentFiles(chat.working_directory, Access(opened), unsaved=nothing_unsaved, run=asyncio.to_thread)


class Scripted:
    """Makes agents from scripts, and opens chats with them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.agents: list[AcpAgent] = []

    def agent(
        self, *, config: dict[str, Any] | None = None, given: dict[str, Any] | None = None, **script: Any
    ) -> AcpAgent:
        """`config` for the agent's settings, `given` for what the host injects, the rest is the script."""
        files = {"store": str(self.directory / "store"), "record": str(self.directory / "record.jsonl")}
        number = len(self.agents)
        command = scripted_command(self.directory / f"script-{number}.json", **{**files, **script})
        settings: dict[str, Any] = {
            "name": "scripted",
            "command": command[0],
            "args": tuple(command[1:]),
            **(config or {}),
        }
        env = {MARK: str(self.directory), **settings.pop("env", {})}
        injected: dict[str, Any] = {"files": directory_files, **(given or {})}
        agent = AcpAgent(AcpAgentConfig(env=env, **settings), **injected)
        self.agents.append(agent)
        return agent

    def chat(self, **facts: Any) -> RecordingChat:
        workspace = self.directory / "workspace"
        workspace.mkdir(exist_ok=True)
        return RecordingChat(working_directory=workspace, **facts)

    async def open(self, **script: Any) -> tuple[AcpChat, RecordingChat]:
        chat = self.chat()
        return await self.agent(**script).open(chat), chat

    async def run(self, *steps: dict[str, Any], turn: RecordingTurn | None = None, **script: Any) -> RecordingTurn:
        """Play one turn and return what was said."""
        opened, chat = await self.open(turns=[list(steps)], **script)
        turn = turn or RecordingTurn("hello")
        turn.chat = chat
        await opened.run(turn)
        return turn

    def received(self, method: str) -> list[Any]:
        """The params of every message of that method the agents got."""
        lines = (self.directory / "record.jsonl").read_text().splitlines()
        return [message["params"] for message in map(json.loads, lines) if message.get("method") == method]

    def answers(self) -> list[Any]:
        """What the agents were answered, results and errors."""
        lines = (self.directory / "record.jsonl").read_text().splitlines()
        messages = [message for message in map(json.loads, lines) if "method" not in message]
        return [message.get("result", message.get("error")) for message in messages]

    def running(self) -> list[int]:
        """Every process that descends from an agent of this test."""
        mark = f"{MARK}={self.directory}".encode()
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environ = (process / "environ").read_bytes()
                if mark in environ.split(b"\0") or (not environ and _is_ending_child(process)):
                    found.append(int(process.name))
        return found


def _is_ending_child(process: Path) -> bool:
    """Whether this is a child that is just ending: its memory is freed, but its pipes are still open."""
    state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    return state not in "ZX" and int(parent) == os.getpid()
