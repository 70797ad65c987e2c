"""A real host on a real disk that is full, or that it may not write to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.flow import open_session, state_of, title
from support.process import finish_cli, host_process, run_cli
from support.raw_client import RawClient
from support.small_disk import fill, needs_mount, small_disk
from support.terminal import terminal
from support.waiting import BOUND

ROOT = "ahp-root://"
TEXT = "x" * 20_000


async def write_until_full(client: RawClient, session: str) -> list[int]:
    """Dispatch until one is refused; the numbers of what was echoed before. What found the disk full waits for room."""
    async with asyncio.timeout(BOUND):
        while not any("rejectionReason" in said for said in client.actions(session)):
            client.post(session, title(TEXT))
            await client.ask("ping")
    return [said["serverSeq"] for said in client.actions(session) if "rejectionReason" not in said]


@needs_mount
async def test_a_full_disk_refuses_actions_serves_reads_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        async with host_process(tmp_path) as host:
            client = await host.client(ROOT)
            session, chat = await open_session(client)
            filler = fill(data)
            echoed = await write_until_full(client, session)

            reason = await client.rejected(session, title("more"))
            assert "the disk is full" in reason
            refused = await client.refused("createSession", "ahp-session:/new")
            assert "the disk is full" in refused["message"]
            assert await client.ask("ping") is None
            assert [item["resource"] for item in (await client.ask("listSessions"))["items"]] == [session]
            reader = await host.client(session, chat, client_id="reader")
            assert (await state_of(reader, session))["lifecycle"] == "ready"

            filler.unlink()
            fits = await _accepted_again(client, session)
            assert fits > max(echoed, default=0)
            waited = [said for said in client.actions(session) if said["serverSeq"] not in (*echoed, fits)]
            host.kill()
        async with host_process(tmp_path) as host:
            client = await host.connect("back")
            result = await client.ask("reconnect", clientId="back", lastSeenServerSeq=0, subscriptions=[session])
            if result["type"] == "replay":
                logged = {said["serverSeq"] for said in result["actions"]}
                accepted = {said["serverSeq"] for said in waited if "rejectionReason" not in said}
                assert {*echoed, fits, *accepted} <= logged
            else:
                assert result["snapshots"][0]["fromSeq"] >= fits
            await client.aclose()


@needs_mount
async def test_a_prompt_that_runs_when_the_disk_gets_full_says_why_it_waits(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        async with host_process(tmp_path):
            prompt = await run_cli(["prompt", "/stream 100000"], tmp_path)
            assert prompt.stdout is not None
            assert prompt.stderr is not None
            assert await prompt.stdout.readexactly(10)
            fill(data)
            reading = asyncio.create_task(prompt.stdout.read())
            async with asyncio.timeout(BOUND):
                while b"the disk is full" not in (line := await prompt.stderr.readline()):
                    assert line, "it ended without a word"
            assert line.startswith(b"! waiting: the host cannot store anything")
            prompt.kill()
            await prompt.wait()
            await reading


@needs_mount
async def test_a_chat_whose_turn_runs_when_the_disk_gets_full_says_why_it_waits(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        async with host_process(tmp_path), terminal(["chat"], tmp_path) as person:
            person.enter("/stream 100000")
            await person.see("delta 1")
            fill(data)
            await person.see("! waiting: the host cannot store anything")
            person.interrupt()
            await person.see("Ctrl-C again leaves")
            person.interrupt()
            await person.exited()


async def _accepted_again(client: RawClient, session: str) -> int:
    """Try until there is room; the serverSeq of what was taken."""
    async with asyncio.timeout(BOUND):
        while "rejectionReason" in (said := await client.dispatch(session, title("fits"))):
            await client.ask("ping")
    return said["serverSeq"]


@needs_mount
async def test_a_disk_without_room_for_a_database_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "data") as data:
        filler = fill(data)
        code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", str(data)], tmp_path)
        assert code != 0
        assert str(data) in errors
        assert "Traceback" not in errors
        filler.unlink()
        async with host_process(tmp_path) as host:
            client = await host.client()
            await client.aclose()


@contextmanager
def not_writable(place: Path) -> Generator[Path]:
    """A directory that exists and that this user may not write to, also when this user is root."""
    if os.geteuid() == 0:
        with small_disk(place, mode="ro"):
            yield place
    else:
        place.mkdir(mode=0o500)
        yield place


async def test_a_data_directory_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with not_writable(tmp_path / "data") as data:
        for place in (data, data / "below"):
            code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", str(place)], tmp_path)
            assert code != 0
            assert str(place) in errors
            assert "Traceback" not in errors
