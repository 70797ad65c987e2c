"""`ahpkit up`, `down`, `status`, `logs`, `service`, and hosts that commands start by themselves. Real processes."""

from __future__ import annotations

import asyncio
import json
import os
import plistlib
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from ahpkit import __version__
from ahpkit.cli.daemon import can_listen, host_name, log_files, may_start, start_host
from ahpkit.cli.service import launchd_file, systemd_file
from ahpkit.cli.settings import Settings
from ahpkit.platform.processes import is_alive
from support.process import finish_cli, run_cli
from support.terminal import terminal
from support.waiting import BOUND, until


@asynccontextmanager
async def nothing_left(home: Path) -> AsyncGenerator[None]:
    """Whatever hosts a test started below this home are ended."""
    try:
        yield
    finally:
        await finish_cli(["down", "--all"], home)


async def status(home: Path) -> list[Any]:
    _, output, _ = await finish_cli(["status", "--json"], home)
    return json.loads(output)


def on_a_free_port(home: Path, text: str = "") -> dict[str, str]:
    """Variables for a command that may start a host of the user's file, which takes any port."""
    file = home / "config.toml"
    file.write_text(f"[host]\nport = 0\n{text}")
    return {"AHPKIT_AUTO_START": "1", "AHPKIT_CONFIG": str(file)}


def texts(directory: Path, pattern: str) -> list[str]:
    """What the files of a directory hold."""
    files = [file for file in directory.glob(pattern) if file.is_file()]
    return [file.read_bytes().decode(errors="replace") for file in files]


