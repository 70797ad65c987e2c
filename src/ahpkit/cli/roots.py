"""`ahpkit roots`: shows and changes the directories that a host works in.

The command writes the file that the host reads (`roots.json` in its data directory). So it is for the owner of that
directory, on the host's machine, and needs no connection.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from ahpkit.cli.asking import Place
from ahpkit.cli.connection import chosen_name, host_name_option
from ahpkit.cli.daemon import named_data_dir, refuse_unknown_name, say_which
from ahpkit.cli.settings import Settings, SettingsError
from ahpkit.cli.text import as_json
from ahpkit.client.endpoints import endpoints_directory, find_endpoint, find_endpoints, links_directory
from ahpkit.host.owner_file import OwnerFile
from ahpkit.host.resources.fence import ExcludedPlaces, Fence, check_root, default_roots, effective_roots
from ahpkit.protocol.errors import InvalidParams

F = TypeVar("F", bound=Callable[..., Any])

ROOTS_FILE = "roots.json"


# -- for a host that starts ----------------------------------------------------------------------------------------


def make_fence(settings: Settings, data_dir: Path, *, config_file: Path | None = None) -> Fence:
    """Make the fence of a host that starts. Its roots are stored, so that `ahpkit roots list` can show them."""
    own = [config_file, settings.tls_key]
    excluded = host_exclusions(data_dir, *(path for path in own if path is not None))
    roots = "host.roots" if "host.roots" in settings.origins else "--root"
    start = [_checked_root(roots, root, excluded) for root in settings.roots] or _default(settings, excluded)
    kept = OwnerFile(data_dir / ROOTS_FILE)
    kept.change(lambda said: {**said, "start": [str(root) for root in start]})
    return Fence(excluded, start, kept)


def host_exclusions(data_dir: Path, *own: Path) -> ExcludedPlaces:
    """The paths that are excluded from every root, for a host with this data directory and these files of its own."""
    from ahpkit.customizations.standard_places import USER

    # The host and its commands trust what these directories contain.
    endpoints = [endpoints_directory().parent, links_directory()]
    runtime = filter(None, [os.environ.get("XDG_RUNTIME_DIR")])
    private = [Path(os.path.realpath(path)) for path in (data_dir, *endpoints, *runtime, *own)]
    folders = [place.folder for place in USER if place.writable and not place.files]
    return ExcludedPlaces(Path(os.path.realpath(Path.home())), private, folders)


def _checked_root(setting: str, root: Path, excluded: ExcludedPlaces) -> Path:
    try:
        return check_root(root, excluded)
    except InvalidParams as error:
        raise SettingsError(f"{setting}: {error.message}") from error


def _default(settings: Settings, excluded: ExcludedPlaces) -> list[Path]:
    chosen = settings.default_directory
    named = [] if chosen is None else [_checked_root("host.default_directory", chosen, excluded)]
    return list(dict.fromkeys([*named, *default_roots(Path.cwd(), Path.home(), excluded)]))


def start_directory(settings: Settings, fence: Fence) -> Path:
    """The working directory of sessions that name none: the configured one, else the one in which the host was started,
    else a root."""
    if settings.default_directory is not None:
        if (reason := fence.refusal(Path(os.path.realpath(settings.default_directory)))) is not None:
            raise SettingsError(f"host.default_directory: {reason}")
        return settings.default_directory
    here = Path.cwd()
    if fence.refusal(Path(os.path.realpath(here))) is None:
        return here
    return next(iter(fence.roots()), Path.home())


def programs(settings: Settings, fence: Fence) -> frozenset[str]:
    """Files and directories of the programs that the host itself runs, if they are below a root. Nobody may
    write them."""
    roots = fence.roots()
    return frozenset(str(path) for path in _programs(settings) if any(root in path.parents for root in roots))


def _programs(settings: Settings) -> Iterator[Path]:
    yield from (Path(os.path.realpath(folder)) for folder in os.get_exec_path() if os.path.isabs(folder))
    yield from (Path(os.path.realpath(plugin)) for plugin in settings.plugins)
    for words in _commands(settings):
        for word in words:
            path = Path(os.path.realpath(word))
            if path.is_file():
                yield path


def _commands(settings: Settings) -> Iterator[list[str]]:
    for line in settings.extensions:
        yield _words(line)
    for server in settings.servers:
        command: Any = server.get("command", "")
        yield [*([command] if isinstance(command, str) else command), *server.get("args", ())]
    for table in settings.agents.values():
        yield _words(str(table.get("option", "")).partition("=")[2])
        yield [str(table.get("command", "")), *map(str, table.get("args", ())), str(table.get("python", ""))]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


# -- the command ---------------------------------------------------------------------------------------------------


def owner_options(function: F) -> F:
    """Adds the options that say which host is meant. Only its data directory counts, because the owner's decisions are
    stored there."""
    function = host_name_option(function)
    for option in (
        click.option("--data-dir", type=Place(path_type=Path, file_okay=False), help="The host's data directory."),
        click.option("--url", envvar="AHPKIT_URL", help="The host's address; without it, the one that is running."),
        click.option("--token", envvar="AHPKIT_TOKEN", help="Not needed: the owner of the data directory may do this."),
    ):
        function = option(function)
    return function


def owned_directory(data_dir: Path | None, url: str | None) -> Path:
    """The data directory of the host that is meant: the one that was named, else that of the host at `url`, else that
    of the newest host."""
    if data_dir is not None:
        return data_dir
    if url is not None:
        found = next((one for one in find_endpoints() if one.url == url and one.data_dir), None)
        if found is None or found.data_dir is None:
            shown = url.partition("?")[0]
            raise click.ClickException(f"the host at {shown} is not one of yours on this machine; give its --data-dir")
        return Path(found.data_dir)
    name = chosen_name()
    running = find_endpoint(name=name)
    if running is not None and running.data_dir:
        say_which(running, name)
        return Path(running.data_dir)
    refuse_unknown_name(name)
    return named_data_dir(name)


@click.group()
def roots() -> None:
    """Show or change the directories in which a host lets sessions work.

    A running host notices the change at once; the next start remembers it.

    \b
    Example:
      ahpkit roots list
      ahpkit roots add ~/projects
    """


@roots.command("list")
@click.option("--json", "json_output", is_flag=True, help="The roots as JSON.")
@owner_options
def list_roots(json_output: bool, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Print the roots, one on each line.

    \b
    Example:
      ahpkit roots list
    """
    said = OwnerFile(owned_directory(data_dir, url) / ROOTS_FILE).read()
    found = [str(root) for root in effective_roots(map(Path, said.get("start", ())), said)]
    if json_output:
        return click.echo(as_json(found))
    none = (
        "All roots were removed." if "start" in said else "There are no roots yet: the host names them when it starts."
    )
    return click.echo("\n".join(found) or none)


