"""What a person writes while a turn runs stays theirs: it is not shown as the turn's, and no undo takes it away."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from ahpkit.changes.attribution import COARSE, Activity, Observation, named_files
from ahpkit.host.agent import Turn
from changes.test_feature import Desk, names
from support import requirement
from support.bench import Bench
from support.raw_client import Json
from support.repository import Repository
from support.waiting import a_moment

NONE = {"files": 0}
LINES = [f"{number}\n" for number in range(20)]


def text(**other: str) -> str:
    """Twenty lines, some of them others: `_3="mine"`."""
    return "".join(f"{other[f'_{number}']}\n" if f"_{number}" in other else line for number, line in enumerate(LINES))


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    """A session whose agent writes files only in its tool calls."""
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt=text(), b_txt="b\n", c_txt="c\n")
    bench = Bench(repo.root)
    bench.agent.writes_outside_calls = False
    desk = Desk(bench, repo, tmp_path / "ours")
    desk.renew()
    await bench.start()
    await desk.session()
    try:
        yield desk
    finally:
        await bench.stop()


async def in_a_call(
    desk: Desk, turn: Turn, write: Callable[[], object], *, told: Path | None = None, then: int = 0
) -> None:
    """A tool call that takes a moment and writes a file. Afterwards the host sees so many changed files."""
    call = turn.tool_call("shell")
    call.running(tool_input="{}")
    write()
    await a_moment()
    uri = "" if told is None else told.as_uri()
    call.complete(content=[{"type": "fileEdit", "after": {"uri": uri, "content": {"uri": uri}}}] if told else [])
    await has_seen(desk, then)
    await a_moment()


async def whole_turn(desk: Desk, work: Callable[[Turn], object]) -> str:
    """A turn up to its end; its id."""
    turn_id = await desk.turn(work)
    await desk.client.action(
        lambda envelope: (
            envelope["action"].get("turnId") == turn_id and envelope["action"]["type"] == "chat/turnComplete"
        )
    )
    return turn_id


async def has_seen(desk: Desk, files: int) -> None:
    """Wait until the host has looked at the files, and found so many to be the session's."""
    client = await desk.bench.client(desk.uri)
    while True:
        seen = len(client.received)
        state = await desk.bench.state(client, desk.uri)
        if state.get("_meta", {}).get("ahpkit/changes", NONE)["files"] == files:
            return
        await client.action("session/metaChanged", since=seen)


async def undo(desk: Desk, kind: str, turn_id: str = "") -> str:
    uri, _ = await desk.look(kind, turn_id)
    await desk.until(uri, lambda state: "undo" in operations(state))
    return (await desk.client.ask("invokeChangesetOperation", uri, operationId="undo"))["message"]


def operations(state: Json) -> list[str]:
    return [one["id"] for one in state.get("operations", ()) if one["status"] == "idle"]


@requirement("changesets:undo:while-a-turn-runs")
@pytest.mark.parametrize("kind", ["turn", "session"])
async def test_what_a_person_writes_while_no_call_runs_is_theirs(desk: Desk, kind: str) -> None:
    root = desk.repo.root

    async def work(turn: Turn) -> None:
        turn.text("Thinking.")
        (root / "mine.txt").write_text("mine\n")
        (root / "b.txt").write_text("mine\n")
        (root / "c.txt").unlink()
        await a_moment()
        await in_a_call(desk, turn, lambda: (root / "shell.txt").write_text("agent\n"), then=2)
        await in_a_call(desk, turn, lambda: (root / "told.txt").write_text("agent\n"), told=root / "told.txt", then=3)
        (root / "later.txt").write_text("mine\n")

    turn_id = await whole_turn(desk, work)
    uri, _ = await desk.look(kind, turn_id)
    state = await desk.until(uri, lambda state: {"shell.txt", "told.txt"} <= names(state))
    assert names(state) == {"shell.txt", "told.txt", "c.txt"}, "a removal has no time: a call ran, so it may be its"
    message = await undo(desk, kind, turn_id)
    assert desk.repo.status() == {"mine.txt", "b.txt", "later.txt"}
    assert (root / "b.txt").read_text() == "mine\n"
    assert "It is not known who wrote c.txt, shell.txt; redo brings the content back." in message
    assert {f"{name}: somebody else wrote it while the turn ran" in message for name in ("mine.txt", "b.txt")} == {True}


