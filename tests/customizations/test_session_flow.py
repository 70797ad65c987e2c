"""The full session flow of the customizations guide, over a real socket with two clients of the SDK."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from ahpkit.client import InMemoryPlugin, Subscription, connect
from ahpkit.customizations.details import Parsed
from ahpkit.customizations.discovery import Library, Location
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import SCOPES
from ahpkit.testing.memory_host import memory_host
from ahpkit.transports.auth import Authenticator
from customizations.builders import skill, write
from support import requirement
from support.bench import ScriptedAgent
from support.waiting import BOUND


class Held:
    """Lets the host read nothing until `go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        read = Library.read

        def held(library: Library, location: Location) -> Parsed | None:
            self.go.wait(BOUND)
            return read(library, location)

        monkeypatch.setattr(Library, "read", held)


class Log:
    """What one subscriber saw, in short words."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._news = asyncio.Condition()

    async def add(self, action: JsonObject) -> None:
        async with self._news:
            self.lines += describe(action)
            self._news.notify_all()

    async def until(self, found: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(BOUND), self._news:
            await self._news.wait_for(lambda: found(self.lines))


async def follow(subscription: Subscription, log: Log) -> None:
    async for envelope in subscription:
        await log.add(cast("JsonObject", envelope["action"]))


def describe(action: JsonObject) -> list[str]:
    kind = action["type"].removeprefix("session/")
    if kind == "activeClientSet":
        return [f"active: {action['activeClient']['clientId']}"]
    if kind == "activeClientRemoved":
        return [f"left: {action['clientId']}"]
    if kind == "customizationUpdated":
        entry = action["customization"]
        children = f" {[child['name'] for child in entry['children']]}" if "children" in entry else ""
        return [f"{entry['name']}: {entry['load']['kind']}{children}"] if entry["type"] == "plugin" else []
    if kind == "customizationToggled":
        return [f"toggled: {action['enablement'][0]['enabled']}"]
    return ["removed"] if kind == "customizationRemoved" else []


@requirement("customizations:flow:snapshot-then-update")
@requirement("customizations:flow:disconnect-order")
@requirement("customizations:publish:with-active-role")
@requirement("customizations:toggle:container-by-id")
async def test_the_full_session_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin_a = write(tmp_path / "a", {".plugin/plugin.json": {"name": "A"}, "skills/one/SKILL.md": skill("one")})
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    feature = Customizations(CustomizationSettings(default_directory=work, plugins=[plugin_a]))
    host = Host(
        MemoryStorage(),
        agents=[ScriptedAgent()],
        features=[feature],
        config=HostConfig(default_directory=work, client_grace=0.1),
    )
    async with host, serve_http(host.serve, auth=Authenticator(None), port=0) as server:
        reading = Held(monkeypatch)  # Not before: a host reads its own plugins when it starts.
        async with connect(server.url, client_id="looker") as looker:
            # 1. A client subscribes while plugin A is parsed.
            uri = "ahp-session:/flow"
            await looker.request("createSession", {"workingDirectories": [work.as_uri()]}, channel=uri)
            async with looker.subscribe(uri) as early:
                await early.wait_for(lambda state: "customizations" in state)
            async with looker.subscribe(uri) as subscription:
                log = Log()
                follower = asyncio.create_task(follow(subscription, log))
                shown = {entry["name"]: entry for entry in subscription.confirmed["customizations"]}
                assert shown["a"]["load"] == {"kind": "loading"}
                assert "children" not in shown["a"]
                reading.go.set()
                await log.until(lambda lines: "A: loaded ['A:one']" in lines)

                # 2. Another client becomes active with its own plugin.
                async with connect(server.url, client_id="owner") as owner:
                    session = await owner.session(uri)
                    await session.publish_plugin(InMemoryPlugin("C", {"skills/two/SKILL.md": skill("two")}))
                    await log.until(lambda lines: "C: loaded ['C:two']" in lines)

                    # 3. It disables plugin A.
                    [plugin] = [one.entry for one in session.customizations("plugin") if one.entry["name"] == "A"]
                    await session.toggle_customization(plugin["id"], False)
                    await log.until(lambda lines: "toggled: False" in lines)

                # 4. It disconnects.
                await log.until(lambda lines: lines[-1] == "removed")
                follower.cancel()
    assert log.lines == [
        "A: loaded ['A:one']",
        "active: owner",
        "C: loading",
        "C: loaded ['C:two']",
        "toggled: False",
        "left: owner",
        "removed",
    ]


async def test_a_program_takes_decisions_back_and_exchanges_a_directory(tmp_path: Path) -> None:
    plugin_a = tmp_path / "a"
    write(plugin_a, {"plugin.json": {"name": "A"}, "skills/one/SKILL.md": skill("one")})
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    feature = Customizations(CustomizationSettings(default_directory=first, plugins=[plugin_a]))
    agent = ScriptedAgent()
    agent.directories = {"primaryReplacement": True}
    async with memory_host(agent, features=[feature], directory=first) as host, host.client() as client:
        session = await client.create_session(working_directory=first.as_uri())
        [plugin] = session.customizations("plugin")

        for scope in SCOPES:
            await session.toggle_customization(plugin.entry["id"], False, scope=scope).accepted()
        [off] = session.customizations("plugin")
        assert (off.effective.enabled, len(off.entry["enablement"])) == (False, 3)
        await session.forget_decisions(plugin.entry["id"]).accepted()
        [on] = session.customizations("plugin")
        assert on.effective.enabled
        another = await client.create_session(working_directory=first.as_uri())
        [there] = another.customizations("plugin")
        assert there.effective.enabled

        await session.replace_directory(first.as_uri(), second.as_uri()).accepted()
        assert session.state.get("workingDirectories") == [second.as_uri()]
