"""`ahpkit doctor`: what it finds, and what it advises."""

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ahpkit.cli.doctor import look_at
from support import requirement
from support.process import HostProcess, finish_cli, host_process
from support.records import unprivileged

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def findings(home: Path, **extra: str) -> tuple[int, dict[str, Any]]:
    code, output, errors = await finish_cli(["doctor", "--json"], home, **extra)
    assert errors == ""
    return code, {finding["name"]: finding for finding in json.loads(output)}


async def test_without_a_host_everything_is_fine_and_it_says_how_to_start_one(tmp_path: Path) -> None:
    code, output, errors = await finish_cli(["doctor"], tmp_path)
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "✓ ahpkit",
        "✓ Python",
        "✓ SQLite",
        "✓ data directory",
        "✓ runtime directory",
        "✓ host",
    ]
    assert lines[-2:] == ["✓ host: none is running", "    start one with: ahpkit serve"]


async def test_a_running_host_is_asked(host: HostProcess) -> None:
    code, found = await findings(host.home)
    assert (code, found["host"]["ok"]) == (0, True)
    assert found["host"]["detail"].startswith(f"{host.url}, ")
    assert found["host"]["detail"].endswith("agents: demo")


async def test_a_token_in_the_address_is_not_shown(host: HostProcess) -> None:
    assert host.token
    for end, token in ((f"?tkn={host.token}", []), ("?tkn=", ["--token", host.token])):
        code, output, errors = await finish_cli(["doctor", "--url", f"{host.url}/{end}", *token], host.home)
        assert (code, host.url in output) == (0, True)
        assert host.token not in output + errors


@requirement("gen:forward:implementation-info")
async def test_it_says_who_is_connected_with_which_version(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        _, found = await findings(tmp_path)
        assert found["client"]["detail"] == "none is connected"
        named, unnamed = await host.connect("window"), await host.connect("old-one")
        info = {"name": "vscode", "title": "Visual Studio Code", "version": "1.139.1"}
        answer = await named.initialize("ahp-root://", protocolVersions=["0.9.0", "0.7.0"], clientInfo=info)
        assert answer["serverInfo"]["name"] == "ahpkit"
        await unnamed.initialize()
        code, output, _ = await finish_cli(["doctor"], tmp_path)
        assert code == 0
        lines = [line for line in output.splitlines() if line.startswith("✓ client")]
        assert len(lines) == 2
        assert lines[0].startswith("✓ client: Visual Studio Code 1.139.1, protocol 0.9.0, window from ")
        assert lines[0].endswith(", 1 channel")
        assert lines[1].startswith("✓ client: no name given, protocol 0.4.0, old-one from ")
        for one in (named, unnamed):
            await one.aclose()


async def test_a_host_that_does_not_answer_needs_attention(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        host.process.send_signal(signal.SIGSTOP)
        code, found = await findings(tmp_path)
        assert (code, found["host"]["ok"]) == (1, False)
        assert found["host"]["detail"] == f"{host.url}: no answer within 3 s"
        assert found["host"]["advice"] == "stop it and start it again: ahpkit up --restart"


async def test_the_host_of_the_environment_is_asked_too(tmp_path: Path) -> None:
    code, found = await findings(tmp_path, AHPKIT_URL="ws://127.0.0.1:1")
    assert (code, found["host"]["detail"]) == (1, "ws://127.0.0.1:1: nobody listens there")


async def test_what_a_killed_host_left_behind_is_no_host(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        host.kill()
        await host.process.wait()
        _, found = await findings(tmp_path)
        assert found["host"]["detail"] == "none is running"


async def test_a_directory_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    assert look_at("d", tmp_path / "a" / "b", "x").ok


async def test_a_directory_that_is_not_writable_needs_attention() -> None:
    with unprivileged() as directory:
        directory.chmod(0o500)
        found = look_at("d", directory / "a", "do this")
    assert (found.ok, found.detail, found.advice) == (False, f"{directory / 'a'} is not writable", "do this")


async def test_a_file_in_the_way_needs_attention(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = look_at("d", tmp_path / "file" / "a", "x")
    assert (found.ok, found.detail) == (False, f"{tmp_path / 'file'} is a file")


async def test_a_full_disk_needs_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=100 * 2**20)

    def disk_usage(path: object) -> SimpleNamespace:
        return usage

    monkeypatch.setattr("shutil.disk_usage", disk_usage)
    found = look_at("d", tmp_path, "x")
    assert (found.ok, found.detail) == (False, f"{tmp_path} has 100 MiB left")
