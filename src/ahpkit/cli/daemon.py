"""Starts, finds and ends the host in the background: one for each user, found by its endpoint, with a log file.

If two commands start a host at the same time, only one host starts: the commands take a lock in the runtime directory
one after the other, and the second one finds the host of the first.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

import click

from ahpkit import __version__
from ahpkit.cli.asking import confirm
from ahpkit.cli.output import patiently
from ahpkit.cli.settings import Settings, default_data_dir
from ahpkit.cli.text import printable
from ahpkit.client.endpoints import (
    NAME_VARIABLE,
    URL_VARIABLE,
    Endpoint,
    endpoints_directory,
    find_endpoint,
    find_endpoints,
)
from ahpkit.platform.files import make_private_directory, try_lock
from ahpkit.platform.limits import LogLimit
from ahpkit.platform.processes import is_alive

DEFAULT_NAME = "default"
"""The name of the host that keeps its sessions in the user's data directory."""

AUTO_START_VARIABLE = "AHPKIT_AUTO_START"
"""`0`: no command starts a host by itself."""

_NAME = re.compile(r"[\w-][\w.-]{0,63}")

START_DEADLINE = 60.0
"""Seconds within which a host that was started accepts connections. This includes the conversion of an old log."""

_LOG_BYTES, _LOG_FILES = 5 * 1024 * 1024, 5
_LOOK_AGAIN = 0.05

_LITTLE = 64 * 1024
"""If the disk has fewer free bytes than this, a host cannot even write why it does not start."""

_STOP_DEADLINE = 25.0
"""Seconds to wait until a host has ended: a little more than the host allows itself."""

_OPTIONS_FILE = "options.json"
"""A file in the data directory. It says for the next restart with which options and in which directory the host was
started."""


def named_data_dir(name: str | None) -> Path:
    """The data directory of a host with that name, if no other one is given."""
    base = default_data_dir()
    return base if name in (None, "", DEFAULT_NAME) else base.with_name(base.name + "-hosts") / name


