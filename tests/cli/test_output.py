"""Lines and streamed text, on terminals and elsewhere."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ahpkit.cli import output as module
from ahpkit.cli.output import Output, Tell, announce, notify, own_command, patiently, progress, tilde
from support.waiting import BOUND


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Not a fixture: pytest puts its own stream back before the test runs."""
    made = FakeTerminal()
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return made


def test_a_line_begins_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.stream("a")
    output.stream("b")
    output.say("line")
    output.stream("c\n")
    output.say("line")
    output.end_line()
    assert capsys.readouterr().out == "ab\nline\nc\nline\n"


def test_errors_do_not_disturb_what_is_streamed_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.stream("one ")
    output.say("wrong", "red", error=True)
    output.stream("line")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("one line", "wrong\n")


def test_on_a_terminal_errors_have_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal)
    output = Output()
    output.stream("half")
    output.say("wrong", error=True)
    assert terminal.getvalue() == "half\nwrong\n"


def test_without_a_terminal_text_is_written_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Output().say("[bold]\x1b[2J\r\n", "red")
    assert capsys.readouterr().out == "[bold]\x1b[2J\r\n\n"


def test_a_terminal_gets_colours_and_nothing_that_drives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    output = Output()
    output.say("[bold] :smile: \x1b[2J", "red")
    assert terminal.getvalue() == "\x1b[31m[bold] :smile: ␛[2J\x1b[0m\n"


def test_long_lines_are_left_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    Output().say("x" * 500)
    assert terminal.getvalue() == "x" * 500 + "\n"


def test_nothing_is_written_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    output = Output()
    output.stream("")
    output.end_line()
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Working") as tell:
        tell("half of it")
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person would have been shown."""
    seen: list[str] = []

    @contextmanager
    def show(doing: str) -> Generator[None]:
        seen.append(doing)
        yield

    monkeypatch.setattr(module, "progress", show)
    return seen


async def test_quick_work_is_not_talked_about(shown: list[str]) -> None:
    assert await patiently(asyncio.sleep(0, "done"), "Working") == "done"
    assert shown == []


async def test_slow_work_is_talked_about(shown: list[str]) -> None:
    assert await patiently(asyncio.sleep(0.01, "done"), "Working", patience=0) == "done"
    assert shown == ["Working"]


async def test_failures_are_passed_on(shown: list[str]) -> None:
    async def fail() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await patiently(fail(), "Working")


async def test_being_cancelled_cancels_the_work(shown: list[str]) -> None:
    ended = asyncio.Event()
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = asyncio.create_task(patiently(work(), "Working"))
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(BOUND):
        await ended.wait()


async def test_long_work_is_explained_in_a_log_too(shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = asyncio.Event()

    async def explain(tell: Tell) -> None:
        tell("waiting for an answer")
        told.set()
        await asyncio.Future[None]()

    assert await patiently(told.wait(), "Working", explain=explain, patience=0, long=0)
    assert capsys.readouterr().err == "Working … waiting for an answer\n"


class Started(list[Sequence[str]]):
    """Programs that were started."""

    def __call__(self, command: Sequence[str]) -> None:
        self.append(command)


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A desktop with a program that shows notifications."""
    monkeypatch.setattr("sys.platform", "linux")
    program = tmp_path / "notify-send"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return {"PATH": str(tmp_path), "DISPLAY": ":0"}


def test_the_desktop_gets_one_printable_line_as_an_argument(desktop: dict[str, str]) -> None:
    started = Started()
    notify("desktop", "-x\n\x1b[2J waits", environment=desktop, start=started)
    [command] = started
    assert command[-3:] == ["--", "ahpkit", "-x ␛[2J waits"]


@pytest.mark.parametrize("missing", ["DISPLAY", "PATH"])
def test_without_a_desktop_or_a_terminal_nothing_happens(desktop: dict[str, str], missing: str) -> None:
    started = Started()
    notify("desktop", "x", environment={**desktop, missing: ""}, start=started)
    notify("none", "x", environment=desktop, start=started)
    notify("bell", "x", environment=desktop, start=started)
    assert started == []


def test_people_are_told_where_it_listens_and_what_to_try(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(sys, "argv", ["/usr/lib/ahpkit/__main__.py", "serve"])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    announce("ws://127.0.0.1:7110", "secret", Path("/home/ada/data"), ["parrot", "demo"], as_json=False)
    assert capsys.readouterr().out == (
        "ahpkit is listening on ws://127.0.0.1:7110\n"
        "Sessions are kept in ~/data; the token is in the file 'token' there\n"
        "Agents: parrot, demo\n"
        "Try it in another terminal:  /usr/bin/python3 -m ahpkit chat\n"
    )


def test_without_a_token_none_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    announce("ws://127.0.0.1:7110", None, Path("/srv/data"), ["demo"], as_json=False)
    output = capsys.readouterr().out
    assert "Sessions are kept in /srv/data\n" in output
    assert "token" not in output


def test_programs_get_one_line_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    announce("ws://127.0.0.1:1", "secret", Path("/srv/data"), ["demo"], as_json=True)
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    facts = {"url": "ws://127.0.0.1:1", "token": "secret", "pid": os.getpid(), "dataDir": "/srv/data"}
    assert json.loads(output) == {**facts, "agents": ["demo"]}


def test_only_paths_below_home_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert [tilde(Path(p)) for p in ("/home/ada/x", "/home/adam/x", "/x")] == ["~/x", "/home/adam/x", "/x"]


def test_the_line_to_try_works_where_the_host_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my env" / "bin" / "ahpkit"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command() == "'my env/bin/ahpkit'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command() == "ahpkit"