@requirement("changesets:undo:while-a-turn-runs")
@pytest.mark.parametrize("kind", ["turn", "session"])
@pytest.mark.parametrize("told", [True, False])
async def test_in_a_file_that_both_wrote_only_the_agents_lines_are_taken_back(
    desk: Desk, kind: str, told: bool
) -> None:
    file = desk.repo.root / "a.txt"

    async def work(turn: Turn) -> None:
        await in_a_call(desk, turn, lambda: file.write_text(text(_1="agent")), told=file if told else None, then=1)
        file.write_text(text(_1="agent", _9="me"))
        await a_moment()
        await in_a_call(desk, turn, lambda: None, then=1)
        (desk.repo.root / "new.txt").write_text("mine\n")
        turn.text("Done.")

    turn_id = await whole_turn(desk, work)
    await undo(desk, kind, turn_id)
    assert file.read_text() == text(_9="me")
    uri, state = await desk.look("session")
    assert names(state) == set()
    await desk.client.ask("invokeChangesetOperation", uri, operationId="redo")
    assert file.read_text() == text(_1="agent", _9="me")
    assert names(await desk.until(uri, lambda state: bool(state["files"]))) == {"a.txt"}
    await undo(desk, "session")
    assert file.read_text() == text(_9="me")


@requirement("changesets:undo:while-a-turn-runs")
async def test_a_person_who_writes_first_keeps_their_lines_when_the_call_names_the_file(desk: Desk) -> None:
    """The host looks at the file before it lets the call run: while a person decides, and before a file callback. The
    call names it in its input, or says with it where it works."""
    file, other, third = (desk.repo.root / name for name in ("a.txt", "b.txt", "c.txt"))

    async def work(turn: Turn) -> None:
        file.write_text(text(_9="me"))
        other.write_text("b\n" * 9 + "mine\n")
        third.write_text("c\n" * 9 + "mine\n")
        await a_moment()
        located = turn.tool_call("edit")
        located.meta({"ahpkit/acp": {"locations": [{"path": str(third)}, {"path": "c.txt"}, {"line": 1}, "c.txt"]}})
        assert (await located.confirm(tool_input="{}", setting=True)).approved
        third.write_text("agent\n" + third.read_text())
        located.complete(content=[{"type": "fileEdit", "after": {"uri": third.as_uri(), "content": {"uri": ""}}}])
        call = turn.tool_call("edit")
        answer = await call.confirm(tool_input='{"path": "a.txt"}', setting=True)
        assert answer.approved
        file.write_text(file.read_text().replace("1\n", "agent\n", 1))
        await a_moment()
        call.complete(content=[{"type": "fileEdit", "after": {"uri": file.as_uri(), "content": {"uri": ""}}}])
        await a_moment()
        async with turn.writing(other):
            other.write_text("agent\n" + other.read_text())
        await a_moment()

    turn_id = await whole_turn(desk, work)
    uri, _ = await desk.look("turn", turn_id)
    await desk.until(uri, lambda state: names(state) == {"a.txt", "b.txt", "c.txt"})
    assert await undo(desk, "turn", turn_id) == "Undid 3 files."
    assert file.read_text() == text(_9="me")
    assert other.read_text() == "b\n" * 9 + "mine\n"
    assert third.read_text() == "c\n" * 9 + "mine\n"


@requirement("changesets:undo:brought-back")
async def test_an_undo_is_brought_back_also_after_a_restart_and_spares_what_changed_since(desk: Desk) -> None:
    root = desk.repo.root

    async def work(turn: Turn) -> None:
        def write() -> None:
            for name in ("one.txt", "two.txt", "three.txt"):
                (root / name).write_text("agent\n")
            (root / "b.txt").unlink()

        await in_a_call(desk, turn, write, then=4)

    turn_id = await whole_turn(desk, work)
    await undo(desk, "turn", turn_id)
    assert desk.repo.status() == set()
    (root / "two.txt").write_text("mine\n")
    await desk.bench.stop()
    desk.renew()
    await desk.bench.start()
    desk.client = await desk.bench.client(desk.uri, desk.chat)
    uri, state = await desk.look("session")
    assert operations(state) == ["redo"], "there are no changes, so nothing else can be done"
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId="redo")
    assert answer["message"].startswith("Brought back 3 files. Left alone: two.txt: it was changed")
    assert {name: (root / name).exists() for name in ("one.txt", "three.txt", "b.txt")} == {
        "one.txt": True, "three.txt": True, "b.txt": False,
    }  # fmt: skip
    assert (root / "two.txt").read_text() == "mine\n"
    shown = await desk.until(uri, lambda state: "redo" not in operations(state))
    assert names(shown) == {"one.txt", "three.txt", "b.txt"}


