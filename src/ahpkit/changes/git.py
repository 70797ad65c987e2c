"""Runs git so that a repository cannot make it execute anything: no hooks, filters, drivers, monitors or signing.

`Git` is one repository and work tree. Each call is one git process with a deadline and a bound on its output. New
objects are written to a directory of the host; the repository's own objects are only read.

It is long because whatever could make git execute something is shut out in one place.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ahpkit.host.resources.safe_open import standing_in
from ahpkit.platform.files import NON_BLOCKING
from ahpkit.platform.limits import limit_child
from ahpkit.wire.tasks import running

_log = logging.getLogger(__name__)

DEADLINE = 60.0
"""Seconds that a git process may take. A scan of a very large work tree on a cold disk takes a few."""

MAX_OUTPUT = 64 * 1024 * 1024
"""Bytes of one answer. A list of 50,000 changed files with renames is about 10 MB."""

_SAFE: Mapping[str, str] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.quotePath": "false",
    "core.safecrlf": "false",
    "core.pager": "cat",
    "diff.external": "",
    "diff.renameLimit": "1000",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
}
"""Settings for every call. They override those of the repository and of the user."""

_PLAIN_MERGE = "git merge-file --quiet --marker-size=%L %A %O %B"
"""A merge driver that does what git does for files without a merge driver."""

_RUN = ("filter", "merge")
"""Sections of the configuration that name programs for files."""

_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "SYSTEMROOT")


_LISTED = 5
"""The largest number of files that a message of git names."""


class GitError(Exception):
    """Git refused or was stopped. The text is the first line of git's message, or the reason for the stop."""


class DiskFullError(GitError):
    """A disk was full."""


_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "Out of diskspace")
"""What git prints when a disk is full."""


@dataclass
class Declared:
    """The filters and merge drivers that the configuration declared when it was last read. Any program may change it at
    any time."""

    stamp: tuple[tuple[int, int], ...] = ()
    """Sizes and times of the configuration's files at that moment."""
    filters: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    """Names of filters and merge drivers."""
    run: bool = False
    """Whether the filters and merge drivers run."""
    includes: bool = False
    """Whether the configuration includes other files. Then it is read for each command, because the included files may
    change."""


