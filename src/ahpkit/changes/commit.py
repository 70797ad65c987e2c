"""Writes to the user's repository when a person asks for it: stages, commits, makes a session's own work tree.

The repository's hooks run only where the directory is trusted. Nothing is signed: nobody is there to type a passphrase.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from ahpkit.changes.git import Git, GitError
from ahpkit.changes.work_tree import WorkTree

_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts to get the lock of the user's index."""

_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
"""A command line is too short for the names of all files of a large change."""


async def stage(tree: WorkTree, paths: Collection[str]) -> None:
    """Put the files as they are now into the user's index."""
    options = ("--add", "--remove", "--replace", "-z", "--stdin")
    await _write(tree.git, "update-index", *options, stdin=_listed(paths))


async def commit(tree: WorkTree, paths: Collection[str], message: str, *, trusted: bool = False) -> str:
    """Commit the files as they are now, and nothing else that may be staged. Returns the short name of the commit."""
    if (busy := tree.in_progress()) is not None:
        raise GitError(f"git is in the middle of {busy} here; finish or abort it first")
    if not message.strip():
        raise GitError("a commit needs a message")
    new = await _add_new(tree, paths)
    git = await asking(tree.git) if trusted else tree.git
    try:
        await _write(git, "commit", "--quiet", "--only", "-m", message, *_FROM_STDIN, stdin=_listed(paths))
    except GitError:  # Such as a hook that refuses: the index is as it was before.
        await _write(tree.git, "update-index", "--force-remove", "-z", "--stdin", stdin=_listed(new))
        raise
    return (await tree.git.run("rev-parse", "--short", "HEAD", ours=False)).decode().strip()


async def _add_new(tree: WorkTree, paths: Collection[str]) -> list[str]:
    """`commit --only` knows tracked files only: new ones are announced to the index first, without content."""
    tracked = await tree.tracked(paths)
    new = await asyncio.to_thread(_existing, tree.root, sorted(set(paths) - tracked))
    if new:
        await _write(tree.git, "add", "--intent-to-add", *_FROM_STDIN, stdin=_listed(new))
    return new


def _listed(paths: Collection[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))


async def _write(git: Git, *arguments: str, stdin: bytes = b"") -> None:
    """Run what writes the user's index. An editor or another git may hold its lock for a moment."""
    for pause in (*_PAUSES, None):
        try:
            await git.run(*arguments, stdin=stdin, ours=False)
            return
        except GitError as error:
            if pause is None or "index.lock" not in str(error):
                raise
            await asyncio.sleep(pause)


def _existing(root: Path, paths: Sequence[str]) -> list[str]:
    return [path for path in paths if os.path.lexists(root / path)]


async def add_work_tree(tree: WorkTree, place: Path, branch: str) -> Path:
    """A work tree of its own on a new branch from the last commit."""
    await tree.git.run("worktree", "add", "--quiet", "-b", branch, str(place), "HEAD", ours=False)
    return place


async def merge_back(origin: WorkTree, branch: str) -> str:
    """Merge a session's branch into what is checked out in the user's work tree. A conflict changes nothing."""
    if (busy := origin.in_progress()) is not None:
        raise GitError(f"git is in the middle of {busy} in {origin.root}; finish or abort it first")
    try:
        await _write(origin.git, "merge", "--quiet", "--no-edit", "--no-verify-signatures", branch)
    except GitError as error:
        await origin.git.run("merge", "--abort", ours=False, check=False)
        raise GitError(f"{branch} cannot be merged without a conflict: {error}") from None
    return (await origin.git.run("rev-parse", "--short", "HEAD", ours=False)).decode().strip()


async def remove_work_tree(origin: WorkTree, place: Path, branch: str, *, discard: bool) -> None:
    """Remove a session's work tree and its branch. Without `discard` git refuses what would be lost."""
    force = ("--force",) if discard else ()
    await origin.git.run("worktree", "remove", *force, str(place), ours=False)
    await origin.git.run("branch", "-D" if discard else "-d", branch, ours=False)


async def asking(git: Git) -> Git:
    """The same repository with its hooks, where its configuration says they are: for a directory that is trusted."""
    ask = ("config", "--show-scope", "-z", "--type=path", "--get-all", "core.hooksPath")
    fields = [os.fsdecode(field) for field in (await git.run(*ask, check=False)).split(b"\0")]
    said = [path for scope, path in zip(fields[0::2], fields[1::2], strict=False) if _counts(scope, path)]
    return dataclasses.replace(git, extra={"core.hooksPath": said[-1] if said else str(git.common_dir / "hooks")})


def _counts(scope: str, path: str) -> bool:
    """Whether a folder of hooks is one that trust looks at, or one of the user's own outside any repository."""
    return scope in ("local", "worktree") or (scope != "command" and os.path.isabs(path))


__all__ = ["add_work_tree", "asking", "commit", "merge_back", "remove_work_tree", "stage"]
