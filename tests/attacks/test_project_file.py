"""A project's `.ahpkit.toml` comes with a checkout: whatever it is, commands answer at once and say what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.process import finish_cli

ESCAPE = "\\u001b]0;owned\\u0007"

TEXTS: dict[str, tuple[str, str]] = {
    "a table that moves the cursor": (f'"{ESCAPE}" = 1\n', "cannot be shown"),
    "a key that moves the cursor": (f'[host]\n"{ESCAPE}" = 1\n', "cannot be shown"),
    "a number of 5,000 digits": ("[host]\nport = " + "9" * 5000, "not valid TOML"),
    "a list of a hundred thousand": ("a = " + "[" * 100_000, "not valid TOML"),
    "a key of twenty thousand parts": (".".join(["a"] * 20_000) + " = 1\n", "nested too deeply"),
    "forty tables": (".".join(["a"] * 40) + " = 1\n", "nested too deeply"),
    "ten megabytes": ("# " + "x" * 10_000_000, "at most 1024 KiB"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


async def shown(project: Path, *words: str) -> tuple[int, str]:
    """Run a command in the project; its exit code and all that it printed."""
    code, output, errors = await finish_cli(list(words), project, HOME=str(project.parent / "home"))
    return code, output + errors


@pytest.mark.parametrize("case", TEXTS)
async def test_an_odd_file_is_refused_at_once_and_moves_no_cursor(project: Path, case: str) -> None:
    text, expected = TEXTS[case]
    (project / ".ahpkit.toml").write_text(text)
    code, said = await shown(project, "config", "show")
    assert (code, expected in said) == (1, True), said[:500]
    assert "\x1b" not in said
    assert "Traceback" not in said


async def test_what_is_trusted_is_looked_at_as_carefully(project: Path) -> None:
    (project / ".ahpkit.toml").write_text(TEXTS["a number of 5,000 digits"][0])
    code, said = await shown(project, "trust", "show", ".ahpkit.toml")
    assert (code, "not valid TOML" in said, "Traceback" in said) == (1, True, False), said[:500]


LINKS: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to what the system tells": lambda path: path.symlink_to("/proc/kmsg"),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("case", LINKS)
async def test_what_is_no_file_holds_nobody_up(project: Path, case: str) -> None:
    LINKS[case](project / ".ahpkit.toml")
    _, said = await shown(project, "config", "show")
    assert "Traceback" not in said
    assert "host.port = 7110" in said or "Error: " in said


async def test_untrusted_keys_change_nothing_and_are_told_in_one_line(project: Path) -> None:
    evil = "".join(f"k{n} = 1\n" for n in range(20_000))
    (project / ".ahpkit.toml").write_text(f'[host]\nterminals = true\nhost = "0.0.0.0"\n{evil}')
    code, said = await shown(project, "config", "show")
    assert (code, "host.terminals = false" in said, 'host.host = "127.0.0.1"' in said) == (0, True, True)
    [warning] = [line for line in said.splitlines() if line.startswith("Warning")]
    assert "and 19992 more" in warning
    assert len(warning) < 1_000
