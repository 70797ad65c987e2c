"""`ahpkit conformance`: runs the fixtures and the host checks of `ahpkit.testing`, and prints what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ahpkit.cli.connection import chosen_name, host_command
from ahpkit.cli.output import Output
from ahpkit.cli.shell_completion import AGENT
from ahpkit.cli.text import as_json as json_text
from ahpkit.cli.text import printable
from ahpkit.client.connect import dialler
from ahpkit.testing.conformance import PROTOCOLS, Report, run_reducer_fixtures, run_round_trips
from ahpkit.testing.host_checks import HOST_CHECKS
from ahpkit.testing.host_conformance import HostOutcome, check_host
from ahpkit.testing.host_target import Target

__all__ = ["conformance"]

_directory = click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")


class _Protocol(click.ParamType[str]):
    """A version for which there are fixtures, written in full or as `serve --protocol` takes it: 1.0.0, 0.9, 1."""

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
    """Check implementations of AHP: reducers and types against fixtures, a running host by talking to it.

    The last line is "N passed, M failed", with ", K skipped" if some JSON files are not fixtures. The exit status is 1
    if a check failed, and 2 if there was nothing to run.

    \b
    Example:
      ahpkit conformance reducers tests/fixtures/reducers
      ahpkit conformance host --url ws://127.0.0.1:7110
    """


@conformance.command()
@_directory
@_protocol
@_as_json
def reducers(directory: Path, *, protocol: str | None, as_json: bool) -> None:
    """Fold the actions of every fixture in DIR with our reducers. They are the *.json files under DIR.

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
    """Decode, check and encode the input of every fixture in DIR. They are the *.json files under DIR.

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


@conformance.command()
@click.option("--protocol", metavar="VERSION", help="Offer this version only.  [default: the newest of the host]")
@click.option(
    "--agent", "provider", shell_complete=AGENT, help="The agent of the sessions that are made.  [default: the first]"
)
@click.option("--prompt", help="Also check turns: send this to the agent. Without it no agent gets a message.")
@click.option("--session-uri", default="ahp-session:/{id}", show_default=True, help="The form of new sessions' URIs.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Seconds per answer.")
@click.option("--check", "names", multiple=True, metavar="NAME", help="Run this check only (repeatable).")
@_as_json
@host_command
async def host(
    url: str | None,
    token: str | None,
    protocol: str | None,
    provider: str | None,
    prompt: str | None,
    session_uri: str,
    timeout: float,
    names: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check a running host, whoever wrote it, by talking to it as clients do.

    The command creates its own sessions and disposes of them. Without an address it checks the host of this machine.

    \b
    Example:
      ahpkit conformance host --prompt hello
      ahpkit conformance host --url ws://127.0.0.1:9000 --token SECRET --protocol 0.9.0 --json
    """
    if unknown := [name for name in names if name not in HOST_CHECKS]:
        raise click.BadParameter(f"there is no check {unknown[0]!r}; there are {', '.join(HOST_CHECKS)}")
    if "{id}" not in session_uri:
        raise click.BadParameter("it must contain {id}, such as ahp-session:/{id}", param_hint="'--session-uri'")
    dial = dialler(url, token=token, host_name=chosen_name())
    target = Target(dial, protocol=protocol, provider=provider, prompt=prompt, session_uri=session_uri, timeout=timeout)
    output = Output()

    def show(outcome: HostOutcome) -> None:
        if not as_json:
            output.say(printable(str(outcome)))

    checks = {name: HOST_CHECKS[name] for name in names or HOST_CHECKS}
    report = await check_host(target, checks=checks, on_outcome=show)
    output.say(json_text(report.to_json()) if as_json else report.summary)
    return 1 if report.failed else 0
