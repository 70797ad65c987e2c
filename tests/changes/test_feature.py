"""Changesets of a running host, over the wire: offered, live, reviewed, undone, committed, gone with their session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from ahpkit.changes.feature import MESSAGE_KEY, Changesets
from ahpkit.host.agent import Turn
from ahpkit.host.resources import Resources
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.repository import Repository


class Desk:
    """A host in a repository, one client, one session."""

    def __init__(self, bench: Bench, repo: Repository, place: Path) -> None:
        self.bench = bench
        self.repo = repo
        self._place = place
        self.turns = 0

    def renew(self) -> None:
        changesets = Changesets(
            self._place, default_directory=self.repo.root, shows=lambda path: not path.name.startswith(".secret")
        )
        self.bench.features = [Resources(), changesets]

    async def session(self, **params: Any) -> None:
        self.client = await self.bench.client()
        self.uri, self.chat = await self.bench.session(self.client, **params)
        await self.has_catalogue(self.client)

    async def has_catalogue(self, client: RawClient) -> None:
        if "changesets" not in await self.bench.state(client, self.uri):
            await client.action("session/changesetsChanged")

    async def turn(self, work: Callable[[Path], Any]) -> str:
        """A turn in which the agent changes files."""

        async def script(turn: Turn) -> None:
            work(self.repo.root)
            turn.text("Done.")

        self.bench.agent.script = script
        self.turns += 1
        turn_id = f"turn-{self.turns}"
        await self.client.accepted(self.chat, say("go", turn_id))
        await self.client.action(
            lambda envelope: envelope["action"].get("turnId") == turn_id and "Complete" in envelope["action"]["type"]
        )
        return turn_id

    async def entry(self, kind: str) -> Json:
        entries = (await self.bench.state(self.client, self.uri))["changesets"]
        return next(entry for entry in entries if entry["changeKind"] == kind)

    async def look(self, kind: str, turn_id: str = "") -> tuple[str, Json]:
        """Subscribe to a changeset and wait until it is computed: its URI and state."""
        uri = (await self.entry(kind))["uriTemplate"].replace("{turnId}", turn_id)
        state = (await self.client.ask("subscribe", uri))["snapshot"]["state"]
        if state["status"] != "ready":
            await self.client.action(
                lambda envelope: envelope["channel"] == uri and envelope["action"].get("status") == "ready"
            )
        return uri, (await self.client.ask("subscribe", uri))["snapshot"]["state"]

    async def until(self, uri: str, found: Callable[[Json], bool]) -> Json:
        """Wait until the changeset is as wanted, reading it anew with each of its actions."""
        seen = 0
        while True:
            state = (await self.client.ask("subscribe", uri))["snapshot"]["state"]
            if state["status"] == "ready" and found(state):
                return state
            count = len(self.client.actions(uri))
            if count == seen:
                await self.client.wait(lambda _, count=count: len(self.client.actions(uri)) > count)
            seen = count

    async def read(self, side: Json) -> str:
        return (await self.client.ask("resourceRead", uri=side["content"]["uri"], encoding="utf-8"))["data"]


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    repo = Repository(tmp_path / "repo")
    repo.commit(a_txt="one\n", b_txt="b\n")
    bench = Bench(repo.root)
    desk = Desk(bench, repo, tmp_path / "ours")
    desk.renew()
    await bench.start()
    await desk.session()
    try:
        yield desk
    finally:
        await bench.stop()


def names(state: Json) -> set[str]:
    return {entry["id"].rpartition("/")[2] for entry in state["files"]}


@requirement("changesets:catalogue:announced")
@requirement("changesets:catalogue:required-fields")
@requirement("session:state:changesets-catalogue")
@requirement("session:action:changesets-changed-when")
async def test_a_session_in_a_repository_offers_its_views(desk: Desk) -> None:
    entries = (await desk.bench.state(desk.client, desk.uri))["changesets"]
    assert [entry["changeKind"] for entry in entries] == ["uncommitted", "session", "turn", "compare-turns"]
    assert all(entry["label"] and entry["uriTemplate"].startswith("ahp-changeset:/") for entry in entries)


@requirement("changesets:state:initial")
@requirement("changesets:state:shape")
@requirement("changesets:status:ready")
@requirement("changesets:file:edit-forms")
@requirement("changesets:file:both-sides-readable")
async def test_what_a_turn_changed_is_shown_with_both_contents(desk: Desk) -> None:
    def work(root: Path) -> None:
        (root / "a.txt").write_text("one\ntwo\n")
        (root / "new.txt").write_text("new\n")
        (root / "b.txt").unlink()

    turn_id = await desk.turn(work)
    _, state = await desk.look("turn", turn_id)
    files = {entry["id"].rpartition("/")[2]: entry["edit"] for entry in state["files"]}
    assert set(files) == {"a.txt", "new.txt", "b.txt"}
    assert files["a.txt"]["diff"] == {"added": 1, "removed": 0}
    assert "before" not in files["new.txt"]
    assert "after" not in files["b.txt"]
    assert await desk.read(files["a.txt"]["before"]) == "one\n"
    assert await desk.read(files["a.txt"]["after"]) == "one\ntwo\n"
    assert await desk.read(files["b.txt"]["before"]) == "b\n"


async def test_the_session_shows_its_own_work_and_uncommitted_everything(desk: Desk) -> None:
    desk.repo.write("mine.txt", "a person's")
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    _, session = await desk.look("session")
    _, uncommitted = await desk.look("uncommitted")
    assert names(session) == {"a.txt"}
    assert names(uncommitted) == {"a.txt", "mine.txt"}


@requirement("changesets:status:recomputing-keeps-files")
@requirement("changesets:file:order-equivalence")
async def test_a_view_that_is_open_follows_the_turns(desk: Desk) -> None:
    uri, before = await desk.look("session")
    assert before["files"] == []
    await desk.turn(lambda root: (root / "a.txt").write_text("1\n"))
    await desk.until(uri, lambda state: names(state) == {"a.txt"})
    await desk.turn(lambda root: (root / "a.txt").write_text("one\n"))
    await desk.until(uri, lambda state: names(state) == set())


@requirement("changesets:operation:effects-by-actions")
@requirement("changesets:operation:running-visible")
async def test_undo_puts_the_files_back_and_says_what_it_left(desk: Desk) -> None:
    await desk.turn(lambda root: [(root / name).write_text("agent\n") for name in ("a.txt", "b.txt", "c.txt")])
    uri, _ = await desk.look("session")
    desk.repo.write("b.txt", "a person's\n")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "b.txt: it was changed after the session wrote it" in result["message"]
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert (desk.repo.root / "b.txt").read_text() == "a person's\n"
    assert not (desk.repo.root / "c.txt").exists()
    statuses = [envelope["action"].get("status") for envelope in desk.client.actions(uri)]
    assert "running" in statuses


async def test_one_file_is_kept_and_another_undone(desk: Desk) -> None:
    await desk.turn(lambda root: [(root / name).write_text("agent\n") for name in ("a.txt", "b.txt")])
    uri, state = await desk.look("session")
    kept, undone = sorted(entry["id"] for entry in state["files"])
    target = {"kind": "resource", "resource": kept}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="keep", target=target)
    await desk.client.ask(
        "invokeChangesetOperation", uri, operationId="undo", target={"kind": "resource", "resource": undone}
    )
    await desk.until(uri, lambda state: state["files"] == [])
    assert desk.repo.status() == {"a.txt"}


async def test_commit_takes_the_message_of_whoever_asks(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    meta = {MESSAGE_KEY: "What the agent did"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="commit", _meta=meta)
    assert desk.repo.git("log", "-1", "--format=%s").strip() == "What the agent did"
    assert desk.repo.status() == set()


@requirement("changesets:operation:invoke-validated")
@requirement("changesets:operation:target-scope")
@requirement("changesets:operation:target-known")
@requirement("changesets:operation:write-gate")
@requirement("changesets:state:unknown-uri")
async def test_wrong_operations_and_targets_are_refused(desk: Desk, tmp_path: Path) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, state = await desk.look("session")
    client = desk.client
    known = {"kind": "resource", "resource": state["files"][0]["id"]}
    outside = {"kind": "resource", "resource": (tmp_path / "x").as_uri()}
    assert (await client.refused("invokeChangesetOperation", uri, operationId="nope"))["code"] == -32602
    assert (await client.refused("invokeChangesetOperation", uri, operationId="commit", target=known))["code"] == -32602
    assert (await client.refused("invokeChangesetOperation", uri, operationId="undo", target=outside))["code"] == -32008
    assert (await client.refused("invokeChangesetOperation", f"{uri}x", operationId="undo"))["code"] == -32008
    assert (await client.refused("subscribe", f"{uri}x"))["code"] == -32008
    assert (desk.repo.root / "a.txt").read_text() == "agent\n"


@requirement("changesets:operation:failure")
async def test_an_operation_that_fails_is_an_error_and_is_shown(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    (desk.repo.root / ".git/MERGE_HEAD").write_text(desk.repo.git("rev-parse", "HEAD"))
    error = await desk.client.refused("invokeChangesetOperation", uri, operationId="commit")
    assert "in the middle of a merge" in error["message"]
    state = await desk.bench.state(desk.client, uri)
    failed = next(entry for entry in state["operations"] if entry["id"] == "commit")
    assert (failed["status"], "merge" in failed["error"]["message"]) == ("error", True)


@requirement("changesets:catalogue:totals")
async def test_the_session_counts_its_changes_without_anyone_looking(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\n"))
    await desk.client.action("session/metaChanged")
    state = await desk.bench.state(desk.client, desk.uri)
    assert state["_meta"]["ahpkit/changes"] == {"additions": 1, "deletions": 0, "files": 1}
    [listed] = (await desk.client.ask("listSessions"))["items"]
    assert listed["changes"] == {"additions": 1, "deletions": 0, "files": 1}


@requirement("changesets:end:session-disposed")
async def test_the_views_end_with_their_session(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    await desk.client.ask("disposeSession", desk.uri)
    await desk.client.action("changeset/cleared")
    assert (await desk.client.refused("subscribe", uri))["code"] == -32008


async def test_what_a_session_changed_is_known_after_a_restart(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    await desk.client.action("session/metaChanged")
    await desk.bench.stop()
    desk.renew()
    await desk.bench.start()
    desk.client = await desk.bench.client(desk.uri)
    uri, state = await desk.look("session")
    assert names(state) == {"a.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert desk.repo.status() == set()


async def test_only_changes_below_the_sessions_directory_are_shown(desk: Desk) -> None:
    (desk.repo.root / "sub").mkdir()
    await desk.session(workingDirectory=(desk.repo.root / "sub").as_uri())

    def work(root: Path) -> None:
        (root / "a.txt").write_text("outside\n")
        (root / "sub" / "in.txt").write_text("inside\n")

    await desk.turn(work)
    _, state = await desk.look("session")
    assert names(state) == {"in.txt"}


async def test_files_that_clients_may_not_see_are_in_no_changeset(desk: Desk) -> None:
    def work(root: Path) -> None:
        (root / ".secret").write_text("s3cret")
        (root / "shown.txt").write_text("shown")

    turn_id = await desk.turn(work)
    for kind in ("session", "turn"):
        _, state = await desk.look(kind, turn_id)
        assert "shown.txt" in names(state)
        assert ".secret" not in str(state)
