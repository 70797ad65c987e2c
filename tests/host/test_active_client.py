"""The active client and its tools: claiming, executing, leaving, coming back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from ahpkit.agents import Toolbox, text_of
from ahpkit.canvas.feature import Canvases
from ahpkit.host.agent import Turn
from ahpkit.host.states import NO_SESSION
from support import requirement
from support.bench import Bench, say
from support.clients import eventually
from support.mirrors import Mirror, reduced_by_0_4
from support.raw_client import Json, RawClient
from support.squares import plain
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


def _is(said: Json, channel: str, type: str) -> bool:
    return (said["channel"], said["action"]["type"]) == (channel, type)


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
    partial = [e["action"]["content"] for e in owner.actions(chat) if e["action"]["type"] == "chat/toolCallDelta"]
    assert "".join(partial) == '{"pattern":"*"}'
    progress = {"type": "chat/toolCallContentChanged", **call, "content": [{"type": "text", "text": "half"}]}
    await owner.accepted(chat, progress)
    result = {"success": True, "pastTenseMessage": "Ran", "content": [{"type": "text", "text": "ok"}]}
    await owner.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    await watcher.action("chat/turnComplete")
    assert outcomes[0].success
    assert list(outcomes[0].content) == result["content"]
    start = (await watcher.action("chat/toolCallStart"))["action"]
    assert start["contributor"] == {"kind": "client", "clientId": owner.client_id}
    said = [e for e in watcher.actions(chat) if "toolCall" in e["action"]["type"]]
    assert [(e["action"]["type"], e.get("origin", {}).get("clientId")) for e in said] == [
        ("chat/toolCallStart", None),
        ("chat/toolCallDelta", None),
        ("chat/toolCallDelta", None),
        ("chat/toolCallReady", None),
        ("chat/toolCallContentChanged", owner.client_id),
        ("chat/toolCallComplete", owner.client_id),
    ]


@requirement("client-tools:state:same-life-cycle")
@requirement("client-tools:call:content-is-replaced")
async def test_a_call_of_a_client_passes_through_the_same_states_as_one_of_the_host(bench: Bench) -> None:
    half: Json = {"content": [{"type": "text", "text": "half"}]}
    more: Json = {"content": [{"type": "text", "text": "more"}]}

    async def script(turn: Turn) -> None:
        call = turn.tool_call("runTests")
        call.input("{}")
        assert (await call.confirm(tool_input="{}")).approved
        if turn.prompt == "by the client":
            await call.run_by_client(tool_input="{}")
        else:
            call.content(half["content"])
            call.content(more["content"])
            call.complete(message="Ran", content=more["content"])

    bench.agent.script = script
    owner = await bench.client()
    session, chat = await bench.session(owner)
    seen: list[list[Any]] = []
    for turn_id, who in (("t1", "by the client"), ("t2", "by the host")):
        if who == "by the client":
            await claim(owner, session, TOOL)
        else:
            await owner.accepted(session, {"type": "session/activeClientChanged", "activeClient": None})
        mirror = Mirror(owner, "0.4.0", reduced_by_0_4)
        await mirror.follow(chat)
        since = len(owner.received)
        await owner.accepted(chat, say(who, turn_id))
        ready = await owner.action("chat/toolCallReady", since=since)
        call = {"turnId": turn_id, "toolCallId": ready["action"]["toolCallId"]}
        approved = {"approved": True, "confirmed": "user-action"}
        await owner.accepted(chat, {"type": "chat/toolCallConfirmed", **call, **approved})
        if who == "by the client":
            for content in (half, more):
                await owner.accepted(chat, {"type": "chat/toolCallContentChanged", **call, **content})
            result = {"success": True, "pastTenseMessage": "Ran", **more}
            await owner.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
        await owner.action(
            lambda e, id=turn_id: e["action"]["type"] == "chat/turnComplete" and e["action"]["turnId"] == id
        )
        seen.append(_states_of_the_call(mirror.states[chat], owner.actions(chat), turn_id))
    assert seen[0] == seen[1]
    assert [status for status, _ in seen[0]] == [
        *("streaming", "pending-confirmation", "running", "running", "running", "completed"),
    ]
    assert [content for _, content in seen[0]][-3:] == [half["content"], more["content"], more["content"]]


def _states_of_the_call(state: Json, said: list[Json], turn_id: str) -> list[Any]:
    """How the status and the content of the turn's call change, for a reader of 0.4."""
    seen: list[Any] = []
    for envelope in said:
        if envelope["action"].get("turnId") == turn_id:
            state = reduced_by_0_4("chat", state, envelope["action"])
            if "toolCall" in envelope["action"]["type"]:
                call = state["activeTurn"]["responseParts"][0]["toolCall"]
                seen.append((call["status"], plain(call.get("content"))))
    return [one for one, _ in groupby(seen)]


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
async def test_after_the_grace_period_each_of_its_calls_fails_with_a_reason(bench: Bench) -> None:
    await bench.stop()
    bench.config = replace(bench.config, client_grace=0.05)
    await bench.start()
    outcomes: list[Any] = []

    async def script(turn: Turn) -> None:
        await asyncio.gather(calls_tool(outcomes)(turn), calls_tool(outcomes)(turn))

    bench.agent.script = script
    owner, watcher = await bench.client(), await bench.client()
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", chat)
    await claim(owner, session, TOOL)
    await owner.accepted(chat, say("go"))
    await owner.wait(
        lambda _: len([e for e in owner.actions(chat) if e["action"]["type"] == "chat/toolCallReady"]) == 2
    )
    await owner.aclose()
    await watcher.action("chat/turnComplete")
    ended = [said["action"] for said in watcher.actions(chat) if said["action"]["type"] == "chat/toolCallComplete"]
    assert [one["result"]["success"] for one in ended] == [False, False]
    assert all("disconnected" in one["result"]["error"]["message"] for one in ended)
    assert [outcome.success for outcome in outcomes] == [False, False]


