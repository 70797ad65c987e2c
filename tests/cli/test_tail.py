"""`ahpkit tail`: what happens on a channel, for people and for programs. A real host."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.tail import describe
from ahpkit.wire.tasks import running
from support.bench import say
from support.process import HostProcess, finish_cli, run_cli, start_host
from support.raw_client import RawClient
from support.shell import shell
from support.template import Started
from support.waiting import BOUND, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Tail:
    """A running `ahpkit tail`."""

    def __init__(self, process: Started) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self.output, self.errors = process.stdout, process.stderr

    async def line(self) -> str:
        async with asyncio.timeout(BOUND):
            return (await self.output.readline()).decode()

    async def note(self) -> str:
        """A line on standard error."""
        async with asyncio.timeout(BOUND):
            return (await self.errors.readline()).decode()

    async def json(self) -> Any:
        return json.loads(await self.line())

    async def until(self, type: str) -> Any:
        """The next envelope of that type."""
        while (envelope := await self.json()).get("action", {}).get("type") != type:
            pass
        return envelope


@asynccontextmanager
async def tailing(home: Path, *arguments: str) -> AsyncGenerator[Tail]:
    process = await run_cli(["tail", *arguments], home)
    try:
        yield Tail(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def new_session(client: RawClient) -> tuple[str, str]:
    """A ready session and its chat."""
    uri = f"ahp-session:/{client.client_id}"
    await client.ask("createSession", uri)
    state = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await client.action("session/ready")
    return uri, state["defaultChat"]


async def test_programs_get_the_snapshot_and_every_envelope(host: HostProcess) -> None:
    client = await host.client(client_id="tail-json")
    _, chat = await new_session(client)
    async with tailing(host.home, chat, "--json") as tail:
        snapshot = await tail.json()
        assert (snapshot["resource"], snapshot["state"]["turns"]) == (chat, [])
        await client.ask("subscribe", chat)
        sent = await client.accepted(chat, say("hello"))
        told = await tail.json()
        assert (told["serverSeq"], told["origin"]) == (sent["serverSeq"], sent["origin"])
        assert told["action"].items() >= sent["action"].items(), "the newest form may say more"
        await tail.until("chat/turnComplete")
    await client.aclose()


async def test_people_get_a_line_for_each_action(host: HostProcess) -> None:
    client = await host.client(client_id="tail-people")
    session, _ = await new_session(client)
    async with tailing(host.home, session) as tail:
        assert await tail.note() == f"following {session}\n"
        envelope = await client.accepted(session, {"type": "session/titleChanged", "title": "Better"})
        line = await tail.line()
        assert line.split() == [str(envelope["serverSeq"]), "session/titleChanged", "Better", "by", "tail-people"]
    await client.aclose()


async def test_a_session_by_its_title_stands_for_all_its_chats_and_those_to_come(host: HostProcess) -> None:
    client = await host.client(client_id="tail-whole")
    session, chat = await new_session(client)
    await client.accepted(session, {"type": "session/titleChanged", "title": "The whole of it"})
    async with tailing(host.home, "the whole", "--json") as tail:
        assert {(await tail.json())["resource"], (await tail.json())["resource"]} == {session, chat}
        client.post(chat, say("/subagent count"))
        added = await tail.until("session/chatAdded")
        helper = added["action"]["summary"]["resource"]
        async with asyncio.timeout(BOUND):
            while (await tail.json()).get("resource") != helper:
                pass
    await client.aclose()


async def test_telemetry_is_shown_in_lines_and_as_it_was_sent(host: HostProcess) -> None:
    async with tailing(host.home, "ahp-otlp:/metrics") as tail:
        assert await tail.note() == "following ahp-otlp:/metrics\n"
        assert re.fullmatch(r"\d\d:\d\d:\d\d  [a-z_.]+  [\d.]+ \S*.*\n", await tail.line())
    async with tailing(host.home, "ahp-otlp:/metrics", "--json") as tail:
        assert await tail.json() == {"resource": "ahp-otlp:/metrics", "state": None}
        assert (await tail.json())["payload"]["resourceMetrics"]


async def test_ctrl_c_ends_it(host: HostProcess) -> None:
    client = await host.client(client_id="tail-interrupted")
    session, _ = await new_session(client)
    async with tailing(host.home, session) as tail:
        await tail.note()
        tail.process.send_signal(signal.SIGINT)
        output, errors = await tail.process.communicate()
        assert (tail.process.returncode, output, errors) == (130, b"", b"")
    await client.aclose()


async def test_it_ends_with_the_reader_of_its_pipe_and_does_not_wait_for_an_action(host: HostProcess) -> None:
    code, output, errors = await shell("ahpkit tail ahp-root:// --json | head -1", host.home)
    assert (code, errors) == (0, "")
    assert json.loads(output)["resource"] == "ahp-root://"


async def test_a_disk_that_gets_full_meanwhile_ends_it_with_one_line(host: HostProcess) -> None:
    client = await host.client(client_id="tail-full")
    _, chat = await new_session(client)
    told = host.home / "told.jsonl"
    async with running(shell(f"ulimit -f 64; ahpkit tail {chat} --json > {told}", host.home)) as ended:
        await until(lambda: told.exists() and told.stat().st_size)
        await client.ask("subscribe", chat)
        await client.accepted(chat, say("/stream 300"))
        assert await ended == (1, "", "Error: something could not be written: File too large\n")
    await client.aclose()


async def test_it_goes_on_when_the_host_was_restarted(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    try:
        async with tailing(tmp_path, "ahp-root://", "--json") as tail:
            await tail.json()
            await host.stop()
            assert await tail.note() == "! connection lost; trying to get it back\n"
            host = await start_host(tmp_path)
            assert await tail.note() == "! connected again\n"
            client = await host.client()
            await client.ask("createSession", "ahp-session:/after")
            await tail.until("root/activeSessionsChanged")
            await client.aclose()
    finally:
        await host.stop()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nothing", "there is no session 'nothing'; see: ahpkit sessions list --all"),
        ("ahp-session:/nothing", "there is no session ahp-session:/nothing\n"),
        ("ahp-chat:/nothing", "there is no channel ahp-chat:/nothing\n"),
    ],
)
async def test_what_is_not_there_is_said_in_a_line(host: HostProcess, name: str, problem: str) -> None:
    code, output, errors = await finish_cli(["tail", name], host.home)
    assert (code, output, errors.count("\n")) == (1, "", 1)
    assert errors.startswith(f"Error: {problem}")


async def test_a_channel_that_is_removed_ends_it(host: HostProcess) -> None:
    client = await host.client(client_id="tail-removed")
    session, _ = await new_session(client)
    async with tailing(host.home, session) as tail:
        await tail.note()
        await client.ask("disposeSession", session)
        _, errors = await asyncio.wait_for(tail.process.communicate(), BOUND)
        assert tail.process.returncode == 1
        assert errors.decode().startswith(f"Error: {session}: ")
    await client.aclose()


async def test_a_long_action_is_cut_and_a_refusal_is_named() -> None:
    action = {"type": "chat/delta", "content": "x" * 1000}
    envelope = {"channel": "c", "serverSeq": 7, "action": action, "rejectionReason": "no"}
    line = describe(envelope)
    assert line.startswith("       7  chat/delta  xxx")
    assert line.endswith("xxx…  refused: no")
    assert len(line) < 220
