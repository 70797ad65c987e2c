"""Records which programs and scripts the host's owner trusts to run on this machine, bound to their content.

Before a hook, an MCP server or an extension is started, it answers two questions:

    trust = Trust(data_dir / "trust.json")
    server = Runnable("server", "db", source="/home/me/app/.mcp.json", declaration={"command": "./db"},
                      files=fingerprints(["/home/me/app/db"]))
    trust.standing(server)      # "trusted", "changed" or "unknown"
    trust.consented(server)     # for what a client brought: did the owner agree to exactly this?

Trust is bound to the content: the declaration and the files that it names. When one of them changes, the answer is
"changed", and it does not run until the owner trusts it again (`ahpkit trust add`). The owner's decisions are kept in
one private file of the data directory. Everything here reads files: call it in a worker, right before the start.

Where `${NAME}` of the environment may be filled in: declarations of the user's own configuration (the home folders, the
plugins that were named at the start) and those whose standing is "trusted". Consent to what a client brought lets it
run, but gives it no environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from ahpkit.host.owner_file import OwnerFile
from ahpkit.platform.files import CLOSE_ON_EXEC, NON_BLOCKING, followed
from ahpkit.protocol.common.state import JsonObject

Kind = Literal["hook", "server", "extension", "settings"]

Standing = Literal["trusted", "changed", "unknown"]
"""`changed`: something from the declaring file was trusted, but not with this content. `unknown`: nothing from that
file was ever trusted."""

TRUST_FILE = "trust/trust.json"
"""The file's place in the host's data directory. It has its own folder: the folder is watched, and the log beside it is
written often."""

CLIENT = "client:"
"""Prefix of `source` for something that a client brought. The URI of the client's plugin follows."""

_ASKED = 200
"""How many contents of clients may wait for consent. The oldest are forgotten first."""

_MISSING = "missing"
"""Stands for a fingerprint when the file does not exist or is not a regular file."""


