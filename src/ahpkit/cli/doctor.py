"""`ahpkit doctor`: looks at the installation, the directories and the running host, and says what to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ahpkit import __version__
from ahpkit.cli.show_turn import as_json
from ahpkit.client import connect, find_endpoints
from ahpkit.client.endpoints import endpoints_directory
from ahpkit.protocol.errors import AhpError

_LITTLE_ROOM = 500 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


@click.command()
@click.option("--json", "json_output", is_flag=True, help="The findings as JSON.")
def doctor(json_output: bool) -> None:
    """Check the installation and the running host. Exits with 1 when something needs attention.

    \b
    Example:
      ahpkit doctor
    """
    findings = [*_installation(), *_directories(), *asyncio.run(_hosts())]
    if json_output:
        click.echo(as_json([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            click.echo(f"{'✓' if finding.ok else '✗'} {finding.name}: {finding.detail}")
            if finding.advice:
                click.echo(f"    {finding.advice}")
    raise SystemExit(0 if all(finding.ok for finding in findings) else 1)


def _installation() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    return [
        Finding("ahpkit", True, __version__),
        Finding("Python", sys.version_info >= (3, 11), version),
        Finding("SQLite", True, sqlite3.sqlite_version),
    ]


def _directories() -> list[Finding]:
    from ahpkit.cli.serve import default_data_dir

    return [_directory("data directory", default_data_dir()), _directory("runtime directory", endpoints_directory())]


def _directory(name: str, path: Path) -> Finding:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        return Finding(name, False, f"{path} is not writable", "change its permissions, or use --data-dir")
    room = shutil.disk_usage(existing).free
    if room < _LITTLE_ROOM:
        return Finding(name, False, f"{path} has {room // 2**20} MiB left", "make room on the disk")
    return Finding(name, True, f"{path}, {room // 2**30} GiB free")


async def _hosts() -> list[Finding]:
    running = find_endpoints()
    if not running:
        return [Finding("host", True, "none is running", "start one with: ahpkit serve")]
    return [await _host(endpoint.url, endpoint.token) for endpoint in running]


async def _host(url: str, token: str | None) -> Finding:
    try:
        async with asyncio.timeout(5), connect(url, token=token) as client:
            agents = ", ".join(agent["provider"] for agent in client.root["agents"])
            milliseconds = await client.ping() * 1000
            return Finding("host", True, f"{url}, {milliseconds:.1f} ms away, agents: {agents}")
    except (AhpError, TimeoutError, OSError) as error:
        return Finding("host", False, f"{url}: {error or 'no answer'}", "stop it and start it again: ahpkit serve")


__all__ = ["Finding", "doctor"]
