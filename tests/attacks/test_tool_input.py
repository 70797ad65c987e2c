"""The input of a tool call is what an agent wrote: whatever it is, the call ends with a reason."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.host.turns.questions import Questions
from ahpkit.mcp.feature import McpServers
from mcp_servers.running import PROGRAM, QUICK
from mcp_servers.test_configured import entry
from support.bench import Bench, say

DEEP = "[" * 100_000
ODD = ('{"a":' * 50_000, "9" * 10_000, '"\\ud800"', "NaN", "\0", "[1")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    server = {"name": "test", "command": [sys.executable, PROGRAM]}
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path, servers=[server]))
    servers = McpServers(customizations.servers, directory=tmp_path, limits=QUICK)
    made.features = [customizations, servers, Questions()]
    await made.start()
    yield made
    await made.stop()


async def test_input_that_cannot_be_read_ends_its_call_and_nothing_else(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes: dict[str, Any] = {}

    async def script(turn: Turn) -> None:
        for tool in ("test_add", "ask_user"):
            for given in (DEEP, *ODD):
                outcomes[f"{tool} {given[:8]!r}"] = await turn.call_tool(tool, given)

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await entry(bench, client, session, "ready")
    await client.ask("_ahpkit/rules/add", decision="allow", kind="server", owner="mcp:test", scope="everywhere")
    await client.accepted(chat, say("go"))
    await client.action("chat/turnComplete")
    assert len(outcomes) == 2 * (1 + len(ODD))
    assert not [name for name, outcome in outcomes.items() if outcome.success]
    assert {name for name, outcome in outcomes.items() if not outcome.error.startswith("the input is not")} == set()
    assert "Traceback" not in caplog.text
