"""`ahpkit trust`: shows and changes what may run on this machine.

The command writes the file that the host reads (`trust/trust.json` in its data directory). So it is for the owner of
that directory, on the host's machine, and needs no connection.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from ahpkit.cli.roots import owned_directory, owner_options
from ahpkit.cli.settings import PROJECT_FILE, harmful_content
from ahpkit.cli.text import printable
from ahpkit.host.trust import TRUST_FILE, Runnable, Trust

State = Literal["trusted", "changed", "new", "gone", "asks"]
"""`new`: it is in a trusted directory, but was not there when the directory was trusted. `asks`: a client brought it,
and nobody has agreed yet."""

_ID = 12
"""Characters of a content's digest that are used as its id."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that runs, or would run if it were trusted, with what was trusted in its place before."""

    state: State
    now: Runnable
    before: Runnable | None = None

    @property
    def id(self) -> str:
        return self.now.digest[:_ID]

    def as_json(self) -> dict[str, Any]:
        what = self.now
        return {
            "id": self.id,
            "state": self.state,
            "kind": what.kind,
            "name": what.name,
            "source": what.source,
            "declaration": dict(what.declaration),
            "files": dict(what.files),
        }


def look(trust: Trust) -> list[Item]:
    """Everything that is trusted or waits for trust, compared with the present content."""
    entries = [entry.runnable for entry in trust.entries()]
    local = [one for one in entries if not one.of_client]
    places = {*trust.directories(), *(one.source for one in local if not _within(one.source, trust.directories()))}
    found = [one for place in sorted(places) for one in found_at(Path(place))]
    own, plugins = trust.own()
    present, again = _own(plugins) if own or plugins else [], {one.source for one in local}
    found += [one for one in present if one.source in again]
    changed = _compared(own, [one for one in present if one.source not in again])
    items = [Item("trusted", one) for one in entries if one.of_client]
    items += [Item("asks", entry.runnable) for entry in trust.asked()]
    items += [item for item in changed if item.state in ("changed", "new")]
    listed = [*_compared(local, list({(one.source, one.digest): one for one in found}.values())), *items]
    # A plugin of the owner may lie in a trusted directory: it is found twice.
    return list({(one.state, one.now.source, one.now.digest): one for one in listed}.values())


def _own(plugins: Sequence[Path]) -> list[Runnable]:
    """What the owner's own configuration would run now."""
    from ahpkit.customizations.runnables import own_runnables

    return own_runnables(Path.home(), plugins)


def found_at(path: Path) -> list[Runnable]:
    """What a directory or a file would run: hooks, MCP servers, and settings of a project that start programs."""
    from ahpkit.customizations.runnables import runnables_at

    project = project_runnable(path if path.name == PROJECT_FILE else path / PROJECT_FILE)
    return [*([] if project is None else [project]), *runnables_at(path, home=Path.home())]


def project_runnable(file: Path) -> Runnable | None:
    """The settings of a project file that are used only if the file is trusted; None if it has none of them."""
    if not file.is_file() or not (content := harmful_content(file)):
        return None
    return Runnable("settings", PROJECT_FILE, source=os.path.realpath(file), declaration=content)


def _compared(trusted: Sequence[Runnable], found: Sequence[Runnable]) -> Iterator[Item]:
    known = {(one.source, one.digest) for one in trusted}
    there = {(one.source, one.digest) for one in found}
    missing = [one for one in trusted if (one.source, one.digest) not in there]
    for one in found:
        if (one.source, one.digest) in known:
            yield Item("trusted", one)
            continue
        before = next(
            (old for old in missing if (old.kind, old.source, old.name) == (one.kind, one.source, one.name)), None
        )
        if before is not None:
            missing.remove(before)
        in_known_file = any(old.source == one.source for old in trusted)
        yield Item("changed" if before is not None or in_known_file else "new", one, before)
    yield from (Item("gone", one) for one in missing)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


# -- the command ---------------------------------------------------------------------------------------------------


@click.group()
def trust() -> None:
    """Show or change what may run: hooks and MCP servers, by their content.

    A running host notices the change at once.

    \b
    Example:
      ahpkit trust list
      ahpkit trust add ~/projects/app
    """


def _opened(data_dir: Path | None, url: str | None) -> Trust:
    return Trust(owned_directory(data_dir, url) / TRUST_FILE)


