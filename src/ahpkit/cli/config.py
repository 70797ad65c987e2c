"""`ahpkit config`: the configuration files, what is set, and where each value comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click

from ahpkit.cli.asking import Place
from ahpkit.cli.output import tilde
from ahpkit.cli.settings import (
    BUILT_IN,
    PROJECT_FILE,
    Settings,
    described,
    layered_settings,
    may_be_project,
    project_file,
    user_file,
)
from ahpkit.cli.text import as_json, printable

_WIDEST = 50
"""Columns of the values that `config show` prints. Longer values are printed whole and move the column after them."""

_FIRST_FILE = """# ahpkit: your settings. Lines that begin with # show the defaults, or an example where there is none.
# Remove the # to change them. `ahpkit config show` prints the values in use. ~ is your home.

[host]
# host = "127.0.0.1"                   # address to listen on
# port = 7110                          # 0 takes a free one
# data_dir = "~/.local/share/ahpkit"   # where sessions are kept
# durability = "full"                  # what the log survives. full: a power cut; "normal": a crash; "memory": neither
# default_agent = "demo"               # of sessions that name none
# default_directory = "~/projects"     # of sessions that name none; usually where the host is started
# roots = ["~/projects"]               # sessions work below these directories and no others
# client_grace = 30.0                  # seconds for which a client that lost its connection keeps its tools and plugins
# child_memory = 4096                  # MiB for each process that the host starts; 0 means no limit
# child_processes = 16384              # they cannot start more once you run this many; 0 means no limit
# terminals = false                    # let clients open terminals
# allowed_hosts = ["host.example"]     # further names this host is reached by
# allowed_origins = ["https://host.example"]   # further web origins whose pages may connect
# tls_certificate = "~/certificate.pem"        # serve TLS
# tls_key = "~/key.pem"
# tls_authority = false                # or: make a certificate authority for this machine

[session]
# agent = "demo"                       # for new sessions of `ahpkit chat` and `ahpkit prompt`
# model = "demo-large"

[client]
# auto_start = true                    # `chat`, `prompt` and `open` start a host when none runs

[customizations]
# plugins = ["~/plugins/reviews"]      # for every session
# off = ["reviews"]                    # plugins, skills, agents … that are off until somebody switches them on
# remember_toggles = true              # a new session has the switches that the last one in its directory had
# allow_hooks = false                  # run the hooks of what is trusted
# trusted = ["~/projects/mine"]        # directories whose hooks and MCP servers may run

[canvas]
# extensions = ["my-extension"]        # commands that provide canvases
# page_url = "https://host.example"    # where browsers reach this host, if not where it listens

[notify]                               # when an agent needs you, failed, or has finished after a while
# webhook = "https://ntfy.example/me"  # gets each event by POST
# command = ["notify-phone"]           # gets each event as a line of JSON on its standard input

[mcp]
# agents_by = "stdio"                  # how agents reach the host's MCP server; or "http"

# [[mcp.servers]]                      # one table for each MCP server
# name = "time"
# command = ["uvx", "mcp-server-time"]

# [[rules]]                            # one table for each approval rule
# decision = "allow"
# owner = "agent:claude"
# tool = "Bash"
# command = "git status"

# [agents.claude]                      # one table for each agent: one that `ahpkit agents` lists,

# [agents.mine]                        # a program that speaks ACP,
# command = "my-agent"
# args = ["--acp"]

# [agents.local]                       # or a model endpoint
# url = "http://127.0.0.1:8080/v1"
"""

_SHOWN = 10
"""The number of keys that a warning names."""

_PROJECT_FILE = """# ahpkit: settings for this directory.
# [session] always counts. All other keys of your own file (`ahpkit config init` writes one with every key) can be set
# here too; they count for a host that is started here, once this file is trusted:  ahpkit trust add .ahpkit.toml

