"""`ahpkit doctor`: looks at the installation, the directories and the running hosts, and says what to do."""

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
from ahpkit.cli.output import Output
from ahpkit.cli.settings import default_data_dir
from ahpkit.cli.text import as_json, shorten
from ahpkit.client import Client, connect, find_endpoint, find_endpoints
from ahpkit.client.endpoints import URL_VARIABLE, endpoints_directory
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.meta_keys import CLIENTS
from ahpkit.transports.errors import ConnectError

_ADVICE = {401: "give its token with --token or AHPKIT_TOKEN"}
"""What to do if the host answers with one of these HTTP codes instead of accepting the connection."""

_LITTLE_ROOM = 500 * 1024 * 1024
"""A disk with fewer free bytes than this is nearly full."""

_PATIENCE = 3
"""Seconds within which a host has to answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


@click.command()
@click.option("--url", help="Look at this host, wherever it is, and at no other.")
@click.option("--token", envvar="AHPKIT_TOKEN", help="Its token, where it cannot be found.")
@click.option("--json", "json_output", is_flag=True, help="The findings as JSON.")
def doctor(url: str | None, token: str | None, json_output: bool) -> None:
    """Check the installation and the running host. Exits with 1 when something needs attention.

    \b
    Example:
      ahpkit doctor
      ahpkit doctor --url wss://host.example:7110
    """
    findings = [*_installation(), *_directories(), *asyncio.run(_hosts(url, token))]
    output = Output()
    if json_output:
        output.say(as_json([asdict(finding) for finding in findings]))
    for finding in () if json_output else findings:
        output.say(f"{'✓' if finding.ok else '✗'} {finding.name}: {finding.detail}", "" if finding.ok else "red")
        if finding.advice:
            output.say(f"    {finding.advice}")
    raise SystemExit(0 if all(finding.ok for finding in findings) else 1)


def _installation() -> list[Finding]:
    return [
        Finding("ahpkit", True, __version__),
        Finding("Python", True, ".".join(map(str, sys.version_info[:3]))),
        Finding("SQLite", True, sqlite3.sqlite_version),
    ]


def _directories() -> list[Finding]:
    return [
        look_at("data directory", default_data_dir(), "change its permissions, or use: ahpkit serve --data-dir"),
        look_at("runtime directory", endpoints_directory(), "change its permissions, or set XDG_RUNTIME_DIR"),
    ]


def look_at(name: str, path: Path, advice: str) -> Finding:
    """Check that a directory exists or can be made, can be written to, and has room on its disk."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        return Finding(name, False, f"{existing} is a file", "move it away")
    if not os.access(existing, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return Finding(name, False, f"{path} is not writable", advice)
    room = shutil.disk_usage(existing).free
    if room < _LITTLE_ROOM:
        return Finding(name, False, f"{path} has {room // 2**20} MiB left", "make room on the disk")
    return Finding(name, True, f"{path}, {room // 2**30} GiB free")


async def _hosts(url: str | None = None, token: str | None = None) -> list[Finding]:
    if url is not None:
        return await _host(url, token)
    running = find_endpoints()
    if os.environ.get(URL_VARIABLE) and (named := find_endpoint()) is not None:
        running = [named, *running]
    if not running:
        return [Finding("host", True, "none is running", "start one with: ahpkit serve")]
    return [finding for endpoint in running for finding in await _host(endpoint.url, endpoint.token)]


async def _host(url: str, token: str | None) -> list[Finding]:
    """The findings about a host and about each client that is connected to it."""
    shown = url.partition("?")[0]  # The query is cut off, because it may contain a token.
    try:
        async with asyncio.timeout(_PATIENCE), connect(url, token=token) as client:
            agents = ", ".join(agent["provider"] for agent in client.root["agents"])
            milliseconds = await client.ping() * 1000
            version = client.host.protocol_version
            detail = f"{shown}, {milliseconds:.1f} ms away, protocol {version}, agents: {agents}"
            return [Finding("host", True, detail), *await _clients(client)]
    except TimeoutError:
        problem = f"{shown}: no answer within {_PATIENCE:g} s"
        advice = "stop it and start it again: ahpkit up --restart"
    except ConnectError as error:
        problem, advice = str(error), _ADVICE.get(error.status or 0, "check the address, and whether a host runs there")
    except (AhpError, OSError) as error:
        problem, advice = str(error), "stop it and start it again: ahpkit up --restart"
    return [Finding("host", False, problem, advice)]


async def _clients(client: Client) -> list[Finding]:
    """The findings about the connected clients and their versions. Other makers' hosts do not report them."""
    if CLIENTS not in client.host.meta:
        return []
    answer = await client.request(f"x-{CLIENTS}/list", {})
    found = [_described(one) for one in answer["clients"] if not one.get("self")] or ["none is connected"]
    stored = [Finding("storage", False, answer["notStored"], "make room on its disk")] if "notStored" in answer else []
    return [*stored, *(Finding("client", True, detail) for detail in found)]


def _described(one: JsonObject) -> str:
    name = shorten(one.get("name") or "no name given", 60)
    who = f"{shorten(one['clientId'], 40)} from {one['address']}"
    channels = f"{one['channels']} channel{'' if one['channels'] == 1 else 's'}"
    return f"{name}, protocol {one['protocolVersion']}, {who}, {channels}"


__all__ = ["Finding", "doctor", "look_at"]
