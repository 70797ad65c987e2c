"""Changesets of a running host, over the wire: offered, live, reviewed, undone, committed, gone with their session."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from ahpkit.changes.feature import MESSAGE_KEY, Changesets
from ahpkit.client.changesets import expand
from ahpkit.host.agent import AgentError, Turn
from ahpkit.host.resources.feature import Resources
from ahpkit.host.resources.safe_open import SafeOpener, anywhere
from ahpkit.protocol.channels import reduce
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.repository import Repository
from support.waiting import until


class Desk:
    """A host in a repository, one client, one session."""

    def __init__(self, bench: Bench, repo: Repository, place: Path) -> None:
        self.bench = bench
        self.repo = repo
        self._place = place
        self.turns = 0
        self.opener = anywhere()
        """Lets through what operations may write."""
        self.started: Json = {}
        """What `chat/turnStarted` needs beside the message: newer versions want a time."""

    def renew(self) -> None:
        changesets = Changesets(
            self._place,
            default_directory=self.repo.root,
            shows=lambda path: not path.name.startswith(".secret"),
            writing=lambda: self.opener,
        )
        self.bench.features = [Resources(), changesets]

    async def session(self, **params: Any) -> None:
        self.client = await self.bench.client()
        self.uri, self.chat = await self.bench.session(self.client, **params)
        await self.has_catalogue(self.client)

    async def has_catalogue(self, client: RawClient) -> None:
        if "changesets" not in await self.bench.state(client, self.uri):
            await client.action("session/changesetsChanged")

    async def turn(self, work: Callable[[Any], Any], turn_id: str = "") -> str:
        """A turn in which the agent changes files; or, where `work` is a script, does more."""

        async def script(turn: Turn) -> None:
            work(self.repo.root)
            turn.text("Done.")

        self.bench.agent.script = work if inspect.iscoroutinefunction(work) else script
        self.turns += 1
        turn_id = turn_id or f"turn-{self.turns}"
        await self.client.accepted(self.chat, say("go", turn_id, **self.started))
        await self.client.action(
            lambda envelope: envelope["action"].get("turnId") == turn_id and "Complete" in envelope["action"]["type"]
        )
        return turn_id

    async def entry(self, kind: str) -> Json:
        entries = (await self.bench.state(self.client, self.uri))["changesets"]
        return next(entry for entry in entries if entry["changeKind"] == kind)

    async def look(self, kind: str, turn_id: str = "") -> tuple[str, Json]:
        """Subscribe to a changeset and wait until it is computed: its URI and state."""
        uri = expand((await self.entry(kind))["uriTemplate"], turnId=turn_id)
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


@requirement("changesets:catalogue:required-fields")
@requirement("session:state:changesets-catalogue")
async def test_a_session_in_a_repository_offers_its_views(desk: Desk) -> None:
    entries = (await desk.bench.state(desk.client, desk.uri))["changesets"]
    assert [entry["changeKind"] for entry in entries] == ["uncommitted", "session", "turn", "compare-turns"]
    assert all(entry["label"] and entry["uriTemplate"].startswith("ahp-changeset:/") for entry in entries)
    turn = await desk.turn(lambda root: None)
    for entry in entries:
        uri = expand(entry["uriTemplate"], turnId=turn, originalTurnId=turn, modifiedTurnId=turn)
        assert uri is not None
        assert (await desk.client.ask("subscribe", uri))["snapshot"]["resource"] == uri


@requirement("changesets:catalogue:announced")
@requirement("session:action:changesets-changed-when")
async def test_a_directory_that_comes_or_goes_is_told_with_the_whole_catalogue(desk: Desk, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit(o_txt="o\n")
    await desk.bench.stop()
    desk.bench.agent.directories = {}
    desk.renew()
    await desk.bench.start()
    newest = await desk.bench.connect()
    await newest.initialize(protocolVersions=["1.0.0"])
    session, _ = await desk.bench.session(newest, workingDirectories=[desk.repo.root.as_uri()])
    alone = (await desk.bench.state(newest, session))["changesets"]
    place = {"directory": other.root.as_uri()}
    for kind, count in (("Set", 2), ("Removed", 1)):
        before = len(_catalogues(newest, session))
        await newest.accepted(session, {"type": f"session/workingDirectory{kind}", **place})
        await newest.wait(lambda _, before=before: len(_catalogues(newest, session)) > before)
        told = _catalogues(newest, session)[-1]
        assert len(told) == count * len(alone)
        assert (await desk.bench.state(newest, session))["changesets"] == told
    assert _catalogues(newest, session)[-1] == alone


def _catalogues(client: RawClient, session: str) -> list[list[Json]]:
    """Every catalogue that a session's actions told."""
    actions = [envelope["action"] for envelope in client.actions(session)]
    return [action.get("changesets", []) for action in actions if action["type"] == "session/changesetsChanged"]