@requirement("client-tools:names:kept-unique")
@requirement("client-tools:names:one-namespace")
async def test_a_name_clash_is_resolved_towards_the_model_only(bench: Bench) -> None:
    offered: list[list[str]] = []
    outcomes: list[Any] = []
    own = Toolbox()

    @own.tool(approval=False)
    def runTests() -> str:
        return "the agent's own"

    async def script(turn: Turn) -> None:
        offered.append([tool["name"] for tool in turn.context.tools])
        await calls_tool(outcomes, "client_runTests")(turn)
        outcomes.append(await own.call(turn, "runTests", "{}"))

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
    call = await running_call(client)
    result = {"success": True, "pastTenseMessage": "Ran", "content": [{"type": "text", "text": "the client's"}]}
    await client.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    await client.action("chat/turnComplete")
    assert [text_of(outcome) for outcome in outcomes] == ["the client's", "the agent's own"]
    starts = [said["action"] for said in client.actions(chat) if said["action"]["type"] == "chat/toolCallStart"]
    assert [(one["toolName"], "contributor" in one) for one in starts] == [("runTests", True), ("runTests", False)]


@requirement("client-tools:register:with-active-role", "client-tools:register:reducer-stores-tools")
@requirement("client-tools:update:without-reclaiming", "client-tools:update:full-replacement")
async def test_the_tools_that_are_registered_are_those_of_the_last_list(bench: Bench) -> None:
    owner, other = await bench.client(), await bench.client()
    session, _ = await bench.session(owner)
    whole = {**TOOL, "annotations": {"readOnlyHint": True}, "_meta": {"example.org/a": None}}
    plugin = {"type": "plugin", "id": "p", "uri": "virtual://p", "name": "P", "enabled": True}

    async def shown() -> Json:
        return (await bench.state(other, session))["activeClient"]

    first = {"clientId": owner.client_id, "displayName": "Editor"}
    await claim(owner, session, whole, {"name": "second"}, customizations=[plugin])
    assert await shown() == {**first, "tools": [whole, {"name": "second"}], "customizations": [plugin]}
    await owner.accepted(session, {"type": "session/activeClientToolsChanged", "tools": [{"name": "third"}]})
    assert await shown() == {**first, "tools": [{"name": "third"}], "customizations": [plugin]}
    await claim(owner, session, TOOL)
    assert await shown() == {**first, "tools": [TOOL]}
    await owner.accepted(session, {"type": "session/activeClientToolsChanged", "tools": []})
    assert await shown() == {**first, "tools": []}


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