@requirement("changesets:undo:while-a-turn-runs")
async def test_what_a_person_writes_before_a_quick_call_stays_theirs(desk: Desk) -> None:
    async def work(turn: Turn) -> None:
        await in_a_call(desk, turn, lambda: (desk.repo.root / "agent.txt").write_text("agent\n"), then=1)
        (desk.repo.root / "mine.txt").write_text("mine\n")
        await a_moment()
        call = turn.tool_call("read")
        call.running(tool_input="{}")
        call.complete()

    turn_id = await whole_turn(desk, work)
    uri, state = await desk.look("turn", turn_id)
    assert names(state) == {"agent.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert ((desk.repo.root / "agent.txt").exists(), (desk.repo.root / "mine.txt").read_text()) == (False, "mine\n")


async def test_a_call_of_a_sub_agent_is_a_call_of_the_turn(desk: Desk) -> None:
    async def work(turn: Turn) -> None:
        sub = await turn.subchat("Helper", "help")
        async with sub as helper:
            await in_a_call(desk, helper, lambda: (desk.repo.root / "helped.txt").write_text("agent\n"), then=1)
        (desk.repo.root / "mine.txt").write_text("mine\n")

    turn_id = await whole_turn(desk, work)
    _, state = await desk.look("turn", turn_id)
    assert names(state) == {"helped.txt"}


class TestActivity:
    """Who can have written a file that was last written at a time; the unit is a moment that can be told apart."""

    def _activity(self, outside_calls: bool | None = False) -> Activity:
        return Activity(0, "tree", outside_calls=outside_calls, tells_late=outside_calls is None)

    def _others(self, activity: Activity, *moments: int) -> list[bool]:
        return [activity.is_of_others(moment * 3 * COARSE) for moment in moments]

    def _saw(self, activity: Activity, *seen: tuple[str, int]) -> None:
        for status, moment in seen:
            activity.saw_call("call", status, moment * 3 * COARSE)

    def test_only_while_a_call_runs_the_agent_can_write(self) -> None:
        activity = self._activity()
        self._saw(activity, ("streaming", 1), ("running", 3), ("completed", 5))
        assert self._others(activity, 2, 3, 5, 6) == [True, False, False, True]

    def test_while_a_person_decides_nothing_runs(self) -> None:
        activity = self._activity()
        self._saw(activity, ("running", 1), ("pending-confirmation", 3), ("running", 6), ("completed", 8))
        assert self._others(activity, 2, 4, 5, 7, 9) == [False, True, True, False, True]

    def test_a_call_that_was_refused_wrote_nothing(self) -> None:
        activity = self._activity()
        self._saw(activity, ("streaming", 1), ("pending-confirmation", 2), ("cancelled", 5))
        assert self._others(activity, 3, 4) == [True, True]

    def test_a_call_that_is_told_only_when_it_is_over_may_have_run_since_the_one_before(self) -> None:
        activity = self._activity(None)
        self._saw(activity, ("running", 1), ("completed", 3), ("running", 7), ("completed", 7))
        assert self._others(activity, 5, 8) == [False, True]

    def test_the_word_that_a_call_runs_may_come_late_but_not_after_a_person_was_asked(self) -> None:
        activity = self._activity(None)
        self._saw(activity, ("running", 100))
        assert self._others(activity, 50, 90, 101) == [True, False, False]
        self._saw(activity, ("completed", 105))
        assert self._others(activity, 50, 90, 101, 106) == [True, False, False, True]
        self._saw(activity, ("pending-confirmation", 200), ("running", 210), ("completed", 215))
        assert self._others(activity, 205, 211) == [True, False]

    def test_a_quick_call_that_the_host_started_itself_did_not_run_before(self) -> None:
        activity = self._activity()
        self._saw(activity, ("running", 1), ("completed", 3), ("running", 7), ("completed", 7))
        assert self._others(activity, 5, 7, 8) == [True, False, True]

    def test_a_long_call_counts_also_after_a_short_one_that_began_later(self) -> None:
        activity = self._activity()
        for call, status, moment in (
            ("long", "running", 2), ("short", "running", 4), ("short", "completed", 5), ("long", "completed", 8),
            ("open", "running", 12),
        ):  # fmt: skip
            activity.saw_call(call, status, moment * 3 * COARSE)
        assert self._others(activity, 1, 2, 4, 7, 8) == [True, False, False, False, False]
        assert self._others(activity, 9, 11, 12, 20) == [True, True, False, False]

    def test_what_was_seen_stays_as_it_was_while_the_turn_goes_on(self) -> None:
        """It is read in a thread."""
        activity = self._activity()
        activity.times["a"] = 6 * COARSE
        seen = activity.seen()
        self._saw(activity, ("running", 1), ("completed", 3))
        activity.times["b"] = None
        activity.looks[0].theirs.add("b")
        activity.add_look(Observation("later", theirs={"b"}))
        assert seen.doubted(["b", "a"]) == ["a", "b"], "no call had run"
        assert seen.looks == [Observation("tree")]
        assert activity.seen().doubted(["b", "a"]) == ["b"]

    def test_an_agent_that_may_write_at_any_time_or_reports_no_calls_may_have_written_all(self) -> None:
        assert self._others(self._activity(True), 5) == [False]
        learning = self._activity(None)
        assert self._others(learning, 5) == [False]
        self._saw(learning, ("running", 1), ("completed", 2))
        assert self._others(learning, 5) == [True]


def test_a_call_names_the_files_of_its_input_and_of_its_edits_unless_the_input_is_huge() -> None:
    edits = {"items": [{"before": {"uri": "file:///w/old"}, "after": {"uri": "file:///w/new"}}]}
    asked = {"toolInput": '{"path": "a.txt"}', "edits": edits}
    assert named_files(asked, Path("/w")) == ["file:///w/old", "file:///w/new", "file:///w/a.txt"]
    huge = json.dumps({"path": "a.txt", "content": "x" * 300_000})
    assert named_files({"toolInput": huge}, Path("/w")) == []
    assert named_files({"toolInput": {"uri": "ahp-content:/1"}}, Path("/w")) == [], "an input by reference"


async def test_a_folder_that_a_call_moves_is_moved_and_undo_moves_it_back(desk: Desk) -> None:
    """The files in it are as old as before: only the folder has a new time."""
    for name in ("x", "deep/y"):
        desk.repo.write(f"src/{name}.txt", f"{name}\n" * 20)
    desk.repo.commit()
    await a_moment()

    async def work(turn: Turn) -> None:
        await in_a_call(desk, turn, lambda: (desk.repo.root / "src").rename(desk.repo.root / "lib"), then=2)

    turn_id = await whole_turn(desk, work)
    _, state = await desk.look("turn", turn_id)
    moved = [(entry["edit"]["before"]["uri"], entry["edit"]["after"]["uri"]) for entry in state["files"]]
    root = desk.repo.root.as_uri()
    assert moved == [(f"{root}/src/{name}.txt", f"{root}/lib/{name}.txt") for name in ("deep/y", "x")]
    uri, _ = await desk.look("session")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "Left alone" not in str(result["message"])
    assert desk.repo.status() == set()


async def test_an_ignored_folder_that_is_like_a_removed_one_is_not_that_one_moved(desk: Desk) -> None:
    for folder in ("src", "old"):
        desk.repo.write(f"{folder}/x.txt", "x\n" * 20)
    desk.repo.write(".gitignore", "old/\n")
    desk.repo.commit()
    await a_moment()

    def write() -> None:
        (desk.repo.root / ".gitignore").write_text("")
        (desk.repo.root / "src/x.txt").unlink()
        (desk.repo.root / "src").rmdir()

    async def work(turn: Turn) -> None:
        await in_a_call(desk, turn, write, then=3)

    await whole_turn(desk, work)
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (desk.repo.root / "old/x.txt").exists()
    assert desk.repo.status() == set()


@requirement("changesets:odd:submodules")
async def test_a_commit_that_a_call_makes_in_a_submodule_is_the_turns(desk: Desk, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "library")
    inner.commit(x_txt="x\n")
    desk.repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "library")
    desk.repo.commit()
    await a_moment()
    commit = ("-C", "library", "commit", "--quiet", "--allow-empty", "-m", "new")

    async def work(turn: Turn) -> None:
        await in_a_call(desk, turn, lambda: desk.repo.git(*commit), then=1)

    _, state = await desk.look("turn", await whole_turn(desk, work))
    assert names(state) == {"library"}
