"""After kill -9 every session shows the same customizations as before, byte for byte, once they are read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from customizations.builders import skill, write
from customizations.desk import Publisher, manifest
from support.flow import begun, state_of
from support.process import HostProcess, start_host
from support.raw_client import Json, RawClient
from support.waiting import BOUND

PLUGIN = {".claude-plugin/plugin.json": manifest(), "skills/tidy/SKILL.md": skill("tidy")}


async def newest(host: HostProcess, client_id: str) -> RawClient:
    client = await host.connect(client_id)
    await client.initialize(protocolVersions=["1.0.0"])
    return client


async def settled(client: RawClient, sessions: list[str]) -> dict[str, Json]:
    """What the sessions show once nothing is being read in them any more."""

    def is_read(state: Json) -> bool:
        loads = [entry.get("load", {}).get("kind") for entry in state.get("customizations", [])]
        return bool(loads) and not {"loading", "error"} & {*loads}

    before: dict[str, Json] = {}
    async with asyncio.timeout(BOUND):
        while True:
            states = {uri: await state_of(client, uri) for uri in sessions}
            if states == before and all(map(is_read, states.values())):
                return states
            before = states


async def test_sessions_show_the_same_customizations_after_a_kill(tmp_path: Path) -> None:
    repository, below = tmp_path / "repository", tmp_path / "repository" / "below"
    (repository / ".git").mkdir(parents=True)
    files = {".claude/skills/one/SKILL.md": skill("one"), "below/AGENTS.md": "Be brief.", "below/.keep": ""}
    write(repository, files)
    write(tmp_path, {".claude/skills/mine/SKILL.md": skill("mine")})
    directories = [repository, below, repository, tmp_path]
    sessions = [f"ahp-session:/{number}" for number in range(len(directories))]

    host = await start_host(tmp_path)
    try:
        client, old = await newest(host, "newest"), await host.client(client_id="old")
        for uri, directory in zip(sessions, directories, strict=True):
            await client.ask("createSession", uri, workingDirectories=[directory.as_uri()])
            await begun(client, uri)
        publisher = Publisher(client, PLUGIN)
        published = {"clientId": "newest", "tools": [], "customizations": [publisher.plugin(nonce="1")]}
        await client.accepted(sessions[2], {"type": "session/activeClientSet", "activeClient": published})
        shown = (await settled(client, sessions))[sessions[0]]["customizations"]
        one = next(entry["id"] for entry in shown if entry["name"] == ".claude/skills")
        await old.ask("subscribe", sessions[0])
        await old.accepted(sessions[0], {"type": "session/customizationToggled", "id": one, "enabled": False})
        before = await settled(client, sessions)
        host.kill()
        await publisher.aclose()
        await host.ended()

        host = await start_host(tmp_path)
        client = await newest(host, "newest")
        publisher = Publisher(client, PLUGIN)
        after = await settled(client, sessions)
        await publisher.aclose()
        assert after == before
    finally:
        host.kill()
        await host.ended()
