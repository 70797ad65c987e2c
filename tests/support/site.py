"""A person's machine under attack: a home, a workspace in it, a place outside, and a real host that serves them."""

from __future__ import annotations

import asyncio
import itertools
import json
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.flow import say
from support.process import HostProcess, finish_cli, host_process
from support.raw_client import Json, RawClient
from support.scripted_acp import scripted_command
from support.waiting import BOUND, until

SECRET = "s3cret-of-the-machine"

_numbers = itertools.count(1)


class Site:
    """`home` is the home of whoever runs the host; `outside` lies beside it, and nobody may reach it."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.work = self.home / "work"
        self.outside = top / "outside"
        self.work.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "secret").write_text(SECRET)
        (self.home / ".bashrc").write_text(SECRET)
        self.host: HostProcess
        self.client: RawClient

    @asynccontextmanager
    async def serving(self, *options: str) -> AsyncGenerator[RawClient]:
        """A host, and a client of it."""
        async with host_process(self.home, *options) as self.host:
            self.client = await self.host.client()
            yield self.client
            await self.client.aclose()

    async def session(self, directory: Path | str | None = None, **params: Any) -> tuple[str, str]:
        """A ready session in a directory, the workspace by default, with its chat; both subscribed."""
        uri = f"ahp-session:/site-{next(_numbers)}"
        where = self.work if directory is None else directory
        named = where if isinstance(where, str) else where.as_uri()
        await self.client.ask("createSession", uri, workingDirectory=named, **params)
        state = (await self.client.ask("subscribe", uri))["snapshot"]["state"]
        if state["lifecycle"] == "creating":
            await self.client.action(lambda e: e["channel"] == uri and e["action"]["type"] == "session/ready")
        await self.client.ask("subscribe", state["defaultChat"])
        return uri, state["defaultChat"]

    async def turn(self, chat: str, text: str = "hi") -> Json:
        """Say something and wait for the end of the turn; the action that ended it."""
        turn = f"turn-{next(_numbers)}"
        await self.client.accepted(chat, say(text, turn))
        ends = ("chat/turnComplete", "chat/error")
        envelope = await self.client.action(lambda e: e["action"]["type"] in ends and e["action"].get("turnId") == turn)
        return envelope["action"]

    async def write(self, path: Path, data: str = "EVIL") -> Json | None:
        """Try to write a file; the error, or None when it was written."""
        answer = await self.client.call("resourceWrite", uri=path.as_uri(), data=data, encoding="utf-8")
        return answer.get("error")

    async def run(self, *words: str) -> str:
        """Type a command of the command line on this machine; what it prints."""
        code, output, errors = await finish_cli(list(words), self.home)
        assert code == 0, errors
        return output

    async def shown(self, session: str, name: str, marker: str) -> Json:
        """A container of a session's customizations, once its text has something in it."""
        found: Json = {}

        async def look() -> Json:
            state = (await self.client.ask("subscribe", session))["snapshot"]["state"]
            entries: list[Json] = state.get("customizations", [])
            return next((entry for entry in entries if entry["name"] == name), Json())

        async with asyncio.timeout(BOUND):
            while marker not in json.dumps(found):
                found = await look()
        return found

    def agent(self, *steps: Json) -> list[str]:
        """Options for a host with an agent that plays these steps in each turn and records what it is told."""
        script = self.home / "agent.json"
        record = self.home / "record.jsonl"
        turns = [list(steps)] * 3
        command = scripted_command(script, turns=turns, record=str(record), store=str(self.home / "store"))
        return ["--agent", f"scripted={shlex.join(command)}"]

    @property
    def recorded(self) -> str:
        """Everything that the agent was told."""
        record = self.home / "record.jsonl"
        return record.read_text() if record.exists() else ""

    async def answered(self, count: int = 1) -> list[Any]:
        """The answers to the agent's own requests."""
        answers: list[Any] = []

        def arrived() -> bool:
            messages = [json.loads(line) for line in self.recorded.splitlines()]
            answers[:] = [one.get("error", one.get("result")) for one in messages if "method" not in one]
            return len(answers) >= count

        await until(arrived)
        return answers


__all__ = ["SECRET", "Site"]