[session]
# agent = "demo"
# model = "…"
"""


@click.group()
def config() -> None:
    """Show or write the configuration.

    \b
    Example:
      ahpkit config init
      ahpkit config show
    """


@config.command("init")
@click.option("--project", is_flag=True, help=f"Write {PROJECT_FILE} in this directory instead.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init_config(project: bool, force: bool) -> None:
    """Write a first configuration file, with every key as a comment.

    \b
    Example:
      ahpkit config init
      ahpkit config init --project
    """
    path = Path.cwd() / PROJECT_FILE if project else user_file()
    if project and not may_be_project(path.parent):
        raise click.ClickException(f"a {PROJECT_FILE} in {tilde(path.parent)} is not read; run this in a project")
    if path.exists() and not force:
        raise click.ClickException(f"{tilde(path)} exists already; --force replaces it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_PROJECT_FILE if project else _FIRST_FILE, encoding="utf-8")
    click.echo(f"Written: {tilde(path)}")


@config.command("path")
def config_path() -> None:
    """Print which files are read, in the order in which they count.

    \b
    Example:
      ahpkit config path
    """
    own, project = user_file(), project_file(Path.cwd())
    click.echo(f"{own}{'' if own.exists() else '   (does not exist)'}")
    if project is not None:
        click.echo(str(project))


@config.command("show")
@click.option("--config", "config_file", type=Place(path_type=Path, dir_okay=False), help="Instead of the user's file.")
@click.option("--json", "json_output", is_flag=True, help="As JSON.")
def show_config(config_file: Path | None, json_output: bool) -> None:
    """Show every value and where it comes from.

    \b
    Example:
      ahpkit config show
      ahpkit config show --json
    """
    settings = trusted_settings(config_file, Path.cwd())
    rows = described(settings)
    if json_output:
        values = [{"key": key, "value": _plain(key, value), "origin": origin} for key, value, origin in rows]
        click.echo(as_json({"values": values, "leftOut": settings.left_out}))
        return
    lines = [(f"{key} = {_written(_plain(key, value))}", _where(origin)) for key, value, origin in rows]
    width = min(max(len(line) for line, _ in lines), _WIDEST)
    for line, where in lines:
        click.echo(f"{line:{width}}   # {where}")
    say_left_out(settings)


def _written(value: Any) -> str:
    return "(not set)" if value is None else printable(json.dumps(value, ensure_ascii=False))


def _where(origin: str) -> str:
    return origin if origin == BUILT_IN else tilde(Path(origin))


def trusted_settings(config_file: Path | None, directory: Path, data_dir: Path | None = None) -> Settings:
    """The settings for a directory. A project's file is used as a whole if the host's owner trusts it."""
    from ahpkit.cli.settings import default_data_dir
    from ahpkit.cli.trust import project_runnable
    from ahpkit.host.trust import TRUST_FILE, Trust

    def trusts(file: Path, so_far: Settings) -> bool:
        runnable = project_runnable(file)
        kept = data_dir or so_far.data_dir or default_data_dir()
        return runnable is None or Trust(kept / TRUST_FILE).standing(runnable) == "trusted"

    return layered_settings(config_file, directory, trusts=trusts)


def say_left_out(settings: Settings) -> None:
    """Warn the person about keys of project files that are ignored, because the files are not trusted."""
    for path, keys in settings.left_out.items():
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        click.echo(
            f"Warning: {tilde(Path(path))} is not trusted, so it does not set {', '.join(keys[:_SHOWN])}{more}; "
            f"to trust it as it is now: ahpkit trust add {path}",
            err=True,
        )


def _plain(key: str, value: Any) -> Any:
    """A value as JSON. Values that may be secrets, in the environment of an agent, are not shown."""
    if key.startswith("agents.") and isinstance(value.get("env"), dict):
        return {**value, "env": dict.fromkeys(value["env"], "…")}
    if isinstance(value, Path):
        return str(value)
    return [_plain("", item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


__all__ = ["config", "say_left_out", "trusted_settings"]
