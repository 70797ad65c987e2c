"""Gives a session its own work tree: made before its agent starts, merged back, removed.

A session with the setting `isolation: worktree` works on its own branch, in a folder below the directory that was asked
for. So it lies inside the directories that are open to sessions, and git ignores it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ahpkit.changes import commit
from ahpkit.changes.followed_directories import FollowedDirectories
from ahpkit.changes.git import GitError
from ahpkit.changes.sides import FileChange
from ahpkit.changes.undo import why_left
from ahpkit.changes.work_tree import WorkTree
from ahpkit.host.agent import AgentError
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, RpcError
from ahpkit.protocol.session.actions import session_meta_changed

_log = logging.getLogger(__name__)

SETTING = "isolation"
"""The setting of a session that asks for a work tree. Other hosts use the same name, and clients have a control for
it."""

META = "ahpkit/worktree"
"""In a session's `_meta`: its work tree."""

FOLDER = Path(".ahpkit", "worktrees")
"""Where work trees are, below the directory that was asked for."""

_KEY = "worktrees/"

_SCHEMA: JsonObject = {
    "type": "string",
    "title": "Isolation",
    "description": "Where the session works: in the folder itself, or in a git work tree and on a branch of its own.",
    "enum": ["folder", "worktree"],
    "enumLabels": ["Folder", "Work tree"],
    "default": "folder",
}


@dataclass(frozen=True, slots=True)
class OwnTree:
    """A work tree that was made for a session."""

    path: str
    branch: str
    base: str
    """The branch or commit that was checked out when the work tree was made."""
    origin: str
    """The directory that was asked for."""


class OwnTrees:
    """The work trees that were made for sessions."""

    def __init__(self, services: Services, directories: FollowedDirectories) -> None:
        self.services = services
        self._directories = directories

    def of(self, session_uri: str) -> OwnTree | None:
        kept = self.services.values.get(_KEY + session_uri)
        return None if kept is None else OwnTree(**kept)

    # -- creating ----------------------------------------------------------------------------------------------------

    async def settings(self, directory: Path) -> Mapping[str, Any]:
        """The setting about isolation for sessions in this directory; empty outside git."""
        return {SETTING: _SCHEMA} if await self._repository(directory) is not None else {}

    async def choose(self, session_uri: str, directory: Path, values: Mapping[str, Any]) -> Path:
        """The directory for a new session. It is not created yet, because git may take a while."""
        if values.get(SETTING) != "worktree":
            return directory
        tree = await self._repository(directory)
        if tree is None:
            raise InvalidParams(f"config.{SETTING}: {directory} is not in a git repository that has a commit")
        base = (await tree.git.run("rev-parse", "--abbrev-ref", "HEAD", check=False)).decode().strip()
        real = await asyncio.to_thread(directory.resolve)
        name = self.services.new_id()[:8]
        place = _below(real) / name
        branch = f"ahpkit/{name}"
        own = OwnTree(str(place), branch, base if base != "HEAD" else await _commit(tree), str(directory))
        self.services.values.set(_KEY + session_uri, asdict(own))
        return place / real.relative_to(tree.root)

    async def _repository(self, directory: Path) -> WorkTree | None:
        tree = await self._directories.tree(directory)
        if tree is None or tree.git.git_dir == tree.git.objects.parent:
            return None
        return tree if await _commit(tree) else None

    async def make(self, session_uri: str) -> None:
        """Create the work tree that was chosen, unless it exists."""
        own = self.of(session_uri)
        if own is None or await asyncio.to_thread(Path(own.path).exists):
            return
        if (self.services.state(session_uri) or {}).get("lifecycle") != "creating":
            return  # The work tree was removed. The session can still be read.
        tree = await self._repository(Path(own.origin))
        try:
            if tree is None:
                raise GitError(f"{own.origin} is not in a git repository any more")
            await asyncio.to_thread(_hide, Path(own.path).parent)
            await commit.add_work_tree(tree, Path(own.path), own.branch)
        except (GitError, OSError) as error:
            raise AgentError(f"No work tree could be made: {error}", error_type="host/worktree") from error
        self._tell(session_uri, {"path": own.path, "branch": own.branch, "base": own.base, "origin": own.origin})

    def _tell(self, session_uri: str, facts: JsonObject) -> None:
        meta: JsonObject = (self.services.state(session_uri) or {}).get("_meta") or {}
        git: JsonObject = meta.get("git") or {}
        git = {**git, "branchName": facts["branch"], "baseBranchName": facts["base"]}
        self.services.dispatch(session_uri, session_meta_changed(meta={**meta, META: facts, "git": git}))

    def check(self, session_uri: str) -> None:
        """Raise when a turn cannot run because the work tree was removed."""
        own = self.of(session_uri)
        if own is not None and not Path(own.path).is_dir():
            raise AgentError(
                f"The work tree {own.path} was removed. Start another session to go on.", error_type="host/worktree"
            )

    # -- operations --------------------------------------------------------------------------------------------------

    async def merge(self, session_uri: str, message: str) -> str:
        """Commit all changes of the work tree, and merge its branch into the branch that is checked out in the original
        directory."""
        own, tree, origin = await self._trees(session_uri)
        await _check_branch(own, tree)
        changed, _ = await tree.uncommitted()
        if changed:
            paths = {path for change in changed for path in change.paths}
            await commit.commit(tree, paths, message, trusted=self._directories.trusts(tree.root))
        before = await _commit(origin)
        await _check_merge(origin, own.branch)
        merged = await commit.merge_back(origin, own.branch)
        if await _commit(origin) == before:
            return f"There is nothing in {own.branch} that {origin.root} does not have."
        return f"Merged {own.branch} into {origin.root} as {merged}."

    async def remove(self, session_uri: str) -> str:
        """Remove the work tree and its branch with all changes that were not merged. The session can still be read."""
        own, tree, origin = await self._trees(session_uri)
        await commit.remove_work_tree(origin, tree, own.branch, discard=True)
        facts: JsonObject = {"path": own.path, "branch": own.branch, "base": own.base, "origin": own.origin}
        self._tell(session_uri, {**facts, "removed": True})
        return f"Removed the work tree {own.path} and the branch {own.branch}."

    def disposed(self, session_uri: str) -> None:
        """The session is gone: remove its work tree, unless changes would be lost."""
        own = self.of(session_uri)
        if own is not None:
            self.services.values.set(_KEY + session_uri, None)
            self.services.spawn(self._clean_up(own), name="remove a work tree")

    async def _clean_up(self, own: OwnTree) -> None:
        if not await asyncio.to_thread(Path(own.path).exists):
            return
        try:
            tree, origin = await self._both(own)
            await commit.remove_work_tree(origin, tree, own.branch, discard=False)
        except GitError as error:
            _log.warning("the work tree %s on %s is kept: %s", own.path, own.branch, error)

    async def _trees(self, session_uri: str) -> tuple[OwnTree, WorkTree, WorkTree]:
        own = self.of(session_uri)
        if own is None:
            raise GitError("this session has no work tree of its own")
        return own, *await self._both(own)

    async def _both(self, own: OwnTree) -> tuple[WorkTree, WorkTree]:
        """The work tree, and the one that it was made from."""
        tree, origin = await self._repository(Path(own.path)), await self._repository(Path(own.origin))
        if tree is None or origin is None:
            raise GitError(f"{own.path if tree is None else own.origin} does not exist any more")
        if tree.root != Path(own.path):  # Its file .git is gone, so git finds the repository around it.
            raise GitError(f"{own.path} is no longer a work tree")
        return tree, origin