def check_host_name(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Checks the option `--host-name`: the name must be usable as the name of a directory and of a service."""
    if name is not None and not _NAME.fullmatch(name):
        raise click.BadParameter(f"{name!r} cannot be a host's name: letters, digits, '-', '_' and '.' can be in it")
    return name


def host_name(name: str | None, data_dir: Path) -> str:
    """The name of a host: the one that it was given, else the name of its data directory."""
    if name:
        return name
    return DEFAULT_NAME if data_dir == default_data_dir() else data_dir.name


def log_file(data_dir: Path) -> Path:
    """The newest part of the host's log. Older parts are beside it: `host.log.1`, `host.log.2`, …"""
    return data_dir / "logs" / "host.log"


def log_files(data_dir: Path) -> list[Path]:
    """All names that parts of the log may have, the newest part first."""
    newest = log_file(data_dir)
    return [newest, *(newest.with_name(f"{newest.name}.{number}") for number in range(1, _LOG_FILES))]


def error_file(data_dir: Path) -> Path:
    """The file with the standard error of the host's process. Each start empties it."""
    return data_dir / "logs" / "host.err"


class _PrivateParts(RotatingFileHandler):
    """Creates each part of the log so that only its owner can read it."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=_private)


def log_to_file(data_dir: Path, level: int) -> None:
    """Let this process log into its log file from now on. The log is kept in a few parts of limited size."""
    path = log_file(data_dir)
    make_private_directory(path.parent)
    handler = _PrivateParts(path, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES - 1, encoding="utf-8")
    log_to(handler, level, "%(asctime)s %(levelname)s %(message)s")


_LIBRARIES = {
    "httpx2": logging.WARNING,  # `httpx2` logs every address, and the query of an address may be a secret.
    "mcp.client": logging.CRITICAL,  # Its failures reach us as exceptions, and each is logged in one line.
}
"""Libraries that log fewer levels than ahpkit does."""


def log_to(handler: logging.Handler, level: int, form: str) -> None:
    """Let this process log through `handler` from now on: within limits, and without what libraries say about the
    servers of others."""
    handler.setLevel(level)  # Libraries have their own levels.
    handler.addFilter(LogLimit(printable))
    logging.basicConfig(level=level, format=form, handlers=[handler], datefmt="%Y-%m-%d %H:%M:%S")
    for name, least in _LIBRARIES.items():
        logging.getLogger(name).setLevel(least)


def can_listen(host: str, port: int) -> bool:
    """Whether the address is free: no other program listens there."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        return error.errno != errno.EADDRINUSE  # All other errors are reported by the host that tries to listen.
    return True


def running_at(data_dir: Path) -> Endpoint | None:
    """The host that runs on a data directory."""
    return next((one for one in find_endpoints() if one.data_dir == str(data_dir)), None)


def may_start(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether a command may start a host by itself. It may not in CI, and not where this is switched off."""
    if environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    return settings.auto_start and environ.get(AUTO_START_VARIABLE, "").lower() not in ("0", "false", "no", "off")


async def ensure_host(name: str | None, settings: Settings | None) -> None:
    """Say which host is used and why, if there are several. If `settings` are given, start a host when none runs, and
    offer to restart one of another version."""
    chosen = find_endpoint(name=name)
    if chosen is not None:
        say_which(chosen, name)
        if is_outdated(chosen) and offer_restart(chosen, ask=settings is not None) and chosen.data_dir is not None:
            await restart_host(chosen, Path(chosen.data_dir))
        return
    refuse_unknown_name(name)
    if not os.environ.get(URL_VARIABLE) and settings is not None and may_start(settings, os.environ):
        which, option = (f" named {name}", f" --host-name {name}") if name else ("", "")
        said = f"No host{which} is running: starting one in the background. `ahpkit down{option}` ends it."
        click.echo(said, err=True)
        data_dir = named_data_dir(name) if name else settings.data_dir or named_data_dir(None)
        await patiently(start_host(data_dir.absolute(), ("--host-name", name) if name else ()), "Starting the host")


def refuse_unknown_name(name: str | None) -> None:
    """Refuse a name that no host ever had: it is more often mistyped than new."""
    if name and not named_data_dir(name).is_dir():
        raise click.ClickException(
            f"there is no host named {name}; there are: {', '.join(known_names())}. "
            f"To make one: ahpkit up --host-name {name}"
        )


def known_names() -> list[str]:
    """The names of the hosts that run or have their own data directory."""
    hosts = named_data_dir("any").parent
    kept = [folder.name for folder in hosts.iterdir() if folder.is_dir()] if hosts.is_dir() else []
    running = [one.name for one in find_endpoints() if one.name]
    return sorted({DEFAULT_NAME, *kept, *running})


def say_which(chosen: Endpoint, name: str | None) -> None:
    """Say which host is used and why, when there are several."""
    count = len(find_endpoints())
    if count > 1:
        named = name or os.environ.get(NAME_VARIABLE)
        why = "it was named" if named else f"the newest of {count}; --host-name chooses"
        click.echo(f"Using the host {chosen.name or '?'} at {chosen.url}: {why}", err=True)


def offer_restart(running: Endpoint, *, ask: bool) -> bool:
    """Say that a host runs another version. If somebody can answer, ask whether to restart the host; returns the
    answer."""
    said = f"the host at {running.url} runs ahpkit {running.version}, this is {__version__}"
    if ask and running.background and sys.stdin.isatty() and sys.stderr.isatty():
        return confirm(f"{said}. Restart it now? Running turns are ended", error=True)
    click.echo(f"Warning: {said}; restart it with: {restart_command(running)}", err=True)
    return False


def restart_command(running: Endpoint) -> str:
    """The command that restarts this host."""
    if running.data_dir in (None, str(named_data_dir(None))):
        return "ahpkit up --restart"
    named = running.data_dir == str(named_data_dir(running.name))
    which = f"--host-name {running.name}" if named else f"--data-dir {shlex.quote(running.data_dir or '')}"
    return f"ahpkit up --restart {which}"


async def restart_host(running: Endpoint, data_dir: Path, options: Sequence[str] = ()) -> Endpoint:
    """End a host and start it again in the same directory: with `options`, or with those of its last start if there are
    none."""
    place = None
    if not options:
        options, place = _last_start(data_dir)
        if place is not None and not os.path.isdir(place):  # noqa: ASYNC240  # One look.
            again = f"{restart_command(running).replace(' --restart', '')} {shlex.join(options)}".strip()
            raise click.ClickException(f"the host was started in {place}, which is gone; end it, then: {again}")
    await patiently(end_host(running), "Ending the host")
    endpoint, _ = await patiently(start_host(data_dir, options, place), "Starting the host")
    return endpoint


def _keep_options(data_dir: Path, options: Sequence[str], place: str) -> None:
    with open(data_dir / _OPTIONS_FILE, "w", encoding="utf-8", opener=_private) as file:
        json.dump({"options": list(options), "directory": place}, file)


def _last_start(data_dir: Path) -> tuple[list[str], str | None]:
    """The options of the host's last start in the background, and its directory. Relative paths such as `--root .`
    begin in that directory."""
    try:
        found: Any = json.loads((data_dir / _OPTIONS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [], None
    # An older ahpkit stored only the list of options.
    kept = cast("dict[str, Any]", found) if isinstance(found, dict) else {"options": found}
    options: Any = kept.get("options")
    words = [str(word) for word in cast("list[Any]", options)] if isinstance(options, list) else []
    return words, kept.get("directory")


async def start_host(data_dir: Path, options: Sequence[str] = (), place: str | None = None) -> tuple[Endpoint, bool]:
    """The host on that data directory, and whether this call started it. Returns when the host accepts connections.

    `place` is the directory in which the host starts, by default the current one. Relative paths in its options begin
    there.
    """
    place = place or os.getcwd()
    async with _only_one_starts():
        if (running := running_at(data_dir)) is not None:
            return running, False
        process = _spawn(data_dir, options, place)
        try:
            async with asyncio.timeout(START_DEADLINE):
                while (running := running_at(data_dir)) is None:
                    if process.poll() is not None:
                        raise click.ClickException(_why_it_ended(data_dir, process.returncode))
                    await asyncio.sleep(_LOOK_AGAIN)
        # Ctrl-C: the person does not want this host, so it is ended. A host that is only slow goes on after the
        # deadline.
        except asyncio.CancelledError:
            process.terminate()
            while process.poll() is None:  # noqa: ASYNC110  # Nobody wakes us.
                await asyncio.sleep(_LOOK_AGAIN)
            raise
        _keep_options(data_dir, options, place)
        return running, True


@asynccontextmanager
async def _only_one_starts() -> AsyncGenerator[None]:
    directory = endpoints_directory().parent
    make_private_directory(directory)
    lock = os.open(directory / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        async with asyncio.timeout(START_DEADLINE):
            while not try_lock(lock):  # noqa: ASYNC110  # Another process has it: nobody wakes us.
                await asyncio.sleep(_LOOK_AGAIN)
        yield
    finally:
        os.close(lock)


def _spawn(data_dir: Path, options: Sequence[str], place: str) -> subprocess.Popen[bytes]:
    """Start a host that is detached from this terminal."""
    make_private_directory(data_dir)
    make_private_directory(error_file(data_dir).parent)
    command = [sys.executable, "-m", "ahpkit", "serve", "--background", "--data-dir", str(data_dir), *options]
    with open(error_file(data_dir), "wb", opener=_private) as errors:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=place, start_new_session=True
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _why_it_ended(data_dir: Path, code: int) -> str:
    text = error_file(data_dir).read_text(encoding="utf-8", errors="replace").strip()
    if text.startswith("Traceback"):
        last = text.rpartition("\n")[2]
        return f"the host did not start, because of a fault in ahpkit: {last}\nThe whole error: {error_file(data_dir)}"
    full = shutil.disk_usage(data_dir).free < _LITTLE
    said = text.removeprefix("Error: ") or (
        f"the disk of {data_dir} is full" if full else f"it ended with code {code} and wrote no message"
    )
    return f"the host did not start: {said}\nIts log: {log_file(data_dir)}"


async def end_host(endpoint: Endpoint) -> None:
    """Ask a host to end, and wait for it. Raises if it does not end in time."""
    if not await stop_host(endpoint, deadline=_STOP_DEADLINE):
        raise click.ClickException(f"the host with process id {endpoint.pid} did not end within {_STOP_DEADLINE:g} s")


async def stop_host(endpoint: Endpoint, *, deadline: float) -> bool:
    """Ask a host to end, and wait for it. Returns whether it has ended."""
    import signal

    if endpoint.pid is None:
        return False
    if not is_alive(endpoint.pid):
        return True
    os.kill(endpoint.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(deadline):
            while is_alive(endpoint.pid):  # noqa: ASYNC110  # Not our child: nobody wakes us.
                await asyncio.sleep(_LOOK_AGAIN)
    except TimeoutError:
        return False
    return True


def is_outdated(endpoint: Endpoint) -> bool:
    """Whether a host runs another version than this command."""
    return bool(endpoint.version) and endpoint.version != __version__


__all__ = [
    "can_listen",
    "check_host_name",
    "end_host",
    "ensure_host",
    "error_file",
    "host_name",
    "is_outdated",
    "log_file",
    "log_files",
    "log_to",
    "log_to_file",
    "may_start",
    "named_data_dir",
    "offer_restart",
    "refuse_unknown_name",
    "restart_command",
    "restart_host",
    "running_at",
    "say_which",
    "start_host",
]
