"""Sessions live below allowed roots, and nothing outside of them is served."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from support import requirement
from support.process import environment
from support.raw_client import Json, RawClient
from support.site import SECRET, Site
from support.template import start
from support.waiting import BOUND

DENIED = -32009

NOWHERE = [
    "file:///",
    "file://localhost/",
    "file:////",
    "file:///etc",
    "file:///%65tc",
    "file:///etc/.",
    "file:///home/../etc",
    "file:///proc/self",
    "file:///dev",
    "file:///usr/share",
    "file:///var/lib",
]


@requirement("security:roots:outside-refused")
async def test_a_session_in_the_system_is_refused_and_the_refusal_names_the_option(site: Site) -> None:
    calls: list[tuple[str, str, Json]] = [
        ("createSession", "ahp-session:/x", {}),
        ("resolveSessionConfig", "ahp-root://", {}),
        ("sessionConfigCompletions", "ahp-root://", {"property": "x"}),
    ]
    async with site.serving() as client:
        for uri in NOWHERE:
            for method, channel, params in calls:
                error = await client.refused(method, channel, workingDirectory=uri, **params)
                assert error["code"] == DENIED, (method, uri)
                assert "--root" in error["message"]
        assert "error" in await client.call("subscribe", "ahp-session:/x")


@requirement("security:roots:outside-refused")
async def test_every_way_out_of_a_session_at_home_is_shut(site: Site) -> None:
    data, runtime = site.home / "data", site.home / "runtime"
    (site.work / "door").symlink_to("/")
    (site.work / "token").symlink_to(data / "token")
    async with site.serving() as client:
        await site.session(site.home)
        for path in (
            "/proc/self/environ",
            "/etc/shadow",
            str(data / "token"),
            str(data / "log.db"),
            str(data / "roots.json"),
            str(runtime),
            str(site.home / ".bashrc"),
            str(site.home / ".ssh"),
            str(site.home / ".config" / "x"),
            str(site.outside / "secret"),
            str(site.work / "door" / "etc" / "shadow"),
            str(site.work / "token"),
            f"{site.work}/../../outside/secret",
            f"{site.work}/%2e%2e/%2e%2e/outside/secret",
        ):
            for method in ("resourceRead", "resourceList", "resourceResolve", "createResourceWatch"):
                answer = await client.call(method, uri=f"file://{path}")
                assert answer.get("error", {}).get("code") == DENIED, (method, path, answer)
            if path != str(site.work / "token"):  # The link itself is the client's to delete.
                assert (await client.refused("resourceDelete", uri=f"file://{path}"))["code"] == DENIED
        assert SECRET not in json.dumps(client.received)
        assert (data / "token").exists()


@requirement("security:roots:outside-refused")
async def test_nothing_is_made_changed_or_taken_outside(site: Site) -> None:
    (site.work / "mine").write_text("mine")
    mine = (site.work / "mine").as_uri()
    async with site.serving() as client:
        await site.session(site.home)
        for path in (
            site.home / ".bashrc",
            site.home / ".profile",
            site.home / ".ssh" / "authorized_keys",
            site.home / ".config" / "autostart" / "x.desktop",
            site.home / ".claude" / "settings.json",
            site.home / "data" / "trust" / "trust.json",
            site.home / "data" / "roots.json",
            site.outside / "new",
            Path("/etc/cron.d/evil"),
        ):
            error = await site.write(path)
            assert error is not None, path
            assert error["code"] == DENIED, path
            for method, params in (
                ("resourceCopy", {"source": mine, "destination": path.as_uri()}),
                ("resourceMove", {"source": mine, "destination": path.as_uri()}),
                ("resourceMkdir", {"uri": path.as_uri()}),
                ("resourceDelete", {"uri": path.as_uri()}),
            ):
                assert (await client.refused(method, **params))["code"] == DENIED, (method, path)
        secret = (site.home / ".bashrc").as_uri()
        copy = (site.work / "copy").as_uri()
        assert (await client.refused("resourceCopy", source=secret, destination=copy))["code"] == DENIED
    assert (site.home / ".bashrc").read_text() == SECRET
    assert sorted(os.listdir(site.outside)) == ["secret"]
    assert sorted(os.listdir(site.work)) == ["mine"]


@requirement("security:roots:default")
async def test_by_default_the_roots_are_the_start_directory_and_the_home(site: Site) -> None:
    async with site.serving() as client:
        assert await site.run("roots", "list") == f"{site.home}\n"
        await site.session(site.home)
        await site.session(site.work)
        error = await client.refused("createSession", "ahp-session:/x", workingDirectory=site.outside.as_uri())
        assert f"ahpkit roots add {site.outside}" in error["message"]


@pytest.mark.parametrize("started_in", ["/", "/etc", "/usr/share"])
@requirement("security:roots:default")
async def test_a_host_started_in_the_system_has_only_the_home(site: Site, started_in: str) -> None:
    command = ["serve", "--port", "0", "--json", "--data-dir", str(site.home / "data")]
    process = await start("ahpkit", command, directory=Path(started_in), environment=environment(site.home))
    assert process.stdout is not None
    try:
        async with asyncio.timeout(BOUND):
            assert await process.stdout.readline()
        assert await site.run("roots", "list") == f"{site.home}\n"
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("by", ["option", "configuration"])
@requirement("security:roots:exactly-those-named")
async def test_roots_that_are_named_are_exactly_the_roots(site: Site, by: str) -> None:
    config = site.home / "host.toml"
    config.write_text(f'[host]\nroots = ["{site.work}"]\n')
    options = ["--root", str(site.work)] if by == "option" else ["--config", str(config)]
    async with site.serving(*options) as client:
        await site.session(site.work)
        for other in (site.home, site.outside):
            error = await client.refused("createSession", "ahp-session:/x", workingDirectory=other.as_uri())
            assert "--root" in error["message"]
        error = await client.refused("resourceRead", uri=config.as_uri())
        assert error["code"] == DENIED


@requirement("security:roots:cut-out")
async def test_a_root_cannot_open_what_is_cut_out_of_every_root(site: Site) -> None:
    async with site.serving("--root", "/") as client:
        for directory in ("file:///etc", (site.home / "data").as_uri(), (site.home / ".config").as_uri()):
            assert (
                "--root"
                in (await client.refused("createSession", "ahp-session:/x", workingDirectory=directory))["message"]
            )
        await site.session(site.outside)


@requirement("security:roots:cut-out")
async def test_customization_folders_in_the_home_are_open_although_they_are_hidden(site: Site) -> None:
    skill = site.home / ".claude" / "skills" / "mine" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: mine\n---\nMine.")
    async with site.serving() as client:
        session, _ = await site.session(site.work)
        await site.shown(session, "~/.claude/skills", "mine")
        assert await site.write(skill, "Changed.") is None
        assert (await client.ask("resourceRead", uri=skill.as_uri()))["data"] == "Changed."


@requirement("security:roots:outside-refused")
async def test_a_link_in_the_place_of_a_customization_folder_opens_nothing_outside(site: Site) -> None:
    (site.work / ".github").mkdir()
    (site.work / ".github" / "skills").symlink_to(site.outside)
    (site.work / ".claude").symlink_to(site.outside.parent)
    (site.work / "AGENTS.md").symlink_to(site.outside / "secret")
    async with site.serving() as client:
        session, _ = await site.session()
        await site.shown(session, ".github/skills", "leads outside")
        for path in (
            site.outside / "secret",
            site.work / ".github" / "skills" / "secret",
            site.work / ".claude" / "outside" / "secret",
            site.work / "AGENTS.md",
        ):
            assert (await client.refused("resourceRead", uri=path.as_uri()))["code"] == DENIED, path
        error = await site.write(site.work / ".github" / "skills" / "new")
        assert error is not None
        assert error["code"] == DENIED
        assert SECRET not in json.dumps(client.received)
    assert os.listdir(site.outside) == ["secret"]


async def test_customization_folders_of_a_repository_that_reaches_beyond_the_roots_stay_shut(site: Site) -> None:
    inner, agents = site.work / "inner", site.work / ".github" / "agents"
    for folder in (site.work / ".git", inner, agents):
        folder.mkdir(parents=True)
    (agents / "outer.md").write_text(SECRET)
    (site.work / "AGENTS.md").write_text("be kind")
    async with site.serving("--root", str(inner)) as client:
        await site.session(inner)
        for file in (agents / "new.md", agents / "outer.md", site.work / "AGENTS.md"):
            error = await client.refused("resourceWrite", uri=file.as_uri(), data="x", encoding="utf-8")
            assert (error["code"], "--root" in error["message"]) == (DENIED, True)
            assert (await client.refused("resourceRead", uri=file.as_uri()))["code"] == DENIED
    assert ((site.work / "AGENTS.md").read_text(), os.listdir(agents)) == ("be kind", ["outer.md"])


async def test_instructions_of_subfolders_open_nothing_beside_them_for_a_session_without_a_directory(
    site: Site,
) -> None:
    (site.home / "part").mkdir()
    (site.home / "part" / "AGENTS.md").write_text("be kind")
    (site.home / "notes.txt").write_text(SECRET)
    async with site.serving() as client:
        await client.ask("createSession", "ahp-session:/nowhere")
        await site.shown("ahp-session:/nowhere", "Instructions of subfolders", "part/AGENTS")
        read = await client.ask("resourceRead", uri=(site.home / "part" / "AGENTS.md").as_uri())
        assert read["data"] == "be kind"
        error = await client.refused("resourceRead", uri=(site.home / "notes.txt").as_uri())
        assert (error["code"], SECRET in json.dumps(client.received)) == (DENIED, False)


@requirement("security:roots:still-readable")
async def test_a_session_that_lies_outside_after_a_change_can_be_read_and_no_more(site: Site) -> None:
    async with site.serving("--root", str(site.work), "--root", str(site.home)) as client:
        (site.work / "a").write_text("a")
        saved = site.work / ".github" / "agents" / "a.md"
        saved.parent.mkdir(parents=True)
        session, chat = await site.session(site.work)
        assert (await site.turn(chat))["type"] == "chat/turnComplete"
        await client.ask("resourceWrite", uri=saved.as_uri(), data="x", encoding="utf-8")
        for root in (site.home, site.work):
            await site.run("roots", "remove", str(root))
        assert (await client.ask("subscribe", session))["snapshot"]["state"]["summary"]["title"]
        assert len((await client.ask("fetchTurns", chat))["turns"]) == 1
        for file in (site.work / "a", saved):
            assert (await client.refused("resourceRead", uri=file.as_uri()))["code"] == DENIED
            error = await client.refused("resourceWrite", uri=file.as_uri(), data="y", encoding="utf-8")
            assert error["code"] == DENIED
        assert saved.read_text() == "x"
        assert (await client.ask("completions", chat, kind="userMessage", text="#", offset=1))["items"] == []
        refused = await site.turn(chat, "again")
        assert "--root" in refused["error"]["message"]
        await site.run("roots", "add", str(site.work))
        assert (await site.turn(chat, "once more"))["type"] == "chat/turnComplete"


@requirement("security:roots:owner-only")
async def test_a_client_cannot_change_the_roots(site: Site) -> None:
    async with site.serving() as client:
        await site.session(site.home)
        before = await site.run("roots", "list"), await site.run("trust", "list")
        asked: RawClient = client
        for method in ("_ahpkit/roots/add", "_ahpkit/trust/add", "resourceRequest"):
            assert "error" in await asked.call(method, uri=site.outside.as_uri(), read=True, write=True)
        assert (await site.run("roots", "list"), await site.run("trust", "list")) == before
