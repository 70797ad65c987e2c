"""Random edits by agent, person and git, against git's own view."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ahpkit.changes.git import find
from ahpkit.changes.session import SessionChanges
from ahpkit.changes.work_tree import WorkTree
from support.repository import Repository

NAMES = st.sampled_from(["a.txt", "b.txt", "dir/c.txt", "dir/d.bin", "a.txt/x"])
TEXTS = st.sampled_from(["", "1\n", "1\n2\n3\n", "other\n", "\0binary"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["agent", "person", "commit", "undo"]), NAMES, st.one_of(st.none(), TEXTS)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_uncommitted_is_what_git_says_and_undo_keeps_what_a_person_wrote(
    steps: list[tuple[str, str, str | None]],
) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, str, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        repo = Repository(Path(place) / "repo")
        repo.commit(a_txt="1\n", b_txt="b\n")
        git = await find(repo.root, objects=Path(place) / "ours")
        assert git is not None
        changes = SessionChanges(WorkTree(git))
        last_writer: dict[str, str] = {}
        for number, (who, name, text) in enumerate(steps):
            if who == "commit":
                repo.commit()
            elif who == "undo":
                await _undo_keeps_the_persons_files(repo, changes, last_writer)
            elif who == "agent":
                await changes.begin(f"t{number}")
                _edit(repo, name, text, who, last_writer)
                await changes.end(f"t{number}")
            else:
                _edit(repo, name, text, who, last_writer)
            shown: set[str] = set()
            for change in await changes.uncommitted():
                shown |= change.paths
            assert shown == repo.status()


def _edit(repo: Repository, name: str, text: str | None, who: str, last_writer: dict[str, str]) -> None:
    """Write or remove a file; a file in the way of a folder, or the other way round, is removed first."""
    path = repo.root / name
    for above in reversed(path.relative_to(repo.root).parents):
        if (repo.root / above).is_file():
            (repo.root / above).unlink()
            last_writer.pop(str(above), None)
    if path.is_dir():
        for inner in [known for known in last_writer if known.startswith(f"{name}/")]:
            del last_writer[inner]
        shutil.rmtree(path)
    if text is None:
        path.unlink(missing_ok=True)
        last_writer.pop(name, None)
    elif not path.is_file() or path.read_bytes() != text.encode():
        repo.write(name, text)
        last_writer[name] = who


async def _undo_keeps_the_persons_files(repo: Repository, changes: SessionChanges, last_writer: dict[str, str]) -> None:
    mine = {
        name: (repo.root / name).read_bytes()
        for name, who in last_writer.items()
        if who == "person" and (repo.root / name).is_file()
    }
    session = await changes.session()
    touched = {path for change in session for path in change.paths}
    await changes.undo(session)
    for name, content in mine.items():
        if name not in touched:
            assert (repo.root / name).read_bytes() == content
