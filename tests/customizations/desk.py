"""A host with customizations and clients around it: what the feature's tests work at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.host.resources.feature import Resources
from customizations.builders import Files, write
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND


class Desk:
    """One host; `start` it after the files are there, again after `stop` to see what survives."""

    def __init__(self, workspace: Path, home: Path) -> None:
        self.workspace = workspace
        self.home = home
        self.bench = Bench(workspace)
        self.customizations: Customizations

    def files(self, files: Files) -> None:
        write(self.workspace, files)

    async def start(self, **settings: Any) -> RawClient:
        """Bring the host up; returns its first client."""
        defaults: dict[str, Any] = {"default_directory": self.workspace, "home": self.home, "start_timeout": BOUND}
        self.customizations = Customizations(CustomizationSettings(**{**defaults, **settings}))
        self.bench.features = [Resources(content_directory=self.home.parent / "content"), self.customizations]
        await self.bench.start()
        return await self.bench.client()

    async def stop(self) -> None:
        await self.bench.stop()

    async def session(self, client: RawClient, **params: Any) -> tuple[str, str]:
        return await self.bench.session(client, workingDirectory=self.workspace.as_uri(), **params)

    async def containers(self, client: RawClient, session: str) -> dict[str, Json]:
        state = await self.bench.state(client, session)
        return {entry["name"]: entry for entry in state.get("customizations", [])}

    async def read(self, client: RawClient, session: str, name: str) -> Json:
        """A container, once it was read."""
        async with asyncio.timeout(BOUND):
            while "children" not in (entry := (await self.containers(client, session)).get(name, {})):
                pass
        return entry

    async def turn(self, client: RawClient, chat: str, text: str, **message: Any) -> Turn:
        """Say something, wait until the agent got it, and return the turn as the agent saw it."""
        count = len(self.bench.agent.turns)
        turn_id = f"turn-{count}"
        action = say(text, turn_id)
        action["message"] |= message
        await client.accepted(chat, action)
        ended = ("chat/turnComplete", "chat/error")
        await client.action(
            lambda envelope: envelope["action"]["type"] in ended and envelope["action"]["turnId"] == turn_id
        )
        return self.bench.agent.turns[count]


def updates(client: RawClient, session: str, id: str | None = None) -> list[Json]:
    """The customization actions a client saw so far."""
    actions = [envelope["action"] for envelope in client.actions(session)]
    return [
        action
        for action in actions
        if action["type"].startswith("session/customization")
        and id in (None, action.get("id"), action.get("customization", {}).get("id"))
    ]


async def seen(client: RawClient, found: Callable[[Json], bool]) -> Json:
    """Wait for a `session/customizationUpdated` whose container is as `found` says."""

    def matches(envelope: Json) -> bool:
        action = envelope["action"]
        return action["type"] == "session/customizationUpdated" and found(action["customization"])

    return (await client.action(matches))["action"]["customization"]


class Publisher:
    """A client that shows files of a plugin to the host when it is asked; `silent` ones never answer."""

    def __init__(self, client: RawClient, files: Mapping[str, str], *, uri: str = "virtual://me/plugin") -> None:
        self.client = client
        self.files = files
        self.uri = uri
        self.asked: list[str] = []
        self.silent = False
        self.answer: Callable[[Json], Json | None] | None = None
        self._task = asyncio.create_task(self._serve())

    def plugin(self, **fields: Any) -> Json:
        return {"type": "plugin", "id": "mine", "uri": self.uri, "name": "Mine", "enabled": True, **fields}

    async def claim(self, session: str, *plugins: Json) -> Json:
        """Take the active role with these plugins."""
        active = {"clientId": self.client.client_id, "tools": [], "customizations": list(plugins)}
        return await self.client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=BOUND)

    async def _serve(self) -> None:
        done: set[Any] = set()
        while True:
            request = await self.client.wait(
                lambda message: str(message.get("method", "")).startswith("resource") and message.get("id") not in done
            )
            done.add(request["id"])
            self.asked.append(f"{request['method']} {request['params']['uri'].removeprefix(self.uri)}")
            if not self.silent:
                result = (self.answer and self.answer(request)) or self._result(request)
                self.client.send({"jsonrpc": "2.0", "id": request["id"], **result})

    def _result(self, request: Json) -> Json:
        path = request["params"]["uri"].removeprefix(self.uri).strip("/")
        if request["method"] == "resourceRead":
            return {"result": {"data": self.files[path], "encoding": "utf-8"}}
        inside = [name.removeprefix(f"{path}/" if path else "") for name in self.files if name.startswith(path)]
        entries = {rest.split("/")[0]: "directory" if "/" in rest else "file" for rest in inside}
        return {"result": {"entries": [{"name": name, "type": kind} for name, kind in entries.items()]}}


def manifest(**fields: Any) -> str:
    return json.dumps({"name": "mine", **fields})