def _below(directory: Path) -> Path:
    """The folder for new work trees. If the directory itself lies in such a work tree, this is the folder that holds
    that one."""
    for above in (directory, *directory.parents):
        if above.parent.parts[-len(FOLDER.parts) :] == FOLDER.parts:
            return above.parent
    return directory / FOLDER


def _hide(folder: Path) -> None:
    """Create the folder, and let git ignore it without an entry in the user's own files.

    A repository may contain links with these names. They are not followed, because the work trees would lie somewhere
    else.
    """
    for part in (folder.parent, folder):
        with suppress(FileExistsError):
            part.mkdir()
        if part.is_symlink() or not part.is_dir():
            raise GitError(f"{part} is a link or a file; work trees need a folder there")
    with suppress(FileExistsError), (folder.parent / ".gitignore").open("x", encoding="utf-8") as ignored:
        ignored.write("*\n")


async def _check_branch(own: OwnTree, tree: WorkTree) -> None:
    """Raise if a branch other than the work tree's own is checked out. A merge would not contain the work then."""
    found = (await tree.git.run("rev-parse", "--abbrev-ref", "HEAD")).decode().strip()
    if found != own.branch:
        name = "no branch" if found == "HEAD" else found
        raise GitError(f"{own.path} has {name} checked out, not {own.branch}; check that out there, or merge by hand")


async def _check_merge(origin: WorkTree, branch: str) -> None:
    """Raise when merging a branch would write a file that operations may not write."""
    tip = (await origin.git.run("rev-parse", "--verify", f"refs/heads/{branch}")).decode().strip()
    base = (await origin.git.run("merge-base", "HEAD", tip, check=False)).decode().strip()
    changes = await origin.compare(base or await origin.head(), tip)
    refused = await asyncio.to_thread(next, _refused(origin, changes), None)
    if refused is not None:
        path, why = refused
        how = f"look at it, and run yourself in {origin.root}: git merge {branch}"
        raise GitError(f"{branch} is not merged, because it changes {path}: {why}. To merge it, {how}")


def _refused(origin: WorkTree, changes: Sequence[FileChange]) -> Iterator[tuple[str, str]]:
    """The paths that may not be written, and why."""
    opener = origin.writing()
    for change in changes:
        for path in sorted(change.paths):
            if (why := why_left(origin.root / path, change.after)) is not None:
                yield path, why
            try:
                opener.check(origin.root / path)
            except RpcError as error:
                yield path, str(error)


async def _commit(tree: WorkTree) -> str:
    """The short name of the last commit; empty when there is none."""
    answer = await tree.git.run("rev-parse", "--verify", "--quiet", "--short", "HEAD", check=False)
    return answer.decode().strip()


__all__ = ["OwnTree", "OwnTrees"]