@dataclass(frozen=True)
class Git:
    """One repository and one work tree."""

    work_tree: Path
    git_dir: Path
    common_dir: Path
    objects: Path
    """Our own object directory for this work tree."""
    runs_filters: Callable[[], bool] = lambda: False
    """Whether filters and merge drivers of the configuration may run. Called for each command, in a thread, because
    trust may end."""
    declared: Declared = field(default_factory=Declared, compare=False)
    deadline: float = DEADLINE
    program: str = "git"
    made_by_us: bool = False
    """Whether this is a repository that the host makes itself. It is made with the first command, because many
    directories never need one."""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])

    async def run(
        self, *arguments: str, stdin: bytes = b"", index: Path | None = None, ours: bool = True, check: bool = True
    ) -> bytes:
        """Run one git command; returns its output. `ours`: new objects go to the host's directory instead of the
        repository's."""
        await self._get_ready()
        env = self._environment(ours=ours)
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        return await self._run(*self._options(self._settings()), *arguments, env=env, stdin=stdin, check=check)

    @asynccontextmanager
    async def started(self, *arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        """A git command that answers one request after another; it is ended when the context is left."""
        await self._get_ready()
        command = (self.program, *self._options(self._settings()), *arguments)
        env = self._environment(ours=True)
        async with self._standing() as here, _process(*command, cwd=here, env=env, limit=MAX_OUTPUT) as process:
            yield process

    async def _get_ready(self) -> None:
        if self.made_by_us and not (self.git_dir / "HEAD").exists():
            await self._make()
        await self._look_at_configuration()

    async def _run(self, *arguments: str, env: Mapping[str, str], stdin: bytes = b"", check: bool = True) -> bytes:
        async with self._standing() as here:
            return await run_git(
                self.program, *arguments, cwd=here, env=env, stdin=stdin, deadline=self.deadline, check=check
            )

    @asynccontextmanager
    async def _standing(self) -> AsyncGenerator[str]:
        """The work tree as a working directory for git. If a link has taken its place, this fails, so that git does not
        follow the link."""
        with ExitStack() as stack:
            try:
                here = await asyncio.to_thread(stack.enter_context, standing_in(self.work_tree))
            except OSError as error:
                raise GitError(f"{self.work_tree} cannot be entered: {error.strerror}") from None
            yield here

    def _environment(self, *, ours: bool = False) -> dict[str, str]:
        env = environment() | {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": "."}
        if ours:
            env["GIT_OBJECT_DIRECTORY"] = str(self.objects)
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(self.common_dir / "objects")
        return env

    def _options(self, settings: Mapping[str, str]) -> list[str]:
        return [f"--git-dir={self.git_dir}", "--work-tree=.", *_settings(settings)]

    async def _look_at_configuration(self) -> None:
        """Read the names of the filters and drivers that are declared now, because git can only switch them off by
        name."""
        stamp = await asyncio.to_thread(self._stamp)
        if stamp != self.declared.stamp or self.declared.includes:
            await self._read_configuration()
            self.declared.stamp = stamp
        if self.declared.filters or self.declared.drivers:
            self.declared.run = await asyncio.to_thread(self.runs_filters)

    async def _read_configuration(self) -> None:
        ask = ("config", "--name-only", "-z", "--get-regexp", r"^(filter|merge)\..*\.|^include(if)?\.")
        answer = await self._run(*self._options(_SAFE), *ask, env=self._environment(), check=False)
        keys = [os.fsdecode(key) for key in answer.split(b"\0") if key]
        found = {
            kind: {key.split(".", 1)[1].rsplit(".", 1)[0] for key in keys if key.startswith(kind)} for kind in _RUN
        }
        self.declared.filters, self.declared.drivers = (tuple(sorted(found[kind])) for kind in _RUN)
        self.declared.includes = any(key.startswith("include") for key in keys)

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        home = Path(os.environ.get("HOME", "/"))
        own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        files = [self.git_dir / "config", self.git_dir / "config.worktree", self.common_dir / "config"]
        return tuple(map(size_and_time, [*files, home / ".gitconfig", own / "git" / "config", Path("/etc/gitconfig")]))

    async def _make(self) -> None:
        place = self.git_dir
        await asyncio.to_thread(place.mkdir, mode=0o700, parents=True, exist_ok=True)
        init = ("init", "--quiet", "--bare", str(place))
        await run_git(self.program, *init, cwd=place, env=environment(), deadline=10.0)

    async def lines(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> list[str]:
        """The zero-terminated fields of one answer."""
        data = await self.run(*arguments, stdin=stdin, index=index)
        return await asyncio.to_thread(fields_of, data)  # There may be very many.

    def _settings(self) -> dict[str, str]:
        settings = {**_SAFE, **self.extra}
        if not self.declared.run:
            for name in self.declared.filters:
                settings |= {f"filter.{name}.{key}": "" for key in ("clean", "smudge", "process")}
                settings[f"filter.{name}.required"] = "false"
            settings |= {f"merge.{name}.driver": _PLAIN_MERGE for name in self.declared.drivers}
        return settings


def fields_of(data: bytes) -> list[str]:
    """Zero-terminated fields. Names that are not UTF-8 keep their bytes as surrogates."""
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


def size_and_time(path: Path) -> tuple[int, int]:
    """A file's size and time, which differ after it was written; zeros if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


async def find(
    directory: Path,
    *,
    objects: Path,
    runs_filters: Callable[[], bool] = lambda: False,
    reaches: Callable[[Path], bool] = lambda _: True,
    program: str = "git",
) -> Git | None:
    """The work tree that a directory lies in; None without git, outside a repository, or in one git does not trust.

    `reaches`: clients may use a place. A repository that lies elsewhere must name this work tree.
    """
    if shutil.which(program) is None or not await asyncio.to_thread(_may_be_in_a_repository, directory):
        return None
    ask = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    try:
        answer = await run_git(program, *_settings(_SAFE), *ask, cwd=directory, env=environment(), deadline=10.0)
    except GitError:
        return None
    lines = os.fsdecode(answer).removesuffix("\n").split("\n")
    if len(lines) != 3:  # A line end in the name of a folder.
        return None
    top, git_dir, common = (Path(line) for line in lines)
    if not (await asyncio.to_thread(directory.resolve)).is_relative_to(top):  # `core.worktree` points somewhere else.
        return None
    if not await _belongs(top, git_dir, common, reaches, program):
        _log.warning("%s has the repository of another directory, which clients may not use: %s", top, common)
        return None
    place = objects / "objects"
    await asyncio.to_thread(place.mkdir, mode=0o700, parents=True, exist_ok=True)
    # The configuration may come from another disk.
    folds_case = await asyncio.to_thread((git_dir / "hEAD").exists)
    return Git(
        work_tree=top,
        git_dir=git_dir,
        common_dir=common,
        objects=place,
        runs_filters=runs_filters,
        program=program,
        extra={"core.ignoreCase": str(folds_case).lower()},
    )


async def _belongs(top: Path, git_dir: Path, common: Path, reaches: Callable[[Path], bool], program: str) -> bool:
    """Whether a repository belongs to its work tree, or clients may use it anyway.

    A project may have a `.git` that leads to any other repository, or objects that are links to those of another one:
    its files would be shown as deleted, with their contents.
    """
    own = await asyncio.to_thread(_is_own, top, git_dir, common) or await _names(top, git_dir, common, program)
    return await asyncio.to_thread(_is_reached, git_dir, common, reaches, own=own)


def _is_own(top: Path, git_dir: Path, common: Path) -> bool:
    """Whether the repository lies in its work tree, or lists this work tree."""
    place, real, shared = top.resolve() / ".git", git_dir.resolve(), common.resolve()
    if real == place:
        return shared == real
    listed = Path(os.fsdecode(_read_small(real / "gitdir").rstrip(b"\n")))
    return real.parent == shared / "worktrees" and (real / listed).resolve() == place


async def _names(top: Path, git_dir: Path, common: Path, program: str) -> bool:
    """Whether a repository names its work tree in its settings, as that of a submodule does."""
    ask = ("config", "--file", str(git_dir / "config"), "--get", "core.worktree")
    answer = await run_git(program, *ask, cwd=top, env=environment(), deadline=10.0, check=False)
    named = os.fsdecode(answer.rstrip(b"\n"))
    return bool(named) and git_dir == common and await asyncio.to_thread(_same_place, git_dir / named, top)


def _same_place(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _is_reached(git_dir: Path, common: Path, reaches: Callable[[Path], bool], *, own: bool) -> bool:
    """Whether a repository, and all places from which its objects are read, belong to it or may be used."""
    shared = common.resolve()
    places = _object_places(shared / "objects")
    if places is None:
        return False
    if not own:
        places |= {git_dir.resolve(), shared}
    return all((own and place.is_relative_to(shared)) or reaches(place) for place in places)


_MAX_PLACES = 1_000
"""The largest number of places from which objects are read. Git makes fewer than 300 folders, and few repositories
borrow from others."""


def _object_places(objects: Path) -> set[Path] | None:
    """The places where the objects of a repository really are: its folder, the targets of links in it, and the folders
    from which it borrows.

    None: there are too many, or they are written in a form that only git can read.
    """
    found: set[Path] = set()
    folders = [objects]
    while folders:
        folder = folders.pop()
        if (real := folder.resolve()) in found:
            continue
        found.add(real)
        with suppress(OSError), os.scandir(folder) as entries:
            looked_at = list(islice(entries, _MAX_PLACES))
            found.update(Path(entry.path).resolve() for entry in looked_at if entry.is_symlink())
            if len(looked_at) == _MAX_PLACES:
                return None
        borrowed = _read_small(folder / "info" / "alternates")
        lines = [line for line in borrowed.splitlines() if line and not line.startswith(b"#")]
        if len(borrowed) == _SMALL or len(found) + len(lines) > _MAX_PLACES or any(b'"' in line for line in lines):
            return None
        folders += (folder / os.fsdecode(line) for line in lines)
    return found


def _read_small(path: Path) -> bytes:
    """The beginning of a regular file; empty for anything else, because a repository can contain a pipe or device in
    its place."""
    try:
        file = os.open(path, os.O_RDONLY | NON_BLOCKING)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(file, _SMALL) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(file)


_SMALL = 64 * 1024
"""The largest size of the files that name the place of a repository."""


def _may_be_in_a_repository(directory: Path) -> bool:
    """Whether git could find a repository in this directory or above it. If not, git is not started."""
    if not directory.is_dir():
        return False
    real = directory.resolve()
    return any(os.path.lexists(place / ".git") for place in (real, *real.parents))


def make(directory: Path, *, objects: Path, program: str = "git") -> Git | None:
    """Make a repository of the host for a directory that is in no repository. Nothing is written into the directory."""
    if shutil.which(program) is None:
        return None
    place = objects / "objects"
    return Git(
        work_tree=directory, git_dir=objects, common_dir=objects, objects=place, program=program, made_by_us=True
    )


def environment() -> dict[str, str]:
    """The environment for git: a few variables of the host's, and settings that git reads only from the environment."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_EDITOR": "true",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    return env


async def run_git(
    program: str,
    *arguments: str,
    cwd: Path | str,
    env: Mapping[str, str],
    stdin: bytes = b"",
    deadline: float = DEADLINE,
    check: bool = True,
) -> bytes:
    """Run one git process. It ends before this returns, even if the call is cancelled."""
    async with _process(program, *arguments, cwd=cwd, env=env, stderr=asyncio.subprocess.PIPE) as process:
        try:
            async with asyncio.timeout(deadline):
                out, err = await _communicate(process, stdin)
        except TimeoutError:
            raise GitError(f"git {_verb(arguments)} took longer than {deadline:.0f} s and was ended") from None
    if check and process.returncode != 0:
        if any(word in os.fsdecode(err) for word in _FULL):
            raise DiskFullError("the disk is full")
        raise GitError(_first_line(err) or f"git {_verb(arguments)} failed with code {process.returncode}")
    return out


@asynccontextmanager
async def _process(
    *command: str,
    cwd: Path | str,
    env: Mapping[str, str],
    stderr: int = asyncio.subprocess.DEVNULL,
    limit: int = 64 * 1024,
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A context around a running process. Leaving the context ends the process. `limit`: bytes of an answer."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        limit=limit,
        start_new_session=True,
    )
    limit_child(process.pid)  # A commit runs the hooks of the repository.
    try:
        yield process
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _communicate(process: asyncio.subprocess.Process, stdin: bytes) -> tuple[bytes, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reading_errors = running(_read(process.stderr, 64 * 1024, cut=True))
    reading_output = running(_read(process.stdout, MAX_OUTPUT, cut=False))
    async with reading_errors as errors, reading_output as output:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(stdin)
            await process.stdin.drain()
            process.stdin.close()
        result = await output, await errors
        await process.wait()
        return result


async def _read(stream: asyncio.StreamReader, most: int, *, cut: bool) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(256 * 1024):
        size += len(chunk)
        if size <= most:
            parts.append(chunk)
        elif not cut:
            raise GitError(f"git answered with more than {most // (1024 * 1024)} MiB")
    return b"".join(parts)


def _settings(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]


def _verb(arguments: Sequence[str]) -> str:
    """The command's name, without the settings before it."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] == "-c" else 1]
    return rest[0] if rest else ""


def _first_line(err: bytes) -> str:
    """The first line of a message, with the files that git lists below it."""
    text = err.decode(errors="replace").strip()
    for prefix in ("fatal: ", "error: "):
        text = text.removeprefix(prefix)
    first, *rest = text.splitlines() or [""]
    listed = [line.strip() for line in rest if line.startswith("\t")] if first.endswith(":") else []
    more = " and more" if len(listed) > _LISTED else ""
    return f"{first} {', '.join(listed[:_LISTED])}{more}".strip()[:300]


__all__ = [
    "DEADLINE",
    "MAX_OUTPUT",
    "DiskFullError",
    "Git",
    "GitError",
    "environment",
    "fields_of",
    "find",
    "make",
    "run_git",
    "size_and_time",
]