@requirement("changesets:state:initial")
@requirement("changesets:state:shape")
@requirement("changesets:template:expansion-escaped")
@requirement("changesets:status:ready")
@requirement("changesets:file:edit-forms")
@requirement("changesets:file:both-sides-readable")
async def test_what_a_turn_changed_is_shown_with_both_contents(desk: Desk) -> None:
    def work(root: Path) -> None:
        (root / "a.txt").write_text("one\ntwo\n")
        (root / "new.txt").write_text("new\n")
        (root / "b.txt").unlink()

    turn_id = await desk.turn(work, "the first/turn ü?")
    uri = expand((await desk.entry("turn"))["uriTemplate"], turnId=turn_id)
    assert (await desk.client.ask("subscribe", uri))["snapshot"]["state"] == {"status": "computing", "files": []}
    _, state = await desk.look("turn", turn_id)
    assert set(state) == {"status", "files", "operations"}
    files = {entry["id"].rpartition("/")[2]: entry["edit"] for entry in state["files"]}
    assert set(files) == {"a.txt", "new.txt", "b.txt"}
    assert files["a.txt"]["diff"] == {"added": 1, "removed": 0}
    assert "before" not in files["new.txt"]
    assert "after" not in files["b.txt"]
    assert await desk.read(files["a.txt"]["before"]) == "one\n"
    assert await desk.read(files["a.txt"]["after"]) == "one\ntwo\n"
    assert await desk.read(files["b.txt"]["before"]) == "b\n"
    before: str = files["a.txt"]["before"]["content"]["uri"]
    assert urlsplit(before).path == "/a.txt"  # What an editor shows as its name.
    for wrong in ("ahp-changed-file://[", "ahp-changed-file:///a.txt", "ahp-changed-file://a.b/a.txt"):
        assert (await desk.client.refused("resourceRead", uri=wrong))["code"] in (-32006, -32008)


async def test_a_view_is_also_found_under_the_address_of_its_session_where_vs_code_looks(desk: Desk) -> None:
    turn_id = await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\n"))
    _, expected = await desk.look("turn", turn_id)
    address = f"{desk.uri}/changeset/turn/{turn_id}"
    await desk.client.ask("subscribe", address)
    state = await desk.until(address, lambda state: bool(state["files"]))
    assert state["files"] == expected["files"]
    await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\nthree\n"))
    assert (await desk.until(address, lambda state: True))["files"] == expected["files"]
    for unknown in ("turn/other", "turn/", "branch", "compare/x", ""):
        refused = await desk.client.refused("subscribe", f"{desk.uri}/changeset/{unknown}")
        assert refused["code"] == -32008, unknown
    assert (await desk.client.refused("subscribe", f"ahp-session:/none/changeset/turn/{turn_id}"))["code"] == -32008
    desk.client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": address}})
    await desk.client.ask("ping")
    assert address not in desk.bench.host.services.channels("changeset")


