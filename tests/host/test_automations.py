"""Automations: their types are known, and a host that does not run them says so."""

from __future__ import annotations

import pytest

from support import requirement
from support.bench import Bench
from support.raw_client import Json

ROOT = "ahp-root://"


@requirement("gen:automation:not-advertised")
@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_they_are_not_announced_and_their_commands_are_unknown(bench: Bench, version: str) -> None:
    client = await bench.connect("me")
    told = await client.initialize(ROOT, protocolVersions=[version])
    assert "automations" not in told
    asked: dict[str, tuple[str, Json]] = {
        "listAutomationTriggerDefinitions": (ROOT, {}),
        "runAutomation": ("ahp-automations://", {"automation": "ahp-automation:/a", "requestId": "1"}),
        "fetchAutomationRuns": ("ahp-automations://", {"automation": "ahp-automation:/a"}),
    }
    for method, (channel, params) in asked.items():
        error = await client.refused(method, channel, **params)
        assert error["code"] == -32601, (method, error)
        assert (await client.refused(method, "ahp-elsewhere:/"))["code"] == -32601, "also with wrong params"


@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.8.0", "0.9.0", "1.0.0"])
async def test_an_action_that_is_not_for_this_client_is_refused_for_that_and_not_for_its_members(
    bench: Bench, version: str
) -> None:
    client = await bench.client(offer=[version])
    _, chat = await bench.session(client)
    reason = await client.rejected(chat, {"type": "automation/set"})
    assert ("by the host" if version >= "0.9.0" else "no such action") in reason
    assert "by the host" in await client.rejected(chat, {"type": "chat/turnComplete"})
