"""The active client and its tools: claiming, executing, leaving, coming back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from ahpkit.host.agent import Turn
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

TOOL = {"name": "runTests", "title": "Run Tests", "description": "Runs tests", "inputSchema": {"type": "object"}}


async def claim(client: RawClient, session: str, *tools: Json, **fields: Any) -> Json:
    active = {"clientId": client.client_id, "displayName": "Editor", "tools": list(tools), **fields}
    return await client.dispatch(session, {"type": "session/activeClientChanged", "activeClient": active})


def calls_tool(outcomes: list[Any], name: str = "runTests") -> Any:
    async def script(turn: Turn) -> None:
        call = turn.tool_call(name)
        call.input('{"pattern":')
        call.input('"*"}')
        outcomes.append(await call.run_by_client(tool_input='{"pattern":"*"}'))

    return script


async def running_call(client: RawClient) -> Json:
    ready = await client.action("chat/toolCallReady")
    return {"turnId": "t1", "toolCallId": ready["action"]["toolCallId"]}


@requirement("session:active-client:only-one")
@requirement("session:action:active-client-taken")
@requirement("client-tools:actions:claim-and-release")
async def test_only_one_client_is_active_and_only_it_can_release(bench: Bench) -> None:
    alice, bob = await bench.client(), await bench.client()
    session, _ = await bench.session(alice)
    await bob.ask("subscribe", session)
    assert "rejectionReason" not in await claim(alice, session)
    assert "active" in (await claim(bob, session))["rejectionReason"]
    release = {"type": "session/activeClientChanged", "activeClient": None}
    assert await bob.rejected(session, release)
    assert (await bench.state(bob, session))["activeClient"]["clientId"] == alice.client_id
    assert "rejectionReason" not in await claim(alice, session, TOOL)
    await alice.accepted(session, release)
    assert "rejectionReason" not in await claim(bob, session)


@requirement("client-tools:call:start-names-owner")
@requirement("client-tools:call:action-order")
@requirement("client-tools:call:partial-input-visible")
@requirement("client-tools:call:ready-not-needed-runs")
@requirement("client-tools:state:two-sources")
@requirement("client-tools:actions:progress-and-result-by-client")
async def test_a_client_tool_is_run_by_its_owner_and_its_result_reaches_the_agent(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calls_tool(outcomes)
    owner, watcher = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    call = await running_call(owner)
    assert (await bench.state(owner, chat))["activeTurn"]["responseParts"][0]["toolCall"]["status"] == "running"
    progress = {"type": "chat/toolCallContentChanged", **call, "content": [{"type": "text", "text": "half"}]}
    await owner.accepted(chat, progress)
    result = {"success": True, "pastTenseMessage": "Ran", "content": [{"type": "text", "text": "ok"}]}
    await owner.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    await watcher.action("chat/turnComplete")
    assert outcomes[0].success
    assert list(outcomes[0].content) == result["content"]
    start = (await watcher.action("chat/toolCallStart"))["action"]
    assert start["contributor"] == {"kind": "client", "clientId": owner.client_id}
    seen = [e["action"]["type"] for e in watcher.actions(chat) if "toolCall" in e["action"]["type"]]
    assert seen == [
        "chat/toolCallStart",
        "chat/toolCallDelta",
        "chat/toolCallDelta",
        "chat/toolCallReady",
        "chat/toolCallContentChanged",
        "chat/toolCallComplete",
    ]


@requirement("client-tools:call:foreign-complete-rejected")
@requirement("core:chat:reject-foreign-tool-result")
async def test_nobody_else_can_finish_a_clients_call(bench: Bench) -> None:
    bench.agent.script = calls_tool([])
    owner, other = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await other.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    call = await running_call(owner)
    result = {"success": True, "pastTenseMessage": "Ran"}
    before = await bench.state(other, chat)
    assert await other.rejected(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    assert await other.rejected(chat, {"type": "chat/toolCallContentChanged", **call, "content": []})
    assert await bench.state(other, chat) == before


@requirement("session:active-client:unset-on-disconnect")
@requirement("client-tools:disconnect:active-client-cleared")
@requirement("client-tools:disconnect:grace-period")
async def test_a_client_that_comes_back_in_time_can_finish_its_call(bench: Bench) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calls_tool(outcomes)
    owner, watcher = await bench.client(client_id="owner"), await bench.client()
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", session)
    await watcher.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    call = await running_call(owner)
    await owner.aclose()
    cleared = await watcher.action(lambda e: "activeClient" in e["action"] and e["action"]["activeClient"] is None)
    assert "origin" not in cleared
    assert "activeClient" not in await bench.state(watcher, session)
    back = await bench.client(client_id="owner")
    await back.ask("subscribe", chat)
    result = {"success": True, "pastTenseMessage": "Ran"}
    await back.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    await watcher.action("chat/turnComplete")
    assert outcomes[0].success


@requirement("client-tools:disconnect:calls-failed-after-grace")
@requirement("client-tools:disconnect:nothing-runs-forever")
async def test_after_the_grace_period_the_call_fails_with_a_reason(bench: Bench) -> None:
    await bench.stop()
    bench.config = replace(bench.config, client_grace=0.05)
    await bench.start()
    outcomes: list[Any] = []
    bench.agent.script = calls_tool(outcomes)
    owner, watcher = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    await running_call(owner)
    await owner.aclose()
    done = (await watcher.action("chat/toolCallComplete"))["action"]
    assert done["result"]["success"] is False
    assert "disconnected" in done["result"]["error"]["message"]
    await watcher.action("chat/turnComplete")
    assert not outcomes[0].success


@requirement("client-tools:names:kept-unique")
@requirement("client-tools:names:one-namespace")
async def test_a_name_clash_is_resolved_towards_the_model_only(bench: Bench) -> None:
    offered: list[list[str]] = []
    outcomes: list[Any] = []

    async def script(turn: Turn) -> None:
        offered.append([tool["name"] for tool in turn.context.tools])
        await calls_tool(outcomes, "client_runTests")(turn)

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    bench.agent.tools = [{"name": "runTests"}]
    bench.host.services.tools_changed(session)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    start = (await client.action("chat/toolCallStart"))["action"]
    assert offered == [["ask_user", "client_runTests"]]
    assert [tool["name"] for tool in (await bench.state(client, session))["serverTools"]] == ["runTests", "ask_user"]
    assert start["toolName"] == "runTests"
    assert start["contributor"]["clientId"] == client.client_id


@requirement("client-tools:state:visible-to-all")
@requirement("client-tools:actions:tools-changed-by-client")
@requirement("session:action:client-tools-only-by-active")
async def test_tools_are_state_that_only_the_active_client_changes(bench: Bench) -> None:
    owner, other = await bench.client(), await bench.client()
    session, _ = await bench.session(owner)
    await claim(owner, session, TOOL)
    await other.ask("subscribe", session)
    change = {"type": "session/activeClientToolsChanged", "tools": [{"name": "other"}]}
    assert await other.rejected(session, change)
    assert (await bench.state(other, session))["activeClient"]["tools"] == [TOOL]
    await owner.accepted(session, change)
    await other.action("session/activeClientToolsChanged")
    assert (await bench.state(other, session))["activeClient"]["tools"] == [{"name": "other"}]


@requirement("client-tools:call:ready-without-confirmed-asks")
async def test_a_client_call_may_need_a_persons_approval_first(bench: Bench) -> None:
    outcomes: list[Any] = []

    async def script(turn: Turn) -> None:
        call = turn.tool_call("runTests")
        answer = await call.confirm(tool_input="{}")
        assert answer.approved
        outcomes.append(await call.run_by_client(tool_input="{}"))

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    call = await running_call(client)
    approve = {"type": "chat/toolCallConfirmed", **call, "approved": True, "confirmed": "user-action"}
    await client.accepted(chat, approve)
    result = {"success": True, "pastTenseMessage": "Ran"}
    await client.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    async with asyncio.timeout(BOUND):
        await client.action("chat/turnComplete")
    assert outcomes[0].success
