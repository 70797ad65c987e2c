"""`ahpkit roots`, and what a host makes of options, settings and the owner's word. Real processes where it matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.cli.roots import make_fence, programs, start_directory
from ahpkit.cli.settings import Settings, SettingsError
from ahpkit.client.endpoints import endpoints_directory, links_directory
from support.process import finish_cli, host_process


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "runtime").mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "runtime"))
    monkeypatch.chdir(home)
    return home


async def test_roots_are_listed_added_and_removed_on_a_running_host(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    async with host_process(tmp_path, "--root", str(work)) as host:
        client = await host.client()

        async def create(name: str, directory: Path) -> str:
            answer = await client.call("createSession", f"ahp-session:/{name}", workingDirectory=directory.as_uri())
            return answer.get("error", {}).get("message", "")

        assert await finish_cli(["roots", "list"], tmp_path) == (0, f"{work}\n", "")
        assert f"--root {other}" in await create("a", other)
        assert (await finish_cli(["roots", "add", str(other)], tmp_path))[0] == 0
        assert await create("b", other) == ""
        assert await finish_cli(["roots", "list", "--url", host.url], tmp_path) == (0, f"{work}\n{other}\n", "")
        assert (await finish_cli(["roots", "remove", str(other)], tmp_path))[0] == 0
        assert "--root" in await create("c", other)
        assert (await client.ask("subscribe", "ahp-session:/b"))["snapshot"]
        code, _, errors = await finish_cli(["roots", "remove", str(other)], tmp_path)
        assert (code, "is not a root" in errors) == (1, True)


async def test_a_root_that_is_cut_out_is_refused(tmp_path: Path) -> None:
    code, _, errors = await finish_cli(["roots", "add", "/etc", "--data-dir", str(tmp_path / "data")], tmp_path)
    assert (code, "system directory" in errors) == (1, True)
    code, _, errors = await finish_cli(["roots", "list", "--url", "ws://127.0.0.1:1"], tmp_path)
    assert (code, "--data-dir" in errors) == (1, True)


def test_the_owners_word_outlives_the_host(data: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    fence = make_fence(Settings(), data)
    assert fence.roots() == [home]
    assert fence.owner_file is not None
    fence.owner_file.change(lambda said: {**said, "added": [str(tmp_path / "more")]})
    assert make_fence(Settings(), data).roots() == [home, tmp_path / "more"]


def test_a_root_that_is_no_directory_is_an_error_that_names_the_option(data: Path, home: Path) -> None:
    with pytest.raises(SettingsError, match="--root"):
        make_fence(Settings(roots=[home / "none"]), data)


def test_a_default_directory_is_a_root_unless_roots_are_named(data: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    settings = Settings(default_directory=tmp_path / "srv")
    fence = make_fence(settings, data)
    assert fence.roots() == [tmp_path / "srv", home]
    assert start_directory(settings, fence) == tmp_path / "srv"
    named = Settings(default_directory=tmp_path / "srv", roots=[home])
    with pytest.raises(SettingsError, match="default_directory"):
        start_directory(named, make_fence(named, data))


def test_a_host_that_is_started_outside_its_roots_works_in_the_first(
    data: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start_directory(Settings(), make_fence(Settings(), data)) == home
    monkeypatch.chdir("/")
    assert start_directory(Settings(), make_fence(Settings(), data)) == home


def test_programs_of_the_host_below_a_root_are_known(data: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin", "plugin"):
        (home / name).mkdir()
    for name in ("agent.py", "ext.py", "mine.py"):
        (home / name).write_text("")
    monkeypatch.setenv("PATH", f"/usr/bin:{home / 'bin'}:.:{home}")
    settings = Settings(
        plugins=[home / "plugin"],
        extensions=["python ext.py --x"],
        agents={"a": {"option": "a=python agent.py"}, "m": {"command": str(home / "mine.py")}, "odd": {"option": "'"}},
    )
    found = programs(settings, make_fence(settings, data))
    assert found == {str(home / name) for name in ("bin", "plugin", "agent.py", "ext.py", "mine.py")}


def test_nobody_may_write_what_names_the_hosts_of_the_user(data: Path, home: Path) -> None:
    fence = make_fence(Settings(), data)
    assert fence.refusal(home / "notes") is None
    for place in (endpoints_directory(), links_directory()):
        assert place.is_relative_to(home)
        assert fence.refusal(place / "1-fake.json") is not None
