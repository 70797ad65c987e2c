"""A stop always ends within its deadline, whatever hangs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.flow import open_session, title
from support.process import host_process, start_host

ROOT = "ahp-root://"


@pytest.mark.parametrize("hangs", ["a thread", "the loop"])
async def test_a_host_in_which_something_hangs_ends_and_what_was_echoed_is_there(tmp_path: Path, hangs: str) -> None:
    host = await start_host(tmp_path, through=("support.stuck_host",))
    client = await host.client(ROOT)
    session, _ = await open_session(client)
    await client.accepted(session, title("echoed"))
    if hangs == "the loop":
        host.process.send_signal(signal.SIGUSR1)
    assert await host.stop() == 70
    assert "did not stop within 1 s" in host.errors
    async with host_process(tmp_path) as again:
        reader = await again.client(session)
        state = (await reader.ask("subscribe", session))["snapshot"]["state"]
        assert state["summary"]["title"] == "echoed"
        await reader.aclose()
