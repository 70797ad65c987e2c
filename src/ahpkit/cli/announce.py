"""Announces that a host accepts connections: one line of JSON for programs, a few lines for people."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click


def announce(
    url: str, token: str | None, data_dir: Path, agents: Sequence[str], *, page: str | None = None, as_json: bool
) -> None:
    """Print where the host listens, who answers there (the default first), and one line to try."""
    if as_json:
        facts: dict[str, object] = {
            "url": url,
            "token": token,
            "pid": os.getpid(),
            "dataDir": str(data_dir),
            "agents": list(agents),
        }
        click.echo(json.dumps(facts if page is None else {**facts, "page": page}))
        return
    click.echo(f"ahpkit is listening on {url}")
    where_token = "" if token is None else "; the token is in the file 'token' there"
    click.echo(f"Sessions are kept in {tilde(data_dir)}{where_token}")
    click.echo(f"Agents: {', '.join(agents)}")
    if page is not None:
        click.echo(f"Open it in a browser (the link works once):  {page}")
    click.echo(f"Try it in another terminal:  {own_command()} chat")


def tilde(path: Path) -> str:
    """A path as people write it."""
    if path == Path.home():
        return "~"
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def own_command() -> str:
    """How to call this program again from the same directory."""
    program = Path(sys.argv[0])
    if program.name != "ahpkit":
        return f"{shlex.quote(sys.executable)} -m ahpkit"
    on_path = shutil.which("ahpkit")
    if on_path is not None and Path(on_path).resolve() == program.resolve():
        return "ahpkit"
    return shlex.quote(os.path.relpath(program))


__all__ = ["announce", "own_command", "tilde"]