async def test_up_starts_a_host_that_outlives_the_command_and_down_ends_it(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        code, output, errors = await finish_cli(["up", "--port", "0"], tmp_path)
        assert (code, output.startswith("Started: host default at ws://127.0.0.1:")) == (0, True), errors
        [host] = await status(tmp_path)
        assert (host["name"], host["version"], host["background"], host["agents"]) == (
            "default",
            __version__,
            True,
            ["demo"],
        )
        assert host["dataDir"] == str(tmp_path / ".local/share/ahpkit")
        again, output, _ = await finish_cli(["up"], tmp_path)
        assert (again, output.startswith("Already running: host default")) == (0, True)
        code, output, _ = await finish_cli(["down"], tmp_path)
        assert (code, output.startswith("Ended: host default")) == (0, True)
        assert not is_alive(host["pid"])
    code, output, _ = await finish_cli(["status"], tmp_path)
    assert (code, "no host is running" in output) == (1, True)


async def test_a_host_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    code, _, errors = await finish_cli(["up", "--agent", "bad name"], tmp_path)
    assert code == 1
    assert "the host did not start" in errors
    assert "Traceback" not in errors
    assert await status(tmp_path) == []


async def test_a_host_that_fails_by_a_fault_of_its_own_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nprintf 'Traceback (most recent call last):\\n  …\\nKeyError: 7\\n' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(click.ClickException) as failed:
        await start_host(tmp_path / "data")
    assert failed.value.message == (
        f"the host did not start, because of a fault in ahpkit: KeyError: 7\n"
        f"The whole error: {tmp_path / 'data/logs/host.err'}"
    )


async def test_ctrl_c_while_a_host_starts_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    slow = tmp_path / "python"
    told = tmp_path / "told"
    slow.write_text(f"#!/bin/sh\necho $$ > {told}\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    starting = asyncio.create_task(start_host(tmp_path / "data"))
    await until(lambda: told.exists() and told.read_text().endswith("\n"))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not is_alive(int(told.read_text()))


def make_old(home: Path) -> None:
    """From now on the host says that it is of a version of long ago."""
    [file] = (home / "runtime/ahpkit/hosts").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": "0.0.1"}))


async def test_an_older_host_is_named_and_restarted_with_its_options_when_a_person_says_yes(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0", "--agent", "second=true"], tmp_path)
        [before] = await status(tmp_path)
        make_old(tmp_path)
        said = f"runs ahpkit 0.0.1, this is {__version__}; restart it with: ahpkit up --restart"
        for command in (["up"], ["prompt", "hello", "--agent", "demo"]):
            assert said in (await finish_cli(command, tmp_path))[2], "where nobody can answer"
        async with terminal(["chat", "--agent", "demo"], tmp_path, columns=160) as person:
            await person.see("runs ahpkit 0.0.1", "Restart it now? Running turns are ended [y/N]:")
            person.enter("n")
            await person.ready()
            [same] = await status(tmp_path)
            assert same["pid"] == before["pid"]
        async with terminal(["chat", "--agent", "demo"], tmp_path, columns=160) as person:
            await person.see("Restart it now? Running turns are ended [y/N]:")
            person.enter("y")
            await person.ready()
        [after] = await status(tmp_path)
        assert (after["version"], after["agents"]) == (__version__, before["agents"])
        assert after["pid"] != before["pid"]


async def test_a_restart_ends_the_old_host_and_keeps_its_options_unless_others_are_given(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0", "--host-name", "work", "--agent", "second=true"], tmp_path)
        [host] = await status(tmp_path)
        for options, agents in ([], ["second", "demo"]), (["--port", "0"], ["demo"]):
            _, output, _ = await finish_cli(["up", "--host-name", "work", "--restart", "--json", *options], tmp_path)
            started = json.loads(output)
            assert (started["name"], started["started"], started["background"]) == ("work", True, True)
            assert not is_alive(host["pid"])
            [host] = await status(tmp_path)
            assert (host["pid"], host["agents"]) == (started["pid"], agents)
        _, output, _ = await finish_cli(["up", "--host-name", "work", "--json"], tmp_path)
        assert json.loads(output) == started | {"started": False}


async def test_a_restart_from_elsewhere_keeps_what_the_options_mean_where_they_were_given(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    roots, restart = tmp_path / ".local/share/ahpkit/roots.json", ["up", "--restart"]
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0", "--root", "."], tmp_path, directory=work)
        assert (await finish_cli(restart, tmp_path, directory=other))[0] == 0
        assert json.loads(roots.read_text())["start"] == [str(work)]
        [host] = await status(tmp_path)
        work.rmdir()
        code, output, errors = await finish_cli(restart, tmp_path, directory=other)
        again = "end it, then: ahpkit up --port 0 --root ."
        assert (code, output, errors) == (1, "", f"Error: the host was started in {work}, which is gone; {again}\n")
        assert is_alive(host["pid"])


async def test_prompt_starts_a_host_when_none_runs_and_says_so_in_one_line(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        code, output, errors = await finish_cli(["prompt", "hello"], tmp_path, **on_a_free_port(tmp_path))
        assert (code, "You said" in output) == (0, True), errors
        assert errors.count("starting one in the background") == 1
        code, _, errors = await finish_cli(["prompt", "hello"], tmp_path, **on_a_free_port(tmp_path))
        assert (code, "starting" in errors) == (0, False)
        assert len(await status(tmp_path)) == 1


async def test_two_commands_at_once_start_one_host(tmp_path: Path) -> None:
    variables = on_a_free_port(tmp_path)
    async with nothing_left(tmp_path):
        done = await asyncio.gather(*(finish_cli(["prompt", "hello"], tmp_path, **variables) for _ in range(2)))
        assert [code for code, _, _ in done] == [0, 0], done
        assert len(await status(tmp_path)) == 1


@pytest.mark.parametrize("switched_off", [{"CI": "true"}, {"AHPKIT_AUTO_START": "0"}])
async def test_no_host_is_started_in_ci_or_where_it_is_switched_off(
    tmp_path: Path, switched_off: dict[str, str]
) -> None:
    code, _, errors = await finish_cli(["prompt", "hello"], tmp_path, **{**on_a_free_port(tmp_path), **switched_off})
    assert (code, "no running host found" in errors) == (1, True)
    assert await status(tmp_path) == []


async def test_no_host_is_started_when_the_configuration_says_so(tmp_path: Path) -> None:
    variables = on_a_free_port(tmp_path, "[client]\nauto_start = false\n")
    code, _, errors = await finish_cli(["prompt", "hello"], tmp_path, **variables)
    assert (code, "no running host found" in errors) == (1, True)


async def test_with_several_hosts_a_command_says_which_one_it_uses_and_why(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        for name in ("default", "work"):
            (tmp_path / name).mkdir()
            named = ["--host-name", name] if name == "work" else []
            await finish_cli(["up", "--port", "0", *named, "--root", str(tmp_path / name)], tmp_path)
        assert sorted(host["name"] for host in await status(tmp_path)) == ["default", "work"]
        _, _, errors = await finish_cli(["sessions", "list"], tmp_path)
        assert "Using the host work at" in errors
        assert "the newest of 2" in errors
        _, _, errors = await finish_cli(["devices", "list"], tmp_path)
        assert "Using the host work at" in errors
        _, _, errors = await finish_cli(["prompt", "--host-name", "default", "hello"], tmp_path)
        assert "Using the host default at" in errors
        _, _, errors = await finish_cli(["sessions", "list"], tmp_path, AHPKIT_HOST_NAME="default")
        assert "Using the host default at" in errors
        _, output, errors = await finish_cli(["roots", "list", "--json"], tmp_path)
        assert (json.loads(output), "the newest of 2; --host-name chooses" in errors) == (
            [str(tmp_path / "work")],
            True,
        )
        _, output, errors = await finish_cli(["roots", "list", "--json", "--host-name", "default"], tmp_path)
        assert (json.loads(output), "it was named" in errors) == ([str(tmp_path / "default")], True)
        code, output, errors = await finish_cli(["data", "backup", "work.tar.gz", "--host-name", "work"], tmp_path)
        assert (code, "ahpkit-hosts/work saved in work.tar.gz" in output) == (0, True), errors
        code, _, errors = await finish_cli(["down"], tmp_path)
        assert (code, "which one?" in errors) == (1, True)
        code, output, _ = await finish_cli(["down", "--host-name", "work"], tmp_path)
        assert (code, output.startswith("Ended: host work")) == (0, True)
        assert [host["name"] for host in await status(tmp_path)] == ["default"]


async def test_a_host_is_found_and_ended_from_a_shell_with_another_runtime_directory(tmp_path: Path) -> None:
    elsewhere = {**on_a_free_port(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "elsewhere")}
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0"], tmp_path)
        [host] = await status(tmp_path)
        _, output, _ = await finish_cli(["status", "--json"], tmp_path, **elsewhere)
        assert json.loads(output) == [host]
        code, _, errors = await finish_cli(["prompt", "hello"], tmp_path, **elsewhere)
        assert (code, "starting" in errors) == (0, False), errors
        code, output, _ = await finish_cli(["down"], tmp_path, **elsewhere)
        assert (code, output.startswith("Ended: host default")) == (0, True)
        assert not is_alive(host["pid"])


async def test_a_name_that_no_host_ever_had_is_not_started_by_a_question(tmp_path: Path) -> None:
    variables = on_a_free_port(tmp_path)
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0", "--host-name", "work"], tmp_path)
        code, _, errors = await finish_cli(["prompt", "hello", "--host-name", "wrok"], tmp_path, **variables)
        said = "there is no host named wrok; there are: default, work. To make one: ahpkit up --host-name wrok"
        assert (code, errors) == (1, f"Error: {said}\n")
        await finish_cli(["down"], tmp_path)
        code, output, errors = await finish_cli(["prompt", "hello", "--host-name", "work"], tmp_path, **variables)
        assert (code, "You said" in output, "No host named work" in errors) == (0, True, True), errors


async def test_logs_shows_what_the_host_logged(tmp_path: Path) -> None:
    async with nothing_left(tmp_path):
        await finish_cli(["up", "--port", "0"], tmp_path)
        await finish_cli(["prompt", "hello"], tmp_path)
        log = tmp_path / ".local/share/ahpkit/logs/host.log"
        await until(lambda: log.read_text().strip() != "")
        code, output, _ = await finish_cli(["logs", "-n", "5"], tmp_path)
        assert (code, bool(output.strip())) == (0, True)
        assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_each_part_of_the_log_is_its_owners_alone(tmp_path: Path) -> None:
    writes = (
        "import logging, os, sys\nfrom pathlib import Path\nfrom ahpkit.cli import daemon\n"
        "os.umask(0)\ndaemon._LOG_BYTES = 200\ndaemon.log_to_file(Path(sys.argv[1]), logging.INFO)\n"
        "for number in range(20): logging.info('one line of the log, which is cut into parts')\n"
    )
    subprocess.run([sys.executable, "-c", writes, str(tmp_path)], check=True, timeout=BOUND)
    parts = [part for part in log_files(tmp_path) if part.exists()]
    assert len(parts) > 1
    assert {part.stat().st_mode & 0o777 for part in parts} == {0o600}


async def test_logs_without_a_log_says_where_it_looked(tmp_path: Path) -> None:
    code, _, errors = await finish_cli(["logs"], tmp_path)
    assert (code, "there is no log at" in errors) == (1, True)


async def test_the_log_goes_on_where_it_was_cut_into_parts(tmp_path: Path) -> None:
    log = tmp_path / "logs/host.log"
    log.parent.mkdir()
    for part, lines in (("host.log.2", "ab"), ("host.log.1", "cd"), ("host.log", "e")):
        (log.parent / part).write_text("".join(f"{line}\n" for line in lines))
    _, output, _ = await finish_cli(["logs", "--data-dir", str(tmp_path), "-n", "4"], tmp_path)
    assert output.split() == ["b", "c", "d", "e"]
    following = await run_cli(["logs", "--data-dir", str(tmp_path), "-n", "1", "--follow"], tmp_path)
    assert following.stdout is not None
    async with asyncio.timeout(BOUND):
        assert await following.stdout.readline() == b"e\n"
        with log.open("a") as file:
            os.replace(log, log.parent / "host.log.1")
            file.write("last of the old part\n")
        log.write_text("first of the new part\n")
        assert await following.stdout.readline() == b"last of the old part\n"
        assert await following.stdout.readline() == b"first of the new part\n"
    following.kill()
    await following.communicate()


def with_agent(tmp_path: Path, before: str) -> Path:
    """A configuration with an agent that gets MY_TEST_KEY and runs these lines before it begins."""
    agent, config = tmp_path / "agent.py", tmp_path / "config.toml"
    begin = "runpy.run_module('ahpkit.testing.acp_agent', run_name='__main__')\n"
    agent.write_text(f"import os, runpy, sys\n{before}{begin}")
    config.write_text(
        f"[host]\nport = 0\n[agents.mine]\ncommand = {sys.executable!r}\nargs = [{str(agent)!r}]\n"
        'pass_env = ["MY_TEST_KEY"]\n'
    )
    return config


async def test_agents_see_the_path_and_the_keys_of_the_shell_that_opens_the_session(tmp_path: Path) -> None:
    config = with_agent(
        tmp_path,
        "open(os.environ['HOME'] + '/seen-' + str(os.getpid()), 'w').write("
        "os.environ.get('MY_TEST_KEY', 'none') + ' ' + os.environ['PATH'])\n"
        "sys.argv = ['acp_agent']\n",
    )
    async with nothing_left(tmp_path):
        code, _, errors = await finish_cli(["up"], tmp_path, AHPKIT_CONFIG=str(config))
        assert code == 0, errors
        variables = {"MY_TEST_KEY": "key-of-the-second-shell", "PATH": f"{os.environ['PATH']}:/later"}
        await finish_cli(["prompt", "--agent", "mine", "hello"], tmp_path, **variables)
        seen = texts(tmp_path, "seen-*")
        assert seen
        assert all(text.startswith("key-of-the-second-shell ") and text.endswith(":/later") for text in seen)
        assert not any("key-of-the-second-shell" in text for text in texts(tmp_path / ".local", "**/*"))


async def test_resume_after_a_key_was_set_goes_on_with_a_process_that_sees_it(tmp_path: Path) -> None:
    """The agent starts without a key, and refuses the first message."""
    refusing = {"methods": {"session/prompt": [{"error": {"code": -32000, "message": "Authentication required"}}]}}
    (tmp_path / "refusing.json").write_text(json.dumps(refusing))
    config = with_agent(
        tmp_path,
        f"sys.argv = ['acp_agent', *([] if 'MY_TEST_KEY' in os.environ else [{str(tmp_path / 'refusing.json')!r}])]\n",
    )
    async with nothing_left(tmp_path):
        code, _, errors = await finish_cli(["up"], tmp_path, AHPKIT_CONFIG=str(config))
        assert code == 0, errors
        code, _, errors = await finish_cli(["prompt", "--agent", "mine", "hello"], tmp_path)
        assert (code, "To go on with it:  ahpkit resume" in errors) == (1, True), errors
        code, output, errors = await finish_cli(["resume", "hello"], tmp_path, MY_TEST_KEY="a key")
        assert (code, "You said" in output) == (0, True), errors


async def test_service_install_writes_a_unit_and_uninstall_removes_it(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the unit is for systemd")
    unit = tmp_path / ".config/systemd/user/ahpkit.service"
    work = tmp_path / "50% done"
    work.mkdir()
    await finish_cli(["service", "install"], tmp_path, directory=work)
    assert f"\nWorkingDirectory={tmp_path}\n" in unit.read_text(), "as systemd starts it by itself"
    options = ["--", "--agent", "demo2=my agent", "--root", "."]
    code, output, _ = await finish_cli(["service", "install", *options], tmp_path, directory=work)
    assert f"\nWorkingDirectory={tmp_path}/50%% done\n" in unit.read_text(), "where the options were given"
    assert (code, "systemctl --user enable --now ahpkit" in output) == (0, True)
    assert '-m ahpkit serve --background --agent "demo2=my agent"' in unit.read_text()
    assert (await finish_cli(["service", "uninstall"], tmp_path))[0] == 0
    assert not unit.exists()
    code, _, errors = await finish_cli(["service", "uninstall"], tmp_path)
    assert (code, "no service is installed" in errors) == (1, True)


@pytest.mark.parametrize(("systemctl", "said"), [("exit 0", False), ("exit 1", True)])
async def test_service_install_says_when_systemd_does_not_run(tmp_path: Path, systemctl: str, said: bool) -> None:
    if sys.platform != "linux":
        pytest.skip("the unit is for systemd")
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{systemctl}\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    code, output, _ = await finish_cli(["service", "install"], tmp_path, PATH=path)
    assert (code, "systemd does not run for you on this machine" in output) == (0, said)


def test_words_of_a_unit_are_quoted_as_systemd_reads_them() -> None:
    unit = systemd_file(["/bin/a b", "50%", "$HOME", 'say "hi"', "", "a \nb"], Path("/work"))
    assert 'ExecStart="/bin/a b" 50%% $$HOME "say \\"hi\\"" "" "a \\nb"\n' in unit


def test_a_launchd_file_is_a_property_list() -> None:
    words = ["/bin/a b", "<x> & y"]
    found = plistlib.loads(launchd_file("ahpkit", words, Path("/a & b")).encode())
    assert found["WorkingDirectory"] == "/a & b", "launchd starts an agent in /"
    assert (found["Label"], found["ProgramArguments"], found["RunAtLoad"]) == ("ahpkit", words, True)


@pytest.mark.parametrize(
    ("environ", "setting", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"CI": "1"}, True, False),
        ({"CI": "false"}, True, True),
        ({"AHPKIT_AUTO_START": "off"}, True, False),
    ],
)
def test_who_may_start_a_host(environ: dict[str, str], setting: bool, expected: bool) -> None:
    assert may_start(Settings(auto_start=setting), environ) is expected


def test_a_host_is_called_as_it_was_named_or_after_its_directory(tmp_path: Path) -> None:
    assert host_name("work", tmp_path) == "work"
    assert host_name(None, tmp_path) == tmp_path.name


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_another_program_has_is_known_before_it_is_needed(address: str) -> None:
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as other:
        port = other.getsockname()[1]
        assert not can_listen(address, port)
    assert can_listen(address, port)


async def test_hosts_of_two_people_on_one_machine_both_start_although_they_want_the_same_port(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with nothing_left(one), nothing_left(two):
        started = [await finish_cli(["up", "--json"], home) for home in (one, two)]
        assert [code for code, _, _ in started] == [0, 0], started
        assert len({json.loads(output)["url"] for _, output, _ in started}) == 2
