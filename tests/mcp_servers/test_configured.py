"""Servers of the host's configuration: at the top level, per session or shared, handed over; and what rules say."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.mcp.feature import McpServers
from mcp_servers.http_server import Guard, http_server
from mcp_servers.running import PROGRAM, QUICK
from support import requirement
from support.bench import Bench, approve, calling, say
from support.mirrors import Mirror, reduced_by_0_4
from support.raw_client import Json, RawClient
from support.waiting import until


@asynccontextmanager
async def host(tmp_path: Path, *servers: Json, home: Path | None = None) -> AsyncGenerator[Bench]:
    """A host with these configured servers; each notes its starts."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    bench = Bench(work)
    settings = CustomizationSettings(
        default_directory=work, home=home, servers=servers, environment={"HOME": str(tmp_path), "SECRET": "hunter2"}
    )
    customizations = Customizations(settings)
    bench.features = [customizations, McpServers(customizations.servers, directory=work, limits=QUICK)]
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


def declared(tmp_path: Path, name: str = "test", *, program: str = PROGRAM, **more: Any) -> Json:
    env = {"TEST_STARTED": str(tmp_path / "started"), "TEST_SECRET": "${SECRET}", **more.pop("env", {})}
    return {"name": name, "command": [sys.executable, program], "env": env, **more}


async def entry(bench: Bench, client: RawClient, session: str, kind: str, name: str = "test") -> Json:
    """The top-level entry of a server, once it is in that state."""
    async with asyncio.timeout(30):
        while True:
            listed: list[Json] = (await bench.state(client, session)).get("customizations", [])
            found = [one for one in listed if one["name"] == name and one["type"] == "mcpServer"]
            if found and found[0]["state"]["kind"] == kind:
                return found[0]
            await asyncio.sleep(0.02)


def starts(tmp_path: Path) -> list[int]:
    file = tmp_path / "started"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@requirement("mcp:server:placement", "customizations:tree:bare-mcp-server", "mcp:action:found-anywhere")
async def test_a_configured_server_stands_by_itself_and_its_placeholders_are_seen_by_nobody(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path)) as bench:
        outcomes: list[Any] = []
        bench.agent.script = calling(outcomes, "test_env", {"name": "TEST_SECRET"})
        client = await bench.client()
        session, chat = await bench.session(client)
        mirror = Mirror(client, "0.4.0", reduced_by_0_4)
        await mirror.follow(session)
        shown = await entry(bench, client, session, "ready")
        assert shown["enabled"] is True
        assert await mirror.wrong() == []
        await client.accepted(chat, say("go"))
        await approve(client, chat)
        await client.action("chat/turnComplete")
        assert outcomes[0].content[0]["text"] == "hunter2"
        state = json.dumps(await bench.state(client, session))
        assert "hunter2" not in state
        assert "${SECRET}" not in state


