"""What was echoed is there after a restart, whatever happens to the files of the log under a running host."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.flow import open_session, state_of, title
from support.process import host_process

ROOT = "ahp-root://"
SESSIONS = 5


def cut(wal: Path) -> None:
    os.truncate(wal, 0)


def halve(wal: Path) -> None:
    os.truncate(wal, wal.stat().st_size // 2)


def overwrite(wal: Path) -> None:
    wal.write_bytes(b"x\n")


@pytest.mark.parametrize(
    ("harm", "end"), [(cut, "kill"), (halve, "kill"), (overwrite, "stop"), (halve, "stop at once")]
)
async def test_a_write_ahead_log_that_is_cut_off_costs_nothing(
    tmp_path: Path, harm: Callable[[Path], None], end: str
) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        sessions = [(await open_session(client))[0] for _ in range(SESSIONS)]
        for number, session in enumerate(sessions):
            await client.accepted(session, title(f"echoed {number}"))
        wal = tmp_path / "data" / "log.db-wal"
        at_rest = not wal.stat().st_size  # This took long: everything is in the main file already.
        harm(wal)
        if end != "stop at once":
            await client.accepted(sessions[0], title("echoed after it"))
        await client.aclose()
        if end == "kill":
            host.kill()
            await host.ended()
        else:
            assert await host.stop() == 0
    assert at_rest or "it was cut off while it was in use; it is made again" in host.errors
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        titles = [(await state_of(client, session))["summary"]["title"] for session in sessions]
        await client.aclose()
    first = "echoed 0" if end == "stop at once" else "echoed after it"
    assert titles == [first, *(f"echoed {number}" for number in range(1, SESSIONS))]
    assert "damaged" not in host.errors


FIRST_PAGE = 32 + 24 + 100
"""Where a byte of it is, behind the header of the log and that of its first frame."""


async def test_bytes_of_the_write_ahead_log_that_changed_after_a_crash_are_said_to_have_changed(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, _ = await open_session(client)
        echoed = [(await client.accepted(session, title(f"echoed {number}")))["serverSeq"] for number in range(20)]
        host.kill()
        await host.ended()
    wal = tmp_path / "data" / "log.db-wal"
    data = bytearray(wal.read_bytes())
    data[FIRST_PAGE] ^= 1  # Further on may be what is left of an earlier log, which is not read.
    wal.write_bytes(data)
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        result = await client.call("subscribe", session)
        if "result" in result:
            assert result["result"]["snapshot"]["fromSeq"] > echoed[-1], "no number is given out twice"
        await client.aclose()
    assert "the write-ahead log log.db-wal is damaged" in host.errors


def behind_a_link(wal: Path) -> None:
    wal.rename(wal.with_name("elsewhere"))
    wal.symlink_to("elsewhere")


def replaced(wal: Path) -> None:
    wal.rename(wal.with_name("elsewhere"))
    wal.write_bytes(b"something else" * 100)


@pytest.mark.parametrize("harm", [Path.unlink, replaced, behind_a_link])
async def test_a_write_ahead_log_that_is_replaced_costs_nothing(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """SQLite opens none behind a link: after a crash the host did not start."""
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, _ = await open_session(client)
        await client.accepted(session, title("echoed"))
        harm(tmp_path / "data" / "log.db-wal")
        await client.accepted(session, title("echoed after it"))
        host.kill()
        await host.ended()
    assert any(said in host.errors for said in ("it was put back", "it is made again"))
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        assert (await state_of(client, session))["summary"]["title"] == "echoed after it"
        await client.aclose()
    assert "damaged" not in host.errors