@roots.command("add")
@click.argument("directory", type=Place(path_type=Path))
@owner_options
def add_root(directory: Path, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Let sessions work below a directory.

    \b
    Example:
      ahpkit roots add ~/projects
    """
    owned = owned_directory(data_dir, url)
    try:
        root = str(check_root(directory, host_exclusions(owned)))
    except InvalidParams as error:
        raise click.ClickException(error.message) from error

    def work(said: dict[str, Any]) -> dict[str, Any]:
        added, removed = said.get("added", []), said.get("removed", [])
        return {
            **said,
            "added": [*(one for one in added if one != root), root],
            "removed": [one for one in removed if one != root],
        }

    OwnerFile(owned / ROOTS_FILE).change(work)
    click.echo(f"sessions may work below {root}")


@roots.command("remove")
@click.argument("directory", type=Place(path_type=Path))
@owner_options
def remove_root(directory: Path, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Stop letting sessions work below a directory. Sessions there can still be read.

    \b
    Example:
      ahpkit roots remove ~/projects
    """
    kept = OwnerFile(owned_directory(data_dir, url) / ROOTS_FILE)
    root = os.path.realpath(directory)
    said = kept.read()
    if Path(root) not in effective_roots(map(Path, said.get("start", ())), said):
        raise click.ClickException(f"{root} is not a root; see: ahpkit roots list")

    def work(said: dict[str, Any]) -> dict[str, Any]:
        removed = [*said.get("removed", []), *([root] if root in said.get("start", ()) else [])]
        return {**said, "added": [one for one in said.get("added", []) if one != root], "removed": removed}

    kept.change(work)
    click.echo(f"{root} is not a root any more; sessions there can only be read")


__all__ = ["make_fence", "owned_directory", "owner_options", "programs", "roots", "start_directory"]
