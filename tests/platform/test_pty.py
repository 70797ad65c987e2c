"""Commands on real ptys: what they print, read and leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ahpkit.platform.pty import CHUNK, ExitStatus, PtyProcess
from support.waiting import BOUND, gone, is_alive


@asynccontextmanager
async def running(script: str, *, cwd: Path = Path("/"), cols: int = 80, rows: int = 24) -> AsyncGenerator[PtyProcess]:
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    async with asyncio.timeout(BOUND):
        process = await PtyProcess.start(["/bin/sh", "-c", script], env=env, cwd=cwd, cols=cols, rows=rows)
        try:
            yield process
        finally:
            await process.aclose()


async def output(process: PtyProcess) -> bytes:
    """Everything until the end."""
    pieces: list[bytes] = []
    while data := await process.read():
        assert len(data) <= CHUNK
        pieces.append(data)
    return b"".join(pieces)


async def until(process: PtyProcess, text: bytes) -> bytes:
    """Everything up to a text that comes."""
    seen = b""
    while text not in seen:
        data = await process.read()
        assert data, f"ended after {seen!r}"
        seen += data
    return seen


async def test_a_command_prints_on_a_terminal_of_its_own_in_the_given_directory(tmp_path: Path) -> None:
    async with running("test -t 0 && test -t 1 && test -t 2 && pwd && echo grüße > /dev/tty", cwd=tmp_path) as process:
        assert await output(process) == f"{tmp_path}\r\ngrüße\r\n".encode()
        assert await process.wait() == ExitStatus(0)


async def test_the_environment_is_what_was_given_and_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_HOST", "secret")
    async with running("env") as process:
        names = {line.partition(b"=")[0] for line in (await output(process)).splitlines()}
    assert names - {b"PWD", b"_", b"SHLVL", b"OLDPWD"} == {b"PATH", b"LANG"}


@pytest.mark.parametrize("code", [0, 1, 3, 255])
async def test_the_exit_code_is_told(code: int) -> None:
    async with running(f"exit {code}") as process:
        assert await output(process) == b""
        assert await process.wait() == ExitStatus(code)


async def test_a_signal_that_ended_it_is_named() -> None:
    async with running("kill -SEGV $$") as process:
        assert await process.wait() == ExitStatus(None, "SIGSEGV")


async def test_what_is_typed_is_read() -> None:
    async with running("read line; echo got $line") as process:
        process.write(b"abc\n")
        assert b"got abc\r\n" in await output(process)


async def test_control_c_interrupts_what_runs_in_the_foreground() -> None:
    async with running("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done") as process:
        await until(process, b"ready")
        process.write(b"\x03")
        await until(process, b"caught")
        assert await process.wait() == ExitStatus(7)


async def test_backspace_erases_a_whole_character() -> None:
    async with running("read line; echo [$line]") as process:
        process.write("aü\x7fb\n".encode())
        assert b"[ab]" in await output(process)


async def test_the_size_is_seen_and_a_new_one_too() -> None:
    async with running(
        "stty size; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", cols=100, rows=30
    ) as process:
        assert b"30 100" in await until(process, b"ready")
        process.resize(132, 43)
        assert b"43 132" in await output(process)


async def test_input_that_is_not_taken_waits_and_arrives_whole() -> None:
    lines = 40_000
    async with running("stty -echo; echo ready; read go; wc -l") as process:
        await until(process, b"ready")
        process.write(b"".join(b"line %6d\n" % number for number in range(lines)))
        assert process.unread_input > 0
        process.write(b"\n\x04\n\x04")
        await until(process, str(lines).encode())
        assert process.unread_input == 0


async def test_whoever_does_not_read_makes_the_command_wait(tmp_path: Path) -> None:
    script = "head -c 1000000 /dev/zero | tr '\\0' x; touch {}"
    unread, read = tmp_path / "unread", tmp_path / "read"
    async with running(script.format(unread)) as waiting:
        await until(waiting, b"x")
        async with running(script.format(read)) as process:  # takes the time that the first one would have needed
            await output(process)
        assert (read.exists(), unread.exists()) == (True, False)
        await output(waiting)
        assert unread.exists()


async def test_everything_printed_before_the_end_is_read() -> None:
    async with running("head -c 300000 /dev/zero | tr '\\0' x; printf END") as process:
        text = await output(process)
    assert len(text) == 300_003
    assert text.endswith(b"END")


async def test_a_command_may_close_its_terminal_and_open_it_again() -> None:
    async with running("echo first; exec <&- >&- 2>&-; sleep 0.1; echo second > /dev/tty; exit 6") as process:
        assert await output(process) == b"first\r\nsecond\r\n"
        assert await process.wait() == ExitStatus(6)


async def test_kill_ends_jobs_in_groups_of_their_own() -> None:
    async with running("set -m; sleep 300 & echo child $!; sleep 301 & echo child $!; wait") as process:
        seen = await until(process, b"child")
        seen += await until(process, b"child") if seen.count(b"child") < 2 else b""
        pids = [int(line.split()[1]) for line in seen.splitlines() if line.startswith(b"child")]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        await process.kill()
        assert not any(map(is_alive, pids))
        assert (await process.wait()).signal == "SIGHUP"


async def test_a_stopped_job_is_ended_too() -> None:
    async with running("sleep 300 & echo child $!; kill -STOP $!; echo ready; wait") as process:
        seen = await until(process, b"ready")
        pid = int(seen.split()[1])
        await process.kill()
        assert not is_alive(pid)


async def test_what_a_command_leaves_behind_ends_with_it() -> None:
    async with running("sleep 300 & echo child $!") as process:
        pid = int((await output(process)).split()[1])
        assert await process.wait() == ExitStatus(0)
        assert not is_alive(pid)


async def test_what_left_the_session_on_purpose_stays_and_holds_nothing_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = (
        f"setsid sh -c 'echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 300' & "
        f"while ! test -e {pid_file}; do sleep 0.01; done; echo done"
    )
    async with running(script) as process:
        assert b"done" in await output(process)
        assert await process.wait() == ExitStatus(0)
    pid = int(pid_file.read_text())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    await gone(pid)


async def test_who_left_and_goes_on_printing_does_not_keep_the_terminal_open(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = (
        f"setsid sh -c 'echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; while :; do echo still here; done' & "
        f"while ! test -e {pid_file}; do sleep 0.01; done; exit 9"
    )
    async with running(script) as process:
        assert b"still here" in await output(process)
        assert await process.wait() == ExitStatus(9)
    pid = int(pid_file.read_text())
    with contextlib.suppress(ProcessLookupError):  # It may have noticed by itself: its terminal is closed now.
        os.kill(pid, signal.SIGKILL)
    await gone(pid)


async def test_closing_leaves_no_descriptor_and_no_zombie() -> None:
    async with running("true") as process:
        await process.wait()
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        async with running("echo hi; sleep 300") as process:
            await until(process, b"hi")
            process.write(b"x" * 100_000)
    assert set(os.listdir("/proc/self/fd")) <= before
    assert str(process.pid) not in os.listdir("/proc")


async def test_after_the_end_nothing_can_be_done_and_nothing_breaks() -> None:
    async with running("exit 0") as process:
        await process.wait()
    process.write(b"x")
    process.resize(10, 10)
    assert await process.read() == b""
    await process.kill()
    await process.aclose()


async def test_a_place_that_is_not_there_is_an_error_and_leaks_nothing(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        async with running("true", cwd=tmp_path / "missing"):
            pass
    assert set(os.listdir("/proc/self/fd")) <= before
