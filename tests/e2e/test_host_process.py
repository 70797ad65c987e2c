"""A real host process over real sockets: starting, refusing, stopping, crashing, coming back."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from support import requirement
from support.process import finish_cli, host_process, start_host
from support.raw_client import BOUND, Json, RawClient

from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import ConnectError

ROOT = "ahp-root://"


def say(text: str, turn_id: str) -> Json:
    return {"type": "chat/turnStarted", "turnId": turn_id, "message": {"text": text, "origin": {"kind": "user"}}}


async def session(client: RawClient, uri: str = "ahp-session:/s") -> str:
    """A ready session's default chat, both subscribed."""
    await client.ask("createSession", uri)
    state = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await client.action("session/ready")
    await client.ask("subscribe", state["defaultChat"])
    return state["defaultChat"]


@requirement("core:wire:one-message-per-frame")
async def test_a_turn_of_the_demo_agent_streams_over_a_websocket(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        chat = await session(client)
        await client.accepted(chat, say("hello", "t1"))
        await client.action("chat/turnComplete")
        state = (await client.ask("subscribe", chat))["snapshot"]["state"]
        assert state["turns"][0]["responseParts"][0]["content"]
        await client.aclose()


async def test_the_announcement_says_how_to_connect_and_the_token_is_private(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        assert set(host.announced) == {"url", "token", "pid", "dataDir"}
        assert host.announced["pid"] == host.process.pid
        token_file = Path(host.announced["dataDir"]) / "token"
        assert token_file.read_text().strip() == host.token
        assert token_file.stat().st_mode & 0o777 == 0o600
        try:
            await connect_transport(host.url, token="wrong")
        except ConnectError as error:
            assert "token" in str(error)
        else:
            raise AssertionError("a wrong token was let in")


async def test_ctrl_c_stops_the_host_and_removes_its_endpoint(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    client = await host.client()
    endpoints = list((tmp_path / "runtime").rglob("*.json"))
    assert len(endpoints) == 1
    assert endpoints[0].stat().st_mode & 0o777 == 0o600
    assert await host.stop(signal.SIGINT) == 0
    assert (await client.wait_closed()).reason
    assert not endpoints[0].exists()


async def test_a_second_host_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", str(tmp_path / "data")], tmp_path)
        assert code != 0
        assert f"process {host.process.pid}" in errors
        assert "Traceback" not in errors


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        port = host.url.rpartition(":")[2]
        code, _, errors = await finish_cli(["serve", "--port", port, "--data-dir", str(tmp_path / "other")], tmp_path)
        assert code != 0
        assert "in use" in errors
        assert "Traceback" not in errors


async def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", str(tmp_path / "file")], tmp_path)
    assert code != 0
    assert str(tmp_path / "file") in errors
    assert "Traceback" not in errors


async def test_listening_beyond_loopback_without_a_token_is_refused(tmp_path: Path) -> None:
    arguments = ["serve", "--host", "0.0.0.0", "--no-token", "--port", "0", "--data-dir", str(tmp_path / "d")]
    code, _, errors = await finish_cli(arguments, tmp_path)
    assert code != 0
    assert "loopback" in errors


async def test_without_a_token_only_when_asked_for(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--no-token") as host:
        assert host.token is None
        client = await host.client()
        assert await client.ask("ping") is None
        await client.aclose()


async def test_a_damaged_database_is_kept_and_the_host_starts(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client()
        await session(client)
        await client.aclose()
        await host.stop()
    database = tmp_path / "data" / "log.db"
    database.write_bytes(b"this is no database" * 100)
    async with host_process(tmp_path) as host:
        client = await host.client()
        assert await client.ask("ping") is None
        await client.aclose()
        await host.stop()
        assert host.process.stderr is not None
        errors = (await host.process.stderr.read()).decode()
    assert "damaged" in errors or "not a database" in errors
    assert len(list((tmp_path / "data").glob("log.db*corrupt*"))) >= 1


async def test_a_client_that_was_away_over_a_restart_gets_a_replay(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(client_id="traveller")
        await session(client)
        last = (await client.accepted("ahp-session:/s", {"type": "session/titleChanged", "title": "one"}))["serverSeq"]
        other = await host.client(client_id="other")
        await other.ask("subscribe", "ahp-session:/s")
        missed = await other.accepted("ahp-session:/s", {"type": "session/titleChanged", "title": "two"})
        host.kill()
        await host.process.wait()
    async with host_process(tmp_path) as host:
        back = await host.connect("traveller")
        result = await back.ask(
            "reconnect", clientId="traveller", lastSeenServerSeq=last, subscriptions=["ahp-session:/s"]
        )
        assert result["type"] == "replay"
        assert missed in result["actions"]
        await back.aclose()


async def test_nothing_echoed_is_lost_when_the_host_is_killed_under_load(tmp_path: Path) -> None:
    """Rounds of kill -9 while clients dispatch: every echo is in the log afterwards, serverSeq never goes back."""
    echoed: list[Json] = []
    for round_number in range(int(os.environ.get("AHPKIT_KILL_ROUNDS", "5"))):
        async with host_process(tmp_path) as host:
            client = await host.client(client_id=f"round-{round_number}")
            if round_number == 0:
                await session(client)
            else:
                await client.ask("subscribe", "ahp-session:/s")
            head = (await client.accepted("ahp-session:/s", {"type": "session/isReadChanged", "isRead": True}))
            if echoed:
                assert head["serverSeq"] > max(envelope["serverSeq"] for envelope in echoed)
            await _load_until_killed(client, host.kill, after=40 + 37 * round_number)
            await host.process.wait()
            echoed += [e for e in client.actions("ahp-session:/s") if e["action"]["type"] == "session/titleChanged"]
            await client.aclose()
    async with host_process(tmp_path) as host:
        client = await host.connect("checker")
        result = await client.ask("reconnect", clientId="checker", lastSeenServerSeq=0, subscriptions=["ahp-session:/s"])
        if result["type"] == "snapshot":
            result = {"actions": await _replay(host.home, host, client)}
        logged = {envelope["serverSeq"]: envelope for envelope in result["actions"]}
        assert len(echoed) > 0
        for envelope in echoed:
            assert logged[envelope["serverSeq"]] == envelope
        await client.aclose()


async def _load_until_killed(client: RawClient, kill: object, *, after: int) -> None:
    """Dispatch without pause; kill the host once that many echoes came back."""
    assert callable(kill)
    killed = False
    async with asyncio.timeout(BOUND * 3):
        for number in range(100_000):
            client.post("ahp-session:/s", {"type": "session/titleChanged", "title": f"title {number}"})
            if number % 20 == 0:
                await asyncio.sleep(0)
            if not killed and len(client.actions("ahp-session:/s")) >= after:
                kill()
                killed = True
            if client.closed is not None:
                return


async def _replay(home: Path, host: object, client: RawClient) -> list[Json]:
    raise AssertionError("the log should reach back to the beginning")
