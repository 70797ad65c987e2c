"""Calling somebody who looks elsewhere: which program is started, and when the bell has to do."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpkit.cli.notify import notify


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
