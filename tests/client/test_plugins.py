"""Publishing a plugin: two lines, and the host can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.client import Client, InMemoryPlugin
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.testing.fake_host import FakeHost
from ahpkit.testing.memory_host import memory_host
from support import requirement
from support.clients import SESSION, eventually

SKILL = "---\nname: tidy\ndescription: Tidy up\n---\nTidy up."


@requirement("customizations:sources:virtual-plugin", "session:active-client:virtual-plugins")
@pytest.mark.usefixtures("bounded")
async def test_a_real_host_expands_a_plugin_from_memory_into_its_children(tmp_path: Path):
    feature = Customizations(CustomizationSettings(default_directory=tmp_path))
    async with memory_host(DemoAgent(), features=[feature], directory=tmp_path) as host, host.client() as client:
        session = await client.create_session()
        await session.publish_plugin(InMemoryPlugin("notes", {"skills/tidy/SKILL.md": SKILL})).accepted()

        await eventually(lambda: session.customizations("skill"))

        (skill,) = session.customizations("skill")
        assert (skill.entry["name"], skill.entry["description"]) == ("notes:tidy", "Tidy up")
        assert skill.container is not None
        assert (skill.container["name"], skill.container["clientId"]) == ("notes", client.client_id)
        assert skill.container["load"] == {"kind": "loaded"}


async def test_the_host_reads_a_plugin_that_exists_only_in_memory(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    await session.publish_plugin(InMemoryPlugin("notes", {"skills/tidy/SKILL.md": "Tidy up."})).accepted()
    (published,) = host.states[SESSION]["activeClient"]["customizations"]

    listed = await host.request("resourceList", {"channel": "ahp-root://", "uri": published["uri"]})
    read = await host.request(
        "resourceRead", {"channel": "ahp-root://", "uri": f"{published['uri']}/skills/tidy/SKILL.md"}
    )

    assert listed == {"entries": [{"name": "skills", "type": "directory"}]}
    assert read["data"] == "Tidy up."


async def test_a_folder_is_published_under_its_name(host: FakeHost, client: Client, tmp_path: Path):
    folder = tmp_path / "my-plugin"
    folder.mkdir()
    (folder / "plugin.json").write_text('{"name": "x"}')
    session = await client.session(SESSION)
    await session.publish_plugin(folder).accepted()
    (published,) = host.states[SESSION]["activeClient"]["customizations"]

    assert published["name"] == "my-plugin"
    read = await host.request("resourceRead", {"channel": "ahp-root://", "uri": f"{published['uri']}/plugin.json"})
    assert read["data"] == '{"name": "x"}'


async def test_a_folder_that_does_not_exist_is_refused_here(client: Client, tmp_path: Path):
    session = await client.session(SESSION)

    with pytest.raises(FileNotFoundError):
        session.publish_plugin(tmp_path / "nowhere")
