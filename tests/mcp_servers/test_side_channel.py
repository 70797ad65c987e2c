"""`mcp://`: what clients that render apps may say to a server, and what they hear of it. A running host."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Chat
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.mcp.feature import McpServers
from ahpkit.mcp.side_channel import METHODS
from ahpkit.protocol.common.reducing import without
from ahpkit.tools.gate import Objection
from mcp_servers.running import PROGRAM, QUICK
from mcp_servers.test_configured import declared, entry
from support import requirement
from support.bench import Bench, ScriptedAgent
from support.mirrors import Mirror, reduced_by_1_0
from support.raw_client import Json, RawClient
from support.waiting import until


class Sampler(ScriptedAgent):
    """An agent that answers for a model."""

    def __init__(self) -> None:
        super().__init__()
        self.sampling = {"tools": {}}

    async def sample(self, chat: Chat, request: Json) -> Json:
        tools = [tool["name"] for tool in request.get("tools", ())]
        said = {"type": "text", "text": f"{request['messages'][0]['content']['text']} {tools}"}
        if "toolChoice" in request:
            return {"role": "assistant", "model": "m", "content": request["messages"][-2]["content"]}
        return {"role": "assistant", "model": "m", "content": said}


@pytest.fixture(params=["quiet", "samples"])
async def bench(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    """A host with a server that brings apps and one that brings none."""
    work = tmp_path / "work"
    work.mkdir()
    made = Bench(work)
    if request.param == "samples":
        made.agent = Sampler()
    apps = declared(tmp_path, "apps", env={"TEST_MODES": "apps"})
    plain = {"name": "plain", "command": [sys.executable, PROGRAM]}
    customizations = Customizations(CustomizationSettings(default_directory=work, servers=[apps, plain]))
    made.features = [customizations, McpServers(customizations.servers, directory=work, limits=QUICK)]
    await made.start()
    yield made
    await made.stop()


async def rendering(bench: Bench, version: str = "1.0.0", **capabilities: Any) -> RawClient:
    client = await bench.connect()
    await client.initialize(protocolVersions=[version], capabilities={"mcpApps": {}, **capabilities})
    return client


@requirement(
    "mcp:channel:uri", "mcp:channel:only-while-ready", "mcp:app:advertised", "mcp:action:other-fields-by-update"
)
@requirement("mcp:app:known-capabilities", "mcp:app:local-capabilities-excluded")
@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_who_renders_apps_is_told_of_the_channel_and_nobody_else(bench: Bench, version: str) -> None:
    client = await rendering(bench, version)
    other = await bench.connect()
    await other.initialize(protocolVersions=[version])
    session, _ = await bench.session(client)
    await other.ask("subscribe", session)
    shown = await entry(bench, client, session, "ready", "apps")
    plain = await entry(bench, client, session, "ready", "plain")
    assert shown["channel"].startswith("mcp://")
    assert plain["channel"].startswith("mcp://")
    assert plain["channel"] != shown["channel"]
    assert "mcpApp" not in plain
    capabilities = shown["mcpApp"]["capabilities"]
    samples: Json = {"sampling": {"tools": {}}} if bench.agent.sampling else {}
    assert capabilities == {
        "serverTools": {"listChanged": True},
        "serverResources": {"listChanged": True},
        "logging": {},
        **samples,
    }
    told = [one["action"] for one in client.actions(session) if one["action"]["type"].startswith("session/")]
    assert all("mcpApp" not in action for action in told if action["type"] == "session/mcpServerStateChanged")
    assert any("mcpApp" in json.dumps(action) for action in told if action["type"] == "session/customizationUpdated")
    for name in ("apps", "plain"):
        quiet = await entry(bench, other, session, "ready", name)
        assert "channel" not in quiet
        assert "mcpApp" not in quiet
    assert "mcp://" not in json.dumps(other.actions(session))
    assert "mcpApp" not in json.dumps(other.actions(session))


@requirement("mcp:channel:no-handshake", "mcp:app:server-tools", "mcp:app:server-resources")
async def test_tools_and_resources_are_served_without_a_handshake(bench: Bench) -> None:
    client = await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    tools = (await client.ask("tools/list", channel))["tools"]
    assert tools[0]["_meta"] == {"ui": {"resourceUri": "ui://board"}}
    added = await client.ask("tools/call", channel, name="add", arguments={"a": 1, "b": 2})
    assert added["content"][0]["text"] == "3"
    slow = {"name": "slow", "arguments": {}, "_meta": {"progressToken": "p1"}}
    await client.ask("tools/call", channel, **slow)
    told = await client.notification("notifications/progress")
    assert (told["channel"], told["progressToken"], told["progress"]) == (channel, "p1", 1)
    assert (await client.ask("resources/list", channel))["resources"][0]["uri"] == "test://notes"
    [template] = (await client.ask("resources/templates/list", channel))["resourceTemplates"]
    assert template["uriTemplate"] == "test://page/{number}"
    read = await client.ask("resources/read", channel, uri="test://notes")
    assert read["contents"][0]["text"] == "remember the milk"
    approvals = (await client.ask("_ahpkit/approvals/list", session=session))["approvals"]
    assert (approvals[0]["tool"], approvals[0]["by"], approvals[0]["who"]) == ("add", "person", client.client_id)


@requirement("mcp:channel:subset", "mcp:app:only-what-is-served")
async def test_exactly_what_is_advertised_is_served(bench: Bench) -> None:
    client, other = await rendering(bench), await bench.client()
    session, _ = await bench.session(client)
    apps = await entry(bench, client, session, "ready", "apps")
    plain = await entry(bench, client, session, "ready", "plain")
    for method in ("initialize", "ping", "prompts/list", "roots/list", "elicitation/create", "completion/complete"):
        if method not in ("initialize", "ping"):
            assert (await client.refused(method, apps["channel"]))["code"] == -32601
    assert (await client.refused("logging/setLevel", plain["channel"], level="error"))["code"] == -32601
    if not bench.agent.sampling:
        assert (await client.refused("sampling/createMessage", apps["channel"], messages=[]))["code"] == -32601
    for method in METHODS:
        assert (await other.refused(method, apps["channel"]))["code"] == -32601
        assert (await client.refused(method, session))["code"] == -32601
        assert (await client.refused(method, "mcp://nobody/nothing"))["code"] == -32008
    assert (await client.refused("resources/read", apps["channel"], uri=5))["code"] == -32602
    assert (await client.refused("tools/call", apps["channel"], name="nothing"))["code"] == -32602


async def test_a_rule_that_denies_holds_on_the_channel_too(bench: Bench) -> None:
    client = await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    await client.ask(
        "_ahpkit/rules/add", decision="deny", kind="tool", owner="mcp:apps", tool="add", scope="everywhere"
    )
    refusal = await client.refused("tools/call", channel, name="add", arguments={"a": 1, "b": 2})
    assert "A rule denies this" in refusal["message"]
    [recorded] = (await client.ask("_ahpkit/approvals/list"))["approvals"]
    assert (recorded["decision"], recorded["by"], recorded["reason"]) == ("denied", "rule", refusal["message"])


async def test_a_call_that_a_rule_may_deny_is_refused_on_the_channel(bench: Bench) -> None:
    client = await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    about: Json = {"decision": "deny", "kind": "path", "owner": "mcp:apps", "tool": "add", "scope": "everywhere"}
    rule = await client.ask("_ahpkit/rules/add", **about, pattern="/etc/**")
    hidden = {"a": 1, "b": 2, "command": "cat $FILE"}
    refusal = await client.refused("tools/call", channel, name="add", arguments=hidden)
    assert "A person has to decide" in refusal["message"]
    assert "/etc/**" in refusal["message"]
    await client.ask("_ahpkit/rules/remove", id=rule["id"])
    await client.ask("tools/call", channel, name="add", arguments={"a": 1, "b": 2})


async def test_a_call_that_a_guard_leaves_to_a_person_is_refused_on_the_channel(bench: Bench) -> None:
    class Doubt(Feature):
        name = "doubt"

        def register(self, host: Registration, services: Services) -> None:
            host.turns.guard_tool.add(self._guard)

        async def _guard(self, chat: Chat, name: str, tool_input: str, owner: str | None) -> Objection:
            return Objection("look twice", asks=True)

    await bench.stop()
    bench.features = [*bench.features, Doubt()]
    await bench.start()
    client = await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    refusal = await client.refused("tools/call", channel, name="add", arguments={"a": 1, "b": 2})
    assert "A person has to decide" in refusal["message"]
    assert "look twice" in refusal["message"]


@requirement("mcp:app:server-tools-list-changed", "mcp:app:server-resources-list-changed")
@requirement("mcp:app:logging-message", "mcp:app:logging-set-level")
async def test_who_subscribes_hears_what_the_server_and_its_apps_say(bench: Bench) -> None:
    client, second, stranger = await rendering(bench), await rendering(bench), await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    assert await client.ask("subscribe", channel) == {}
    await second.ask("subscribe", channel)
    await client.ask("tools/call", channel, name="grow", arguments={})
    for method in ("notifications/tools/list_changed", "notifications/resources/list_changed"):
        assert (await client.notification(method))["channel"] == channel
        assert (await second.notification(method))["channel"] == channel
    await client.ask("logging/setLevel", channel, level="error")
    heard = await second.notification("notifications/message")
    assert heard["data"] == {"level": "error"}
    said = {"channel": channel, "level": "info", "data": "the app is there"}
    client.send({"jsonrpc": "2.0", "method": "notifications/message", "params": said})
    await second.wait(lambda message: message.get("params") == said)
    await stranger.ask("ping")
    assert not [message for message in stranger.received if "notifications/" in str(message.get("method"))]


@requirement("mcp:app:sampling", "mcp:app:sampling-tools")
async def test_an_app_may_ask_the_model_where_the_agent_answers(bench: Bench) -> None:
    if not bench.agent.sampling:
        pytest.skip("this agent does not")
    client = await rendering(bench)
    session, _ = await bench.session(client)
    channel = (await entry(bench, client, session, "ready", "apps"))["channel"]
    messages = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    tools = [{"name": "look", "inputSchema": {"type": "object"}}]
    answer = await client.ask("sampling/createMessage", channel, messages=messages, maxTokens=10, tools=tools)
    assert answer["content"]["text"] == "hi ['look']"
    use = {"type": "tool_use", "id": "u", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "toolUseId": "u", "content": [{"type": "text", "text": "seen"}]}
    messages += [{"role": "assistant", "content": use}, {"role": "user", "content": result}]
    more: Json = {"messages": messages, "maxTokens": 10, "tools": tools, "toolChoice": {"mode": "required"}}
    assert (await client.ask("sampling/createMessage", channel, **more))["content"] == use


@requirement("mcp:channel:stable", "gen:mcp:start-requested", "gen:mcp:request-keeps-enablement")
@requirement("mcp:action:replaces-state", "mcp:action:replaces-channel", "mcp:action:keeps-other-fields")
async def test_the_channel_goes_with_the_server_and_comes_back(bench: Bench, tmp_path: Path) -> None:
    client = await rendering(bench)
    session, _ = await bench.session(client)
    shown = await entry(bench, client, session, "ready", "apps")
    mirror = Mirror(client, "1.0.0", reduced_by_1_0)
    await mirror.follow(session)
    decided = [{"kind": "session", "enabled": True}, {"kind": "global", "enabled": False}]
    toggle = {"type": "session/customizationToggled", "id": shown["id"], "enablement": decided}
    await client.accepted(session, toggle)
    await client.accepted(session, {"type": "session/mcpServerStopRequested", "id": shown["id"]})
    stopped = await entry(bench, client, session, "stopped", "apps")
    assert "channel" not in stopped
    assert stopped["enablement"] == decided
    await client.action(lambda one: one["action"].get("customization", {}).get("id") == shown["id"])
    async with asyncio.timeout(30):
        while "mcpApp" in stopped:
            stopped = await entry(bench, client, session, "stopped", "apps")
    assert (await client.refused("tools/list", shown["channel"]))["code"] == -32008
    assert "error" in await client.call("subscribe", shown["channel"])
    await client.accepted(session, {"type": "session/mcpServerStartRequested", "id": shown["id"]})
    again = await entry(bench, client, session, "ready", "apps")
    assert (again["channel"], again["enablement"]) == (shown["channel"], decided)
    assert without(again, "mcpApp") == without({**shown, "enablement": decided}, "mcpApp")
    assert await mirror.wrong() == []
    os.kill(int((tmp_path / "started").read_text().split()[-1]), signal.SIGKILL)
    await until(lambda: len((tmp_path / "started").read_text().split()) == 3)
    back = await entry(bench, client, session, "ready", "apps")
    assert back["channel"] == shown["channel"]
    assert (await client.ask("tools/list", back["channel"]))["tools"]
