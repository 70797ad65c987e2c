"""Lines and streamed text, on terminals and elsewhere."""

import io
import sys

import pytest

from ahpkit.cli.output import Output


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
