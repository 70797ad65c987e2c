"""`ahpkit data`: saves, restores and tidies up a host's data."""

from __future__ import annotations

import sqlite3
import tarfile
import tempfile
import zlib
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import click

from ahpkit.cli.asking import Place, WholeNumber, confirm_deletion
from ahpkit.cli.connection import chosen_name, connected, host_command, host_name_option
from ahpkit.cli.daemon import named_data_dir
from ahpkit.cli.output import Output, progress
from ahpkit.cli.roots import owned_directory, owner_options
from ahpkit.cli.session_search import AgeOption, is_archived, status_word, summary_line
from ahpkit.cli.text import as_json
from ahpkit.host.trust import TRUST_FILE
from ahpkit.log.datadir import LOG_FILE, data_directory
from ahpkit.platform.files import private_draft

_SQLITE = b"SQLite format 3\0"
_LEFT_OUT = frozenset({"lock", "token"})
"""Files that are not in a backup: the lock belongs to a process, the token to a machine."""
_BESIDE = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database. They are not copied: the copy of the database contains what
they hold."""


@click.group()
def data() -> None:
    """Save, put back and tidy up the data of a host.

    \b
    Example:
      ahpkit data backup ahpkit.tar.gz
      ahpkit data prune --older-than 90d --keep 50 --dry-run
    """


@data.command()
@click.argument("file", type=Place(path_type=Path, dir_okay=False))
@owner_options
def backup(file: Path, data_dir: Path | None, url: str | None, token: str | None) -> None:
    """Save everything a host keeps into FILE, a .tar.gz. The host may run meanwhile.

    The token is left out. The file is for you only: conversations are in it. A backup that is there already is
    replaced when the new one is whole; another file is not.

    \b
    Example:
      ahpkit data backup ~/ahpkit-2026-11-15.tar.gz
    """
    directory = owned_directory(data_dir, url)
    if not directory.is_dir():
        raise click.ClickException(f"{directory} does not exist: there is nothing to save")
    if not (directory / LOG_FILE).exists():
        raise click.ClickException(f"no host keeps its data in {directory}: there is nothing to save")
    if file.exists() and not _is_backup(file):
        raise click.ClickException(f"{file} is there already and is no backup; choose another name")
    with progress("Saving"), tempfile.TemporaryDirectory(prefix="ahpkit-") as place:
        count = _save(directory, file, Path(place))
    click.echo(f"{count} files of {directory} saved in {file}")


def _is_backup(file: Path) -> bool:
    try:
        with tarfile.open(file) as archive:
            return _has_log(archive)
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return False


def _has_log(archive: tarfile.TarFile) -> bool:
    """Whether the archive contains a log. Archives without one are no backups."""
    return any(member.name == LOG_FILE for member in archive)


def _save(directory: Path, file: Path, place: Path) -> int:
    count = 0
    with private_draft(file) as target, tarfile.open(fileobj=target, mode="w:gz") as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_symlink() or path.name in _LEFT_OUT or path.name.endswith(_BESIDE):
                continue
            if path.is_dir():  # Empty directories too: git does not recognise a repository without its `refs`.
                archive.add(path, arcname=path.relative_to(directory).as_posix(), recursive=False)
            if not path.is_file():
                continue
            archive.add(_copy(path, place), arcname=path.relative_to(directory).as_posix(), recursive=False)
            count += 1
    return count


def _copy(path: Path, place: Path) -> Path:
    """A copy of a file that does not change while it is read. The copy of a database is consistent."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return path
    copied = place / "copy"
    copied.unlink(missing_ok=True)
    try:
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with closing(source), closing(sqlite3.connect(copied)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        reason = f"{path} cannot be read: {error}. Start a host on it: that repairs the file; then save it"
        raise click.ClickException(reason) from None
    return copied


@data.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--replace", is_flag=True, help="Restore even if there is data: it is moved aside, not deleted.")
@click.option("--data-dir", type=Place(path_type=Path, file_okay=False), help="Where to.  [default: the usual one]")
@host_name_option
def restore(file: Path, replace: bool, data_dir: Path | None) -> None:
    """Put a backup back. The host must not run.

    \b
    Example:
      ahpkit data restore ~/ahpkit-2026-11-15.tar.gz
      ahpkit data restore backup.tar.gz --host-name work
      ahpkit data restore backup.tar.gz --data-dir /tmp/look --replace
    """
    directory = data_dir or named_data_dir(chosen_name())
    with data_directory(directory):  # While this block lasts, no host uses the directory or begins to use it.
        there = [path for path in directory.iterdir() if path.name not in _LEFT_OUT]
        if there and not replace:
            raise click.ClickException(f"{directory} has data already; --replace moves it aside")
        with tempfile.TemporaryDirectory(prefix=f"{directory.name}-restored-", dir=directory.parent) as place:
            _extract(file, Path(place))
            aside = _move_aside(directory, there)
            for path in Path(place).iterdir():
                path.rename(directory / path.name)
        trusts = (directory / TRUST_FILE).exists()
    click.echo(f"{file} is in {directory} now" + (f"; the earlier files are in {aside}" if aside else ""))
    if trusts:
        click.echo("Its list of trusted programs was restored, too; to check it: ahpkit trust list")


def _extract(file: Path, place: Path) -> None:
    try:
        with tarfile.open(file) as archive:
            if not _has_log(archive):
                raise tarfile.TarError(f"it has no {LOG_FILE}")
            archive.extractall(place, filter=_restored)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        # The first line says what is wrong; tarfile adds a line for each format that it tried.
        reason = str(error).partition("\n")[0].rstrip(":")
        raise click.ClickException(f"{file} is not a backup, or it is damaged: {reason}") from error


def _restored(member: tarfile.TarInfo, place: str) -> tarfile.TarInfo | None:
    """An archived file as `restore` puts it back: private, and only files that `backup` saves. Links are refused,
    because one could lead to the token."""
    checked = tarfile.data_filter(member, place)
    if not (checked.isfile() or checked.isdir()):
        raise tarfile.TarError(f"{checked.name} is not a file")
    if PurePosixPath(checked.name).name in _LEFT_OUT:
        return None
    return checked.replace(mode=0o700 if checked.isdir() else 0o600, deep=False)


def _move_aside(directory: Path, there: list[Path]) -> Path | None:
    if not there:
        return None
    aside = Path(tempfile.mkdtemp(prefix=f"{directory.name}-replaced-", dir=directory.parent))
    for path in there:
        path.rename(aside / path.name)
    return aside


@data.command()
@click.option("--older-than", type=AgeOption(), help="Sessions that were not changed for this time, such as 90d.")
@click.option("--keep", type=WholeNumber(min=0), default=0, help="Keep this many of the newest in any case.")
@click.option("--archived", is_flag=True, help="Only archived ones.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "json_output", is_flag=True, help="Print the deleted sessions, or those to delete, as JSON.")
@host_command
async def prune(
    url: str | None,
    token: str | None,
    older_than: timedelta | None,
    keep: int,
    archived: bool,
    dry_run: bool,
    yes: bool,
    json_output: bool,
) -> None:
    """Delete sessions by rules, for good. Sessions that run or wait for somebody are never deleted.

    At least one rule must be given. A session is deleted if all given rules select it.

    \b
    Example:
      ahpkit data prune --older-than 90d --keep 50 --dry-run
      ahpkit data prune --archived --yes
    """
    if older_than is None and not archived and not keep:
        raise click.UsageError("give a rule: --older-than, --archived or --keep")
    output = Output()
    async with connected(url, token) as client:
        going = to_prune(await client.sessions(), datetime.now(UTC), older_than, keep, archived=archived)
        if not json_output:
            for one in going:
                output.say(summary_line(one))
        if going and not dry_run:
            if not yes:
                what = "this session" if len(going) == 1 else f"these {len(going)} sessions"
                confirm_deletion(f"Delete {what} for good?")
            for one in going:
                await (await client.session(one["resource"])).dispose()
    if json_output:
        output.say(as_json(going))
    else:
        one = len(going) == 1
        verb = "would go" if dry_run else "is gone" if one else "are gone"
        output.say(f"{len(going)} session{'' if one else 's'} {verb}." if going else "No session fits these rules.")


def to_prune(
    summaries: list[Any], now: datetime, older_than: timedelta | None, keep: int, *, archived: bool
) -> list[Any]:
    """The sessions that all rules select for deletion, the oldest first."""
    newest = sorted(summaries, key=lambda one: one["modifiedAt"], reverse=True)
    return [
        one
        for one in reversed(newest[keep:])
        if status_word(one) in ("idle", "error")
        and (older_than is None or now - datetime.fromisoformat(one["modifiedAt"]) > older_than)
        and (is_archived(one) or not archived)
    ]


__all__ = ["data", "to_prune"]
