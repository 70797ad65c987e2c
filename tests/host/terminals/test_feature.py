"""Terminals over a connection, with real shells on real ptys."""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.changes.feature import Changesets
from ahpkit.dialects.v0_4.terminal import terminal_reducer
from ahpkit.host.terminals import output
from ahpkit.log.entry import Batch
from ahpkit.log.errors import StorageError
from ahpkit.log.memory import MemoryStorage
from support import requirement
from support.process import host_process
from support.raw_client import Json, RawClient
from support.terminals import Shell, TerminalBench, root_terminals, terminal_bench
from support.waiting import BOUND, gone, is_alive


@pytest.fixture
async def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def limits() -> dict[str, Any]:
    """Limits of the host that a test sets."""
    return {}


@pytest.fixture
async def bench(work: Path, limits: dict[str, Any]) -> AsyncGenerator[TerminalBench]:
    async with terminal_bench(work, sockets=True, **limits) as made:
        yield made


@pytest.fixture
async def client(bench: TerminalBench) -> RawClient:
    return await bench.client("ahp-root://", client_id="me")


MINE = {"kind": "client", "clientId": "me"}


@requirement("core:wire:client-requests")
async def test_with_files_and_terminals_a_host_serves_every_request(work: Path, tmp_path: Path) -> None:
    manifest = tomllib.loads((Path(__file__).parents[3] / "requirements" / "core.toml").read_text(encoding="utf-8"))
    listed = manifest["core:wire:client-requests"]["text"].partition(": ")[2].rstrip(".")
    methods = re.split(r", | and ", listed)
    assert len(methods) == 27
    bench = TerminalBench(work)
    bench.renew()
    bench.features = [*bench.features, Changesets(tmp_path / "ours", default_directory=work)]
    await bench.start()
    try:
        client = await bench.client("ahp-root://", client_id="me")
        for method in methods:
            answer = await client.call(method, "ahp-session:/none", uri=5)
            assert answer.get("error", {}).get("code") != -32601, method
        assert (await client.refused("createSomething"))["code"] == -32601
    finally:
        await bench.stop()


# -- as newer clients see them -----------------------------------------------------------------------------------------


@requirement("gen:terminal:catalogue")
async def test_the_list_shows_title_claim_and_lifecycle_as_they_are(bench: TerminalBench) -> None:
    client = await bench.client("ahp-root://", client_id="me", offer=["1.0.0"])
    session, chat = await bench.session(client)
    shell = await Shell.open(client, "one")

    async def listed_as_shown(**expected: Any) -> None:
        state = await shell.subscribe()
        shown = {"resource": shell.uri} | {key: state[key] for key in ("title", "claim", "lifecycle")}
        assert shown.items() >= expected.items()
        await client.action(lambda said: shown in said["action"].get("terminals", ()))
        assert (await bench.state(client, "ahp-root://"))["terminals"] == [shown]

    await listed_as_shown(title="sh", claim=MINE, lifecycle={"status": "running"})
    await client.accepted(shell.uri, {"type": "terminal/titleChanged", "title": "Build"})
    await listed_as_shown(title="Build")
    claim = {"kind": "session", "session": session, "chat": chat, "turnId": "t1"}
    await shell.type("read line; exit 7\n")
    await client.accepted(shell.uri, {"type": "terminal/claimed", "claim": claim})
    await listed_as_shown(claim=claim)
    terminal = await Shell.open(client, "two")
    await terminal.type("exit 7\n")
    await terminal.exited()
    shell = terminal
    ended = {"resource": shell.uri, "title": "sh", "claim": MINE, "lifecycle": {"status": "exited", "exitCode": 7}}
    await client.action(lambda said: ended in said["action"].get("terminals", ()))


@requirement("gen:terminal:claim-chat")
@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_a_claim_of_a_session_names_its_chat_or_is_refused(bench: TerminalBench, version: str) -> None:
    client = await bench.client("ahp-root://", client_id="me", offer=[version])
    session, chat = await bench.session(client)
    nameless = {"kind": "session", "session": session}
    error = await client.refused("createTerminal", "ahp-terminal:/n", claim=nameless)
    assert (error["code"], "chat" in error["message"]) == (-32602, True)
    shell = await Shell.open(client)
    assert "chat" in await client.rejected(shell.uri, {"type": "terminal/claimed", "claim": nameless})
    foreign = {**nameless, "chat": "ahp-chat:/none"}
    reason = await client.rejected(shell.uri, {"type": "terminal/claimed", "claim": foreign})
    assert reason == "the session has no chat ahp-chat:/none"
    await client.accepted(shell.uri, {"type": "terminal/claimed", "claim": {**nameless, "chat": chat}})
    assert (await bench.state(client, shell.uri))["claim"]["chat"] == chat


