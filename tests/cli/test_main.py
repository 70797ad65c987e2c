"""The command line: one table of subcommands, imported when they run."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ahpkit import __version__
from ahpkit.cli.main import COMMANDS, Subcommand, cli, explain
from ahpkit.client.errors import ConnectionLost, HostNotFound
from ahpkit.protocol.errors import SessionNotFound
from ahpkit.transports.errors import ConnectError
from support.process import finish_cli


def run_module(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "ahpkit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_ctrl_c_while_the_command_is_loaded_ends_it_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "ahpkit", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_python_dash_m_is_the_command() -> None:
    done = run_module("--version")
    assert (done.returncode, done.stdout) == (0, f"ahpkit {__version__}\n")


def test_help_shows_every_command_with_its_line_of_the_table() -> None:
    output = CliRunner().invoke(cli, ["--help"], terminal_width=200).output
    for name, subcommand in COMMANDS.items():
        assert f"{name} " in output
        assert subcommand.help in output


def test_help_imports_no_command() -> None:
    code = """
import sys
from ahpkit.cli.main import COMMANDS, cli
cli(["--help"], standalone_mode=False)
modules = {subcommand.target.partition(":")[0] for subcommand in COMMANDS.values()}
heavy = {"asyncio", "msgspec", "websockets", "rich", "mcp", "opentelemetry"}
print("IMPORTED", sorted((modules | heavy) & set(sys.modules)))
"""
    assert "IMPORTED []" in run_module(code=code).stdout


@pytest.mark.parametrize("name", ["chat", "doctor", "inbox", "prompt", "sessions", "status", "tail", "usage"])
def test_a_command_that_talks_to_a_host_loads_neither_the_host_nor_the_types_of_0_4(name: str) -> None:
    code = f"""
import sys
from ahpkit.cli.main import cli
cli(["{name}", "--help"], standalone_mode=False)
heavy = ("ahpkit.host.feature", "ahpkit.host.host", "ahpkit.dialects.v0_4", "mcp", "starlette")
print("IMPORTED", [module for module in heavy if module in sys.modules])
"""
    assert "IMPORTED []" in run_module(code=code).stdout


def test_a_host_loads_the_sdk_of_mcp_only_for_a_session_with_servers() -> None:
    code = """
import sys
import ahpkit.cli.serve, ahpkit.host.host, ahpkit.mcp.feature
print("IMPORTED", "mcp" in sys.modules)
"""
    assert "IMPORTED False" in run_module(code=code).stdout


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_target_of_a_line_is_a_command_with_an_example(name: str) -> None:
    module, _, attribute = COMMANDS[name].target.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert "Example" in (command.help or "")


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["nonsense"])
    assert result.exit_code == 2
    assert "No such command 'nonsense'" in result.output


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(cli, ["chta"])
    assert result.exit_code == 2
    assert "No such command 'chta'. Did you mean 'chat'?" in result.output


def test_a_command_is_found_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "again", Subcommand("ahpkit.cli.conformance:conformance", "Once more."))
    assert "round-trips" in CliRunner().invoke(cli, ["again", "--help"]).output


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m ahpkit doctor {closed}', sys.executable], capture_output=True, text=True, timeout=30
    )
    assert "Traceback" not in done.stdout + done.stderr


async def test_shells_complete_commands_and_options(tmp_path: Path) -> None:
    for words, offered in {"ahpkit se": ["serve", "service", "sessions"], "ahpkit chat --se": ["--session"]}.items():
        asked = {"_AHPKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        _, output, _ = await finish_cli([], tmp_path, **asked)
        assert [line.partition(",")[2] for line in output.splitlines()] == offered


def test_ctrl_c_before_anything_began_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def slow() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ahpkit.cli.agents.agents", slow)
    done = CliRunner().invoke(cli, ["agents"])
    assert (done.exit_code, done.output) == (130, "")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SessionNotFound("there is no session x"), "there is no session x"),
        (HostNotFound(), "no running host found: start one with `ahpkit up`, or pass its URL"),
        (
            ConnectError("ws://h:1", "nobody listens there", transient=True),
            "ws://h:1: nobody listens there. Is the host running? Start one with: ahpkit serve",
        ),
        (
            ConnectError("ws://h:1", "not let in", status=401),
            "ws://h:1: not let in. Give the host's token with --token or AHPKIT_TOKEN.",
        ),
        (ConnectError("ws://h:1", "refused", status=403), "ws://h:1: refused"),
        (ConnectionLost("gone"), "gone. Is the host running? Start one with: ahpkit serve"),
        (TimeoutError(), "the host did not answer in time; is it busy? See: ahpkit doctor"),
        (FileNotFoundError(2, "No such file or directory", "x.json"), "x.json: No such file or directory"),
        (OSError(errno.ENOSPC, "No space left on device"), "something could not be written: No space left on device"),
    ],
)
def test_what_a_person_can_do_something_about_is_explained(error: Exception, text: str) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained.message == text


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("x"), BrokenPipeError(), OSError("no name")])
def test_bugs_and_broken_pipes_are_not(error: Exception) -> None:
    assert explain(error) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["config", "show"]])
def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "ahpkit", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env={"HOME": str(tmp_path)})
    assert (done.returncode, done.stderr.decode()) == (
        1,
        "Error: something could not be written: No space left on device\n",
    )


@click.command()
def boom() -> None:
    raise SessionNotFound("there is no session x")


def test_every_command_is_explained_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "boom", Subcommand(f"{__name__}:boom", "Fails."))
    result = CliRunner().invoke(cli, ["boom"])
    assert (result.exit_code, result.output) == (1, "Error: there is no session x\n")
