"""The reference has every option and every subcommand, in the section of its command."""

from pathlib import Path

import click
import pytest

from ahpkit.cli.main import cli
from ahpkit.host.sessions import session_import

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

COMMON = {"--help", "--url", "--token", "--host-name"}


def section(name: str) -> str:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    return page.partition(f"## `ahpkit {name}`\n")[2].partition("\n## ")[0]


def options(command: click.Command) -> set[str]:
    own = {opt for param in command.params for opt in param.opts if opt.startswith("--")}
    if isinstance(command, click.Group):
        own |= {opt for one in command.commands.values() for opt in options(one)}
    return own - COMMON


@pytest.mark.parametrize(
    "name",
    [
        "answer",
        "approve",
        "chat",
        "config",
        "data",
        "deny",
        "doctor",
        "down",
        "inbox",
        "logs",
        "prompt",
        "serve",
        "service",
        "sessions",
        "status",
        "tail",
        "up",
        "usage",
    ],
)
def test_every_option_is_in_the_section_of_its_command(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert [option for option in sorted(options(command)) if f"`{option}`" not in section(name)] == []


def test_every_subcommand_of_sessions_is_described() -> None:
    command = cli.get_command(click.Context(cli), "sessions")
    assert isinstance(command, click.Group)
    assert [name for name in command.commands if f"| `{name}" not in section("sessions")] == []


def test_the_extension_behind_import_is_described_with_its_parameters() -> None:
    page = (REFERENCE / "extensions.md").read_text(encoding="utf-8")
    for method, params in (("import", session_import.ImportParams), ("stage", session_import.StageParams)):
        described = page.partition(f"### `x-{session_import.EXTENSION}/{method}`\n")[2].partition("\n### ")[0]
        assert [name for name in params.__annotations__ if f"| `{name}` |" not in described] == []