@pytest.mark.parametrize(
    ("case", "odd"),
    [
        ("a port that is none", {"url": "http://127.0.0.1:${SECRET}/mcp"}),
        ("half an address", {"url": "http://[::1/${SECRET}"}),
        ("a header of two lines", {"url": "WEB", "headers": {"X-Key": "a\n${SECRET}"}}),
        ("a header that is not ASCII", {"url": "WEB", "headers": {"X-Key": "ä${SECRET}"}}),
        ("the name of a header", {"url": "WEB", "headers": {"X Key": "${SECRET}"}}),
        (
            "error output",
            {"command": [sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", "${SECRET}"]},
        ),
        (
            "error output with a variable of its own",
            {
                "command": [sys.executable, "-c", "import os, sys; sys.exit(os.environ['KEY'])"],
                "env": {"KEY": "hunter2-literal"},
            },
        ),
    ],
)
async def test_a_server_that_cannot_start_shows_no_secret_and_stops_nobody(
    tmp_path: Path, case: str, odd: Json
) -> None:
    async with http_server() as url:
        odd = {key: url if value == "WEB" else value for key, value in odd.items()}
        async with host(tmp_path, {"name": "odd", **odd}, declared(tmp_path)) as bench:
            client = await bench.client()
            session, _ = await bench.session(client)
            shown = await entry(bench, client, session, "error", "odd")
            await entry(bench, client, session, "ready")
            lines = await client.ask("_ahpkit/mcp/log", session, id=shown["id"])
            seen = json.dumps([client.received, await bench.state(client, session), lines])
            assert "hunter2" not in seen


async def test_a_header_may_end_with_the_end_of_a_line(tmp_path: Path) -> None:
    """As a variable does that was read from a file."""
    async with http_server() as url:
        web = {"name": "web", "url": url, "headers": {"X-Key": "${SECRET}\n"}}
        async with host(tmp_path, web) as bench:
            client = await bench.client()
            session, _ = await bench.session(client)
            await entry(bench, client, session, "ready", "web")


async def test_a_secret_in_an_address_is_no_part_of_the_resource_that_wants_a_token(tmp_path: Path) -> None:
    guard = Guard(metadata={"resource": "https://elsewhere.example"})
    guard.tokens.add("letmein")
    async with http_server(guard, at="/of/hunter2/mcp") as url:
        web = {"name": "web", "url": url.replace("hunter2", "${SECRET}")}
        async with host(tmp_path, web) as bench:
            client = await bench.client()
            session, _ = await bench.session(client)
            shown = await entry(bench, client, session, "authRequired", "web")
            resource = shown["state"]["resource"]["resource"]
            assert resource == f"{guard.origin}/of"
            await client.ask("authenticate", resource=resource, token="letmein")
            await entry(bench, client, session, "ready", "web")
            assert "hunter2" not in json.dumps(client.received)


async def test_a_server_of_the_users_own_file_stands_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".copilot").mkdir(parents=True)
    config = {"command": sys.executable, "args": [PROGRAM]}
    (home / ".copilot" / "mcp-config.json").write_text(json.dumps({"mcpServers": {"mine": config}}))
    async with host(tmp_path, home=home) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        shown = await entry(bench, client, session, "ready", "mine")
        listed = (await bench.state(client, session))["customizations"]
        assert all(one.get("name") != "~/.copilot/mcp-config.json" for one in listed)
        await client.accepted(session, {"type": "session/customizationToggled", "id": shown["id"], "enabled": False})
        assert (await entry(bench, client, session, "stopped", "mine"))["enabled"] is False


@pytest.mark.parametrize(("shared", "processes"), [(False, 2), (True, 1)])
async def test_each_session_has_its_own_process_unless_the_server_is_shared(
    tmp_path: Path, shared: bool, processes: int
) -> None:
    async with host(tmp_path, declared(tmp_path, shared=shared)) as bench:
        outcomes: list[Any] = []
        bench.agent.script = calling(outcomes, "test_roots", {})
        client = await bench.client()
        one, _ = await bench.session(client)
        await entry(bench, client, one, "ready")
        two, chat = await bench.session(client)
        shown = await entry(bench, client, two, "ready")
        assert len(starts(tmp_path)) == processes
        await client.accepted(chat, say("go"))
        await approve(client, chat)
        await client.action("chat/turnComplete")
        assert ("work" in outcomes[0].content[0]["text"]) is not shared
        toggle = {"type": "session/customizationToggled", "id": shown["id"], "enabled": False}
        await client.accepted(one, toggle)
        await entry(bench, client, one, "stopped")
        await entry(bench, client, two, "ready")
        await client.accepted(two, toggle)
        await entry(bench, client, two, "stopped")
        await until(lambda: not any(map(_alive, starts(tmp_path))))


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@requirement("core:hardening:disabled-not-started")
async def test_a_server_that_is_switched_off_in_the_configuration_waits(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path, enabled=False)) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        shown = await entry(bench, client, session, "stopped")
        assert starts(tmp_path) == []
        refusal = await client.rejected(session, {"type": "session/mcpServerStartRequested", "id": shown["id"]})
        assert refusal


async def test_a_server_that_is_handed_over_is_not_run_by_the_host(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path, direct=True)) as bench:
        seen: list[str] = []

        async def script(turn: Turn) -> None:
            seen.extend(offer.name for offer in await turn.chat.mcp_servers())

        bench.agent.script = script
        client = await bench.client()
        session, chat = await bench.session(client)
        assert (await entry(bench, client, session, "stopped"))["_meta"] == {"ahpkit/direct": True}
        await client.accepted(chat, say("go"))
        await client.action("chat/turnComplete")
        assert seen == ["ahp", "test"]
        assert starts(tmp_path) == []
        shown = await entry(bench, client, session, "ready")  # The agent has it now, and runs it itself.
        assert shown["_meta"] == {"ahpkit/direct": True}
        assert "channel" not in shown
        await client.accepted(session, {"type": "session/customizationToggled", "id": shown["id"], "enabled": False})
        await entry(bench, client, session, "stopped")


async def test_start_and_stop_requests_of_newer_clients(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path)) as bench:
        client = await bench.connect()
        await client.initialize(protocolVersions=["1.0.0"])
        session, _ = await bench.session(client)
        shown = await entry(bench, client, session, "ready")
        await client.accepted(session, {"type": "session/mcpServerStopRequested", "id": shown["id"]})
        await until(lambda: not any(map(_alive, starts(tmp_path))))
        stopped = await entry(bench, client, session, "stopped")
        assert stopped.get("enablement") == shown.get("enablement")
        await client.accepted(session, {"type": "session/mcpServerStartRequested", "id": shown["id"]})
        await entry(bench, client, session, "ready")
        assert len(starts(tmp_path)) == 2


