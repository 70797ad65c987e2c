"""Sessions with a git work tree of their own, on a running host: made, shown, merged back, removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.changes.feature import MESSAGE_KEY, Changesets
from ahpkit.host.agent import Turn
from ahpkit.host.resources.feature import Resources
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.repository import Repository
from support.waiting import until

Work = Callable[[Repository], None]


class Desk:
    """A host in a repository, and a session in a work tree of its own."""

    def __init__(self, bench: Bench, repo: Repository, ours: Path) -> None:
        self.bench = bench
        self.repo = repo
        self._ours = ours

    async def start(self) -> None:
        self.bench.features = [Resources(), Changesets(self._ours, default_directory=self.repo.root)]
        await self.bench.start()

    async def restart(self) -> None:
        await self.bench.stop()
        await self.start()
        self.client = await self.bench.client()

    async def session(self, **params: Any) -> Path:
        self.client = await self.bench.client()
        given = {"config": {"isolation": "worktree"}, "workingDirectory": self.repo.root.as_uri(), **params}
        self.uri, self.chat = await self.bench.session(self.client, **given)
        return Path((await self.state())["_meta"]["ahpkit/worktree"]["path"])

    async def state(self) -> Json:
        return await self.bench.state(self.client, self.uri)

    async def turn(self, name: str, text: str, turn_id: str = "t1") -> Json:
        """A turn in which the agent writes a file; how it ended."""

        async def script(turn: Turn) -> None:
            (turn.chat.working_directory / name).write_text(text)

        self.bench.agent.script = script
        await self.client.accepted(self.chat, say("write it", turn_id))
        ends = ("chat/turnComplete", "chat/error")
        ended = await self.client.action(lambda e: e["action"]["type"] in ends and e["action"]["turnId"] == turn_id)
        return ended["action"]

    async def view(self, kind: str = "session") -> str:
        """A changeset, computed."""
        entry = next(one for one in (await self.state())["changesets"] if one["changeKind"] == kind)
        uri: str = entry["uriTemplate"]
        shown = (await self.client.ask("subscribe", uri))["snapshot"]["state"]
        if shown["status"] != "ready":
            await self.client.action(lambda e: e["channel"] == uri and e["action"].get("status") == "ready")
        return uri

    async def operations(self, uri: str) -> dict[str, Json]:
        return {one["id"]: one for one in (await self.bench.state(self.client, uri))["operations"]}


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="one\n")
    desk = Desk(Bench(repo.root), repo, tmp_path / "ours")
    await desk.start()
    try:
        yield desk
    finally:
        await desk.bench.stop()


async def settings(client: RawClient, directory: Path) -> Json:
    found = await client.ask("resolveSessionConfig", workingDirectory=directory.as_uri(), config={})
    return found["schema"]["properties"]


@requirement("changesets:worktree:offered")
async def test_sessions_in_a_repository_can_be_isolated_and_others_cannot(desk: Desk, tmp_path: Path) -> None:
    client = await desk.bench.client()
    assert (await settings(client, desk.repo.root))["isolation"]["enum"] == ["folder", "worktree"]
    empty = tmp_path / "no-repository"
    empty.mkdir()
    assert "isolation" not in await settings(client, empty)
    desk.repo.git("init", "-q", str(empty))
    assert "isolation" not in await settings(client, empty), "a repository without a commit has no branch to start from"


@requirement("changesets:worktree:made")
async def test_a_session_works_on_a_branch_of_its_own_and_the_users_files_stay_as_they_are(desk: Desk) -> None:
    place = await desk.session()
    state = await desk.state()
    assert state["summary"]["workingDirectory"] == place.as_uri()
    assert state["summary"]["project"]["uri"] == desk.repo.root.as_uri()
    assert place.is_relative_to(desk.repo.root)
    told = state["_meta"]["ahpkit/worktree"]
    assert (told["base"], state["_meta"]["git"]["branchName"]) == ("main", told["branch"])
    await desk.turn("a.txt", "two\n")
    assert (place / "a.txt").read_text() == "two\n"
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert desk.repo.status() == set()
    uri = await desk.view()
    assert {"merge", "remove"} <= (await desk.operations(uri)).keys()
    assert "confirmation" in (await desk.operations(uri))["remove"]


@requirement("changesets:worktree:merged-back")
async def test_merging_back_commits_and_brings_everything_to_where_it_came_from(desk: Desk) -> None:
    await desk.session()
    await desk.turn("new.txt", "new\n")
    uri = await desk.view("uncommitted")
    answer = await desk.client.ask(
        "invokeChangesetOperation", uri, operationId="merge", _meta={MESSAGE_KEY: "From the session"}
    )
    assert "Merged ahpkit/" in answer["message"]
    assert (desk.repo.root / "new.txt").read_text() == "new\n"
    assert desk.repo.git("log", "-1", "--format=%s").strip() == "From the session"
    again = await desk.client.ask("invokeChangesetOperation", uri, operationId="merge")
    assert "nothing" in again["message"]


@requirement("changesets:worktree:merged-back")
async def test_merging_back_leaves_out_what_git_ignores_only_later(desk: Desk) -> None:
    await desk.session()
    await desk.turn("x.log", "log\n")
    await desk.turn(".gitignore", "*.log\n", "t2")
    await desk.client.ask("invokeChangesetOperation", await desk.view("uncommitted"), operationId="merge")
    assert set(desk.repo.git("ls-files").split()) == {"a.txt", ".gitignore"}


@requirement("changesets:worktree:conflict")
async def test_a_merge_with_a_conflict_is_refused_and_changes_nothing(desk: Desk) -> None:
    await desk.session()
    await desk.turn("a.txt", "theirs\n")
    desk.repo.commit(a_txt="mine\n")
    uri = await desk.view()
    refused = await desk.client.refused("invokeChangesetOperation", uri, operationId="merge")
    assert "cannot be merged: both sides changed a.txt; to do it by hand: git merge ahpkit/" in refused["message"]
    assert (desk.repo.root / "a.txt").read_text() == "mine\n"
    assert desk.repo.status() == set()
    assert (await desk.operations(uri))["merge"]["status"] == "error"


@requirement("changesets:worktree:removed")
async def test_a_removed_work_tree_is_gone_with_its_branch_and_the_session_says_so(desk: Desk) -> None:
    place = await desk.session()
    await desk.turn("new.txt", "lost\n")
    uri = await desk.view()
    assert (await desk.operations(uri))["remove"]["confirmation"]
    await desk.client.ask("invokeChangesetOperation", uri, operationId="remove")
    assert not place.exists()
    assert "ahpkit/" not in desk.repo.git("branch", "--list")
    state = await desk.state()
    assert state["_meta"]["ahpkit/worktree"]["removed"] is True
    assert "changesets" not in state
    assert (await desk.client.refused("subscribe", uri))["code"] == -32008
    ended = await desk.turn("new.txt", "more\n", "t2")
    assert "was removed" in ended["error"]["message"]


@requirement("changesets:worktree:disposed")
async def test_disposing_keeps_a_work_tree_that_holds_work_and_removes_one_that_does_not(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    clean = await desk.session()
    await desk.client.ask("disposeSession", desk.uri)
    await until(lambda: not clean.exists())
    dirty = await desk.session()
    await desk.turn("new.txt", "work\n")
    await desk.client.ask("disposeSession", desk.uri)
    await until(lambda: f"{dirty} on" in caplog.text)
    assert (dirty / "new.txt").exists()


def ignored_file(tree: Repository) -> None:
    tree.write(".gitignore", ".env\n")
    tree.commit()
    tree.git("push", "-q", ".", "HEAD:refs/heads/elsewhere")
    tree.write(".env", "SECRET=1\n")


def unwatched_file(tree: Repository) -> None:
    tree.git("update-index", "--assume-unchanged", "a.txt")
    tree.write("a.txt", "mine\n")


def commit_on_no_branch(tree: Repository) -> None:
    tree.git("checkout", "-q", "--detach")
    tree.commit(new_txt="work\n")


def rebase(tree: Repository) -> None:
    tree.commit(a_txt="work\n")
    tree.git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD~1")


def commit_on_its_branch(tree: Repository) -> None:
    tree.commit(new_txt="work\n")


HIDDEN_WORK: dict[Work, str] = {
    ignored_file: ".env there is in no commit",
    unwatched_file: "a.txt there is in no commit",
    commit_on_no_branch: "commits there are on no other branch",
    rebase: "git is in the middle of a rebase there",
}
"""Work that no changeset shows, or not as what it is."""


def name(work: Any) -> str:
    return work.__name__


def at_work(place: Path) -> Repository:
    """The work tree of a session, for an agent that runs git there."""
    tree = object.__new__(Repository)
    tree.root = place
    return tree


@requirement("changesets:worktree:disposed")
@pytest.mark.parametrize("work", [*HIDDEN_WORK, commit_on_its_branch], ids=name)
async def test_disposing_keeps_work_that_is_nowhere_else(
    desk: Desk, caplog: pytest.LogCaptureFixture, work: Work
) -> None:
    place = await desk.session()
    work(at_work(place))
    before = {path.name: path.read_text() for path in place.iterdir() if path.is_file()}
    await desk.client.ask("disposeSession", desk.uri)
    why = HIDDEN_WORK.get(work, "commits there are on no other branch")
    await until(lambda: f"{place} is kept, because {why}" in caplog.text)
    assert {path.name: path.read_text() for path in place.iterdir() if path.is_file()} == before
    assert "ahpkit/" in desk.repo.git("branch", "--list")


@requirement("changesets:worktree:removed")
@pytest.mark.parametrize("work", HIDDEN_WORK, ids=name)
async def test_removing_keeps_work_that_no_changeset_shows(desk: Desk, work: Work) -> None:
    place = await desk.session()
    work(at_work(place))
    refused = await desk.client.refused("invokeChangesetOperation", await desk.view(), operationId="remove")
    assert f"{place} is kept, because {HIDDEN_WORK[work]}" in refused["message"]
    assert f"worktree remove --force {place}" in refused["message"]
    assert place.exists()
    assert "ahpkit/" in desk.repo.git("branch", "--list")


@requirement("changesets:worktree:removed")
async def test_a_work_tree_stays_while_a_turn_works_in_it(desk: Desk) -> None:
    place = await desk.session()
    go_on = asyncio.Event()

    async def script(turn: Turn) -> None:
        await go_on.wait()
        (turn.chat.working_directory / "new.txt").write_text("work\n")

    desk.bench.agent.script = script
    await desk.client.accepted(desk.chat, say("write it"))
    await until(lambda: bool(desk.bench.agent.turns))
    refused = await desk.client.refused("invokeChangesetOperation", await desk.view(), operationId="remove")
    assert "a turn works in" in refused["message"]
    go_on.set()
    await desk.client.action("chat/turnComplete")
    assert (place / "new.txt").read_text() == "work\n"


@requirement("changesets:worktree:removed")
async def test_what_another_branch_holds_does_not_keep_a_work_tree(desk: Desk) -> None:
    place = await desk.session()
    tree = at_work(place)
    tree.git("switch", "-q", "-c", "feature")
    tree.commit(new_txt="work\n")
    await desk.client.ask("disposeSession", desk.uri)
    await until(lambda: not place.exists())
    await until(lambda: "ahpkit/" not in desk.repo.git("branch", "--list"))
    assert desk.repo.git("show", "feature:new.txt") == "work\n"


@requirement("changesets:worktree:merged-back")
async def test_work_on_another_branch_is_not_called_merged(desk: Desk) -> None:
    place = await desk.session()
    at_work(place).git("switch", "-q", "-c", "feature")
    await desk.turn("new.txt", "work\n")
    refused = await desk.client.refused("invokeChangesetOperation", await desk.view(), operationId="merge")
    assert f"{place} has feature checked out, not ahpkit/" in refused["message"]
    assert desk.repo.git("log", "--format=%s", "feature").split("\n")[0] == "a commit"


@requirement("changesets:worktree:removed")
async def test_a_folder_that_is_no_work_tree_any_more_is_left_alone(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    place = await desk.session()
    (place / ".git").unlink()
    await desk.restart()  # A host that runs remembers where git's files are.
    await desk.client.ask("disposeSession", desk.uri)
    await until(lambda: f"{place} is no longer a work tree" in caplog.text)
    assert (place / "a.txt").exists()
    assert (desk.repo.root / "a.txt").exists()


@requirement("changesets:worktree:made")
async def test_a_fork_gets_a_work_tree_beside_that_of_its_source(desk: Desk) -> None:
    first = await desk.session()
    await desk.turn("new.txt", "x\n")
    await desk.client.ask("createSession", "ahp-session:/fork", fork={"session": desk.uri, "turnId": "t1"})
    desk.uri = "ahp-session:/fork"
    state = (await desk.client.ask("subscribe", desk.uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await desk.client.action(lambda e: e["channel"] == desk.uri and e["action"]["type"] == "session/ready")
    second = Path((await desk.state())["_meta"]["ahpkit/worktree"]["path"])
    assert (second.parent, second != first) == (first.parent, True)
    assert desk.repo.git("worktree", "list").count("[ahpkit/") == 2


@requirement("changesets:worktree:made")
async def test_a_session_of_a_subfolder_works_in_that_subfolder_of_its_tree(desk: Desk) -> None:
    desk.repo.write("sub/b.txt", "b\n")
    desk.repo.commit()
    place = await desk.session(workingDirectory=(desk.repo.root / "sub").as_uri())
    assert (await desk.state())["summary"]["workingDirectory"] == (place / "sub").as_uri()
    assert (place / "sub" / "b.txt").exists()
