"""Starting and stopping: what was started is ended, also when a start fails; a restart writes no more than it must."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.host import steady
from ahpkit.host.registration import Command, Registration
from ahpkit.log.datadir import open_storage
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.wire.codec import decode_json
from support.bench import Bench


class Part(Feature):
    """Says when it is started and ended; fails to start if told so."""

    def __init__(self, name: str, told: list[str], *, fails: bool = False) -> None:
        self.name = name
        self._told = told
        self._fails = fails

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.recover.add(lambda: self._told.append(f"recover {self.name}"))

    async def start(self) -> None:
        self._told.append(f"start {self.name}")
        self._services.spawn(self._wait(), name=self.name)
        if self._fails:
            raise ZeroDivisionError

    async def _wait(self) -> None:
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self._told.append(f"end {self.name}")


async def test_everything_is_recovered_before_anything_is_started(tmp_path: Path) -> None:
    bench, told = Bench(tmp_path), list[str]()
    bench.features = [Part("a", told), Part("b", told)]
    await bench.start()
    await bench.stop()
    assert told == ["recover a", "recover b", "start a", "start b", "end b", "end a"]


async def test_a_start_that_fails_ends_everything_that_was_started(tmp_path: Path) -> None:
    bench, told = Bench(tmp_path), list[str]()
    bench.storage = open_storage(tmp_path, "full")
    bench.features = [Part("a", told), Part("b", told, fails=True), Part("c", told)]
    before, tasks = set(threading.enumerate()), asyncio.all_tasks()
    with pytest.raises(ZeroDivisionError):
        await bench.start()
    assert told[3:] == ["start a", "start b", "end b", "end a"]
    assert asyncio.all_tasks() == tasks
    assert {thread.name for thread in set(threading.enumerate()) - before if "ahpkit" in thread.name} == set()


def test_two_features_cannot_offer_the_same_thing() -> None:
    host = Registration()
    host.turns.content.provide(lambda session, data, kind: "ahp-content:/x")
    with pytest.raises(LocalProtocolError, match="stores content already"):
        host.turns.content.provide(lambda session, data, kind: "ahp-content:/y")


async def test_a_restart_that_changes_nothing_lists_the_agents_not_again(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    (plugin / ".plugin").mkdir(parents=True)
    (plugin / ".plugin" / "plugin.json").write_text('{"name": "p"}')
    bench = Bench(tmp_path)

    def features() -> list[Feature]:
        return [Customizations(CustomizationSettings(default_directory=tmp_path, plugins=[plugin]))]

    for _ in range(3):
        bench.features = features()
        await bench.start()
        client = await bench.client("ahp-root://")
        [agent] = (await bench.state(client, "ahp-root://"))["agents"]
        assert [one["name"] for one in agent["customizations"]]
        entries = await bench.host.spine.log.read(0)
        listed = [entry for entry in entries if decode_json(entry.payload)["action"]["type"] == "root/agentsChanged"]
        assert listed == []
        await bench.stop()


def plugin(name: str) -> dict[str, str]:
    return {"type": "plugin", "id": name, "uri": f"file:///{name}", "name": name}


@pytest.mark.parametrize("registered", ["x-acme/notes", "_acme/notes"])
async def test_a_command_of_a_feature_is_served_under_both_forms_of_its_private_name(
    tmp_path: Path, registered: str
) -> None:
    heard: list[Any] = []

    async def notes(client: ConnectedClient, params: Any) -> Mapping[str, Any]:
        return {"notes": ["milk"]}

    class Notes(Feature):
        def register(self, host: Registration, services: Services) -> None:
            host.commands.add(Command(registered, notes))
            host.commands.hear(f"{registered}/seen", lambda client, params: heard.append(params["at"]))

    bench = Bench(tmp_path)
    bench.features = [Notes()]
    await bench.start()
    try:
        client = await bench.client()
        for name in ("x-acme/notes", "_acme/notes"):
            client.send({"jsonrpc": "2.0", "method": f"{name}/seen", "params": {"channel": "ahp-root://", "at": name}})
            assert await client.ask(name) == {"notes": ["milk"]}
        assert heard == ["x-acme/notes", "_acme/notes"]
    finally:
        await bench.stop()


async def test_an_agent_that_changes_keeps_what_features_say_about_it(tmp_path: Path) -> None:
    class Describes(Feature):
        def register(self, host: Registration, services: Services) -> None:
            host.agents.describe.add(lambda provider: {"customizations": [plugin(provider)]})

    bench = Bench(tmp_path)
    bench.features = [Describes()]
    await bench.start()
    try:
        client = await bench.client("ahp-root://")
        bench.agent.description = "changed"
        bench.agent.changed()
        envelope = await client.action("root/agentsChanged")
        [agent] = envelope["action"]["agents"]
        assert agent["description"] == "changed"
        assert [one["name"] for one in agent["customizations"]] == ["scripted"]
        assert len(await bench.host.spine.log.read(0, channels=["ahp-root://"])) == 1
    finally:
        await bench.stop()


async def test_an_agent_of_two_hosts_is_told_of_by_both_until_they_stop(tmp_path: Path) -> None:
    first, second = Bench(tmp_path), Bench(tmp_path)
    second.agent = first.agent
    await first.start()
    await second.start()
    try:
        readers = [await bench.client("ahp-root://") for bench in (first, second)]
        first.agent.description = "for both"
        first.agent.changed()
        told = [(await reader.action("root/agentsChanged"))["action"]["agents"] for reader in readers]
        assert [agent["description"] for [agent] in told] == ["for both", "for both"]
        await first.stop()
        first.agent.description = "for one"
        first.agent.changed()
        await readers[1].action(lambda envelope: envelope["action"]["agents"][0]["description"] == "for one")
    finally:
        await second.stop()
    first.agent.description = "for nobody"
    first.agent.changed()


def test_it_follows_the_clock_and_stands_still_while_that_is_behind() -> None:
    times = iter([100, 105, 90, 104, 106])
    now = steady(lambda: next(times))
    assert [now() for _ in range(5)] == [100, 105, 105, 105, 106]


def test_it_comes_back_from_a_future_that_was_a_mistake() -> None:
    day = 24 * 3600 * 1000
    times = iter([100, 100 + day, 110, 120, 115])
    now = steady(lambda: next(times))
    assert [now() for _ in range(5)] == [100, 100 + day, 110, 120, 120]