async def test_after_a_restart_servers_start_when_somebody_looks(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path)) as bench:
        client = await bench.client()
        session, _ = await bench.session(client)
        await entry(bench, client, session, "ready")
        storage = bench.storage
        await bench.stop()
        again = Bench(tmp_path / "work")
        again.storage = storage
        settings = CustomizationSettings(default_directory=tmp_path / "work", servers=[declared(tmp_path)])
        customizations = Customizations(settings)
        again.features = [customizations, McpServers(customizations.servers, limits=QUICK)]
        await again.start()
        try:
            client = await again.client("ahp-root://")
            assert len((await client.ask("listSessions"))["items"]) == 1
            assert len(starts(tmp_path)) == 1
            shown = (await client.ask("subscribe", session))["snapshot"]["state"]
            [server] = [one for one in shown["customizations"] if one["type"] == "mcpServer"]
            assert server["state"] == {"kind": "stopped"}, "it does not run yet"
            await until(lambda: len(starts(tmp_path)) == 2)
            await entry(again, client, session, "ready")
        finally:
            await again.stop()


async def test_a_rule_for_one_server_says_nothing_about_another_of_that_name(tmp_path: Path) -> None:
    """The configured server and one of a workspace are both called `test`."""
    async with host(tmp_path, declared(tmp_path)) as bench:
        outcomes: list[Any] = []
        bench.agent.script = calling(outcomes, "test_add", {"a": 1, "b": 2})
        client = await bench.client()
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready")
        stranger = {"decision": "allow", "kind": "server", "scope": "everywhere"}
        await client.ask("_ahpkit/rules/add", owner="mcp:test@file:///elsewhere/.mcp.json", **stranger)
        await client.accepted(chat, say("go"))
        await approve(client, chat, "allow:tool:everywhere")
        await client.action("chat/turnComplete")
        rules = (await client.ask("_ahpkit/rules/list"))["rules"]
        assert rules[-1]["owner"] == "mcp:test"
        await client.accepted(chat, say("again", "t2"))
        await client.action(
            lambda one: one["action"]["type"] == "chat/turnComplete" and one["action"]["turnId"] == "t2"
        )
        assert [outcome.success for outcome in outcomes] == [True, True]


@requirement("customizations:load:crash-degrades", "mcp:state:error")
async def test_a_plugin_is_degraded_while_a_server_that_crashed_cannot_be_started_again(tmp_path: Path) -> None:
    work, kit = tmp_path / "work", tmp_path / "kit"
    work.mkdir()
    kit.mkdir()
    flag = tmp_path / "fixed"
    flag.touch()
    program = f"import os, sys; sys.exit('no licence') if not os.path.exists({str(flag)!r}) else None\n"
    script = tmp_path / "server.py"
    script.write_text(program + f"import runpy; runpy.run_path({PROGRAM!r}, run_name='__main__')\n")
    config = {"command": sys.executable, "args": [str(script)], "env": {"TEST_STARTED": str(tmp_path / "started")}}
    (kit / "plugin.json").write_text(json.dumps({"name": "kit", "mcpServers": {"test": config}}))
    bench = Bench(work)
    customizations = Customizations(CustomizationSettings(default_directory=work, plugins=[kit]))
    bench.features = [customizations, McpServers(customizations.servers, limits=QUICK)]
    await bench.start()
    try:
        client = await bench.connect()
        await client.initialize(protocolVersions=["1.0.0"])
        session, _ = await bench.session(client)

        async def container(kind: str, server: str = "") -> Json:
            async with asyncio.timeout(30):
                while True:
                    for one in (await bench.state(client, session))["customizations"]:
                        found = one.get("name") == "kit" and one["load"]["kind"] == kind
                        if found and (not server or one["children"][0]["state"]["kind"] == server):
                            return one
                    await asyncio.sleep(0.02)

        [server] = (await container("loaded"))["children"]
        await until(lambda: len(starts(tmp_path)) == 1)
        flag.unlink()
        os.kill(starts(tmp_path)[0], signal.SIGKILL)
        degraded = await container("degraded", server="error")
        assert "test: it ended with exit code 1" in degraded["load"]["message"]
        [server] = degraded["children"]
        assert "no licence" in server["state"]["error"]["message"]
        flag.touch()
        await client.accepted(session, {"type": "session/mcpServerStartRequested", "id": server["id"]})
        assert (await container("loaded"))["children"][0]["state"]["kind"] != "error"
    finally:
        await bench.stop()


FULL: Json = {
    "name": "full",
    "title": "Full",
    "description": "Has everything that a tool of MCP can have.",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]},
    "outputSchema": {"type": "object", "properties": {"m": {"type": ["integer", "null"]}}},
    "annotations": {"title": "A title", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    "_meta": {"example.com/cost": {"cents": 3}, "tags": ["a", "b"]},
}


@requirement("session:tool:mcp-mirror")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_a_tool_of_a_server_is_shown_as_the_server_describes_it(tmp_path: Path, version: str) -> None:
    env = {"TEST_MODES": "mirror", "TEST_TOOL": json.dumps(FULL)}
    async with host(tmp_path, declared(tmp_path, env=env)) as bench:
        client = await bench.client("ahp-root://", offer=[version])
        session, _ = await bench.session(client)
        await entry(bench, client, session, "ready")
        [shown] = [tool for tool in (await bench.state(client, session))["serverTools"] if tool["name"] == "test_full"]
        assert shown == {**FULL, "name": "test_full"}
