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
"""Columns of the values that `config show` prints; longer ones stand out."""

_FIRST_FILE = """# ahpkit: your settings. Lines that begin with # show the defaults; remove the # to change them.
# Every key is explained in docs/reference/configuration.md; `ahpkit config show` says what holds.

[host]
# port = 7110
# default_agent = "demo"
# durability = "full"       # or "normal", "memory"
# roots = ["~/projects"]    # sessions work below these directories and no others
# terminals = false

[session]
# agent = "demo"            # for new sessions of `ahpkit chat` and `ahpkit prompt`
# model = "…"

[client]
# auto_start = true         # `chat`, `prompt` and `open` start a host when none runs

[customizations]
# plugins = ["~/plugins/reviews"]
# allow_hooks = false

# [agents.claude]
# [agents.mine]
# command = "my-agent"
# args = ["--acp"]
"""

_SHOWN = 10
"""Keys that a warning names."""

_PROJECT_FILE = """# ahpkit: settings for this directory.
# [session] always counts. Anything else counts for a host that is started here, once the file is trusted:
#   ahpkit trust add .ahpkit.toml

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
    """Write a first configuration file, with every value as a comment.

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
    """The settings that hold in a directory. A project's file counts as a whole when the host's owner trusts it."""
    from ahpkit.cli.settings import default_data_dir
    from ahpkit.cli.trust import project_runnable
    from ahpkit.host.trust import TRUST_FILE, Trust

    def trusts(file: Path, so_far: Settings) -> bool:
        runnable = project_runnable(file)
        kept = data_dir or so_far.data_dir or default_data_dir()
        return runnable is None or Trust(kept / TRUST_FILE).standing(runnable) == "trusted"

    return layered_settings(config_file, directory, trusts=trusts)


def say_left_out(settings: Settings) -> None:
    """Tell the person what a project's file wants and does not get."""
    for path, keys in settings.left_out.items():
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        click.echo(
            f"Warning: {tilde(Path(path))} is not trusted, so it does not set {', '.join(keys[:_SHOWN])}{more}; "
            f"to trust it as it is now: ahpkit trust add {path}",
            err=True,
        )


def _plain(key: str, value: Any) -> Any:
    """A value as JSON has it; what may be a secret in an agent's environment is not shown."""
    if key.startswith("agents.") and isinstance(value.get("env"), dict):
        return {**value, "env": dict.fromkeys(value["env"], "…")}
    if isinstance(value, Path):
        return str(value)
    return [_plain("", item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


__all__ = ["config", "say_left_out", "trusted_settings"]
