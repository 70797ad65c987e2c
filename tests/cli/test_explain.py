"""Errors as one line for a person; bugs keep their traceback."""

import click
import pytest
from click.testing import CliRunner

from ahpkit.cli.explain import explain
from ahpkit.cli.main import COMMANDS, Subcommand, cli
from ahpkit.client.errors import ConnectionLost, HostNotFound
from ahpkit.protocol.errors import SessionNotFound
from ahpkit.transports.errors import ConnectError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SessionNotFound("there is no session x"), "there is no session x"),
        (HostNotFound(), "no running host found: start one with `ahpkit up`, or pass its URL"),
        (
            ConnectError("ws://h:1", "nobody listens there", transient=True),
            "ws://h:1: nobody listens there\nIs the host running? Start one with: ahpkit serve",
        ),
        (
            ConnectError("ws://h:1", "not let in", status=401),
            "ws://h:1: not let in\nGive the host's token with --token or AHPKIT_TOKEN.",
        ),
        (ConnectError("ws://h:1", "refused", status=403), "ws://h:1: refused"),
        (ConnectionLost("gone"), "gone\nIs the host running? Start one with: ahpkit serve"),
        (TimeoutError(), "the host did not answer in time; is it busy? See: ahpkit doctor"),
        (FileNotFoundError(2, "No such file or directory", "x.json"), "x.json: No such file or directory"),
    ],
)
def test_what_a_person_can_do_something_about_is_explained(error: Exception, text: str) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained.message == text


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("x"), BrokenPipeError(), OSError("no name")])
def test_bugs_and_broken_pipes_are_not(error: Exception) -> None:
    assert explain(error) is None


@click.command()
def boom() -> None:
    raise SessionNotFound("there is no session x")


def test_every_command_is_explained_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "boom", Subcommand(f"{__name__}:boom", "Fails."))
    result = CliRunner().invoke(cli, ["boom"])
    assert (result.exit_code, result.output) == (1, "Error: there is no session x\n")
