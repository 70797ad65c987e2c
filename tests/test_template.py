"""The copies that tests start as commands: they say and do what a fresh process does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from support.process import environment, host_process, run_cli
from support.template import command, start
from support.terminal import terminal

SHOW = """
import os, signal, sys
print(os.getcwd(), sorted(os.environ.items()), sys.argv[1:], sys.stdin.read(), os.getsid(0) == os.getpid())
print(sorted(os.listdir("/proc/self/fd")), signal.getsignal(signal.SIGINT), sys.stdout.name, sys.stdout.encoding)
sys.stderr.write("wrong\\n")
sys.exit(7)
"""

END = """
import atexit, sys, threading
atexit.register(print, "at exit")
print("a line that is not flushed", end="")
sys.stderr.write("wrong")
threading.Thread(target=lambda: (threading.main_thread().join(), print("a thread"))).start()
{how}
"""


async def fresh(
    module: str, arguments: list[str], home: Path, extra: dict[str, str]
) -> tuple[int | None, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=home, env={**environment(home), **extra},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    output, errors = await process.communicate(b"typed")
    return process.returncode, output, errors


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("show", ["one", "two words"]),
        ("ahpkit", ["--version"]),
        ("ahpkit", ["sessions", "list"]),
        ("ahpkit", ["nonsense"]),
        ("ahpkit", ["config", "show"]),
    ],
)
async def test_a_copy_says_and_sees_what_a_fresh_process_does(
    module: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    extra = {"PYTHONPATH": str(tmp_path), "MINE": "1"}
    copy = await start(module, arguments, directory=tmp_path, environment={**environment(tmp_path), **extra})
    output, errors = await copy.communicate(b"typed")
    assert (copy.returncode, output, errors) == await fresh(module, arguments, tmp_path, extra)


@pytest.mark.parametrize(
    "how", ["", "sys.exit()", "sys.exit(3)", "sys.exit('why')", "sys.exit(300)", "1 / 0", "sys.stdout.close()"]
)
async def test_a_copy_ends_as_a_fresh_process_does(how: str, tmp_path: Path) -> None:
    (tmp_path / "end.py").write_text(END.format(how=how))
    extra = {"PYTHONPATH": str(tmp_path)}
    copy = await start("end", [], directory=tmp_path, environment={**environment(tmp_path), **extra})
    output, errors = await copy.communicate()
    code, expected, wrong = await fresh("end", [], tmp_path, extra)
    assert (copy.returncode, output) == (code, expected)
    assert errors.splitlines()[-1:] == wrong.splitlines()[-1:], "a traceback also shows where the copy came from"


async def test_a_copy_ends_by_the_signal_that_it_got_and_the_next_one_starts(tmp_path: Path) -> None:
    async with host_process(tmp_path) as first:
        first.kill()
        assert await first.ended() == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(first.process.pid, 0)
    async with host_process(tmp_path) as second:
        assert await second.stop() == 0


async def test_a_copy_in_a_terminal_is_its_foreground(tmp_path: Path) -> None:
    async with host_process(tmp_path), terminal(["sessions", "list", "--watch"], tmp_path) as person:
        await person.see("There are no sessions")
        person.interrupt()
        assert await person.exited() == 130


async def test_nobody_waits_for_a_command_that_reads_nothing(tmp_path: Path) -> None:
    process = await run_cli(["--version"], tmp_path)
    output, _ = await process.communicate(b"x" * 10_000_000)
    assert output.startswith(b"ahpkit ")
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


async def test_a_copy_that_others_start_has_their_files_and_they_learn_its_end(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    process = await asyncio.create_subprocess_exec(
        *command("show"), "one",
        cwd=tmp_path, env={**environment(tmp_path), "PYTHONPATH": str(tmp_path)},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await process.communicate(b"typed")
    assert (process.returncode, errors) == (7, b"wrong\n")
    assert output.startswith(f"{tmp_path} ".encode())
    assert b"['one'] typed" in output


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
async def test_whoever_ends_a_copy_that_they_started_ends_what_it_runs(
    signum: signal.Signals, code: int, tmp_path: Path
) -> None:
    (tmp_path / "stays.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    process = await asyncio.create_subprocess_exec(
        *command("stays"),
        cwd=tmp_path, env={**environment(tmp_path), "PYTHONPATH": str(tmp_path)}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"here\n"
    process.send_signal(signum)
    assert await process.wait() == code
    assert await process.stdout.read() == b""
