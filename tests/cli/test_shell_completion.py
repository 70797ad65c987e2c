"""What a shell completes: commands, and the sessions, agents and models of the running host."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ahpkit.cli.main import cli
from support.process import HostProcess, environment, finish_cli
from support.template import programs
from support.terminal import terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def completed(home: Path, words: str) -> list[str]:
    """What bash would offer for the last word."""
    count = str(words.count(" "))
    _, output, errors = await finish_cli([], home, _AHPKIT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert "Traceback" not in errors
    return [line.partition(",")[2] for line in output.splitlines() if line]


async def test_sessions_agents_and_models_of_the_host_are_completed(host: HostProcess) -> None:
    _, output, _ = await finish_cli(["prompt", "/usage", "--keep", "--json"], host.home)
    name = output.partition("ahp-session:/")[2][:8]
    assert name in await completed(host.home, "ahpkit approve ")
    assert await completed(host.home, f"ahpkit sessions show {name[:3]}") == [name]
    assert await completed(host.home, "ahpkit chat --agent d") == ["demo"]
    assert await completed(host.home, "ahpkit prompt --model demo-l") == ["demo-large"]
    assert await completed(host.home, "ahpkit prompt --agent demo --model demo-l") == ["demo-large"]
    assert await completed(host.home, "ahpkit prompt --agent other --model demo-l") == []
    assert await completed(host.home, "ahpkit chat --host-name other --agent d") == []
    assert await completed(host.home, f"ahpkit tail {name[:3]}") == [name]


async def test_ctrl_c_while_a_host_does_not_answer_shows_nothing(tmp_path: Path) -> None:
    """The shell shows what a completion writes in the middle of the line that is typed."""
    looking = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        looking.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1") as server:
        url = "ws://{}:{}".format(*server.sockets[0].getsockname())
        asked = {"_AHPKIT_COMPLETE": "bash_complete", "COMP_WORDS": "ahpkit approve ", "COMP_CWORD": "2"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ahpkit"),
            env={**environment(tmp_path), **asked, "AHPKIT_URL": url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        await looking.wait()
        process.send_signal(signal.SIGINT)
        assert await process.communicate() == (b"", b"")
        assert process.returncode == -signal.SIGINT


async def test_every_session_agent_and_model_of_every_command_is_completed() -> None:
    found = [
        (name, parameter)
        for name, command in commands(cli)
        for parameter in command.params
        if parameter.name in ("session", "agent", "provider", "model") or "--session" in parameter.opts
    ]
    assert len(found) > 20
    without = [
        f"{name} {parameter.name}" for name, parameter in found if parameter.__dict__["_custom_shell_complete"] is None
    ]
    assert without == []


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} ")


async def test_without_a_host_there_is_nothing_to_offer_and_nothing_is_said(tmp_path: Path) -> None:
    assert await completed(tmp_path, "ahpkit approve ") == []
    assert "chat" in await completed(tmp_path, "ahpkit ch")


def program(shell: str) -> str:
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed")


def path() -> str:
    return f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}"


SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(_AHPKIT_COMPLETE=bash_source ahpkit)"'),
    "zsh": (["-f", "-i"], 'autoload -U compinit; compinit -u; eval "$(_AHPKIT_COMPLETE=zsh_source ahpkit)"'),
}
"""How each is started without anybody's own settings, and the line of the documentation that turns completion on."""

TYPED = {"ahpkit sessions sea": "ahpkit sessions search", "ahpkit chat --agent de": "ahpkit chat --agent demo"}


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_tab_key_completes_in_a_real_shell(host: HostProcess, shell: str) -> None:
    arguments, setup = SHELLS[shell]
    where = {"PATH": path(), "TERM": "dumb", "PS1": "$ "}
    async with terminal(arguments, host.home, program=[program(shell)], columns=160, **where) as person:
        person.screen.of_shell = True
        person.enter(f"{setup}; echo turned' 'on")
        await person.see("turned on")
        for typed, whole in TYPED.items():
            person.type(f"{typed}\t")
            await person.see(whole)
            person.enter("--help > /dev/null; echo next' 'one")
            await person.see("next one")
        person.enter("exit")
        assert await person.exited() == 0


async def test_fish_completes_as_well(host: HostProcess) -> None:
    for typed, whole in (*TYPED.items(), ("ahpkit sessions lis", "ahpkit sessions list")):
        asked = f"_AHPKIT_COMPLETE=fish_source ahpkit | source; complete --do-complete '{typed}'"
        process = await asyncio.create_subprocess_exec(
            program("fish"), "--no-config", "-c", asked,
            cwd=host.home, env={**environment(host.home), "PATH": path()}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert [line.split("\t")[0] for line in output.decode().splitlines()] == [whole.split()[-1]]
        assert "lis" not in typed or "\tList sessions, the one" in output.decode(), "whole, with its comma"
