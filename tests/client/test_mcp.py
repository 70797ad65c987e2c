"""MCP servers through the SDK: where requests go, what is passed on, and what is not sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpkit.client import McpNotReady
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import McpServerOffer
from ahpkit.mcp.feature import McpServers
from ahpkit.protocol.errors import NotFound, RpcError
from ahpkit.protocol.session.actions import session_customization_removed, session_mcp_server_state_changed
from ahpkit.testing.memory_host import memory_host
from mcp_servers.running import QUICK
from mcp_servers.test_configured import declared, starts
from support import requirement
from support.bench import ScriptedAgent
from support.clients import settled


@requirement("mcp:app:passed-through", "mcp:channel:absent", "mcp:channel:may-change", "mcp:state:stopped-may-go")
async def test_the_sdk_talks_to_the_channel_that_there_is(tmp_path: Path) -> None:
    apps = declared(tmp_path, "apps", env={"TEST_MODES": "apps"})
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path, servers=[apps]))
    servers = McpServers(customizations.servers, directory=tmp_path, limits=QUICK)
    async with (
        memory_host(ScriptedAgent(), directory=tmp_path, features=[customizations, servers]) as host,
        host.client(mcp_apps=True) as client,
        host.client() as plain,
    ):
        session = await client.create_session()
        server = session.mcp_server("apps")
        await session.wait(lambda _: server.channel is not None)
        assert server.app == session.mcp_server("apps").placed.entry["mcpApp"]["capabilities"]
        assert [tool["name"] for tool in await server.tools()] == ["add", "slow", "grow"]
        assert (await server.call("add", {"a": 1, "b": 2}))["content"][0]["text"] == "3"
        assert (await server.read("test://notes"))["contents"][0]["text"] == "remember the milk"
        with pytest.raises(RpcError, match="there is no test://gone") as missing:
            await server.read("test://gone")
        assert (type(missing.value), missing.value.code) == (RpcError, -32002)  # In AHP: an unknown provider.
        assert missing.value.data == {"uri": "test://gone"}

        other = (await plain.session(session.uri)).mcp_server("apps")
        assert (other.channel, other.app) == (None, None)
        with pytest.raises(McpNotReady, match="mcp_apps=True"):
            await other.tools()

        moved = session_mcp_server_state_changed(id=server.id, state={"kind": "ready"}, channel="mcp://moved/1")
        refused = ""
        while not refused:  # The host shows the true channel again whenever it has read the server's lists.
            host.host.services.dispatch(session.uri, moved)
            await session.wait(lambda _: server.channel == "mcp://moved/1")
            try:
                await server.tools()
            except NotFound as error:
                refused = str(error)
        assert "mcp://moved/1" in refused
        await server.stop().accepted()
        await session.wait(lambda _: server.state["kind"] == "stopped")
        with pytest.raises(McpNotReady, match="does not run"):
            await server.tools()
        with pytest.raises(McpNotReady, match=r"does not run \(stopped\)"):
            await server.wait_ready(wake=0.0)
        host.host.services.dispatch(session.uri, session_customization_removed(id=server.id))
        await session.wait(lambda _: not session.mcp_servers())
        with pytest.raises(LookupError):
            await server.tools()


async def test_a_new_session_already_shows_which_servers_start(tmp_path: Path) -> None:
    async def slowly(session_uri: str) -> Sequence[McpServerOffer]:
        await settled()  # Reading and judging files takes time: a session that does not wait for it is ready before.
        return await customizations.servers(session_uri)

    off = declared(tmp_path, "off", enabled=False)
    customizations = Customizations(
        CustomizationSettings(default_directory=tmp_path, servers=[declared(tmp_path, "on"), off])
    )
    servers = McpServers(slowly, directory=tmp_path, limits=QUICK)
    async with (
        memory_host(ScriptedAgent(), directory=tmp_path, features=[customizations, servers]) as host,
        host.client(mcp_apps=True) as client,
    ):
        session = await client.create_session()
        server = session.mcp_server("on")
        assert server.state["kind"] == "starting"
        await server.wait_ready(wake=0.0)
        assert "add" in [tool["name"] for tool in await server.tools()]
        with pytest.raises(McpNotReady, match=r"off does not run \(stopped\)"):
            await session.mcp_server("off").wait_ready()  # At once: it is switched off.


async def test_waiting_for_a_server_that_was_just_asked_to_start_or_is_about_to(tmp_path: Path) -> None:
    customizations = Customizations(
        CustomizationSettings(default_directory=tmp_path, servers=[declared(tmp_path, "test")])
    )
    servers = McpServers(customizations.servers, directory=tmp_path, limits=QUICK)
    async with (
        memory_host(ScriptedAgent(), directory=tmp_path, features=[customizations, servers]) as host,
        host.client() as client,
    ):
        server = (session := await client.create_session()).mcp_server("test")
        await server.wait_ready()
        await server.stop().accepted()
        await session.wait(lambda _: server.state["kind"] == "stopped")
        server.start()  # Nobody waits for the host's answer.
        await server.wait_ready(wake=0.0)

        await server.stop().accepted()
        await session.wait(lambda _: server.state["kind"] == "stopped")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.wait_ready())
            await asyncio.sleep(0)
            host.host.services.dispatch(session.uri, {"type": "session/mcpServerStartRequested", "id": server.id})
        assert server.state["kind"] == "ready"
        assert len(set(starts(tmp_path))) == 3