@trust.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one item on each line.")
@owner_options
def list_trust(as_json: bool, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """List what may run, what changed since it was trusted, and what waits for consent.

    \b
    Example:
      ahpkit trust list
    """
    kept = _opened(data_dir, url)
    items = look(kept)
    if as_json:
        for item in items:
            click.echo(json.dumps(item.as_json(), ensure_ascii=False))
        return
    if not items and not kept.directories():
        click.echo(
            "Nothing is trusted, and nothing waits for it. To trust a directory as it is now: ahpkit trust add DIR"
        )
    for folder in kept.directories():
        click.echo(f"trusted directory: {printable(folder)}")
    for item in items:
        what = item.now
        click.echo(f"{item.id}  {item.state:8} {what.kind:6} {printable(what.name)}  {printable(what.source)}")
    if any(item.state in ("changed", "new", "asks") for item in items):
        click.echo("\nwhat is not trusted does not run; see: ahpkit trust show ID, ahpkit trust add ID")


@trust.command("show")
@click.argument("what")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one item on each line.")
@owner_options
def show_trust(what: str, as_json: bool, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Show what a directory, a file or an item would run, and how that differs from what was trusted.

    \b
    Example:
      ahpkit trust show ~/projects/app
      ahpkit trust show 3f2a91c04b7d
    """
    for item in _meant(_opened(data_dir, url), what):
        if as_json:
            click.echo(json.dumps(item.as_json(), ensure_ascii=False))
        else:
            click.echo("\n".join(_described(item)))


def _described(item: Item) -> Iterator[str]:
    yield f"{item.id}  {item.state}  {item.now.kind} {printable(item.now.name)}"
    yield f"  declared in {printable(item.now.source)}"
    yield from _content(item.now, "  ")
    if item.before is not None:
        yield "  what was trusted:"
        yield from _content(item.before, "    ")


def _content(runnable: Runnable, indent: str) -> Iterator[str]:
    for line in json.dumps(dict(runnable.declaration), indent=2, ensure_ascii=False).splitlines():
        yield f"{indent}{printable(line)}"
    for path, digest in sorted(runnable.files.items()):
        yield f"{indent}names {printable(path)} ({digest[:_ID]})"


@trust.command("add")
@click.argument("what")
@owner_options
def add_trust(what: str, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Trust a directory, a file or an item as it is now. Later changes do not run.

    \b
    Example:
      ahpkit trust add ~/projects/app
      ahpkit trust add 3f2a91c04b7d
    """
    kept = _opened(data_dir, url)
    directory = Path(os.path.realpath(what)) if os.path.isdir(what) else None
    items = [item for item in _meant(kept, what) if item.state != "gone"]
    added = kept.add([item.now for item in items], now=time.time_ns() // 1_000_000, directory=directory)
    for one in added:
        click.echo(f"trusted: {one.kind} {printable(one.name)}  {printable(one.source)}")
    if not added:
        click.echo(f"{what} is trusted as it is: nothing in it would run")


@trust.command("remove")
@click.argument("what")
@owner_options
def remove_trust(what: str, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Stop trusting a directory, a file or an item.

    \b
    Example:
      ahpkit trust remove ~/projects/app
    """
    kept = _opened(data_dir, url)
    path = os.path.realpath(what)
    known = str(path) in kept.directories()

    def gone(one: Runnable) -> bool:
        by_id = len(what) >= 4 and one.digest.startswith(what)
        return by_id or (not one.of_client and (one.source == path or _within(one.source, [path])))

    count = kept.remove(gone, directory=Path(path))
    if not count and not known:
        raise click.ClickException(f"nothing of {what!r} is trusted; see: ahpkit trust list")
    click.echo(f"{count} no longer trusted")


def _meant(kept: Trust, what: str) -> list[Item]:
    """The items that a path or the beginning of an id names."""
    items = look(kept)
    if os.path.exists(what):
        return _at(kept, Path(os.path.realpath(what)), items)
    found = [item for item in items if len(what) >= 4 and item.now.digest.startswith(what)]
    if not found:
        raise click.ClickException(f"there is no file, directory or item {what!r}; see: ahpkit trust list")
    return found


def _at(kept: Trust, path: Path, items: Sequence[Item]) -> list[Item]:
    known = {(item.now.source, item.now.digest): item for item in items}
    found = found_at(path)
    here = [known.get((one.source, one.digest), Item(_state(kept, one), one)) for one in found]
    gone = [item for item in items if item.state == "gone" and _within(item.now.source, [str(path)])]
    return [*here, *gone]


def _state(kept: Trust, runnable: Runnable) -> State:
    standing = kept.standing(runnable)
    return "new" if standing == "unknown" else standing


__all__ = ["Item", "look", "project_runnable", "trust"]