@requirement("gen:terminal:claim-chat")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.2", "0.8.0"])
async def test_for_an_older_client_the_host_names_the_chat(bench: TerminalBench, version: str) -> None:
    newest = await bench.client("ahp-root://", client_id="new", offer=["1.0.0"])
    client = await bench.client("ahp-root://", client_id="me", offer=[version])
    session, chat = await bench.session(client)
    claim = {"kind": "session", "session": session}
    await client.ask("createTerminal", "ahp-terminal:/n", claim=claim)
    assert (await bench.state(newest, "ahp-terminal:/n"))["claim"] == {**claim, "chat": chat}


@requirement("gen:project-state:exit-code")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.5.2", "0.6.0", "0.7.0", "0.8.0"])
async def test_clients_before_the_lifecycle_get_the_exit_code(bench: TerminalBench, version: str) -> None:
    newest = await bench.client("ahp-root://", client_id="me", offer=["1.0.0"])
    older = await bench.client("ahp-root://", client_id="old", offer=[version])
    shell = await Shell.open(newest)
    assert "exitCode" not in (await older.ask("subscribe", shell.uri))["snapshot"]["state"]
    await shell.type("exit 7\n")
    await shell.exited()
    assert (await older.action("terminal/exited"))["action"]["exitCode"] == 7
    listed = await older.action(
        lambda said: any(one.get("exitCode") == 7 for one in said["action"].get("terminals", ()))
    )
    assert listed["channel"] == "ahp-root://"
    assert (await bench.state(older, shell.uri))["exitCode"] == 7
    assert (await bench.state(older, "ahp-root://"))["terminals"][0]["exitCode"] == 7
    assert "exitCode" not in await bench.state(newest, shell.uri)


# -- opening -----------------------------------------------------------------------------------------------------------


@requirement("core:wire:client-requests")
async def test_a_client_opens_a_terminal_types_and_disposes_of_it(client: RawClient, work: Path) -> None:
    shell = await Shell.open(client, "one", cols=90, rows=20)
    state = await shell.subscribe()
    assert (state["title"], state["cwd"], state["claim"]) == ("sh", work.as_uri(), MINE)
    await shell.type("echo $((40 + 2)) in $PWD; stty size\n")
    await shell.shows(f"42 in {work}\r\n20 90\r\n")
    listed = await root_terminals(client, 1)
    assert listed == [{"resource": shell.uri, "title": "sh", "claim": MINE}]
    assert await client.ask("disposeTerminal", shell.uri) is None
    assert await root_terminals(client, 0) == []
    assert (await client.refused("subscribe", shell.uri))["code"] == -32008


async def test_without_the_switch_clients_are_refused_and_told_how_to_change_that(work: Path) -> None:
    async with terminal_bench(work, enabled=False) as bench:
        client = await bench.client()
        for method, params in (("createTerminal", {"claim": MINE}), ("disposeTerminal", {})):
            error = await client.refused(method, "ahp-terminal:/a", **params)
            assert error["code"] == -32009
            assert "--terminals" in error["message"]


async def test_a_client_may_subscribe_right_behind_the_request(client: RawClient) -> None:
    asked = asyncio.gather(
        client.ask("createTerminal", "ahp-terminal:/a", claim=MINE), client.ask("subscribe", "ahp-terminal:/a")
    )
    assert (await asked)[1]["snapshot"]["state"]["claim"] == MINE