async def test_whoever_leaves_a_view_and_comes_back_at_once_follows_a_new_one(desk: Desk) -> None:
    """The old one is still being closed then; following that one would show nothing ever after."""
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    stranger = await desk.bench.client(client_id="stranger")
    desk.client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})
    await desk.client.ask("subscribe", uri)
    stranger.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})  # It never subscribed.
    await stranger.ask("ping")
    assert names(await desk.until(uri, lambda state: bool(state["files"]))) == {"a.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert (desk.repo.root / "a.txt").read_text() == "one\n"


async def test_a_session_of_vs_code_has_its_turns_there_too(desk: Desk) -> None:
    client = desk.client = await desk.bench.client(client_id="code", offer=["0.9.0"])
    desk.uri, desk.started = "scripted:/4711", {"startedAt": "2026-11-15T12:00:00.000Z"}
    await client.ask("createSession", desk.uri, workingDirectories=[desk.repo.root.as_uri()])
    desk.chat = (await client.ask("subscribe", desk.uri))["snapshot"]["state"]["defaultChat"]
    await client.ask("subscribe", desk.chat)
    turn_id = await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\n"))
    address = f"{desk.uri}/changeset/turn/{turn_id}"
    state = await desk.until(address, lambda state: bool(state["files"]))
    assert names(state) == {"a.txt"}


async def test_the_session_shows_its_own_work_and_uncommitted_everything(desk: Desk) -> None:
    desk.repo.write("mine.txt", "a person's")
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    _, session = await desk.look("session")
    _, uncommitted = await desk.look("uncommitted")
    assert names(session) == {"a.txt"}
    assert names(uncommitted) == {"a.txt", "mine.txt"}


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
    uri, state = await desk.look("session")
    other = await desk.bench.client()
    await other.ask("subscribe", uri)
    desk.repo.write("b.txt", "a person's\n")
    result = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert "b.txt: it was changed after the session wrote it" in result["message"]
    assert (desk.repo.root / "a.txt").read_text() == "one\n"
    assert (desk.repo.root / "b.txt").read_text() == "a person's\n"
    assert not (desk.repo.root / "c.txt").exists()
    assert set(result) == {"message"}
    gone = {entry["id"] for entry in state["files"] if not entry["id"].endswith("/b.txt")}

    def told(client: RawClient, field: str) -> list[str]:
        actions = [envelope["action"] for envelope in client.actions(uri)]
        return [action[field] for action in actions if field in action and action.get("operationId", "undo") == "undo"]

    for client in (desk.client, other):
        await client.wait(lambda _, client=client: gone <= set(told(client, "fileId")))
        await client.wait(lambda _, client=client: told(client, "operationId") == ["undo", "undo"])
        changed = [one["action"] for one in client.actions(uri) if "operationId" in one["action"]]
        assert [action["status"] for action in changed] == ["running", "idle"]


async def test_an_undo_goes_on_when_the_client_that_asked_for_it_goes_away(desk: Desk) -> None:
    """Half of it would be undone, nobody could bring that back, and the operation would seem to run for ever."""
    await desk.turn(lambda root: [(root / name).write_text("agent\n") for name in ("a.txt", "b.txt")])
    uri, _ = await desk.look("session")
    other = await desk.bench.client(client_id="other")
    await other.ask("subscribe", uri)
    reached, go_on = threading.Event(), threading.Event()

    def wait(place: Path) -> None:
        if place.name == "b.txt":
            reached.set()
            go_on.wait()

    gone, desk.opener = desk.client.client_id, SafeOpener(wait)
    desk.client.send(
        {"jsonrpc": "2.0", "id": 4711, "method": "invokeChangesetOperation",
         "params": {"channel": uri, "operationId": "undo"}}
    )  # fmt: skip
    await asyncio.to_thread(reached.wait)
    await desk.client.aclose()
    await until(lambda: desk.bench.host.services.client(gone) is None)
    go_on.set()
    desk.client = other
    state = await desk.until(uri, lambda state: not names(state))
    states = {one["id"]: one["status"] for one in state["operations"]}
    assert (states["undo"], states["redo"]) == ("disabled", "idle")
    assert desk.repo.status() == set()
    await other.ask("invokeChangesetOperation", uri, operationId="redo")
    assert desk.repo.status() == {"a.txt", "b.txt"}


async def test_what_a_person_writes_as_soon_as_the_turn_is_over_is_not_the_agents(desk: Desk) -> None:
    """Also when the turn failed. Undo leaves it alone."""

    async def fails(turn: Turn) -> None:
        desk.repo.write("failed.txt", "agent\n")
        raise AgentError("no")

    await desk.turn(lambda root: desk.repo.write("a.txt", "agent\n"))
    desk.repo.write("mine.txt", "me\n")
    desk.bench.agent.script = fails
    await desk.client.accepted(desk.chat, say("go", "failed"))
    await desk.client.action("chat/error")
    desk.repo.write("mine too.txt", "me\n")
    desk.repo.write("b.txt", "me\n")
    uri, _ = await desk.look("session")
    state = await desk.until(uri, lambda state: "failed.txt" in names(state))
    assert names(state) == {"a.txt", "failed.txt"}
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    files = {path.name: path.read_text() for path in desk.repo.root.glob("*.txt")}
    assert files == {"a.txt": "one\n", "b.txt": "me\n", "mine.txt": "me\n", "mine too.txt": "me\n"}


async def test_what_is_undone_while_another_turn_runs_is_not_the_work_of_that_turn(desk: Desk) -> None:
    first = await desk.turn(lambda root: [(root / "a.txt").write_text("agent\n"), (root / "new.txt").write_text("x\n")])
    uri, _ = await desk.look("turn", first)
    began, release = asyncio.Event(), asyncio.Event()

    async def script(turn: Turn) -> None:
        (desk.repo.root / "b.txt").write_text("second\n")
        began.set()
        await release.wait()

    desk.bench.agent.script = script
    await desk.client.accepted(desk.chat, say("go", "second"))
    await began.wait()
    await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    release.set()
    await desk.client.action(
        lambda envelope: envelope["action"].get("turnId") == "second" and "Complete" in envelope["action"]["type"]
    )
    _, state = await desk.look("turn", "second")
    assert names(state) == {"b.txt"}
    session, _ = await desk.look("session")
    await desk.until(session, lambda state: names(state) == {"b.txt"})
    await desk.client.ask("invokeChangesetOperation", session, operationId="undo")
    assert desk.repo.status() == set(), "undo of the rest does not bring back what was undone"


def lines(**others: str) -> str:
    """Twenty lines, some of them others: `_3="x"` is the third one."""
    return "".join(f"{others.get(f'_{number}', number)}\n" for number in range(20))


@requirement("changesets:undo:keeps-what-others-wrote")
async def test_what_a_person_wrote_between_two_turns_outlives_every_undo_of_them(desk: Desk) -> None:
    file = desk.repo.write("a.txt", lines())
    await desk.turn(lambda root: file.write_text(lines(_0="agent")))
    file.write_text(lines(_0="agent", _9="me"))
    second = await desk.turn(lambda root: file.write_text(lines(_0="agent", _9="me", _19="agent")))
    await desk.bench.stop()  # Right after the turn's end was told.
    desk.renew()
    await desk.bench.start()
    desk.client = await desk.bench.client(desk.uri, desk.chat)
    for kind, expected in (("turn", lines(_0="agent", _9="me")), ("session", lines(_9="me"))):
        uri, _ = await desk.look(kind, second)
        await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
        assert file.read_text() == expected
    await desk.until(uri, lambda state: names(state) == set())
    file.write_text(lines(_0="agent", _9="me"))
    await desk.turn(lambda root: file.write_text(lines(_9="agent")))
    file.write_text(lines(_8="me", _9="agent"))
    third = await desk.turn(lambda root: file.write_text(lines(_8="agent", _9="agent")))
    await desk.look("turn", third)
    await desk.until(uri, lambda state: names(state) == {"a.txt"})
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert answer["message"] == "Nothing was undone. Left alone: a.txt: it was changed after the session wrote it."
    assert file.read_text() == lines(_8="agent", _9="agent")


@requirement("changesets:undo:keeps-what-others-wrote")
async def test_undo_leaves_alone_what_another_session_may_have_written_at_the_same_time(desk: Desk) -> None:
    """Two sessions work in one folder. What one of them told of, or what changed in one of them only, is undone."""
    other, other_chat = await desk.bench.session(desk.client)
    root, writes = desk.repo.root, asyncio.Event()

    async def first(turn: Turn) -> None:
        (root / "early.txt").write_text("first\n")
        desk.bench.agent.script = second
        await desk.client.accepted(other_chat, say("go", "other"))
        await writes.wait()
        for name in ("mixed.txt", "told.txt"):
            (root / name).write_text("first\n")
        tell(turn, root / "told.txt")

    async def second(turn: Turn) -> None:
        (root / "theirs.txt").write_text("second\n")
        (root / "told by second.txt").write_text("second\n")
        tell(turn, root / "told by second.txt")
        writes.set()
        await desk.client.action("chat/turnComplete")

    desk.bench.agent.script = first
    await desk.client.accepted(desk.chat, say("go", "one"))
    await desk.client.action(
        lambda envelope: envelope["action"].get("turnId") == "other" and "Complete" in str(envelope)
    )
    left = "; ".join(f"{name}.txt: another session changed it at the same time" for name in ("mixed", "theirs"))
    uri, _ = await desk.look("session")
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    unknown = "It is not known who wrote early.txt; redo brings the content back."
    assert answer["message"] == f"Undid 2 files. {unknown} Left alone: {left}."
    desk.uri = other
    uri, _ = await desk.look("turn", "other")
    answer = await desk.client.ask("invokeChangesetOperation", uri, operationId="undo")
    assert answer["message"] == f"Undid 1 file. Left alone: {left}."
    assert desk.repo.status() == {"mixed.txt", "theirs.txt"}


def tell(turn: Turn, path: Path) -> None:
    """Report a file as written by a tool."""
    call = turn.tool_call("edit")
    call.running(tool_input="{}")
    call.complete(content=[{"type": "fileEdit", "after": {"uri": path.as_uri(), "content": {"uri": path.as_uri()}}}])


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


@requirement("changesets:operation:stage-and-commit")
async def test_commit_takes_the_message_of_whoever_asks(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    await desk.client.ask("invokeChangesetOperation", uri, operationId="stage")
    assert desk.repo.git("diff", "--cached", "--name-only").split() == ["a.txt"]
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
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    ranged = {"kind": "range", "resource": known["resource"], "range": span}
    assert (await client.refused("invokeChangesetOperation", uri, operationId="undo", target=ranged))["code"] == -32602
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


@requirement("changesets:catalogue:totals", "session:summary:changes-optional-counts")
async def test_the_session_counts_its_changes_without_anyone_looking(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\n"))
    await desk.client.action("session/metaChanged")
    state = await desk.bench.state(desk.client, desk.uri)
    assert state["_meta"]["ahpkit/changes"] == {"additions": 1, "deletions": 0, "files": 1}
    [listed] = (await desk.client.ask("listSessions"))["items"]
    assert listed["changes"] == {"additions": 1, "deletions": 0, "files": 1}


@requirement("changesets:catalogue:totals", "gen:summary:chats", "gen:summary:chats-in-step")
async def test_each_chat_counts_what_its_own_turns_changed(desk: Desk) -> None:
    newest = await desk.bench.client("ahp-root://", offer=["1.0.0"])
    desk.client, desk.started = newest, {"startedAt": "2026-11-16T12:00:00.000Z"}
    await newest.ask("subscribe", desk.uri)
    first, second = desk.chat, "ahp-chat:/second"

    def counted(additions: int, files: int) -> Json:
        return {"additions": additions, "deletions": 0, "files": files}

    async def told(chat: str, totals: Json) -> None:
        await newest.action(
            lambda said: said["action"].get("chat") == chat and said["action"].get("changes") == {"changes": totals}
        )
        state = await desk.bench.state(newest, desk.uri)
        entry = next(one for one in state["chats"] if one["resource"] == chat)
        assert entry["changes"] == totals
        [listed] = (await newest.ask("listSessions"))["items"]
        assert next(one for one in listed["chats"] if one["resource"] == chat)["changes"] == totals
        assert "changes" not in await desk.bench.state(newest, chat), "no action of its channel could tell them"
        await newest.wait(
            lambda message: (
                message.get("method") == "root/sessionSummaryChanged"
                and any(one.get("changes") == totals for one in message["params"]["changes"].get("chats", ()))
            )
        )

    await newest.ask("subscribe", first)
    await desk.turn(lambda root: (root / "a.txt").write_text("one\ntwo\n"))
    await told(first, counted(1, 1))
    await newest.ask("createChat", desk.uri, chat=second)
    await newest.ask("subscribe", second)
    desk.chat = second
    undone = await desk.turn(lambda root: [(root / name).write_text("b\nb\nb\n") for name in ("b.txt", "c.txt")])
    await told(second, counted(5, 2))
    assert "changes" not in await desk.bench.state(newest, second), "no action of the chat's channel could tell it"
    old = await desk.bench.client()
    assert all("changes" not in one for one in (await desk.bench.state(old, desk.uri))["chats"])
    uri, _ = await desk.look("turn", undone)
    target = {"kind": "resource", "resource": (desk.repo.root / "c.txt").as_uri()}
    await newest.ask("invokeChangesetOperation", uri, operationId="undo", target=target)
    await told(second, counted(2, 1))
    await desk.bench.stop()
    desk.renew()
    await desk.bench.start()
    back = await desk.bench.client(offer=["1.0.0"])
    chats = (await desk.bench.state(back, desk.uri))["chats"]
    assert [one["changes"] for one in chats] == [counted(1, 1), counted(2, 1)]
    desk.client = back
    await back.ask("subscribe", second)
    await desk.turn(lambda root: (root / "d.txt").write_text("d\n"))
    await back.action(lambda said: said["action"].get("changes") == {"changes": counted(3, 2)})


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


@requirement("changesets:catalogue:host-only", "changesets:review:client-dispatchable")
async def test_clients_change_neither_catalogues_nor_files(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, state = await desk.look("session")
    client = desk.client
    assert await client.rejected(desk.uri, {"type": "session/changesetsChanged", "changesets": []})
    newest = await desk.bench.connect()
    await newest.initialize(protocolVersions=["1.0.0"])
    await newest.ask("subscribe", desk.chat)
    assert await newest.rejected(desk.chat, {"type": "chat/changesetsChanged", "changesets": []})
    await newest.ask("subscribe", uri)
    of_the_host: tuple[Json, ...] = (
        {"type": "changeset/cleared"},
        {"type": "changeset/statusChanged", "status": "error", "error": {"errorType": "x", "message": "y"}},
        {"type": "changeset/fileRemoved", "fileId": state["files"][0]["id"]},
        {"type": "changeset/fileSet", "file": state["files"][0]},
        {"type": "changeset/contentChanged", "files": []},
        {"type": "changeset/operationsChanged"},
        {"type": "changeset/operationStatusChanged", "operationId": "undo", "status": "idle"},
    )
    for action in of_the_host:
        assert await newest.rejected(uri, action), action
    await newest.accepted(uri, review(state["files"][0]["id"]))


def review(file: str, reviewed: bool = True) -> Json:
    return {"type": "changeset/filesReviewChanged", "files": [file], "reviewed": reviewed}


@requirement(
    "changesets:review:capability",
    "changesets:review:reset-on-edit",
    "changesets:review:kept-on-refresh",
    "changesets:file:ids-unique",
)
async def test_a_review_mark_is_bound_to_the_content(desk: Desk) -> None:
    first = await desk.turn(lambda root: [(root / name).write_text("agent\n") for name in ("a.txt", "b.txt")])
    newest = await desk.bench.connect()
    await newest.initialize(protocolVersions=["1.0.0"])
    uri, state = await desk.look("session")
    ids = [entry["id"] for entry in state["files"]]
    assert len(set(ids)) == len(ids) == 2
    await newest.ask("subscribe", uri)
    for id in ids:
        await newest.accepted(uri, review(id))
    last = await desk.turn(lambda root: (root / "a.txt").write_text("more\n"))
    state = await desk.until(uri, lambda state: not state["files"][0].get("reviewed"))
    assert [entry["id"] for entry in state["files"]] == ids
    assert [entry.get("reviewed", False) for entry in state["files"]] == [False, True]
    entry = await desk.entry("compare-turns")
    assert "review" not in entry.get("capabilities", {})
    compared = entry["uriTemplate"].replace("{originalTurnId}", first).replace("{modifiedTurnId}", last)
    await newest.ask("subscribe", compared)
    assert "does not offer review" in await newest.rejected(compared, review(ids[0]))


@requirement("changesets:status:computing-first-only", "changesets:status:recomputing-legacy")
@requirement("changesets:status:recomputing-keeps-files", "changesets:file:order-equivalence")
async def test_a_mirror_of_a_view_keeps_its_files_while_it_is_computed_again_and_ends_like_a_snapshot(
    desk: Desk,
) -> None:
    newest = await desk.bench.connect()
    await newest.initialize(protocolVersions=["1.0.0"])
    uri, _ = await desk.look("session")
    mirrored = (await newest.ask("subscribe", uri))["snapshot"]["state"]
    many = [f"{number}.txt" for number in range(30)]
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    await desk.until(uri, lambda state: names(state) == {"a.txt"})
    await desk.turn(lambda root: [(root / name).write_text("x\n") for name in many])
    await desk.until(uri, lambda state: names(state) == {"a.txt", *many})
    await desk.turn(lambda root: [(root / many[0]).unlink(), (root / "a.txt").write_text("again\n")])
    shown = await desk.until(uri, lambda state: names(state) == {"a.txt", *many[1:]})
    await newest.ask("ping")
    complete = mirrored["files"]
    kinds: set[str] = set()
    for envelope in newest.actions(uri):
        kinds.add(envelope["action"]["type"])
        mirrored = reduce(uri, mirrored, envelope["action"])
        if envelope["action"].get("status") == "recomputing":
            assert mirrored["files"] == complete
        elif mirrored["status"] == "ready":
            complete = mirrored["files"]
    assert {"changeset/fileSet", "changeset/fileRemoved", "changeset/contentChanged"} <= kinds
    assert mirrored == (await newest.ask("subscribe", uri))["snapshot"]["state"]
    assert (mirrored["files"], mirrored["status"]) == (shown["files"], "ready")

    def statuses(client: RawClient) -> set[str]:
        actions = [envelope["action"] for envelope in client.actions(uri)]
        return {action["status"] for action in actions if action["type"] == "changeset/statusChanged"}

    assert statuses(newest) == {"recomputing", "ready"}
    assert statuses(desk.client) == {"computing", "ready"}


@requirement("changesets:operation:disabled")
async def test_an_operation_without_anything_to_do_is_disabled_and_refused(desk: Desk) -> None:
    uri, state = await desk.look("session")
    assert {operation["status"] for operation in state["operations"]} == {"disabled"}
    assert "disabled" in (await desk.client.refused("invokeChangesetOperation", uri, operationId="undo"))["message"]
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    state = await desk.until(uri, lambda state: names(state) == {"a.txt"})
    assert {operation["status"] for operation in state["operations"]} == {"idle"}


@requirement("changesets:operation:disabled")
async def test_an_operation_that_runs_is_not_started_twice(desk: Desk) -> None:
    await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("session")
    for number in (901, 902):
        params = {"channel": uri, "operationId": "undo"}
        desk.client.send({"jsonrpc": "2.0", "id": number, "method": "invokeChangesetOperation", "params": params})
    second = await desk.client.wait(lambda message: message.get("id") == 902)
    assert "is running already" in second["error"]["message"]
    assert "result" in await desk.client.wait(lambda message: message.get("id") == 901)
    assert (desk.repo.root / "a.txt").read_text() == "one\n"


@requirement("changesets:template:turn", "changesets:end:chat-disposed")
@pytest.mark.parametrize("how", ["forked", "moved"])
async def test_a_turn_that_ran_before_its_chat_came_to_the_session_says_so_and_stays_where_it_was(
    desk: Desk, how: str
) -> None:
    newest = await desk.bench.client("ahp-root://", offer=["1.0.0"])
    source, desk.started = desk.uri, {"startedAt": "2026-11-15T12:00:00.000Z"}
    desk.client, desk.chat = newest, "ahp-chat:/second"
    await newest.ask("subscribe", source)
    await newest.ask("createChat", source, chat=desk.chat)
    await newest.ask("subscribe", desk.chat)
    turn_id = await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, state = await desk.look("turn", turn_id)
    assert names(state) == {"a.txt"}
    if how == "moved":
        desk.uri = (await newest.ask("moveChat", desk.chat, destination={"kind": "newSession"}))["session"]
    else:
        old = await desk.bench.client()
        desk.uri = "ahp-session:/fork"
        await newest.ask("subscribe", "ahp-root://")
        await old.ask("createSession", desk.uri, fork={"session": source, "chat": desk.chat, "turnId": turn_id})
    while "changesets" not in await desk.bench.state(newest, desk.uri):
        await newest.action("session/changesetsChanged")
    here = expand((await desk.entry("turn"))["uriTemplate"], turnId=turn_id)
    await newest.ask("subscribe", here)
    told = await newest.action(lambda e: e["channel"] == here and e["action"].get("status") == "error")
    assert "before its chat came to this session" in told["action"]["error"]["message"]
    assert names((await newest.ask("subscribe", uri))["snapshot"]["state"]) == {"a.txt"}, "it goes on where it ran"
    nobody = expand((await desk.entry("turn"))["uriTemplate"], turnId="nobody")
    assert (await newest.refused("subscribe", nobody))["code"] == -32008


@requirement("changesets:end:truncated-turn")
async def test_the_view_of_a_turn_that_was_truncated_away_ends(desk: Desk) -> None:
    turn_id = await desk.turn(lambda root: (root / "a.txt").write_text("agent\n"))
    uri, _ = await desk.look("turn", turn_id)
    await desk.client.accepted(desk.chat, {"type": "chat/truncated"})
    await desk.client.action(lambda e: e["channel"] == uri and e["action"]["type"] == "changeset/cleared")
    assert (await desk.client.refused("subscribe", uri))["code"] == -32008


@requirement(
    "session:aggregate:changes-roll-up",
    "changesets:catalogue:multiroot",
    "changesets:catalogue:chat-scope",
    "changesets:catalogue:chat-not-in-summary",
    "changesets:end:chat-disposed",
)
async def test_several_directories_have_views_of_their_own_and_a_chat_lists_those_of_its_directories(
    desk: Desk, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "other")
    other.commit(o_txt="o\n")
    desk.bench.agent.directories = {}
    newest = await desk.bench.connect()
    await newest.initialize("ahp-root://", protocolVersions=["1.0.0"])
    desk.client, desk.started = newest, {"startedAt": "2026-11-15T12:00:00.000Z"}
    places = [desk.repo.root.as_uri(), other.root.as_uri()]
    desk.uri, desk.chat = await desk.bench.session(newest, workingDirectories=places)
    entries = (await desk.bench.state(newest, desk.uri))["changesets"]
    assert {entry["label"] for entry in entries} >= {"Session changes in repo", "Session changes in other"}
    await newest.ask("createChat", desk.uri, chat="ahp-chat:/narrow", workingDirectories=[other.root.as_uri()])
    await newest.ask("subscribe", "ahp-chat:/narrow")

    async def of_chat() -> list[Json]:
        return (await desk.bench.state(newest, "ahp-chat:/narrow")).get("changesets", [])

    if not await of_chat():
        await newest.action(lambda e: e["action"]["type"] == "chat/changesetsChanged")
    own = await of_chat()
    mine = [entry["uriTemplate"] for entry in entries if entry["label"].endswith(" in other")]
    assert [entry["uriTemplate"] for entry in own] == mine
    assert "changesets" not in str((await desk.bench.state(newest, desk.uri))["chats"])
    assert "changesets" not in str(await newest.ask("listSessions"))

    def work(root: Path) -> None:
        (root / "a.txt").write_text("agent\n")
        (other.root / "o.txt").write_text("agent\n")

    await desk.turn(work)
    uri = next(one for one in mine if one.endswith("/session"))
    await newest.ask("subscribe", uri)
    await desk.until(uri, lambda state: names(state) == {"o.txt"})
    counted: Json = {"additions": 2, "deletions": 2, "files": 2}
    await newest.wait(lambda message: message.get("params", {}).get("changes", {}).get("changes") == counted)
    await newest.ask("disposeChat", "ahp-chat:/narrow")
    assert names((await newest.ask("subscribe", uri))["snapshot"]["state"]) == {"o.txt"}


async def test_files_that_cannot_be_read_in_time_do_not_hold_up_the_end_of_a_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    repo, may_read = Repository(tmp_path / "repo"), threading.Event()
    repo.commit(a_txt="one\n")
    bench = Bench(repo.root)

    def shows(path: Path) -> bool:
        return path.name != "slow.txt" or may_read.wait()

    bench.features = [Changesets(tmp_path / "ours", default_directory=repo.root, shows=shows)]
    desk = Desk(bench, repo, tmp_path / "ours")
    await bench.start()
    try:
        await desk.session()
        await desk.turn(lambda root: (root / "slow.txt").touch())
        assert f"the changes of {desk.uri} could not be read: git takes long" in caplog.text
    finally:
        may_read.set()
        await bench.stop()