async def waiting_call(bench: Bench, client: RawClient, chat: str, number: int) -> Json:
    """The turn's call of this number, counted from 1, once it waits for a person."""

    def readied() -> list[Json]:
        return [one["action"] for one in client.actions(chat) if one["action"]["type"] == "chat/toolCallReady"]

    await client.wait(lambda _: len(readied()) == number)
    ready = readied()[-1]
    assert "confirmed" not in ready
    part = (await bench.state(client, chat))["activeTurn"]["responseParts"][-1]
    assert (part["toolCall"]["toolCallId"], part["toolCall"]["status"]) == (ready["toolCallId"], "pending-confirmation")
    return {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}


@requirement("client-tools:call:ready-without-confirmed-asks")
async def test_a_client_call_may_need_a_persons_approval_first(bench: Bench) -> None:
    outcomes: list[Any] = []

    async def script(turn: Turn) -> None:
        refused = await turn.tool_call("runTests").confirm(tool_input="{}")
        assert not refused.approved
        call = turn.tool_call("runTests")
        answer = await call.confirm(tool_input="{}")
        assert answer.approved
        outcomes.append(await call.run_by_client(tool_input="{}"))

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await claim(client, session, TOOL)
    await client.accepted(chat, say("go"))
    call = await waiting_call(bench, client, chat, 1)
    await client.accepted(chat, {"type": "chat/toolCallConfirmed", **call, "approved": False, "reason": "denied"})
    call = await waiting_call(bench, client, chat, 2)
    result = {"success": True, "pastTenseMessage": "Ran"}
    assert await client.rejected(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    approve = {"type": "chat/toolCallConfirmed", **call, "approved": True, "confirmed": "user-action"}
    await client.accepted(chat, approve)
    await client.accepted(chat, {"type": "chat/toolCallComplete", **call, "result": result})
    async with asyncio.timeout(BOUND):
        await client.action("chat/turnComplete")
    assert outcomes[0].success
    parts = (await bench.state(client, chat))["turns"][0]["responseParts"]
    assert [part["toolCall"]["status"] for part in parts] == ["cancelled", "completed"]


# -- newer versions: the entry stays for the grace period ----------------------------------------------------------

SINCE_0_5 = ("0.5.0", "0.5.2", "0.7.0", "0.9.0", "1.0.0")
BOARD: Json = {"canvasId": "board", "displayName": "Board", "description": "Shows things", "actions": []}


def started(turn_id: str = "t1") -> Json:
    return say("go", turn_id, startedAt="2026-11-15T12:00:00.000Z")


async def restarted(bench: Bench, *features: Any, grace: float = 30.0) -> None:
    await bench.stop()
    bench.features = features
    bench.config = replace(bench.config, client_grace=grace)
    await bench.start()


async def active(bench: Bench, version: str, **fields: Any) -> tuple[RawClient, str, str]:
    """A client of that version that is active with its tool in a session of its own."""
    owner = await bench.client(client_id="owner", offer=[version])
    session, chat = await bench.session(owner)
    if version == "0.4.0":
        await claim(owner, session, TOOL, **fields)
    else:
        await offer(owner, session, TOOL, **fields)
    return owner, session, chat


async def offer(client: RawClient, session: str, *tools: Json, **fields: Any) -> Json:
    entry = {"clientId": client.client_id, "displayName": "Editor", "tools": list(tools), **fields}
    return await client.dispatch(session, {"type": "session/activeClientSet", "activeClient": entry})


async def watching(bench: Bench, *channels: str) -> RawClient:
    return await bench.client(*channels, client_id="watcher", offer=["1.0.0"])


async def back_with(bench: Bench, *channels: str) -> RawClient:
    """The owner, connected again by `reconnect`."""
    client = await bench.connect("owner")
    head = bench.host.spine.store.committed_head
    await client.ask("reconnect", clientId="owner", lastSeenServerSeq=head, subscriptions=list(channels))
    return client


async def gone(bench: Bench, client: RawClient) -> None:
    """Close a connection, and wait until the host has seen it."""
    await client.aclose()
    await eventually(lambda: bench.host.services.client(client.client_id) is None)


def offered(bench: Bench, session: str) -> Json:
    """Name → owner of the tools that models of a session have from clients."""
    tools = bench.host.services.tools(session)
    return {tool.definition["name"]: tool.owner.id for tool in tools if tool.owner.kind == "client"}


def types(client: RawClient, *prefixes: str) -> list[str]:
    return [said["action"]["type"] for said in client.actions() if said["action"]["type"].startswith(prefixes)]


@requirement("gen:active-clients:grace")
@pytest.mark.parametrize("version", SINCE_0_5)
async def test_a_client_that_drops_and_comes_back_keeps_its_place_for_everyone(bench: Bench, version: str) -> None:
    owner, session, chat = await active(bench, version)
    watcher = await watching(bench, session, chat)
    before = await bench.state(watcher, session)
    await gone(bench, owner)
    assert await bench.state(watcher, session) == before
    assert offered(bench, session) == {"runTests": "owner"}
    back = await back_with(bench, session, chat)
    assert await bench.state(watcher, session) == before
    assert types(watcher, "session/") == []
    assert types(back, "session/") == []


@requirement("gen:active-clients:grace")
@pytest.mark.parametrize("version", ["0.4.0", *SINCE_0_5])
async def test_a_call_that_began_while_its_client_was_away_is_run_when_it_is_back(bench: Bench, version: str) -> None:
    outcomes: list[Any] = []
    bench.agent.script = calls_tool(outcomes)
    owner, session, chat = await active(bench, version)
    watcher = await watching(bench, session, chat)
    if version == "0.4.0":  # The role is free while the client is away: there the call begins before.
        await watcher.accepted(chat, started())
        await watcher.action("chat/toolCallReady")
    await gone(bench, owner)
    if version != "0.4.0":
        await watcher.accepted(chat, started())
        await watcher.action("chat/toolCallReady")
    back = await back_with(bench, session, chat)
    state = await bench.state(back, chat)
    call = state["activeTurn"]["responseParts"][0]["toolCall"]
    assert call["status"] == "running"
    done = {"turnId": "t1", "toolCallId": call["toolCallId"], "result": {"success": True, "pastTenseMessage": "Ran"}}
    await back.accepted(chat, {"type": "chat/toolCallComplete", **done})
    await watcher.action("chat/turnComplete")
    assert outcomes[0].success


@requirement("gen:active-clients:grace")
async def test_a_client_that_begins_anew_and_says_the_same_again_stays_also_without_following(bench: Bench) -> None:
    await restarted(bench, grace=0.2)
    owner, session, _ = await active(bench, "1.0.0")
    watcher = await watching(bench, session)
    await gone(bench, owner)
    await offer(await bench.client(client_id="owner", offer=["1.0.0"]), session, TOOL)
    passing, passed_by, _ = await active_as(bench, "passing")  # One whose grace ends later than the owner's.
    await watcher.ask("subscribe", passed_by)
    await gone(bench, passing)
    await watcher.action("session/activeClientRemoved")
    assert offered(bench, session) == {"runTests": "owner"}


async def active_as(bench: Bench, client_id: str) -> tuple[RawClient, str, str]:
    """A client of 1.0.0 of that name, active with its tool in a session of its own."""
    client = await bench.client(client_id=client_id, offer=["1.0.0"])
    session, chat = await bench.session(client)
    await offer(client, session, TOOL)
    return client, session, chat


async def test_the_role_that_0_4_knows_is_given_back_when_its_client_reconnects(bench: Bench) -> None:
    await restarted(bench, Canvases())
    owner, session, _ = await active(bench, "0.4.0", canvasProviders=[BOARD])
    watcher = await bench.client(session, client_id="watcher")
    before = await bench.state(watcher, session)
    await gone(bench, owner)
    assert "activeClient" not in await bench.state(watcher, session)
    back = await back_with(bench, session)
    await back.action("session/activeClientChanged")
    after = await bench.state(watcher, session)
    assert after["activeClient"] == before["activeClient"]
    assert after["canvasRegistry"] == before["canvasRegistry"]
    assert offered(bench, session) == {"runTests": "owner"}


@requirement("gen:active-clients:grace")
@pytest.mark.parametrize("version", SINCE_0_5)
async def test_a_client_that_comes_back_after_the_host_was_restarted_keeps_its_place(
    bench: Bench, version: str
) -> None:
    await restarted(bench, Canvases())
    _, session, _ = await active(bench, version, canvasProviders=[BOARD])
    before = await bench.state(await bench.client(session, client_id="watcher"), session)
    await restarted(bench, Canvases())
    watcher = await bench.client(session, client_id="watcher")
    await back_with(bench, session)
    after = await bench.state(watcher, session)
    assert after["activeClient"] == before["activeClient"]
    assert after["canvasRegistry"] == before["canvasRegistry"]
    assert offered(bench, session) == {"runTests": "owner"}


@requirement("gen:active-clients:grace")
@pytest.mark.parametrize("version", ["0.4.0", *SINCE_0_5])
async def test_after_a_restart_a_client_that_stays_away_loses_its_place(bench: Bench, version: str) -> None:
    _, session, _ = await active(bench, version)
    await restarted(bench, grace=0.05)
    await eventually(lambda: offered(bench, session) == {})
    watcher = await watching(bench, session)
    assert (await bench.state(watcher, session))["activeClients"] == []


@requirement("gen:project:repeat-detection")
async def test_a_role_that_was_given_up_is_not_given_up_twice_when_its_client_says_so_again(bench: Bench) -> None:
    """Whoever is active beside it is what 0.4 readers are told, and not what the client said."""
    _, session, _ = await active(bench, "1.0.0")
    old = await bench.client(session, client_id="old")
    await claim(old, session, TOOL)
    left = {"type": "session/activeClientChanged", "activeClient": None}
    seq = old.post(session, left)
    given = await old.action(lambda said: said.get("origin", {}).get("clientSeq") == seq)
    assert given["action"]["activeClient"]["clientId"] == "owner"
    await gone(bench, old)
    back = await bench.connect("old")
    await back.ask("reconnect", clientId="old", lastSeenServerSeq=given["serverSeq"], subscriptions=[session])
    back.post(session, left, client_seq=seq)
    assert await back.action(lambda said: said.get("origin", {}).get("clientSeq") == seq) == given
    assert "only" in await back.rejected(session, left), "a new one is a new one"


async def test_the_role_that_0_4_knows_is_not_taken_from_who_has_it_now(bench: Bench) -> None:
    owner, session, _ = await active(bench, "0.4.0")
    other = await bench.client(session)
    await gone(bench, owner)
    await claim(other, session)
    back = await back_with(bench, session)
    assert (await bench.state(back, session))["activeClient"]["clientId"] == other.client_id
    assert types(back, "session/activeClient") == []


@requirement("gen:active-clients:grace", "gen:active-clients:calls-failed", "gen:active-clients:plugins-go")
async def test_after_the_grace_period_the_place_is_gone_with_all_it_brought(bench: Bench) -> None:
    await restarted(bench, Canvases(), grace=0.05)
    outcomes: list[Any] = []
    bench.agent.script = calls_tool(outcomes)
    owner, session, chat = await active(bench, "1.0.0", canvasProviders=[BOARD])
    watcher = await watching(bench, session, chat)
    other = "ahp-chat:/other"
    await watcher.ask("createChat", session, chat=other)
    await watcher.ask("subscribe", other)
    for place in (chat, other):
        await watcher.accepted(place, started())
        await watcher.action(lambda said, uri=place: _is(said, uri, "chat/toolCallReady"))
    await gone(bench, owner)
    removed = await watcher.action("session/activeClientRemoved")
    assert removed["action"]["clientId"] == "owner"
    for place in (chat, other):
        done = await watcher.action(lambda said, uri=place: _is(said, uri, "chat/toolCallComplete"))
        assert done["action"]["result"]["success"] is False
        assert done["serverSeq"] > removed["serverSeq"]
        await watcher.action(lambda said, uri=place: _is(said, uri, "chat/turnComplete"))
        turn = (await bench.state(watcher, place))["turns"][0]
        assert turn["responseParts"][0]["toolCall"]["status"] == "completed"
    state = await bench.state(watcher, session)
    assert state["activeClients"] == []
    assert "inputNeeded" not in state
    assert (bench.host.services.session(session) or NO_SESSION).get("canvasRegistry") == []
    assert offered(bench, session) == {}


@requirement("gen:active-clients:calls-failed")
@pytest.mark.parametrize("version", SINCE_0_5)
async def test_who_removes_its_own_entry_leaves_its_calls_to_fail_and_the_turn_goes_on(
    bench: Bench, version: str
) -> None:
    bench.agent.script = calls_tool([])
    owner, session, chat = await active(bench, version)
    watcher = await watching(bench, session, chat)
    await watcher.accepted(chat, started())
    await watcher.action("chat/toolCallReady")
    await owner.accepted(session, {"type": "session/activeClientRemoved", "clientId": "owner"})
    done = (await watcher.action("chat/toolCallComplete"))["action"]
    assert done["result"]["success"] is False
    await watcher.action("chat/turnComplete")


@requirement("gen:active-clients:unsubscribe-leaves", "gen:active-clients:calls-failed")
@pytest.mark.parametrize("version", SINCE_0_5)
async def test_who_unsubscribes_from_a_session_leaves_it_at_once(bench: Bench, version: str) -> None:
    bench.agent.script = calls_tool([])
    owner, session, chat = await active(bench, version)
    watcher = await watching(bench, session, chat)
    await watcher.accepted(chat, started())
    await watcher.action("chat/toolCallReady")
    owner.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": session}})
    assert (await watcher.action("session/activeClientRemoved"))["action"]["clientId"] == "owner"
    done = (await watcher.action("chat/toolCallComplete"))["action"]
    assert done["result"]["success"] is False


@requirement("gen:active-clients:reconnect-omits")
async def test_a_reconnect_without_a_session_leaves_that_session(bench: Bench) -> None:
    owner, kept, _ = await active(bench, "1.0.0")
    left, _ = await bench.session(owner)
    await offer(owner, left, TOOL)
    watcher = await watching(bench, kept, left)
    await gone(bench, owner)
    await back_with(bench, kept)
    assert (await watcher.action("session/activeClientRemoved"))["channel"] == left
    assert [one["clientId"] for one in (await bench.state(watcher, kept))["activeClients"]] == ["owner"]
    assert (await bench.state(watcher, left))["activeClients"] == []


@requirement("gen:active-clients:grace")
async def test_a_client_that_starts_anew_keeps_its_place_if_it_follows_the_session_or_offers_again(
    bench: Bench,
) -> None:
    await restarted(bench, grace=0.2)
    first = await bench.client(client_id="first", offer=["0.9.0"])
    session, _ = await bench.session(first)
    clients = [first, *[await bench.client(session, client_id=name, offer=["0.9.0"]) for name in ("second", "third")]]
    for client in clients:
        await offer(client, session, TOOL)
    watcher = await watching(bench, session)
    await bench.client(session, client_id="first", offer=["0.9.0"])
    again = await bench.client(client_id="second", offer=["0.9.0"])
    entry = {"clientId": "second", "tools": [{"name": "other"}]}
    again.post(session, {"type": "session/activeClientSet", "activeClient": entry})
    await bench.client(client_id="third", offer=["0.9.0"])
    await watcher.action(lambda said: said["action"].get("clientId") == "third")
    left = [one["clientId"] for one in (await bench.state(watcher, session))["activeClients"]]
    assert sorted(left) == ["first", "second"]


@requirement("gen:active-clients:equal-entry")
async def test_an_entry_that_says_nothing_new_is_answered_and_not_passed_on(bench: Bench) -> None:
    owner, session, _ = await active(bench, "1.0.0")
    watcher = await watching(bench, session)
    assert "rejectionReason" not in await offer(owner, session, TOOL)
    await offer(owner, session, {"name": "other"})
    await watcher.action("session/activeClientSet")
    entries = [said["action"]["activeClient"] for said in watcher.actions(session) if "activeClient" in said["action"]]
    assert [entry["tools"] for entry in entries] == [[{"name": "other"}]]


@requirement("gen:active-clients:own-entry-only")
async def test_nobody_speaks_for_another_client(bench: Bench) -> None:
    owner, session, _ = await active(bench, "1.0.0")
    other = await bench.client(session, client_id="other", offer=["1.0.0"])
    before = await bench.state(owner, session)
    forged: Json = {"type": "session/activeClientSet", "activeClient": {"clientId": "owner", "tools": []}}
    assert "itself" in await other.rejected(session, forged)
    assert await other.rejected(session, {"type": "session/activeClientRemoved", "clientId": "owner"})
    assert await bench.state(owner, session) == before


@requirement("gen:active-clients:tool-preference")
@pytest.mark.parametrize("asking", ["one", "two"])
async def test_of_two_clients_with_a_tool_the_one_that_started_the_turn_runs_it(bench: Bench, asking: str) -> None:
    bench.agent.script = calls_tool([])
    clients = {name: await bench.client(client_id=name, offer=["1.0.0"]) for name in ("one", "two")}
    session, chat = await bench.session(clients["one"])
    await clients["two"].ask("subscribe", session)
    await clients["two"].ask("subscribe", chat)
    for client in clients.values():
        await offer(client, session, TOOL)
    await clients[asking].accepted(chat, started())
    call = (await clients["one"].action("chat/toolCallStart"))["action"]
    assert call["contributor"] == {"kind": "client", "clientId": asking}
