"""Writes to the user's repository when a person asks for it: stages, commits, makes a session's own work tree.

The repository's hooks run only where the directory is trusted. Commits are not signed, because nobody could type a
passphrase.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from ahpkit.changes.git import Git, GitError
from ahpkit.changes.work_tree import WorkTree

_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts to get the lock of the user's index."""

_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
"""Git reads the paths from standard input, because a command line may be too short for all of them."""


async def takable(tree: WorkTree, paths: Collection[str]) -> tuple[set[str], dict[str, str]]:
    """The changed paths that git can take into the index now; and for each other path the reason why it cannot.

    A path that git does not track and that does not exist any more is in neither of them.
    """
    left = await tree.elsewhere(paths)
    rest = sorted(set(paths) - left.keys())
    there, gone = await asyncio.to_thread(tree.there, rest)
    known = await tree.tracked(rest) | (await tree.sides(await tree.head(), gone)).keys()
    left |= dict.fromkeys(await tree.ignored(set(there) - known), "git ignores it")
    removed = known.intersection(gone)
    # A folder, or a link in the path, may have taken the place of a file that is gone.
    replaced = await asyncio.to_thread(_existing, tree.root, sorted(removed))
    dropped = _dropped(replaced, there)
    left |= {path: "something else is there now" for path in replaced if path not in dropped}
    return (set(there) | removed) - left.keys() - set(replaced), left


def _dropped(replaced: Collection[str], taken: Collection[str]) -> set[str]:
    """Files that git drops from the index by itself, because a file that is taken lies in a folder with their name, or
    has the name of one of their folders."""
    folders = {folder for path in taken for folder in _folders(path)}
    files = set(taken)
    return {path for path in replaced if path in folders or not files.isdisjoint(_folders(path))}


def _folders(path: str) -> list[str]:
    """The folders above a file: `a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


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
    new = await _new(tree, paths)
    if new:  # `commit --only` knows tracked files only.
        await stage(tree, new)
    git = await asking(tree.git) if trusted else tree.git
    try:
        if not await _differ(tree, paths):
            raise GitError("nothing of it differs from the last commit")
        await _write(git, "commit", "--quiet", "--only", "-m", message, *_FROM_STDIN, stdin=_listed(paths))
    except GitError as error:  # A hook may have refused, for example. The index is restored.
        await _write(tree.git, "update-index", "--force-remove", "-z", "--stdin", stdin=_listed(new))
        raise _explained(error) from None
    return (await tree.git.run("rev-parse", "--short", "HEAD", ours=False)).decode().strip()


async def _new(tree: WorkTree, paths: Collection[str]) -> list[str]:
    tracked = await tree.tracked(paths)
    return await asyncio.to_thread(_existing, tree.root, sorted(set(paths) - tracked))


async def _differ(tree: WorkTree, paths: Collection[str]) -> bool:
    """Whether one of the files differs from the last commit."""
    changed = await tree.git.lines("diff-index", "-z", "--name-only", "--ignore-submodules=none", await tree.head())
    return not set(paths).isdisjoint(changed)


def _explained(error: GitError) -> GitError:
    """The first line of git's message, with advice if that line does not say what to do."""
    if "identity unknown" not in str(error):
        return error
    return GitError(f"{error}: set user.name and user.email with `git config`")


def _listed(paths: Collection[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))


async def _write(git: Git, *arguments: str, stdin: bytes = b"") -> None:
    """Run a command that writes the user's index. It is repeated if an editor or another git holds the lock for a
    moment."""
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
    """Create a work tree on a new branch from the last commit."""
    await tree.git.run("worktree", "add", "--quiet", "-b", branch, str(place), "HEAD", ours=False)
    return place


async def merge_back(origin: WorkTree, branch: str) -> str:
    """Merge a session's branch into what is checked out in the user's work tree. A conflict changes nothing."""
    if (busy := origin.in_progress()) is not None:
        raise GitError(f"git is in the middle of {busy} in {origin.root}; finish or abort it first")
    try:
        await _write(origin.git, "merge", "--quiet", "--no-edit", "--no-verify-signatures", branch)
    except GitError as error:
        both = await origin.git.lines("diff", "--name-only", "--diff-filter=U", "-z")
        await origin.git.run("merge", "--abort", ours=False, check=False)
        why = f"both sides changed {', '.join(both[:5])}{' and more' if len(both) > 5 else ''}" if both else str(error)
        raise GitError(f"{branch} cannot be merged: {why}; to do it by hand: git merge {branch}") from None
    return (await origin.git.run("rev-parse", "--short", "HEAD", ours=False)).decode().strip()


