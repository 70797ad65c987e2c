import asyncio
import json
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.platform.limits import ChildLimits, limit_children
from ahpkit.platform.processes import MARK
from ahpkit.transports.process import ChildProcess, Tail
from ahpkit.wire.errors import TransportClosed
from support.waiting import BOUND, gone, is_alive


def python(code: str, *, env: dict[str, str] | None = None, **patience: Any) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code], env=env or {}, cwd=Path("/"), **patience)


def starting(proc: Path, pid: int, *, parent: int) -> Path:
    """A process as /proc shows it while one program is replaced by another."""
    shown = proc / str(pid)
    shown.mkdir()
    (shown / "exe").symlink_to("/bin/sleep")
    (shown / "stat").write_text(f"{pid} (sleep) S {parent} 0")
    for name in ("environ", "cmdline"):
        (shown / name).touch()
    return shown


class TestTail:
    def test_it_keeps_the_end_of_an_endless_text(self) -> None:
        tail = Tail(limit=100)
        for number in range(10_000):
            tail.add(f"line {number}\n".encode())

        assert tail.lines(2) == ["line 9998", "line 9999"]
        assert len(tail.lines(1000)) <= 15

    def test_it_shows_lines_with_something_in_them_whatever_the_bytes(self) -> None:
        tail = Tail()
        tail.add(b"a\n\n \xff b\r\n")

        assert tail.lines(5) == ["a", " � b"]


@pytest.fixture
def limited() -> Generator[None]:
    limit_children(ChildLimits(memory=300 * 1024 * 1024, processes=5000))
    yield
    limit_children(ChildLimits())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits other processes")
@pytest.mark.usefixtures("limited")
class TestLimits:
    async def test_a_child_that_takes_too_much_memory_fails_and_the_host_does_not(self) -> None:
        hog = "input(); x = bytearray(1 << 30)"
        async with asyncio.timeout(BOUND), python(hog) as process:
            process.transport.write(process.transport.frame(b"{}"))
            await process.wait_over(BOUND)
            assert process.exit_code == 1
            assert "MemoryError" in process.log.lines(1)[0]

    async def test_what_a_child_starts_is_limited_too(self) -> None:
        code = "import subprocess, sys; input(); subprocess.run([sys.executable, '-c', sys.argv[0]])"
        show = "import json, resource; print(json.dumps({'memory': resource.getrlimit(resource.RLIMIT_DATA)[1],"
        show += " 'processes': resource.getrlimit(resource.RLIMIT_NPROC)[1]}))"
        async with asyncio.timeout(BOUND), python(code.replace("sys.argv[0]", repr(show))) as process:
            process.transport.write(process.transport.frame(b"{}"))
            found = json.loads(await process.transport.receive())
        assert found == {"memory": 300 * 1024 * 1024, "processes": 5000}


class TestRunning:
    async def test_messages_go_both_ways(self) -> None:
        async with asyncio.timeout(BOUND), python("print('{\"got\":' + input() + '}')") as process:
            process.transport.write(process.transport.frame(b"[1]"))
            assert await process.transport.receive() == b'{"got":[1]}'

    async def test_what_it_prints_besides_messages_is_kept_as_a_log(self) -> None:
        code = "import sys; print('hello'); print('[1]'); print('{}'); print('oops', file=sys.stderr)"
        async with asyncio.timeout(BOUND), python(code) as process:
            assert await process.transport.receive() == b"{}"
            with pytest.raises(TransportClosed):
                await process.transport.receive()
            await process.wait_exit(BOUND)

        assert sorted(process.log.lines(9)) == ["oops", "stdout: [1]", "stdout: hello"]

    async def test_a_flood_on_stderr_does_not_hold_it_up(self) -> None:
        async with (
            asyncio.timeout(BOUND),
            python("import sys; sys.stderr.write('x' * 5_000_000); print('{}')") as process,
        ):
            assert await process.transport.receive() == b"{}"

    async def test_its_environment_is_what_it_was_given_and_its_mark(self) -> None:
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        os.environ["AHPKIT_NOT_FOR_AGENTS"] = "1"
        try:
            async with asyncio.timeout(BOUND), python(code, env={"A": "b"}) as process:
                seen = (await process.transport.receive()).decode()
        finally:
            del os.environ["AHPKIT_NOT_FOR_AGENTS"]

        assert '"A": "b"' in seen
        assert MARK in seen
        assert "AHPKIT_NOT_FOR_AGENTS" not in seen

    async def test_it_leads_a_group_of_its_own(self) -> None:
        async with asyncio.timeout(BOUND), python("import os; print('{}', flush=True); input()") as process:
            await process.transport.receive()
            assert os.getpgid(process.pid) == process.pid != os.getpgid(0)


