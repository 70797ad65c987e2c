"""Sessions with a git work tree of their own, on a running host: made, shown, merged back, removed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
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


class Desk:
    """A host in a repository, and a session in a work tree of its own."""

    def __init__(self, bench: Bench, repo: Repository) -> None:
        self.bench = bench
        self.repo = repo

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
    bench = Bench(repo.root)
    bench.features = [Resources(), Changesets(tmp_path / "ours", default_directory=repo.root)]
    await bench.start()
    try:
        yield Desk(bench, repo)
    finally:
        await bench.stop()


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
