import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ahpkit.customizations.watch import Watched, Watcher, touches
from customizations.builders import write
from support import requirement
from support.growth import Lines
from support.waiting import BOUND


class Changes:
    """A watcher of some places of `root`, asked one step at a time."""

    def __init__(self, watcher: Watcher) -> None:
        self._iterator: AsyncIterator[frozenset[str]] = aiter(watcher)

    async def next(self) -> frozenset[str]:
        async with asyncio.timeout(BOUND):
            return await anext(self._iterator)

    async def until(self, key: str) -> set[str]:
        """All places that were said up to this one. One write may be said more than once: its parts can come apart."""
        said: set[str] = set()
        while key not in said:
            said |= await self.next()
        return said


@pytest.fixture
async def watcher() -> AsyncIterator[Watcher]:
    async with Watcher() as watcher:
        yield watcher


async def watch(watcher: Watcher, root: Path) -> Changes:
    await watcher.watch(
        [
            Watched("skills", root / ".github/skills"),
            Watched("prompts", root / ".github/prompts"),
            Watched("files", root, ("AGENTS.md", ".claude/CLAUDE.md")),
        ]
    )
    return Changes(watcher)


@requirement("customizations:save:host-watches-directory")
async def test_a_change_is_said_for_the_place_it_is_in(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x", ".github/prompts/b.prompt.md": "x"})
    changes = await watch(watcher, tmp_path)
    write(tmp_path, {".github/skills/a/SKILL.md": "y"})
    assert await changes.until("skills") == {"skills"}
    write(tmp_path, {".github/prompts/b.prompt.md": "y"})
    assert await changes.until("prompts") <= {"skills", "prompts"}


async def test_a_place_that_does_not_exist_yet_is_noticed_when_it_appears(tmp_path: Path, watcher: Watcher) -> None:
    changes = await watch(watcher, tmp_path)
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    await changes.until("skills")
    write(tmp_path, {".github/skills/a/SKILL.md": "y"})
    await changes.until("skills")


async def test_folders_that_appear_later_are_watched_too(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    changes = await watch(watcher, tmp_path)
    (tmp_path / ".github/skills/b").mkdir()
    assert await changes.next() == {"skills"}
    write(tmp_path, {".github/skills/b/SKILL.md": "x"})
    assert await changes.next() == {"skills"}


async def test_a_place_that_goes_and_comes_back_is_noticed_both_times(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    changes = await watch(watcher, tmp_path)
    shutil.rmtree(tmp_path / ".github")
    await changes.until("skills")
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    await changes.until("skills")


async def test_single_files_are_noticed_wherever_they_are(tmp_path: Path, watcher: Watcher) -> None:
    changes = await watch(watcher, tmp_path)
    write(tmp_path, {"AGENTS.md": "x"})
    assert await changes.next() == {"files"}
    write(tmp_path, {".claude/CLAUDE.md": "x"})
    assert await changes.next() == {"files"}


async def test_other_files_and_editors_leavings_are_not_changes(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    changes = await watch(watcher, tmp_path)
    for name in (".SKILL.md.swp", "SKILL.md~", "4913", ".#SKILL.md", "x.tmp"):
        write(tmp_path, {f".github/skills/a/{name}": "x"})
    write(tmp_path, {"README.md": "x", ".github/workflow.yml": "x"})
    write(tmp_path, {"AGENTS.md": "the first change that counts"})
    assert await changes.next() == {"files"}


async def test_an_atomic_save_is_one_change(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    changes = await watch(watcher, tmp_path)
    write(tmp_path, {".github/skills/a/SKILL.md.tmp": "y"})
    (tmp_path / ".github/skills/a/SKILL.md.tmp").replace(tmp_path / ".github/skills/a/SKILL.md")
    write(tmp_path, {"AGENTS.md": "x"})
    assert await changes.until("files") == {"skills", "files"}


async def test_places_can_be_changed_while_watching(tmp_path: Path, watcher: Watcher) -> None:
    changes = await watch(watcher, tmp_path)
    await watcher.watch([Watched("other", tmp_path / "other")])
    write(tmp_path, {"AGENTS.md": "x", "other/x": "x"})
    assert await changes.next() == {"other"}


async def test_a_change_just_before_the_places_change_is_not_lost(tmp_path: Path, watcher: Watcher) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": "x"})
    changes = await watch(watcher, tmp_path)
    write(tmp_path, {".github/skills/a/SKILL.md": "y"})
    await watcher.watch([Watched("skills", tmp_path / ".github/skills"), Watched("more", tmp_path / "more")])
    assert await changes.until("skills") == {"skills"}


async def test_a_change_concerns_as_many_places_as_it_is_near_to(tmp_path: Path, watcher: Watcher) -> None:
    """However many places there are, a change is compared with few."""
    write(tmp_path, {f"{number}/.github/skills/a/SKILL.md": "x" for number in range(100)})
    await watcher.watch(Watched(str(number), tmp_path / f"{number}/.github/skills") for number in range(100))
    changes = Changes(watcher)
    with Lines() as lines:
        write(tmp_path, {"7/.github/skills/a/SKILL.md": "y"})
        assert await changes.next() == {"7"}
    assert lines.count < 1000


async def test_a_plugin_below_node_modules_is_watched_but_not_its_own_modules(tmp_path: Path, watcher: Watcher) -> None:
    root = write(tmp_path / "node_modules/p", {"agents/a.md": "x", "node_modules/q/x.md": "x"})
    await watcher.watch([Watched("p", root)])
    changes = Changes(watcher)
    write(root, {"agents/a.md": "y"})
    assert await changes.next() == {"p"}


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("/w/.github/skills/a/SKILL.md", True),
        ("/w/.github/skills", True),
        ("/w/.github", True),
        ("/w/.github/skillset", False),
        ("/w/.github/prompts", False),
        ("/w/.github/skills/node_modules/x", False),
    ],
)
def test_a_folder_is_touched_by_what_is_in_it_or_on_the_way_to_it(path: str, concerned: bool) -> None:
    assert touches("/w/.github/skills", (), path) is concerned


async def test_leaving_ends_the_watch_and_its_thread(tmp_path: Path) -> None:
    async with Watcher() as watcher:
        await watcher.watch([Watched("x", tmp_path)])
    assert "customization-watcher" not in [thread.name for thread in threading.enumerate()]