async def test_the_shell_sees_no_secret_of_the_host(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("env; echo done $((1 + 1))\n")
    await shell.shows("done 2")
    assert "TERM=xterm-256color" in shell.shown()
    assert "hunter2" not in shell.shown()


@pytest.mark.parametrize(
    ("uri", "params", "code", "said"),
    [
        ("ahp-session:/a", {}, -32602, "is not a terminal URI"),
        ("ahp-terminal:/a/b", {}, -32602, "is not a terminal URI"),
        ("ahp-terminal:/a", {"cols": 0}, -32602, "between 1 and 10000"),
        ("ahp-terminal:/a", {"rows": 99999}, -32602, "between 1 and 10000"),
        ("ahp-terminal:/a", {"claim": {"kind": "nobody"}}, -32602, 'got "nobody"'),
        ("ahp-terminal:/a", {"claim": {"kind": "client", "clientId": "x"}}, -32602, "'x' is not connected"),
        ("ahp-terminal:/a", {"claim": {"kind": "session", "session": "ahp-session:/no"}}, -32602, "no session"),
        ("ahp-terminal:/a", {"cwd": "file:///etc"}, -32009, "not among the places you may read"),
        ("ahp-terminal:/a", {"cwd": "http://a/b"}, -32602, "not a file: URI"),
    ],
)
async def test_what_cannot_be_opened_is_refused_by_name(
    client: RawClient, uri: str, params: Json, code: int, said: str
) -> None:
    error = await client.refused("createTerminal", uri, **{"claim": MINE, **params})
    assert error["code"] == code
    assert said in error["message"]
    assert not any(envelope["action"]["type"] == "root/terminalsChanged" for envelope in client.actions())


async def test_a_uri_is_taken_once(client: RawClient) -> None:
    await Shell.open(client, "a")
    assert (await client.refused("createTerminal", "ahp-terminal:/a", claim=MINE))["code"] == -32010


async def test_a_terminal_starts_where_its_session_works_or_inside(
    bench: TerminalBench, client: RawClient, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    session, _ = await bench.session(client, workingDirectory=project.as_uri())
    shell = await Shell.open(client, "inside", cwd=(project / "sub").as_uri())
    await shell.type("pwd\n")
    await shell.shows(f"{project}/sub\r\n")
    held = await Shell.open(client, "held", claim={"kind": "session", "session": session})
    assert (await held.subscribe())["cwd"] == project.as_uri()


async def test_a_directory_that_is_not_there_is_refused_and_the_uri_stays_free(
    bench: TerminalBench, client: RawClient, work: Path
) -> None:
    await bench.session(client, workingDirectory=work.as_uri())
    missing = (work / "missing").as_uri()
    error = await client.refused("createTerminal", "ahp-terminal:/a", claim=MINE, cwd=missing)
    assert error["code"] == -32011
    assert "missing" in error["message"]
    await Shell.open(client, "a")


@pytest.mark.parametrize("limits", [{"max_terminals": 1}])
async def test_there_are_only_so_many(client: RawClient) -> None:
    await Shell.open(client, "a")
    error = await client.refused("createTerminal", "ahp-terminal:/b", claim=MINE)
    assert (error["code"], "dispose of one first" in error["message"]) == (-32011, True)


# -- using -------------------------------------------------------------------------------------------------------------


async def test_a_new_size_reaches_the_process_and_the_state(client: RawClient) -> None:
    shell = await Shell.open(client)
    await client.accepted(shell.uri, {"type": "terminal/resized", "cols": 132, "rows": 43})
    await shell.type("stty size\n")
    await shell.shows("43 132\r\n")
    await client.accepted(shell.uri, {"type": "terminal/resized", "cols": 132.0, "rows": 43})
    assert (await shell.subscribe())["cols"] == 132
    reason = await client.rejected(shell.uri, {"type": "terminal/resized", "cols": 70_000, "rows": 1})
    assert reason == "a terminal has at most 10000 columns and rows"


async def test_the_exit_code_is_in_the_state_and_in_the_list(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("exit 3\n")
    assert await shell.exited() == {"type": "terminal/exited", "exitCode": 3}
    state = await shell.subscribe()
    assert state["exitCode"] == 3
    found = await client.action(lambda envelope: envelope["action"].get("terminals", [{}])[0].get("exitCode") == 3)
    assert found["channel"] == "ahp-root://"
    assert await client.rejected(shell.uri, {"type": "terminal/input", "data": "x"}) == (
        "this terminal's process has exited"
    )


async def test_a_signal_is_said_because_no_code_can_tell(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("kill -9 $$\n")
    assert await shell.exited() == {"type": "terminal/exited"}
    assert "[ended by SIGKILL]" in shell.shown()
    assert await client.rejected(shell.uri, {"type": "terminal/input", "data": "x"}) == (
        "this terminal's process has exited"
    )


async def test_everything_comes_before_the_exit(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("seq 20000; exit\n")
    await shell.exited()
    assert "19999\r\n20000\r\n" in shell.shown()
    assert client.actions(shell.uri)[-1]["action"]["type"] == "terminal/exited"


async def test_characters_cut_by_reads_arrive_whole(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("printf '\\303'; sleep 0.05; printf '\\274'; sleep 0.05; printf '\\377'; exit\n")
    await shell.exited()
    assert shell.shown().endswith("ü\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("limits", [{"max_input": 300_000}])
async def test_a_process_that_does_not_read_is_not_sent_more_and_more(client: RawClient) -> None:
    paste = {"type": "terminal/input", "data": "x" * 100_000}
    shell = await Shell.open(client)
    await shell.type("stty raw -echo; echo ready; exec sleep 300\n")
    await shell.shows("ready\n")
    taken = 0
    while "rejectionReason" not in (envelope := await client.dispatch(shell.uri, paste)):
        taken += 1
    assert envelope["rejectionReason"] == "the process does not read its input; too much of it is waiting"
    assert 1 <= taken < 10


async def test_cleared_output_is_gone_for_who_comes_later(client: RawClient) -> None:
    shell = await Shell.open(client)
    await shell.type("echo $((40 + 2)); echo end\n")
    await shell.shows("42\r\nend\r\n")
    await client.accepted(shell.uri, {"type": "terminal/cleared"})
    assert "42" not in str((await shell.subscribe())["content"])


# -- titles and directories --------------------------------------------------------------------------------------------


async def test_a_process_names_its_terminal_and_says_where_it_is(client: RawClient, work: Path) -> None:
    shell = await Shell.open(client)
    await shell.type("printf '\\033]0;building\\007\\033]7;file:///tmp\\007'\n")
    assert (await client.action("terminal/titleChanged"))["action"]["title"] == "building"
    assert (await client.action("terminal/cwdChanged"))["action"]["cwd"] == "file:///tmp"
    found = await client.action(lambda envelope: "building" in str(envelope["action"].get("terminals")))
    assert found["action"]["terminals"][0]["title"] == "building"


@pytest.mark.parametrize("given", ["at creation", "later"])
async def test_a_title_that_a_person_gave_stays(client: RawClient, given: str) -> None:
    shell = await Shell.open(client, **({"name": "mine"} if given == "at creation" else {}))
    if given == "later":
        await client.accepted(shell.uri, {"type": "terminal/titleChanged", "title": "mine"})
    await shell.type("printf '\\033]0;theirs\\007'; echo $((40 + 2))\n")
    await shell.shows("42")
    assert (await shell.subscribe())["title"] == "mine"
    assert (await root_terminals(client, 1))[0]["title"] == ("mine" if given == "at creation" else "sh")


async def test_commands_are_told_apart_when_the_shell_marks_them(client: RawClient) -> None:
    shell = await Shell.open(client)
    marked = "\\033]633;E;make all\\007\\033]633;C\\007%s\\033]633;D;2\\007"
    await shell.type(f"printf '{marked}' $((40 + 2)); echo after\n")
    await client.action("terminal/commandFinished")
    await shell.shows("after\r\n")
    state = await shell.subscribe()
    command = next(part for part in state["content"] if part["type"] == "command")
    assert state["supportsCommandDetection"] is True
    assert (command["commandLine"], command["output"], command["exitCode"]) == ("make all", "42", 2)


# -- who holds it ------------------------------------------------------------------------------------------------------


async def test_only_the_holder_types_and_the_holder_hands_it_on(bench: TerminalBench, client: RawClient) -> None:
    other = await bench.client(client_id="other")
    mine = await Shell.open(client)
    theirs = Shell(other, mine.uri)
    await theirs.subscribe()
    held = "this terminal is held by another client"
    assert await other.rejected(mine.uri, {"type": "terminal/input", "data": "echo no\n"}) == held
    assert (await other.refused("disposeTerminal", mine.uri))["message"] == held
    claim = {"kind": "client", "clientId": "other"}
    await client.accepted(mine.uri, {"type": "terminal/claimed", "claim": claim})
    assert await client.rejected(mine.uri, {"type": "terminal/input", "data": "echo no\n"}) == held
    await theirs.type("echo $((40 + 2))\n")
    await mine.shows("42\r\n")
    assert "echo no" not in mine.shown()
    found = await client.action(lambda envelope: envelope["action"].get("terminals", [{}])[0].get("claim") == claim)
    assert found["channel"] == "ahp-root://"


async def test_a_terminal_is_handed_only_to_who_is_there(client: RawClient) -> None:
    shell = await Shell.open(client)
    absent = {"kind": "client", "clientId": "absent"}
    assert await client.rejected(shell.uri, {"type": "terminal/claimed", "claim": absent}) == (
        "client 'absent' is not connected"
    )
    nothing = {"kind": "session", "session": "ahp-session:/nothing"}
    assert await client.rejected(shell.uri, {"type": "terminal/claimed", "claim": nothing}) == (
        "there is no session ahp-session:/nothing"
    )


async def test_a_terminal_outlives_its_holders_connection_and_others_may_dispose_of_it(
    bench: TerminalBench, client: RawClient
) -> None:
    other = await bench.client("ahp-root://", client_id="other")
    shell = await Shell.open(client)
    await client.aclose()
    watching = Shell(other, shell.uri)
    await watching.subscribe()
    back = await bench.client(client_id="me")
    again = Shell(back, shell.uri)
    await again.subscribe()
    await again.type("echo $((40 + 2))\n")
    await watching.shows("42\r\n")
    await back.aclose()
    async with asyncio.timeout(BOUND):
        while (await other.call("disposeTerminal", shell.uri)).get("error"):
            pass
    assert await root_terminals(other, 0) == []


# -- ending ------------------------------------------------------------------------------------------------------------


async def job(shell: Shell, start: str = "sleep 300 & echo job $!.") -> int:
    """Start a job, by default in the background; its process id."""
    await shell.type(f"{start}\n")
    await shell.client.wait(lambda _: _JOB.search(shell.shown()) is not None)
    found = _JOB.search(shell.shown())
    assert found is not None
    return int(found.group(1))


_JOB = re.compile(r"job (\d+)\.")


async def test_disposing_ends_what_runs_in_the_background(client: RawClient) -> None:
    shell = await Shell.open(client)
    pid = await job(shell)
    assert is_alive(pid)
    await client.ask("disposeTerminal", shell.uri)
    assert not is_alive(pid)
    assert (await client.refused("disposeTerminal", shell.uri))["code"] == -32008


async def test_disposing_goes_on_when_the_client_leaves(bench: TerminalBench, client: RawClient) -> None:
    other = await bench.client("ahp-root://")
    shell = await Shell.open(client)
    pid = await job(shell, "trap 'sleep 0.2; exit' HUP; echo job $$.; while :; do sleep 0.02; done")
    client.send({"jsonrpc": "2.0", "id": 99, "method": "disposeTerminal", "params": {"channel": shell.uri}})
    await client.ask("ping")
    await client.aclose()
    assert await root_terminals(other, 0) == []
    assert not is_alive(pid)


async def test_a_session_takes_its_terminals_with_it(bench: TerminalBench, client: RawClient) -> None:
    session, _ = await bench.session(client)
    held = await Shell.open(client, "held")
    pid = await job(held)
    await client.accepted(held.uri, {"type": "terminal/claimed", "claim": {"kind": "session", "session": session}})
    kept = await Shell.open(client, "kept")
    await root_terminals(client, 2)
    await client.ask("disposeSession", session)
    await client.action(
        lambda envelope: [listed["resource"] for listed in envelope["action"].get("terminals", ())] == [kept.uri]
    )
    await gone(pid)
    await kept.type("echo $((40 + 2))\n")
    await kept.shows("42\r\n")


async def test_a_host_that_stops_ends_its_terminals_and_starts_without_them(
    bench: TerminalBench, client: RawClient
) -> None:
    shell = await Shell.open(client)
    pid = await job(shell)
    await bench.stop()
    assert not is_alive(pid)
    bench.renew()
    await bench.start()
    again = await bench.client()
    assert (await bench.state(again, "ahp-root://"))["terminals"] == []
    assert (await again.refused("subscribe", shell.uri))["code"] == -32008


async def test_a_host_that_was_killed_starts_without_its_terminals(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--terminals") as first:
        client = await first.client("ahp-root://", client_id="me")
        shell = await Shell.open(client)
        pid = await job(shell, "sh -c 'echo job $$.; exec sleep 300'")
        first.kill()
        await client.aclose()
    await gone(pid)
    async with host_process(tmp_path, "--terminals") as second:
        client = await second.client()
        assert (await client.ask("subscribe", "ahp-root://"))["snapshot"]["state"]["terminals"] == []
        assert (await client.refused("subscribe", shell.uri))["code"] == -32008
        await client.aclose()


async def test_nothing_is_left_open_by_terminals_that_came_and_went(client: RawClient) -> None:
    await client.ask("disposeTerminal", (await Shell.open(client, "warm")).uri)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        shell = await Shell.open(client, f"n{number}")
        await client.ask("disposeTerminal", shell.uri)
    assert len(os.listdir("/proc/self/fd")) <= before


# -- floods ------------------------------------------------------------------------------------------------------------


async def test_a_flood_is_bounded_in_every_state_and_the_host_answers_meanwhile(
    bench: TerminalBench, client: RawClient
) -> None:
    shell = await Shell.open(client)
    snapshot = (await client.ask("subscribe", shell.uri))["snapshot"]
    watching = await bench.client(client_id="watching")
    await shell.type("yes | head -c 4M; echo $((40 + 2)); exit\n")
    pings = 0
    async with asyncio.timeout(BOUND):
        while not shell.has_exited():
            await watching.ask("ping")
            watching.received.clear()
            pings += 1
    assert pings > 100
    assert len(shell.shown()) > 6_000_000
    state = await shell.subscribe()
    text = "".join(part["value"] for part in state["content"])
    assert output.KEPT / 2 < len(text) <= output.MAX_KEPT
    assert text.startswith("y\r\n")
    assert text.endswith("y\r\n42\r\n")
    mirrored = snapshot["state"]
    for envelope in client.actions(shell.uri):
        if envelope["serverSeq"] > snapshot["fromSeq"]:
            mirrored = terminal_reducer(mirrored, envelope["action"], now=0)
    same = mirrored == state
    assert same, "not compared above: pytest would print it all"


class Disk(MemoryStorage):
    """A storage that can be full."""

    full = False

    def commit(self, batch: Batch) -> None:
        if self.full:
            raise StorageError("the disk is full")
        super().commit(batch)


@pytest.fixture
async def disk(work: Path) -> AsyncGenerator[tuple[TerminalBench, Disk]]:
    bench = TerminalBench(work)
    bench.storage = disk = Disk()
    bench.renew()
    await bench.start()
    try:
        yield bench, disk
    finally:
        disk.full = False
        await bench.stop()


async def filled(disk: tuple[TerminalBench, Disk], work: Path) -> tuple[Shell, Path]:
    """A terminal that printed more than fits while the disk was full, and the file that says that it got through."""
    bench, storage = disk
    shell = await Shell.open(await bench.client(client_id="me"))
    go, through = work / "go", work / "through"
    await shell.type(
        f"echo ready; until test -e {go}; do sleep 0.01; done; yes | head -c 200K; touch {through}; exit 5\n"
    )
    await shell.shows("ready\r\n")
    storage.full = True
    go.touch()
    async with asyncio.timeout(BOUND):
        while bench.host.spine.log.failing is None:
            await shell.client.ask("ping")
    return shell, through


async def test_a_full_disk_stops_the_output_and_nothing_is_lost(disk: tuple[TerminalBench, Disk], work: Path) -> None:
    shell, through = await filled(disk, work)
    assert disk[0].host.spine.store.backlog < 10
    assert not through.exists()
    disk[1].full = False
    assert (await shell.exited())["exitCode"] == 5
    assert shell.shown().rpartition("ready\r\n")[2] == "y\r\n" * 100 * 1024


async def test_a_full_disk_does_not_keep_a_process_alive(disk: tuple[TerminalBench, Disk], work: Path) -> None:
    shell, through = await filled(disk, work)
    error = await shell.client.refused("disposeTerminal", shell.uri)
    assert "the disk is full" in error["message"]
    assert not through.exists()
    disk[1].full = False


@requirement("gen:project-action:terminal-claim-up")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.7.0", "0.8.0"])
async def test_a_session_that_takes_a_terminal_in_older_words_takes_it_for_its_default_chat(
    bench: TerminalBench, version: str
) -> None:
    older = await bench.client("ahp-root://", client_id="me", offer=[version])
    session, chat = await bench.session(older)
    taken = {"kind": "session", "session": session}
    shells = [await Shell.open(older, "given"), await Shell.open(older, "made", claim=taken)]
    await older.accepted(shells[0].uri, {"type": "terminal/claimed", "claim": taken})
    newest = await bench.client("ahp-root://", client_id="new", offer=["1.0.0"])
    for shell in shells:
        assert (await bench.state(newest, shell.uri))["claim"] == {**taken, "chat": chat}


async def test_it_starts_in_the_directory_of_a_session_that_rests(bench: TerminalBench, tmp_path: Path) -> None:
    """After a restart nobody has looked at the session yet."""
    client = await bench.client("ahp-root://", client_id="me")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    await bench.session(client, workingDirectory=elsewhere.as_uri())
    await bench.stop()
    bench.renew()
    await bench.start()
    back = await bench.client("ahp-root://", client_id="me")
    assert await back.ask("createTerminal", "ahp-terminal:/t", claim=MINE, cwd=elsewhere.as_uri()) is None