@dataclass(frozen=True, slots=True)
class Runnable:
    """Something that could be started: a group of hooks, a server, an extension."""

    kind: Kind
    name: str
    source: str
    """The file that declares it, or `CLIENT` and the URI of the plugin that a client published."""
    declaration: Mapping[str, Any]
    """The declaration as it was written, without variables filled in."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """The files that the declaration names, as absolute paths with their fingerprints. A script is part of the trusted
    content."""
    data: tuple[str, ...] = ()
    """Files that the program works on and that name no programs. They are not part of the trusted content."""

    @property
    def digest(self) -> str:
        """A hash of the content. It does not depend on the place of the declaration."""
        content = [self.kind, self.name, self.declaration, sorted(self.files.items())]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def of_client(self) -> bool:
        return self.source.startswith(CLIENT)


class _Entry(TypedDict):
    """A `Trusted` as it is stored. Files of older versions may lack the optional keys."""

    kind: Kind
    name: str
    source: str
    declaration: NotRequired[JsonObject]
    files: NotRequired[dict[str, str]]
    digest: NotRequired[str]
    since: NotRequired[int]


class _Content(TypedDict, total=False):
    """What the file contains."""

    trusted: list[_Entry]
    asked: list[_Entry]
    directories: list[str]
    own: list[_Entry]
    plugins: list[str]


@dataclass(frozen=True, slots=True)
class Trusted:
    """One content that the owner trusted, and since when (milliseconds since the epoch)."""

    runnable: Runnable
    digest: str
    since: int

    def as_json(self) -> _Entry:
        what = self.runnable
        return {
            "kind": what.kind,
            "name": what.name,
            "source": what.source,
            "declaration": dict(what.declaration),
            "files": dict(what.files),
            "digest": self.digest,
            "since": self.since,
        }


class Trust:
    """The owner's decisions, in a file. Without a path, nothing is stored, and nothing is trusted at the start."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else OwnerFile(path)
        self._memory: _Content = {}
        self._changes = 0
        self._files: tuple[object, frozenset[str]] | None = None

    # -- questions -----------------------------------------------------------------------------------------------

    def standing(self, runnable: Runnable) -> Standing:
        """Whether exactly this content, declared at this place, is trusted."""
        here = [entry for entry in self.entries() if entry.runnable.source == runnable.source]
        if any(entry.digest == runnable.digest for entry in here):
            return "trusted"
        return "changed" if here else "unknown"

    def consented(self, runnable: Runnable) -> bool:
        """Whether the owner agreed to this content, which any client may bring."""
        return any(entry.digest == runnable.digest for entry in self.entries() if entry.runnable.of_client)

    def may_run(self, runnable: Runnable) -> bool:
        """Whether it may be started: it is trusted at its place, or the owner consented if a client brought it."""
        return self.consented(runnable) if runnable.of_client else self.standing(runnable) == "trusted"

    def entries(self) -> list[Trusted]:
        """Everything that is trusted, in the order it was added."""
        return [_trusted(entry) for entry in self._content().get("trusted", ())]

    def files(self) -> frozenset[str]:
        """Files that are part of trusted contents: each path as it is named and with links followed. They must not be
        written."""
        if self._files is None or self._files[0] != self.stamp:
            self._files = self.stamp, frozenset(_files(entry.runnable for entry in self.entries()))
        return self._files[1]

    def directories(self) -> list[str]:
        """Directories that were trusted as a whole, with the content they had at that time."""
        return list(self._content().get("directories", ()))

    @property
    def path(self) -> Path | None:
        """The file with the decisions, so that callers can watch it."""
        return None if self._file is None else self._file.path

    @property
    def stamp(self) -> object:
        """A value that changes whenever the owner may have changed a decision."""
        return self._changes if self._file is None else self._file.stamp

    # -- the owner's own configuration -----------------------------------------------------------------------------

    def remember_own(self, runnables: Iterable[Runnable], plugins: Iterable[Path], *, now: int) -> None:
        """Store what the owner's own configuration runs as the host starts. It is trusted for this run of the host; the
        command line compares it with the present content."""
        entries = [Trusted(one, one.digest, now).as_json() for one in runnables]
        folders = [str(path) for path in plugins]
        content = self._content()
        if entries or folders or content.get("own") or content.get("plugins"):
            self._change(lambda content: {**content, "own": entries, "plugins": folders})

    def own(self) -> tuple[list[Runnable], list[Path]]:
        """What the owner's own configuration ran when the host started, and the plugins that were named then."""
        content = self._content()
        return [_trusted(entry).runnable for entry in content.get("own", ())], [*map(Path, content.get("plugins", ()))]

    # -- what waits for a decision ---------------------------------------------------------------------------------

    def ask(self, runnables: Iterable[Runnable], *, now: int) -> None:
        """Store contents that clients published and the owner has not decided about, so that the owner can see them."""
        fresh = [Trusted(one, one.digest, now) for one in runnables if one.of_client and not self.consented(one)]
        known = {entry.digest for entry in self.asked()}
        fresh = [entry for entry in fresh if entry.digest not in known]
        if not fresh:
            return

        def work(content: _Content) -> _Content:
            return {**content, "asked": [*content.get("asked", ()), *(entry.as_json() for entry in fresh)][-_ASKED:]}

        self._change(work)

    def asked(self) -> list[Trusted]:
        """The contents that wait for consent; `since` is the time when a content was first seen."""
        agreed = {entry.digest for entry in self.entries()}
        waiting = [_trusted(entry) for entry in self._content().get("asked", ())]
        return [entry for entry in waiting if entry.digest not in agreed]

    # -- decisions -------------------------------------------------------------------------------------------------

    def add(self, runnables: Iterable[Runnable], *, now: int, directory: Path | None = None) -> list[Runnable]:
        """Trust this content from now on.

        Of one declaration only the newest content stays trusted. With `directory`, the directory is trusted as it is
        now: all other trusted contents below it are forgotten.
        """
        fresh = [Trusted(one, one.digest, now) for one in runnables]
        replaced = {_place(entry.runnable) for entry in fresh}

        def work(content: _Content) -> _Content:
            kept = [_trusted(entry) for entry in content.get("trusted", ())]
            kept = [entry for entry in kept if _place(entry.runnable) not in replaced]
            folders = content.get("directories", [])
            if directory is not None:
                kept = [entry for entry in kept if not _below(entry.runnable.source, str(directory))]
                folders = [*(folder for folder in folders if folder != str(directory)), str(directory)]
            return {
                **content,
                "trusted": [entry.as_json() for entry in (*kept, *fresh)],
                "directories": folders,
            }

        self._change(work)
        return [entry.runnable for entry in fresh]

    def remove(self, gone: Callable[[Runnable], bool], *, directory: Path | None = None) -> int:
        """Forget the contents for which `gone` is true, and a directory; returns how many contents were forgotten."""
        count = 0

        def work(content: _Content) -> _Content:
            nonlocal count
            entries = [_trusted(entry) for entry in content.get("trusted", ())]
            kept = [entry for entry in entries if not gone(entry.runnable)]
            count = len(entries) - len(kept)
            folders = [folder for folder in content.get("directories", ()) if folder != str(directory)]
            return {**content, "trusted": [entry.as_json() for entry in kept], "directories": folders}

        self._change(work)
        return count

    def _content(self) -> _Content:
        return self._memory if self._file is None else cast("_Content", self._file.read())

    def _change(self, work: Callable[[_Content], _Content]) -> None:
        if self._file is None:
            self._memory, self._changes = work(self._memory), self._changes + 1
        else:
            self._file.change(lambda content: {**work(cast("_Content", content))})


def fingerprints(paths: Iterable[str | Path]) -> dict[str, str]:
    """The fingerprint of each file, by its path as given. Blocks while it reads."""
    return {str(path): fingerprint(Path(path)) for path in paths}


def fingerprint(path: Path) -> str:
    """SHA-256 of a regular file's content; links are followed; pipes and devices are not read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | NON_BLOCKING | CLOSE_ON_EXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _MISSING
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return _MISSING


def _trusted(entry: _Entry) -> Trusted:
    what = Runnable(entry["kind"], entry["name"], entry["source"], entry.get("declaration", {}), entry.get("files", {}))
    return Trusted(what, what.digest, entry.get("since", 0))


def _files(runnables: Iterable[Runnable]) -> Iterator[str]:
    for one in runnables:
        for path in (*one.files, *(() if one.of_client else (one.source,))):
            yield path
            yield followed(path)


def _place(runnable: Runnable) -> tuple[str, str, str]:
    """The key of a declaration: a new content replaces the old one with the same key. Contents of clients replace
    nothing, because several clients may bring a server of the same name."""
    unique = runnable.digest if runnable.of_client else runnable.name
    return runnable.kind, runnable.source, unique


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


__all__ = ["CLIENT", "TRUST_FILE", "Kind", "Runnable", "Standing", "Trust", "Trusted", "fingerprint", "fingerprints"]