CHILD = "[sys.executable, '-c', 'import time; time.sleep(600)']"


class TestEnding:
    async def test_one_that_leaves_when_its_input_ends_is_not_killed(self) -> None:
        code = "import sys; sys.stdin.read(); sys.exit(3)"
        # A busy machine starts it slowly.
        async with asyncio.timeout(BOUND), python(code, eof_patience=BOUND) as process:
            pass

        assert process.exit_code == 3

    async def test_one_that_ignores_everything_is_killed(self) -> None:
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('{}', flush=True); time.sleep(600)"
        async with asyncio.timeout(BOUND), python(code, eof_patience=0.1, term_patience=0.1) as process:
            await process.transport.receive()

        assert process.exit_code == -signal.SIGKILL

    @pytest.mark.parametrize("session", ["False", "True"])
    async def test_children_end_with_it_also_those_in_a_session_of_their_own(self, session: str) -> None:
        code = f"import subprocess, sys; p = subprocess.Popen({CHILD}, start_new_session={session})\n"
        code += "print('{' + str(p.pid), flush=True); sys.stdin.read()"
        async with asyncio.timeout(BOUND), python(code) as process:
            child = int((await process.transport.receive())[1:])
            assert is_alive(child)

        await gone(child)

    async def test_who_is_just_being_started_when_it_dies_is_found_later(self, tmp_path: Path) -> None:
        """The kernel shows a new program's environment a moment after it told the parent that it runs."""
        orphan = await asyncio.create_subprocess_exec("sleep", "600")
        shown = starting(tmp_path, orphan.pid, parent=1)
        code = "import os; print('{\"mark\": \"%s\"}' % os.environ['AHPKIT_PROCESS'])"
        async with asyncio.timeout(BOUND), python(code, proc=tmp_path, looks=1_000_000) as process:
            mark = json.loads(await process.transport.receive())["mark"]
            with pytest.raises(TransportClosed):
                await process.transport.receive()
            assert orphan.returncode is None
            (shown / "environ").write_text(f"{MARK}={mark}\0")
            assert await orphan.wait() == -signal.SIGKILL

    async def test_who_is_just_being_started_by_somebody_else_is_not_waited_for(self, tmp_path: Path) -> None:
        """On a busy machine there is always somebody."""
        starting(tmp_path, 4_000_001, parent=4_000_000)
        async with asyncio.timeout(BOUND), python("print('{}')", proc=tmp_path, looks=1_000_000) as process:
            assert await process.transport.receive() == b"{}"
            await process.wait_over(BOUND)
            assert process.exit_code == 0

    async def test_one_that_is_over_before_we_look_is_a_process_like_any_other(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start = asyncio.get_running_loop().subprocess_exec

        async def start_and_be_late(*args: Any, **options: Any) -> Any:
            process, streams = await start(*args, **options)
            await asyncio.wait_for(streams.ended.wait(), BOUND)
            return process, streams

        monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", start_and_be_late)
        async with asyncio.timeout(BOUND), python("print('{}')") as process:
            assert await process.transport.receive() == b"{}"
            await process.wait_exit(BOUND)
            assert process.exit_code == 0

    async def test_when_it_dies_what_it_left_behind_dies_and_its_pipes_end(self) -> None:
        code = f"import os, subprocess, sys; p = subprocess.Popen({CHILD})\n"
        code += "print('{' + str(p.pid), flush=True); os._exit(7)"
        async with asyncio.timeout(BOUND), python(code) as process:
            child = int((await process.transport.receive())[1:])
            with pytest.raises(TransportClosed):
                await process.transport.receive()
            await gone(child)
            assert process.exit_code == 7

    async def test_killing_ends_it_at_once(self) -> None:
        async with asyncio.timeout(BOUND), python("import time; print('{}', flush=True); time.sleep(600)") as process:
            await process.transport.receive()
            process.kill()
            await process.wait_exit(BOUND)
            assert process.exit_code == -signal.SIGKILL


async def test_the_number_of_a_group_that_ended_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long after the end the system may have given it to others."""
    signalled: list[int] = []

    def killpg(group: int, signum: int) -> None:
        signalled.append(group)

    async with asyncio.timeout(10), python("") as process:
        await process.wait_over(5)
        monkeypatch.setattr(os, "killpg", killpg)

    assert signalled == []
