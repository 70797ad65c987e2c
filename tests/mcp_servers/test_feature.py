"""MCP servers in sessions of a host: started when they may be, shown, called through the gate, switched off at once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.customizations.runnables import own_runnables, runnables_at
from ahpkit.host.agent import Turn
from ahpkit.host.trust import Trust
from ahpkit.mcp.feature import McpServers
from ahpkit.wire.tasks import running
from customizations.desk import Publisher
from mcp_servers.running import PROGRAM, QUICK
from mcp_servers.test_gateway import PING, command
from support import requirement
from support.bench import Bench, approve, calling, say
from support.mirrors import Mirror, reduced_by_0_4
from support.raw_client import Json, RawClient
from support.waiting import BOUND, until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    """A host with a trusted workspace that declares the test server."""
    declared = {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_STARTED": str(tmp_path / "started")}}
    work = tmp_path / "work"
    work.mkdir()
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": declared}}))
    made = await started(tmp_path, trusted=True)
    yield made
    await made.stop()


async def started(tmp_path: Path, *, trusted: bool) -> Bench:
    made = Bench(tmp_path / "work")
    work = tmp_path / "work"
    settings = CustomizationSettings(default_directory=work, trusted=[work] if trusted else [])
    customizations = Customizations(settings)
    made.features = [customizations, McpServers(customizations.servers, limits=QUICK)]
    await made.start()
    return made


def servers(state: Json) -> list[Json]:
    containers: list[Json] = state.get("customizations", [])
    return [child for one in containers for child in one.get("children", []) if child["type"] == "mcpServer"]


async def shown(bench: Bench, client: RawClient, session: str, kind: str) -> Json:
    async def look() -> Json | None:
        found = servers(await bench.state(client, session))
        return found[0] if found and found[0]["state"]["kind"] == kind else None

    async with asyncio.timeout(30):
        while (entry := await look()) is None:  # noqa: ASYNC110  # Each look asks the host.
            await asyncio.sleep(0.02)
    return entry


@requirement("mcp:state:starting", "mcp:state:ready", "mcp:server:reflects-status", "mcp:server:placement")
@requirement("customizations:children:mcp-tools-in-tool-list", "mcp:action:found-anywhere")
async def test_a_trusted_server_runs_and_its_tool_passes_the_gate(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "test_add", {"a": 2, "b": 3})
    client = await bench.client()
    session, chat = await bench.session(client)
    mirror = Mirror(client, "0.4.0", reduced_by_0_4)
    await mirror.follow(session)
    entry = await shown(bench, client, session, "ready")
    state = await bench.state(client, session)
    [tool] = [tool for tool in state["serverTools"] if tool["name"] == "test_add"]
    assert tool["description"]
    assert any(entry in one.get("children", ()) for one in state["customizations"])
    assert "test_add" not in json.dumps(state["customizations"])
    await client.accepted(chat, say("go"))
    ready = await approve(client, chat)
    assert "confirmed" not in ready
    start = (await client.action("chat/toolCallStart"))["action"]
    assert start["contributor"] == {"kind": "mcp", "customizationId": entry["id"]}
    await client.action("chat/turnComplete")
    assert outcomes[0].content[0]["text"] == "5"
    kinds = [e["action"]["state"]["kind"] for e in client.actions(session) if "mcpServer" in e["action"]["type"]]
    assert kinds[-1] == "ready"
    assert '"kind": "starting"' in json.dumps(client.received)
    await client.accepted(session, {"type": "session/customizationToggled", "id": entry["id"], "enabled": False})
    without = await client.action(
        lambda one: (
            one["action"]["type"] == "session/serverToolsChanged" and "test_add" not in json.dumps(one["action"])
        )
    )
    assert "tools" in without["action"]
    await client.accepted(session, {"type": "session/customizationToggled", "id": entry["id"], "enabled": True})
    await shown(bench, client, session, "ready")
    assert "test_add" in [tool["name"] for tool in (await bench.state(client, session))["serverTools"]]
    assert await mirror.wrong() == []


async def test_a_servers_question_and_progress_reach_people(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "test_ask", {"question": "Who?"})
    client = await bench.client()
    session, chat = await bench.session(client)
    await shown(bench, client, session, "ready")
    await client.accepted(chat, say("go"))
    await approve(client, chat)
    request = (await client.action("chat/inputRequested"))["action"]["request"]
    assert request["message"] == "Who?"
    value = {"state": "submitted", "value": {"kind": "text", "value": "Ann"}}
    done = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept"}
    await client.accepted(chat, {**done, "answers": {"name": value}})
    await client.action("chat/turnComplete")
    assert "Ann" in outcomes[0].content[0]["text"]


@requirement("core:hardening:disabled-not-started")
async def test_a_server_whose_container_is_switched_off_is_not_started(bench: Bench, tmp_path: Path) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    entry = await shown(bench, client, session, "ready")
    listed: list[Json] = (await bench.state(client, session))["customizations"]
    container = next(one for one in listed if entry["id"] in [child["id"] for child in one.get("children", ())])
    await client.accepted(session, {"type": "session/customizationToggled", "id": container["id"], "enabled": False})
    assert (await shown(bench, client, session, "stopped"))["enabled"], "its own switch stays on"
    other, chat = await bench.session(client)
    await shown(bench, client, other, "stopped")
    await client.accepted(chat, say("go"))
    await client.action("chat/turnComplete")
    assert len((tmp_path / "started").read_text().split()) == 1


@requirement("mcp:state:stopped")
@requirement("core:hardening:disabled-not-started")
async def test_switching_a_server_off_stops_its_process_at_once(bench: Bench, tmp_path: Path) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    entry = await shown(bench, client, session, "ready")
    pid = int((tmp_path / "started").read_text().split()[0])
    os.kill(pid, 0)
    await client.accepted(session, {"type": "session/customizationToggled", "id": entry["id"], "enabled": False})
    await shown(bench, client, session, "stopped")
    assert "test_add" not in [tool["name"] for tool in (await bench.state(client, session))["serverTools"]]
    await until(lambda: not _alive(pid))
    other, chat = await bench.session(client)
    await shown(bench, client, other, "stopped")  # The switch holds for the next session here, from its beginning.
    await client.accepted(chat, say("go"))
    await client.action("chat/turnComplete")
    assert (tmp_path / "started").read_text().split() == [str(pid)]
    await client.accepted(session, {"type": "session/customizationToggled", "id": entry["id"], "enabled": True})
    await shown(bench, client, session, "ready")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_server_of_a_workspace_that_nobody_trusts_is_never_started(tmp_path: Path) -> None:
    declared = {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_STARTED": str(tmp_path / "started")}}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": declared}}))
    bench = await started(tmp_path, trusted=False)
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        assert servers(await bench.state(client, session))[0]["state"]["kind"] == "stopped"
        assert not (tmp_path / "started").exists()
    finally:
        await bench.stop()


@pytest.mark.parametrize("source", ["workspace", "plugin", "client"])
async def test_what_nobody_ever_agreed_to_is_never_started_and_starts_once_somebody_does(
    tmp_path: Path, source: str
) -> None:
    """A server of a workspace, one that a named plugin got later, and one of a plugin that a client publishes."""
    work, plugin, mark = tmp_path / "work", tmp_path / "plugin", tmp_path / "started"
    declared = {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_STARTED": str(mark)}}
    file = json.dumps({"mcpServers": {"test": declared}})
    work.mkdir()
    plugin.mkdir()
    (plugin / "plugin.json").write_text(json.dumps({"name": "p"}))
    if source == "workspace":
        (work / ".mcp.json").write_text(file)
    trust = Trust(tmp_path / "trust.json")
    settings = CustomizationSettings(default_directory=work, plugins=[plugin], trust=trust)
    customizations = Customizations(settings)
    bench = Bench(work)
    bench.features = [customizations, McpServers(customizations.servers, limits=QUICK)]
    await bench.start()
    try:
        client = await bench.client("ahp-root://", client_id="me")
        session, chat = await bench.session(client)
        publisher = Publisher(client, {"plugin.json": json.dumps({"name": "theirs"}), ".mcp.json": file})
        if source == "plugin":
            (plugin / ".mcp.json").write_text(file)
        if source == "client":
            await publisher.claim(session, publisher.plugin())
        entry = await shown(bench, client, session, "stopped")
        assert entry["_meta"]["ahpkit/trust"] == "unknown"
        await client.accepted(chat, say("hello"))
        await client.action("chat/turnComplete")
        newer = await bench.client(client_id="newer", offer=["1.0.0"])
        start = {"type": "session/mcpServerStartRequested", "id": entry["id"]}
        assert "is not trusted as it is now" in await newer.rejected(session, start)
        assert not mark.exists()
        assert (await shown(bench, client, session, "stopped"))["id"] == entry["id"]
        agreed = {
            "workspace": lambda: runnables_at(work, home=None),
            "plugin": lambda: own_runnables(None, [plugin]),
            "client": lambda: [one.runnable for one in trust.asked()],
        }
        trust.add(agreed[source](), now=1)
        await shown(bench, client, session, "ready")
        assert mark.exists()
        await publisher.aclose()
    finally:
        await bench.stop()


@requirement("gen:enablement:child-enablement")
async def test_a_bundled_server_that_its_publisher_switched_off_never_starts(tmp_path: Path) -> None:
    def server(name: str) -> Json:
        return {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_STARTED": str(tmp_path / name)}}

    def agreed_and_started(name: str) -> bool:
        trust.add([one.runnable for one in trust.asked()], now=1)
        return (tmp_path / name).exists()

    file = json.dumps({"mcpServers": {"off": server("off"), "on": server("on")}})
    trust = Trust(tmp_path / "trust.json")
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path, trust=trust))
    bench = Bench(tmp_path)
    bench.features = [customizations, McpServers(customizations.servers, limits=QUICK)]
    await bench.start()
    try:
        client = await bench.client("ahp-root://", client_id="me", offer=["1.0.0"])
        session, chat = await bench.session(client)
        publisher = Publisher(client, {"plugin.json": json.dumps({"name": "theirs"}), ".mcp.json": file})
        plugin = {
            "type": "plugin",
            "id": "theirs",
            "uri": publisher.uri,
            "name": "theirs",
            "childEnablement": {"off": [{"kind": "global", "enabled": False}]},
        }
        active = {"clientId": "me", "tools": [], "customizations": [plugin]}
        await client.accepted(session, {"type": "session/activeClientSet", "activeClient": active})
        await until(lambda: agreed_and_started("on"))
        await client.accepted(chat, say("hello", startedAt="2026-11-16T12:00:00.000Z"))
        await client.action("chat/turnComplete")
        assert not (tmp_path / "off").exists()
        state = await bench.state(client, session)
        [entry] = [one for one in state["customizations"] if one["id"] == "theirs"]
        off = next(child for child in entry["children"] if child["name"].endswith("off"))
        here = [{"kind": "session", "enabled": True}]
        await client.accepted(session, {"type": "session/customizationToggled", "id": off["id"], "enablement": here})
        await until(lambda: agreed_and_started("off"))
        await publisher.aclose()
    finally:
        await bench.stop()


@requirement("mcp:state:error")
async def test_a_server_that_cannot_start_shows_why(tmp_path: Path) -> None:
    declared = {"command": sys.executable, "args": [PROGRAM], "env": {"TEST_MODES": "dead"}}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": declared}}))
    bench = await started(tmp_path, trusted=True)
    try:
        client = await bench.client()
        session, _ = await bench.session(client)
        entry = await shown(bench, client, session, "error")
        assert "no configuration" in entry["state"]["error"]["message"]
    finally:
        await bench.stop()


async def test_what_a_server_wrote_can_be_read(tmp_path: Path) -> None:
    says = {"command": sys.executable, "args": ["-c", "raise SystemExit('no such database')"]}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text(json.dumps({"mcpServers": {"says": says}}))
    bench = await started(tmp_path, trusted=True)
    try:
        client = await bench.client()
        session, _ = await bench.session(client)
        entry = await shown(bench, client, session, "error")
        log = await client.ask("_ahpkit/mcp/log", session, id=entry["id"])
        assert log["lines"][0] == "starting"
        assert log["lines"][-1] == "no such database"
        assert any(line.startswith("error: says: it ended with exit code 1") for line in log["lines"])
        assert await client.ask("_ahpkit/mcp/log", session, id="nobody") == {"lines": []}
    finally:
        await bench.stop()


async def test_an_agent_reaches_all_of_it_through_one_server(bench: Bench, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    hanging = {"file": str(tmp_path / "hanging"), "says": "half of it"}

    async def script(turn: Turn) -> None:
        [offer] = await turn.chat.mcp_servers()
        assert [offer] == list(await turn.chat.mcp_servers())
        config = dict(offer.config)
        parameters = StdioServerParameters(command=config["command"], args=config["args"], env=config["env"])
        async with Client(parameters, cache=None) as agent:
            seen["tools"] = [tool.name for tool in (await agent.list_tools()).tools]
            result = await agent.call_tool("test_add", {"a": 1, "b": 2})
            seen["sum"] = result.content[0].text  # type: ignore[union-attr]  # It is text.
            again = await agent.call_tool("test_add", {"a": 3, "b": 4})
            seen["again"] = again.content[0].text  # type: ignore[union-attr]  # It is text.
            news: asyncio.Queue[str | None] = asyncio.Queue()

            async def told(progress: float, total: float | None, message: str | None) -> None:
                news.put_nowait(message)

            async with running(agent.call_tool("test_hang", hanging, progress_callback=told)):
                seen["news"] = await news.get()

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await shown(bench, client, session, "ready")
    await client.accepted(chat, say("go"))
    await approve(client, chat, "allow:server:session")
    await client.action("chat/turnComplete")
    assert {"test_add", "ask_user", "find_tool", "call_tool"} <= set(seen["tools"])
    assert (seen["sum"], seen["again"]) == ("3", "7")
    assert seen["news"] == "half of it (1)"
    parts = (await bench.state(client, chat))["turns"][-1]["responseParts"]
    assert [part["toolCall"].get("confirmed") for part in parts] == ["user-action", "setting", None]
    assert parts[-1]["toolCall"]["status"] == "cancelled"


async def test_the_agent_of_a_chat_that_is_gone_does_not_reach_the_next_chat_of_that_name(bench: Bench) -> None:
    offered: asyncio.Queue[Json] = asyncio.Queue()

    async def script(turn: Turn) -> None:
        for offer in await turn.chat.mcp_servers():
            offered.put_nowait(dict(offer.config))

    bench.agent.script = script
    client = await bench.client()
    session, _ = await bench.session(client)
    commands: list[Json] = []
    for number in range(2):
        await client.ask("createChat", session, chat="ahp-chat:/second")
        await client.ask("subscribe", "ahp-chat:/second")
        await client.accepted("ahp-chat:/second", say("go", f"turn-{number}"))
        commands.append(await offered.get())
        assert [b'"result"' in await _answer(one) for one in commands] == [False, True][-len(commands) :]
        await client.ask("disposeChat", "ahp-chat:/second")


async def _answer(config: Json) -> bytes:
    async with command(config["env"], config["command"], *config["args"]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(PING)
        return await process.stdout.readline()


async def test_an_agent_reaches_the_host_by_http_where_the_owner_wants_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    made = Bench(tmp_path / "work")
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path / "work"))
    servers = McpServers(customizations.servers, directory=tmp_path / "work", limits=QUICK, by_http=True)
    made.features = [customizations, servers]
    seen: list[str] = []

    async def script(turn: Turn) -> None:
        [offer] = await turn.chat.mcp_servers()
        web = offer.config["http"]
        async with (
            httpx2.AsyncClient(headers=web["headers"]) as http,
            Client(streamable_http_client(web["url"], http_client=http), cache=None) as agent,
        ):
            seen.extend(tool.name for tool in (await agent.list_tools()).tools)

    made.agent.script = script
    await made.start()
    try:
        client = await made.client()
        _, chat = await made.session(client)
        await client.accepted(chat, say("go"))
        await client.action("chat/turnComplete")
        assert "ask_user" in seen
    finally:
        await made.stop()


@requirement("customizations:load:crash-degrades", "customizations:load:degraded-recovers")
async def test_a_server_that_crashes_degrades_its_container_until_it_runs_again(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await shown(bench, client, session, "ready")
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, "test_crash", {})
    await client.accepted(chat, say("go"))
    await approve(client, chat)
    await client.action("chat/turnComplete")

    def loads() -> list[Json]:
        updates = [one["action"] for one in client.actions(session) if "customization" in one["action"]]
        return [one["customization"]["load"] for one in updates if one["customization"]["name"] == ".mcp.json"]

    await until(lambda: [load["kind"] for load in loads()][-2:] == ["degraded", "loaded"])
    assert loads()[-2]["message"] == "MCP server test: it ended, and is started again"
    assert (await shown(bench, client, session, "ready"))["name"] == "test"


def test_what_servers_and_agents_need_is_loaded_at_once() -> None:
    """In a process of its own, as in a host: the first session and its agent load parts of one library together."""
    parts = ("running_servers", "gateway", "gateway_http")
    loads = ", ".join(f"load(lambda: import_module('ahpkit.mcp.{part}'))" for part in parts)
    program = (
        "import asyncio\n"
        "from importlib import import_module\n"
        "from ahpkit.mcp.session_servers import load\n"
        f"async def main():\n    await asyncio.gather({loads})\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.returncode == 0, done.stderr
