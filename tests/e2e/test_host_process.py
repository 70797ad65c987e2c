"""A real host process over real sockets: starting, refusing, stopping, crashing, coming back."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

import pytest

from ahpkit.protocol.common.reducing import iso_time
from ahpkit.testing.acp_agent import scripted_command
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import ConnectError
from support import requirement
from support.flow import open_session, say, title
from support.process import host_process, start_host
from support.waiting import gone, is_alive

ROOT = "ahp-root://"
SESSION = "ahp-session:/s"


@requirement("core:wire:one-message-per-frame")
async def test_a_turn_of_the_demo_agent_streams_over_a_websocket(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        _, chat = await open_session(client)
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        state = (await client.ask("subscribe", chat))["snapshot"]["state"]
        assert state["turns"][0]["responseParts"][0]["content"]
        await client.aclose()


async def test_the_announcement_says_how_to_connect_and_the_token_is_private(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        assert set(host.announced) == {"url", "token", "pid", "dataDir", "agents", "page"}
        assert host.announced["pid"] == host.process.pid
        token_file = Path(host.announced["dataDir"]) / "token"
        assert token_file.read_text().strip() == host.token
        assert token_file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConnectError, match="token"):
            await connect_transport(host.url, token="wrong")


async def test_ctrl_c_stops_the_host_and_removes_its_endpoint(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    client = await host.client()
    endpoints = list((tmp_path / "runtime").rglob("*.json"))
    assert len(endpoints) == 1
    assert endpoints[0].stat().st_mode & 0o777 == 0o600
    assert await host.stop(signal.SIGINT) == 0
    assert (await client.wait_closed()).reason
    assert not endpoints[0].exists()


@requirement("session:stop:last-words")
async def test_a_host_that_is_told_to_stop_says_how_everything_ended_before_it_closes(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    client = await host.client(ROOT)
    session, chat = await open_session(client)
    canvas = {"canvasId": "numbers", "displayName": "Numbers", "description": "Shows numbers"}
    me = {"clientId": "tester", "tools": [], "canvasProviders": [canvas], "canRenderCanvases": True}
    await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": me})
    await client.action("session/canvasRegistryChanged")
    await client.accepted(chat, say("/canvas open numbers n1"))
    await client.action("session/canvasRequestCreated")
    assert await host.stop() == 0
    assert "shutting down" in (await client.wait_closed()).reason
    told = {envelope["action"]["type"]: envelope["action"] for envelope in client.actions()}
    assert told["session/canvasRequestCancelled"]["reason"] == "hostShutdown"
    assert told["chat/error"]["error"]["errorType"] == "host/stopped"
    listed = [one["params"] for one in client.received if one.get("method") == "root/sessionSummaryChanged"]
    assert listed[-1]["changes"]["status"] & 31 == 2


async def test_a_client_that_was_away_over_a_restart_gets_a_replay(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(client_id="traveller")
        await open_session(client, SESSION)
        last = (await client.accepted(SESSION, title("one")))["serverSeq"]
        other = await host.client(client_id="other")
        await other.ask("subscribe", SESSION)
        missed = await other.accepted(SESSION, title("two"))
        host.kill()
        await host.ended()
    async with host_process(tmp_path) as host:
        back = await host.connect("traveller")
        result = await back.ask("reconnect", clientId="traveller", lastSeenServerSeq=last, subscriptions=[SESSION])
        assert result["type"] == "replay"
        assert missed in result["actions"]
        await back.aclose()


async def test_what_an_agent_of_a_killed_host_left_running_ends_when_the_next_host_starts(tmp_path: Path) -> None:
    command = shlex.join(scripted_command(tmp_path / "script.json", turns=[[{"spawn": "daemon"}, {"sleep": None}]]))
    async with host_process(tmp_path, "--agent", f"scripted={command}") as host:
        client = await host.client()
        _, chat = await open_session(client)
        client.post(chat, say("go"))
        said = await client.action("chat/delta")
        host.kill()
        await host.ended()
    left = int(said["action"]["content"])
    assert is_alive(left)

    async with host_process(tmp_path):
        await gone(left)


async def test_a_clock_that_was_far_ahead_for_a_while_leaves_nothing_in_the_future(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    async with host_process(tmp_path, through=("support.jumpy_host", str(clock))) as host:
        client = await host.client(ROOT)
        session, _ = await open_session(client)

        async def changed(text: str, ahead: int) -> int:
            clock.write_text(str(ahead))
            host.process.send_signal(signal.SIGUSR2)
            await client.ask("ping")  # Whoever is asked after the signal has read the clock.
            await client.accepted(session, title(text))
            return (await client.ask("subscribe", session))["snapshot"]["state"]["summary"]["modifiedAt"]

        before, ahead, after = await changed("a", 0), await changed("b", 86_400), await changed("c", 0)
        assert ahead >= before + 86_000_000
        assert before <= after < before + 3_600_000
        [listed] = (await client.ask("listSessions"))["items"]
        assert listed["modifiedAt"] == after
        await client.aclose()


async def test_what_a_wrong_clock_wrote_is_not_listed_in_the_future_after_a_restart(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text(str(365 * 86_400))
    async with host_process(tmp_path, through=("support.jumpy_host", str(clock))) as host:
        client = await host.client(ROOT)
        session, chat = await open_session(client)
        await client.accepted(session, title("from the future"))
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        host.kill()
        await host.ended()
    async with host_process(tmp_path) as host:
        client = await host.connect()
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        [listed] = (await client.ask("listSessions"))["items"]
        soon = iso_time(time.time_ns() // 1_000_000 + 3_600_000)
        assert listed["createdAt"] <= listed["modifiedAt"] < soon
        await client.aclose()
