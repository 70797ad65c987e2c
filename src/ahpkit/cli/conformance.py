"""`ahpkit conformance`: runs the fixtures of `ahpkit.testing` and prints what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ahpkit.testing.conformance import PROTOCOLS, Report, run_reducer_fixtures, run_round_trips

__all__ = ["conformance"]

_directory = click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")


class _Protocol(click.ParamType[str]):
    """A version that fixtures can be run for, in full or as `serve --protocol` takes it: 1.0.0, 0.9, 1."""

    name = "version"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = [version for version in PROTOCOLS if f"{version}.".startswith(f"{value}.")]
        if not value or len(found) != 1:
            self.fail(f"there are fixtures for {', '.join(PROTOCOLS)}, not for {value!r}", param, ctx)
        return found[0]


_protocol = click.option(
    "--protocol",
    metavar="VERSION",
    type=_Protocol(),
    help="The version that all fixtures are for. Without it every fixture is run for the version it is for.",
)


@click.group()
def conformance() -> None:
    """Check implementations of AHP against fixtures.

    Every *.json under DIR is a fixture. The last line is "N passed, M failed"; the exit status is 1 when one failed
    and 2 when there is nothing to run.

    \b
    Example:
      ahpkit conformance reducers tests/fixtures/reducers
    """


@conformance.command()
@_directory
@_protocol
@_as_json
def reducers(directory: Path, *, protocol: str | None, as_json: bool) -> None:
    """Fold the actions of every fixture in DIR with our reducers.

    \b
    Example:
      ahpkit conformance reducers tests/fixtures/reducers --protocol 1.0.0
    """
    _report(partial(run_reducer_fixtures, protocol=protocol), directory, as_json=as_json)


@conformance.command(name="round-trips")
@_directory
@_protocol
@_as_json
def round_trips(directory: Path, *, protocol: str | None, as_json: bool) -> None:
    """Decode, check and encode the input of every fixture in DIR.

    \b
    Example:
      ahpkit conformance round-trips tests/fixtures/round-trips --json
    """
    _report(partial(run_round_trips, protocol=protocol), directory, as_json=as_json)


def _report(run: Callable[[Path], Report], directory: Path, *, as_json: bool) -> None:
    report = run(directory)
    if not report.passed and not report.failed:
        raise click.BadParameter(f"no *.json fixture under {str(directory)!r}.", param_hint="'DIR'")
    click.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2) if as_json else str(report))
    if report.failed:
        raise click.exceptions.Exit(1)
