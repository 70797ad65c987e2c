"""A server that asks the model: the session's agent answers when its people agree, and else it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.mcp.feature import McpServers
from mcp_servers.running import QUICK, sdk_command
from mcp_servers.test_configured import declared, entry
from mcp_servers.test_side_channel import Sampler
from support.bench import Bench, ScriptedAgent, calling, say
from support.raw_client import Json, RawClient

ALLOW = {"decision": "allow", "kind": "server", "owner": "mcp:test", "scope": "everywhere"}


@pytest.fixture(params=["legacy", "modern"])
async def bench(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    work = tmp_path / "work"
    work.mkdir()
    made = Bench(work)
    made.agent = Sampler()
    server = declared(tmp_path, env={"TEST_MODES": request.param}) | {"command": sdk_command()}
    customizations = Customizations(CustomizationSettings(default_directory=work, servers=[server]))
    limits = replace(QUICK, asks=3)
    made.features = [customizations, McpServers(customizations.servers, directory=work, limits=limits)]
    await made.start()
    yield made
    await made.stop()


async def called(bench: Bench, tool: str, given: Any) -> tuple[RawClient, str, list[Any]]:
    outcomes: list[Any] = []
    bench.agent.script = calling(outcomes, tool, given)
    client = await bench.client()
    session, chat = await bench.session(client)
    await entry(bench, client, session, "ready")
    await client.ask("_ahpkit/rules/add", **ALLOW)
    await client.accepted(chat, say("go"))
    return client, chat, outcomes


async def answer(client: RawClient, chat: str, turn_id: str, picked: str) -> None:
    """Answer the question of a turn, and wait until it is over."""

    def asked(envelope: Json) -> bool:
        return envelope["action"].get("request", {}).get("id", "").startswith(turn_id)

    request = (await client.action(asked))["action"]["request"]
    [question] = request["questions"]
    assert "Hello?" in question["message"]
    value = {"state": "submitted", "value": {"kind": "selected", "value": picked}}
    done = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept"}
    await client.accepted(chat, {**done, "answers": {"sampling": value}})
    ended = ("chat/turnComplete", turn_id)
    await client.action(lambda one: (one["action"]["type"], one["action"].get("turnId")) == ended)


async def test_the_sessions_agent_answers_when_a_person_agrees_and_not_otherwise(bench: Bench) -> None:
    client, chat, outcomes = await called(bench, "test_sample", {})
    await answer(client, chat, "t1", "allow")
    await client.accepted(chat, say("again", "t2"))
    await answer(client, chat, "t2", "deny")
    allowed, denied = outcomes
    assert allowed.content[0]["text"] == "Hello? []"
    assert not denied.success
    assert "did not allow this server to ask the model" in denied.error


async def test_a_server_that_asks_the_model_in_a_loop_is_stopped(bench: Bench) -> None:
    client, chat, outcomes = await called(bench, "test_sample_often", {"times": 50})
    asked = 0
    async with asyncio.timeout(60):
        while not outcomes:
            requests = [one["action"]["request"] for one in client.actions(chat) if "request" in one["action"]]
            for request in requests[asked:]:
                client.post(chat, {"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"})
            asked = len(requests)
            await asyncio.sleep(0.02)
    assert 1 <= asked <= 3


async def test_an_agent_that_answers_no_samples_is_not_offered_to_servers(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    bench = Bench(work)
    bench.agent = ScriptedAgent()
    server = declared(tmp_path)
    customizations = Customizations(CustomizationSettings(default_directory=work, servers=[server]))
    bench.features = [customizations, McpServers(customizations.servers, directory=work, limits=QUICK)]
    await bench.start()
    try:
        client, chat, outcomes = await called(bench, "test_sample", {})
        await client.action("chat/turnComplete")
        assert not outcomes[0].success
        assert not [one for one in client.actions(chat) if one["action"]["type"] == "chat/inputRequested"]
    finally:
        await bench.stop()
