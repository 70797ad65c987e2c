"""`ahpkit up`, `down`, `status`, `logs` and `service`: runs the host in the background.

`up` starts a host in the background and `down` ends it. `service install` writes a file for systemd or launchd, which
then start the same host when the user logs in.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from ahpkit import __version__
from ahpkit.cli.asking import Place, WholeNumber
from ahpkit.cli.daemon import (
    check_host_name,
    end_host,
    error_file,
    is_outdated,
    log_file,
    log_files,
    named_data_dir,
    offer_restart,
    refuse_unknown_name,
    restart_command,
    restart_host,
    running_at,
    say_which,
    start_host,
)
from ahpkit.cli.output import own_command, patiently, tilde
from ahpkit.cli.text import printable
from ahpkit.cli.watching import json_text, repeat, watch_option
from ahpkit.client import connect
from ahpkit.client.endpoints import NAME_VARIABLE, Endpoint, find_endpoint, find_endpoints
from ahpkit.protocol.errors import AhpError

F = TypeVar("F", bound=Callable[..., Any])

_PATIENCE = 3.0
"""Seconds within which a host has to report its state."""

_FOLLOW = 0.2
_WHICH = "Which host, when there are several."
_NEW_NAME = f"{_WHICH[:-1]}; a new name has a data directory of its own."


def _name_option(says: str) -> Callable[[F], F]:
    return click.option("--host-name", envvar=NAME_VARIABLE, metavar="NAME", help=says, callback=check_host_name)


@click.command(context_settings={"ignore_unknown_options": True})
@_name_option(_NEW_NAME)
@click.option("--data-dir", type=Place(path_type=Path, file_okay=False), help="Where sessions are kept.")
@click.option("--restart", is_flag=True, help="End a host that runs already and start it again.")
@click.option(
    "--json", "json_output", is_flag=True, help="Print where it listens, and whether it was started, as JSON."
)
@click.argument("options", metavar="[OPTIONS OF SERVE]...", nargs=-1, type=click.UNPROCESSED)
def up(
    host_name: str | None, data_dir: Path | None, restart: bool, json_output: bool, options: tuple[str, ...]
) -> None:
    """Start a host in the background, unless it runs already. Takes the options of `ahpkit serve`.

    A restart without options keeps those it was started with.

    \b
    Example:
      ahpkit up
      ahpkit up --agent claude
      ahpkit up --restart
    """
    check_serve_options(options)
    place = (data_dir or named_data_dir(host_name)).absolute()
    named = ["--host-name", host_name] if host_name else []
    asyncio.run(_up(place, named, options, restart=restart, json_output=json_output))


def check_serve_options(options: Sequence[str]) -> None:
    """Refuse options that `ahpkit serve` would refuse. In the background nobody would see the error."""
    from ahpkit.cli.serve import serve  # Imported late, because this imports the host.

    serve.make_context("ahpkit serve", list(options))


async def _up(
    data_dir: Path, named: Sequence[str], options: Sequence[str], *, restart: bool, json_output: bool
) -> None:
    running = running_at(data_dir)
    if running is not None and not restart and is_outdated(running):
        restart = offer_restart(running, ask=True)
    if running is not None and restart:
        endpoint, started = await restart_host(running, data_dir, [*named, *options] if options else ()), True
    else:
        endpoint, started = await patiently(start_host(data_dir, [*named, *options]), "Starting the host")
    if json_output:
        click.echo(json.dumps({**_facts(endpoint), "started": started}))
        return
    click.echo(f"{'Started' if started else 'Already running'}: {described(endpoint)}")
    if started:
        which = "" if data_dir == named_data_dir(None).absolute() else f" --host-name {endpoint.name}"
        click.echo(f"Its log: {tilde(log_file(data_dir))}   Stop it with: {own_command()} down{which}")
    elif options and not restart:
        click.echo("It keeps the options that it was started with; `ahpkit up --restart …` takes these.", err=True)


@click.command()
@_name_option(_WHICH)
@click.option("--all", "every", is_flag=True, help="All your hosts.")
def down(host_name: str | None, every: bool) -> None:
    """End the host. Sessions are kept; running turns are ended.

    \b
    Example:
      ahpkit down
      ahpkit down --host-name work
    """
    running = find_endpoints()
    if not every:
        one = _only(running, host_name)
        running = [] if one is None else [one]
    if not running:
        refuse_unknown_name(host_name)
        click.echo("no host is running" if not host_name else f"no host named {host_name} is running")
    for endpoint in running:
        asyncio.run(_end(endpoint))
        click.echo(f"Ended: {described(endpoint)}")


def _only(running: Sequence[Endpoint], name: str | None) -> Endpoint | None:
    """The running host that is meant; None if there is none. Raises if it could be any of several."""
    found = [one for one in running if name in (None, one.name)]
    if len(found) > 1:
        lines = [f"  {described(one)}" for one in found]
        advice = "Use --host-name or --all" if name is None else "Use --all, or end one by its process"
        raise click.ClickException("\n".join([f"which one? {advice}:", *lines]))
    return found[0] if found else None


async def _end(endpoint: Endpoint) -> None:
    await patiently(end_host(endpoint), "Ending the host")


def described(endpoint: Endpoint) -> str:
    """One line that names a host, its address and its process."""
    return f"host {printable(endpoint.name or '?')} at {endpoint.url} (process {endpoint.pid})"


@dataclass(frozen=True, slots=True)
class _Health:
    agents: list[str]
    sessions: int


@click.command()
@click.option("--host-name", metavar="NAME", help="Only the host of this name.", callback=check_host_name)
@watch_option
@click.option("--json", "json_output", is_flag=True, help="The hosts as JSON.")
def status(host_name: str | None, watching: bool, json_output: bool) -> None:
    """Show your running hosts. Exits with 1 if there is none.

    \b
    Example:
      ahpkit status
      ahpkit status --json
    """

    def show(found: list[tuple[Endpoint, _Health | str]]) -> None:
        if json_output:
            facts = [{**_facts(one), **_health_facts(health)} for one, health in found]
            return click.echo(json_text(facts, watching=watching))
        lines = [line for one, health in found for line in _status_lines(one, health)]
        which, option = (f" named {host_name}", f" --host-name {host_name}") if host_name else ("", "")
        return click.echo("\n".join(lines) or f"no host{which} is running; start one with: {own_command()} up{option}")

    if not (watching or json_output or _named(host_name)):
        refuse_unknown_name(host_name)
    if not repeat(lambda: _running(host_name), show, watching=watching, clear=not json_output):
        raise SystemExit(1)


def _running(name: str | None) -> list[tuple[Endpoint, _Health | str]]:
    return [(one, asyncio.run(_health(one))) for one in _named(name)]


def _named(name: str | None) -> list[Endpoint]:
    return [one for one in find_endpoints() if name in (None, one.name)]


async def _health(endpoint: Endpoint) -> _Health | str:
    """What a host reports about itself, or a text that says why it reports nothing."""
    try:
        async with asyncio.timeout(_PATIENCE), connect(endpoint.url, token=endpoint.token) as client:
            return _Health([agent["provider"] for agent in client.root["agents"]], len(await client.sessions()))
    except TimeoutError:
        return f"no answer within {_PATIENCE:g} s"
    except (AhpError, OSError) as error:
        return str(error)


def _facts(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "pid": endpoint.pid,
        "version": endpoint.version,
        "background": endpoint.background,
        "startedAt": endpoint.started_at,
        "dataDir": endpoint.data_dir,
        "log": str(log_file(Path(endpoint.data_dir))) if endpoint.background and endpoint.data_dir else None,
    }


def _health_facts(health: _Health | str) -> dict[str, Any]:
    return {"error": health} if isinstance(health, str) else {"agents": health.agents, "sessions": health.sessions}


def _status_lines(endpoint: Endpoint, health: _Health | str) -> list[str]:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(endpoint.started_at / 1000))
    lines = [f"{described(endpoint)}, ahpkit {endpoint.version or '?'}, since {since}"]
    if isinstance(health, str):
        lines.append(f"  does not answer: {health}")
    else:
        sessions = f"{health.sessions} session{'' if health.sessions == 1 else 's'}"
        lines.append(f"  {sessions}, agents: {', '.join(map(printable, health.agents))}")
    if endpoint.data_dir:
        lines.append(f"  data: {tilde(Path(endpoint.data_dir))}")
        if endpoint.background:
            lines.append(f"  log:  {tilde(log_file(Path(endpoint.data_dir)))}")
    if is_outdated(endpoint):
        lines.append(f"  this command is ahpkit {__version__}; restart the host with: {restart_command(endpoint)}")
    return lines


@click.command()
@_name_option(_WHICH)
@click.option("-n", "--lines", default=50, show_default=True, type=WholeNumber(0), help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--data-dir", type=Place(path_type=Path, file_okay=False), help="The host's data directory.")
def logs(host_name: str | None, lines: int, follow: bool, data_dir: Path | None) -> None:
    """Show what the host in the background logged.

    \b
    Example:
      ahpkit logs
      ahpkit logs --follow
    """
    running = find_endpoint(name=host_name)
    if data_dir is None and running is None:
        refuse_unknown_name(host_name)
    elif data_dir is None and running is not None:
        say_which(running, host_name)
    known = Path(running.data_dir) if running is not None and running.data_dir else named_data_dir(host_name)
    place = data_dir or known
    path = log_file(place)
    if not path.exists():
        raise click.ClickException(f"there is no log at {path}: only hosts that `ahpkit up` started write one")
    with _reading(path) as log:
        for line in _last_lines(error_file(place), lines) + _last_logged(log, log_files(place)[1:], lines):
            click.echo(line)
        if follow:
            _follow(path, log)


def _reading(path: Path) -> TextIO:
    return path.open(encoding="utf-8", errors="replace")


def _last_logged(log: TextIO, older: Sequence[Path], count: int) -> list[str]:
    """The last lines of the log. The log is read to its end; if it has only begun, older parts are read, too."""
    found = _last_of(log, count)
    for part in older:
        found = _last_lines(part, count - len(found)) + found
    return found


def _last_lines(path: Path, count: int) -> list[str]:
    try:
        with _reading(path) as file:
            return _last_of(file, count)
    except FileNotFoundError:
        return []


def _last_of(file: TextIO, count: int) -> list[str]:
    return [printable(line.rstrip("\n")) for line in deque(file, maxlen=count)]


def _follow(path: Path, log: TextIO) -> None:
    """Print what is added to the log, until Ctrl-C. If the log was rotated, go on with the new file."""
    while True:
        rotated = path.exists() and path.stat().st_ino != _inode(log)
        for line in log:  # The file is looked at before it is read, so that an old part is read to its end.
            click.echo(printable(line.rstrip("\n")))
        if rotated:
            log = _reading(path)
        else:
            time.sleep(_FOLLOW)  # This command has no event loop: it only follows a file.


def _inode(file: TextIO) -> int:
    return os.fstat(file.fileno()).st_ino


# The service: a file that systemd or launchd reads.


@click.group()
def service() -> None:
    """Have the system start the host when you log in.

    \b
    Example:
      ahpkit service install
    """


@service.command("install")
@_name_option(_NEW_NAME)
@click.option("--print", "only_print", is_flag=True, help="Print the file; write nothing.")
@click.argument("options", metavar="[-- OPTIONS OF SERVE]...", nargs=-1, type=click.UNPROCESSED)
def install_service(host_name: str | None, only_print: bool, options: tuple[str, ...]) -> None:
    """Write a systemd user unit (Linux) or a launchd agent (macOS) for the host. Options after -- go to `serve`.

    Relative paths in the options begin in the current directory.

    \b
    Example:
      ahpkit service install
      ahpkit service install -- --agent claude
    """
    check_serve_options(options)
    named = ("--host-name", host_name) if host_name else ()
    command = [sys.executable, "-m", "ahpkit", "serve", "--background", *named, *options]
    path, text, advice = _service_file(host_name, command, Path.cwd() if options else Path.home())
    if only_print:
        click.echo(text, nl=False)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"Written: {tilde(path)}")
    click.echo(f"Start it now, and whenever you log in:  {advice}")
    if sys.platform == "linux" and not _systemd_answers():
        click.echo("systemd does not run for you on this machine, so that does nothing; `ahpkit up` starts the host.")


def _systemd_answers() -> bool:
    """Whether the user's own systemd runs: in containers and after `su` it does not."""
    try:
        asked = subprocess.run(["systemctl", "--user", "show-environment"], capture_output=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


@service.command("uninstall")
@_name_option(_WHICH)
def uninstall_service(host_name: str | None) -> None:
    """Remove the service file. A running host keeps running until it is ended.

    \b
    Example:
      ahpkit service uninstall
    """
    path, _, _ = _service_file(host_name, [], Path.home())
    if not path.exists():
        raise click.ClickException(f"{tilde(path)} does not exist: no service is installed")
    path.unlink()
    click.echo(f"Removed: {tilde(path)}")


def _service_file(name: str | None, command: Sequence[str], place: Path) -> tuple[Path, str, str]:
    """Where the service file belongs, its content, and the command that starts the service."""
    label = "ahpkit" if not name else f"ahpkit-{name}"
    if sys.platform == "darwin":
        path = Path.home() / "Library" / "LaunchAgents" / f"{label}.plist"
        return path, launchd_file(label, command, place), f"launchctl load -w {shlex.quote(str(path))}"
    if sys.platform == "linux":
        path = Path.home() / ".config" / "systemd" / "user" / f"{label}.service"
        return path, systemd_file(command, place), f"systemctl --user enable --now {label}"
    raise click.ClickException(f"there is no service file for {sys.platform}; start the host with: ahpkit up")


def systemd_file(command: Sequence[str], place: Path) -> str:
    """The content of a systemd user unit. The host starts in `place`."""
    return f"""[Unit]
Description=Agent Host Protocol host (ahpkit)

[Service]
ExecStart={" ".join(_systemd_word(word) for word in command)}
WorkingDirectory={str(place).replace("%", "%%")}
Restart=on-failure
TimeoutStopSec=30

[Install]
WantedBy=default.target
"""


def _systemd_word(word: str) -> str:
    """A word of a command with `%` and `$` escaped, because systemd would replace them."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", "\\n")
    return f'"{text}"' if not text or any(character in " \t\n;'" for character in text) or '"' in word else text


def launchd_file(label: str, command: Sequence[str], place: Path) -> str:
    """The content of a launchd agent. The host starts in `place`."""
    import plistlib  # Imported here: other systems do not need it.

    agent = {
        "Label": label,
        "ProgramArguments": list(command),
        "WorkingDirectory": str(place),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


__all__ = ["described", "down", "launchd_file", "logs", "service", "status", "systemd_file", "up"]
