"""`mcp://` from outside: a channel belongs to one server of one session, and odd requests on it are answered."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.mcp.feature import McpServers
from mcp_servers.running import PROGRAM, QUICK
from mcp_servers.test_configured import entry
from support.bench import Bench
from support.raw_client import RawClient

SAME_ENDINGS = ("ahp-session:/a/x", "ahp-session:/b/x", "ahp-session:/x", "ahp-session:/mcp%3Ax")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    server = {"name": "apps", "command": [sys.executable, PROGRAM], "env": {"TEST_MODES": "apps"}}
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path, servers=[server]))
    made.features = [customizations, McpServers(customizations.servers, directory=tmp_path, limits=QUICK)]
    await made.start()
    yield made
    await made.stop()


async def rendering(bench: Bench) -> RawClient:
    client = await bench.connect()
    await client.initialize(protocolVersions=["1.0.0"], capabilities={"mcpApps": {}})
    return client


async def channel(bench: Bench, client: RawClient, session: str) -> str:
    await client.ask("createSession", session)
    await client.ask("subscribe", session)
    return (await entry(bench, client, session, "ready", "apps"))["channel"]


async def test_sessions_with_names_that_end_the_same_have_channels_of_their_own(bench: Bench) -> None:
    client = await rendering(bench)
    channels = [await channel(bench, client, session) for session in SAME_ENDINGS]
    assert len(set(channels)) == len(channels)
    await client.ask("tools/call", channels[0], name="grow", arguments={"name": "mine"})
    names = [{tool["name"] for tool in (await client.ask("tools/list", one))["tools"]} for one in channels]
    assert ["mine" in found for found in names] == [True, False, False, False]


ODD: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "add", "arguments": [1]}),
    ("tools/call", {"name": "add", "arguments": "x"}),
    ("tools/call", {"name": 7}),
    ("tools/call", {"name": "n" * 1_000_000}),
    ("tools/call", {}),
    ("resources/read", {"uri": "x" * 1_000_000}),
    ("resources/read", {"uri": None}),
    ("logging/setLevel", {"level": {"a": 1}}),
    ("tools/list", {"cursor": 5}),
]


async def test_odd_requests_on_a_channel_are_refused_and_the_server_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = await rendering(bench), await bench.client()
    mine = await channel(bench, client, "ahp-session:/x")
    for method, params in ODD:
        answer = await client.call(method, mine, **params)
        assert len(str(answer)) < 5_000, method
    for place in ("mcp://", "mcp:///", f"{mine}/..", f"{mine}/", mine.upper(), mine.replace("mcp://", "mcp://x@")):
        assert "error" in await client.call("tools/list", place), place
    assert "error" in await other.call("tools/call", mine, name="add", arguments={"a": 1, "b": 2})
    added = await client.ask("tools/call", mine, name="add", arguments={"a": 1, "b": 2})
    assert added["content"][0]["text"] == "3"
    assert "Traceback" not in caplog.text