async def remove_work_tree(origin: WorkTree, tree: WorkTree, branch: str, *, discard: bool) -> None:
    """Remove a session's work tree and its branch, unless something in them is nowhere else. `discard`: changes that a
    changeset shows do not count, because a person agreed to lose them."""
    if (lost := await _only_there(origin, tree, branch, discard=discard)) is not None:
        place, there = shlex.quote(str(tree.root)), shlex.quote(str(origin.root))
        how = f"git -C {there} worktree remove --force {place}"
        raise GitError(f"{tree.root} is kept, because {lost}. To remove the work tree all the same: {how}")
    force = ("--force",) if discard else ()
    await origin.git.run("worktree", "remove", *force, str(tree.root), ours=False)
    await origin.git.run("branch", "-D", branch, ours=False, check=False)  # It may be gone, or checked out elsewhere.


async def _only_there(origin: WorkTree, tree: WorkTree, branch: str, *, discard: bool) -> str | None:
    """Describes what would be lost with a work tree and its branch."""
    if (busy := tree.in_progress()) is not None:
        return f"git is in the middle of {busy} there"
    files = await _uncommitted(tree, only_ignored=discard)
    if files:
        return f"{files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''} there is in no commit"
    commits = await _only_commits(origin, tree, branch, discard=discard)
    return f"commits there are on no other branch, the last one is {commits[0]}" if commits else None


async def _uncommitted(tree: WorkTree, *, only_ignored: bool) -> list[str]:
    """Files and folders that no commit holds, those that git ignores too."""
    status = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignored")
    lines = await tree.git.lines(*status, "--ignore-submodules=none")
    unwatched = await tree.git.lines("ls-files", "-v", "-z")  # Lower case: git was told not to look at it.
    hidden = [line[2:] for line in unwatched if line[0].islower()]
    return [line[3:] for line in lines if not only_ignored or line.startswith("!!")] + hidden


async def _only_commits(origin: WorkTree, tree: WorkTree, branch: str, *, discard: bool) -> list[str]:
    """The short name of the newest commit that only this work tree has: on its own branch or on no branch. With
    `discard` its own branch counts as another one."""
    own = f"refs/heads/{branch}"
    known = await origin.git.run("rev-parse", "--verify", "--quiet", own, ours=False, check=False)
    tips = ["HEAD", *([own] if known else [])]
    here = (await origin.git.run("rev-parse", "HEAD", ours=False)).decode().strip()
    except_own = () if discard else (f"--exclude={branch}",)
    elsewhere = (*except_own, "--branches", "--tags", "--remotes", here)
    listed = await tree.git.run("rev-list", "--abbrev-commit", "-n", "1", *tips, "--not", *elsewhere)
    return listed.decode().split()


async def asking(git: Git) -> Git:
    """The repository, but with its hooks switched on (in the folder that its configuration names). Only for a trusted
    directory."""
    ask = ("config", "--show-scope", "-z", "--type=path", "--get-all", "core.hooksPath")
    fields = [os.fsdecode(field) for field in (await git.run(*ask, check=False)).split(b"\0")]
    paths = [path for scope, path in zip(fields[0::2], fields[1::2], strict=False) if _counts(scope, path)]
    return dataclasses.replace(git, extra={"core.hooksPath": paths[-1] if paths else str(git.common_dir / "hooks")})


def _counts(scope: str, path: str) -> bool:
    """Whether hooks in this folder may run. They may if trust covers the folder, or if it is the user's own folder
    outside any repository."""
    return scope in ("local", "worktree") or (scope != "command" and os.path.isabs(path))


__all__ = ["add_work_tree", "asking", "commit", "merge_back", "remove_work_tree", "stage", "takable"]
