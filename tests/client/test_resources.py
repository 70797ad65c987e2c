"""Files shown to the host: from memory and from a folder, and nothing beside them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.client import Client, InMemoryPlugin
from ahpkit.client.resources import FolderResources, MemoryResources, ResourceProvider, Resources, fingerprint
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.protocol.errors import NotFound, PermissionDenied
from ahpkit.testing.fake_host import FakeHost
from ahpkit.testing.memory_host import memory_host
from ahpkit.wire.errors import InvalidParams
from support import requirement
from support.clients import SESSION, eventually

FILES = {"plugin.json": "{}", "skills/tidy/SKILL.md": "Tidy up.", "icon.png": b"\x89PNG\xff"}


@pytest.fixture(params=["memory", "folder"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> ResourceProvider:
    if request.param == "memory":
        return MemoryResources(FILES)
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return FolderResources(tmp_path)


@pytest.fixture
def resources(provider: ResourceProvider) -> Resources:
    resources = Resources("me & co")
    resources.mount("my plugin", provider, user="one")
    return resources


BASE = "virtual://me%20%26%20co/my%20plugin"


async def ask(resources: Resources, verb: str, path: str = "", **fields: Any) -> Any:
    return await resources.answer(f"resource{verb}", {"channel": "ahp-root://", "uri": BASE + path, **fields})


async def test_text_is_read_as_text_and_bytes_as_base64(resources: Resources):
    assert await ask(resources, "Read", "/skills/tidy/SKILL.md") == {
        "data": "Tidy up.",
        "encoding": "utf-8",
        "contentType": "text/markdown",
    }
    assert await ask(resources, "Read", "/icon.png") == {
        "data": base64.b64encode(b"\x89PNG\xff").decode(),
        "encoding": "base64",
        "contentType": "image/png",
    }
    assert (await ask(resources, "Read", "/plugin.json", encoding="base64"))["data"] == base64.b64encode(b"{}").decode()


async def test_directories_are_listed(resources: Resources):
    assert await ask(resources, "List") == {
        "entries": [
            {"name": "icon.png", "type": "file"},
            {"name": "plugin.json", "type": "file"},
            {"name": "skills", "type": "directory"},
        ]
    }
    assert await ask(resources, "List", "/skills/") == {"entries": [{"name": "tidy", "type": "directory"}]}


@requirement("core:resource:resolve")
async def test_resolving_tells_type_size_and_etag(resources: Resources):
    file = await ask(resources, "Resolve", "/plugin.json")
    assert (file["uri"], file["type"], file["size"]) == (f"{BASE}/plugin.json", "file", 2)
    assert file["etag"] != (await ask(resources, "Resolve", "/icon.png"))["etag"]
    assert await ask(resources, "Resolve", "/skills") == {"uri": f"{BASE}/skills", "type": "directory"}


@pytest.mark.parametrize("path", ["/nothing", "/skills", "/../secret", "/skills/../../secret", "/%2e%2e/secret"])
async def test_what_is_not_a_file_of_the_tree_is_not_found(resources: Resources, path: str):
    with pytest.raises(NotFound):
        await ask(resources, "Read", path)


async def test_listing_a_file_or_nothing_is_not_found(resources: Resources):
    for path in ("/plugin.json", "/nothing"):
        with pytest.raises(NotFound):
            await ask(resources, "List", path)


@pytest.mark.parametrize("uri", ["virtual://someone/else", BASE + "-too", "file:///etc/passwd"])
async def test_uris_outside_of_what_is_shown_are_not_found(resources: Resources, uri: str):
    with pytest.raises(NotFound):
        await resources.answer("resourceRead", {"uri": uri})


@pytest.mark.parametrize("verb", ["Write", "Delete", "Mkdir", "Request"])
async def test_nothing_can_be_changed(resources: Resources, verb: str):
    with pytest.raises(PermissionDenied, match="read-only"):
        await ask(resources, verb, "/plugin.json")


async def test_copies_and_moves_are_refused_by_their_source(resources: Resources):
    for verb in ("Copy", "Move"):
        with pytest.raises(PermissionDenied):
            await resources.answer(f"resource{verb}", {"source": f"{BASE}/plugin.json", "destination": f"{BASE}/x"})


async def test_a_request_without_a_uri_is_malformed(resources: Resources):
    with pytest.raises(InvalidParams):
        await resources.answer("resourceRead", {"uri": 5})


async def test_a_tree_that_is_no_longer_shown_is_gone(resources: Resources):
    resources.unmount(BASE, user="one")

    with pytest.raises(NotFound):
        await ask(resources, "List")


async def test_links_out_of_a_folder_and_its_git_directory_are_not_shown(tmp_path: Path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    for directory in (outside, folder / ".git"):
        directory.mkdir(parents=True)
        (directory / "secret").write_text("secret")
    (folder / "inside").write_text("fine")
    (folder / "link").symlink_to(outside)
    (folder / "alias").symlink_to(folder / "inside")
    shown = FolderResources(folder)

    assert shown.entries("") == {"alias": "file", "inside": "file"}
    assert shown.read("alias") == b"fine"
    for path in ("link/secret", ".git/secret"):
        with pytest.raises(FileNotFoundError):
            shown.read(path)


def test_a_fingerprint_changes_with_any_name_or_content():
    prints = {
        fingerprint(MemoryResources(files))
        for files in ({"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": ""}, {"a/b": "1"}, {})
    }
    assert len(prints) == 6
    assert fingerprint(MemoryResources({"a": "1"})) == fingerprint(MemoryResources({"a": b"1"}))


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "here").symlink_to(tmp_path)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "other").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "back").symlink_to(tmp_path / "a")
    shown = FolderResources(tmp_path)

    assert shown.entries("") == {"a": "directory", "b": "directory"}
    assert shown.entries("a/other") == {"file": "file"}
    assert fingerprint(shown)


SKILL = "---\nname: tidy\ndescription: Tidy up\n---\nTidy up."


@requirement("customizations:sources:virtual-plugin", "session:active-client:virtual-plugins")
@requirement("gen:enablement:client-global", "session:summary:agent-uri")
@pytest.mark.usefixtures("bounded")
async def test_a_real_host_expands_a_plugin_from_memory_into_its_children(tmp_path: Path):
    feature = Customizations(CustomizationSettings(default_directory=tmp_path))
    async with memory_host(DemoAgent(), features=[feature], directory=tmp_path) as host, host.client() as client:
        session = await client.create_session()
        files = {"skills/tidy/SKILL.md": SKILL, "agents/critic.md": "No."}
        await session.publish_plugin(InMemoryPlugin("notes", files)).accepted()

        await eventually(lambda: session.customizations("skill"))

        (agent,) = session.customizations("agent")
        await session.set_agent(agent.entry["uri"]).accepted()
        named = {one.entry["uri"]: one.entry["name"] for one in session.customizations("agent")}
        assert named[session.selection["agent"]["uri"]] == "notes:critic"
        (skill,) = session.customizations("skill")
        assert (skill.entry["name"], skill.entry["description"]) == ("notes:tidy", "Tidy up")
        assert skill.container is not None
        assert (skill.container["name"], skill.container["clientId"]) == ("notes", client.client_id)
        assert skill.container["load"] == {"kind": "loaded"}
        assert skill.container["enablement"] == [{"kind": "global", "enabled": True}]


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
