"""Every kind of agent reaches the same things through the same gate: servers, client tools, canvases, the user."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support import requirement
from support.agent_kinds import agent_of_kind
from support.bench import say
from support.canvases import CHART, claim, complete, request_for
from support.raw_client import Json
from support.stage import NOTE, Stage, every, staged

pytestmark = pytest.mark.asyncio(loop_scope="module")  # As the session that they share.

ENDED = "chat/turnComplete"
STARTED = "2026-11-15T12:00:00.000Z"


async def test_it_reaches_a_server_with_approval_denial_and_a_rule(stage: Stage) -> None:
    entry = await stage.server("test", "ready")
    first = await stage.turn('CALL test_add {"a": 1, "b": 2}', decisions=["allow-once"])
    [call] = first.calls
    assert (call["toolName"], call["contributor"]) == ("add", {"kind": "mcp", "customizationId": entry["id"]})
    assert (call["status"], call["success"], call["content"][0]["text"]) == ("completed", True, "3")
    assert [option["kind"] for option in first.approvals[0]["options"][:2]] == ["approve", "deny"]
    assert "3" in first.text

    denied = await stage.turn('CALL test_add {"a": 1, "b": 2}', decisions=["deny-once"])
    assert [(call["status"], call["reason"]) for call in denied.calls] == [("cancelled", "denied")]

    await stage.turn('CALL test_add {"a": 3, "b": 4}', decisions=["allow:tool:session"])
    remembered = await stage.turn('CALL test_add {"a": 5, "b": 6}')
    assert [(call["status"], call["content"][0]["text"]) for call in remembered.calls] == [("completed", "11")]


@requirement("client-tools:kinds:every-agent", "session:tool:server-tools-filled")
async def test_it_reaches_a_clients_tool_and_the_user(stage: Stage) -> None:
    shown = await stage.turn('CALL show_note {"text": "hi"}')
    assert stage.ran == [("show_note", {"text": "hi"})]
    assert "show_note was shown" in shown.text
    assert [call["status"] for call in shown.calls] == ["completed"]

    listed = [tool["name"] for tool in (await stage.state())["serverTools"]]
    assert {"ask_user", "canvas_open", "canvas_invoke"} <= set(listed)
    assert {tool["name"] for tool in stage.bench.agent.tools} <= set(listed), "its own as well"
    assert "show_note" not in listed

    asked = await stage.turn('CALL ask_user {"question": "Which colour?"}', answer="green")
    assert [question["questions"][0]["message"] for question in asked.questions] == ["Which colour?"]
    assert "green" in asked.text

    page = '{"url": "https://login.example/", "how": "refuses", "times": 1}'
    led = await stage.turn(f"CALL test_open_page {page}", decisions=["allow-once"])
    assert [question["url"] for question in led.questions] == ["https://login.example/"]
    assert "you were there" in led.text


@requirement("gen:active-clients:several", "gen:active-clients:tool-preference")
async def test_it_reaches_the_tools_of_two_clients_and_of_equal_ones_that_of_the_asking_client(stage: Stage) -> None:
    phone = await stage.bench.client(stage.session, stage.chat, client_id="phone", offer=["1.0.0"])
    offers = {"clientId": "phone", "tools": [NOTE, {**NOTE, "name": "ring"}]}
    await phone.accepted(stage.session, {"type": "session/activeClientSet", "activeClient": offers})

    async def runs(turn_id: str) -> str:
        """The phone runs the call of a turn; the name of its tool."""
        ready = await phone.action(lambda said: _is_running(said["action"], turn_id))
        about = {"turnId": turn_id, "toolCallId": ready["action"]["toolCallId"]}
        result = {"success": True, "pastTenseMessage": "p", "content": [{"type": "text", "text": "the phone did"}]}
        await phone.accepted(stage.chat, {"type": "chat/toolCallComplete", **about, "result": result})
        await phone.action(lambda said: (said["action"]["type"], said["action"].get("turnId")) == (ENDED, turn_id))
        [part] = [one for one in await _parts_of(stage, turn_id) if one["kind"] == "toolCall"]
        assert part["toolCall"]["contributor"] == {"kind": "client", "clientId": "phone"}
        return part["toolCall"]["toolName"]

    assert "show_note was shown" in (await stage.turn('CALL show_note {"text": "hi"}')).text
    rung, name = await asyncio.gather(stage.turn('CALL ring {"text": "hi"}'), runs(stage.next_turn))
    assert (name, "the phone did" in rung.text, len(stage.ran)) == ("ring", True, 1)
    await phone.accepted(stage.chat, say(stage.worded('CALL show_note {"text": "hi"}'), "by-phone", startedAt=STARTED))
    assert (await runs("by-phone"), len(stage.ran)) == ("show_note", 1)
    await phone.accepted(stage.session, {"type": "session/activeClientRemoved", "clientId": "phone"})
    await phone.aclose()


def _is_running(action: Json, turn_id: str) -> bool:
    return (action["type"], action.get("turnId")) == ("chat/toolCallReady", turn_id) and "confirmed" in action


async def _parts_of(stage: Stage, turn_id: str) -> list[Json]:
    turns: list[Json] = (await stage.bench.state(stage.client, stage.chat))["turns"]
    return next(turn["responseParts"] for turn in turns if turn["id"] == turn_id)


@requirement("client-tools:names:kept-unique", "client-tools:names:one-namespace", "session:tool:schema-optional")
async def test_a_clients_tool_with_the_name_of_the_hosts_or_without_a_schema_is_the_clients(stage: Stage) -> None:
    tools = [{**NOTE, "name": "ask_user"}, {"name": "bare"}]
    stage.tools = {"ask_user": lambda given: "asked in the client", "bare": lambda given: "bare in the client"}
    await stage.client.accepted(stage.session, {"type": "session/activeClientToolsChanged", "tools": tools})

    clients = await stage.turn('CALL client_ask_user {"text": "hi"}')
    assert ("asked in the client" in clients.text, clients.questions) == (True, [])
    assert stage.ran == [("ask_user", {"text": "hi"})]
    hosts = await stage.turn('CALL ask_user {"question": "Which colour?"}', answer="green")
    assert ("green" in hosts.text, len(hosts.questions), len(stage.ran)) == (True, 1, 1)
    assert "bare in the client" in (await stage.turn("CALL bare {}")).text


@requirement("canvas:kinds:every-agent")
async def test_it_lists_opens_drives_and_closes_canvases_of_the_host_and_of_a_client(stage: Stage) -> None:
    await claim(stage.client, stage.session, canvasProviders=[CHART])
    listed = (await stage.turn("CALL canvas_list {}")).text
    assert "board" in listed
    assert "chart" in listed

    opened = await stage.turn('CALL canvas_open {"canvasId": "board", "instanceId": "one"}')
    assert [(call["success"], opened.approvals) for call in opened.calls] == [(True, [])]
    assert "one" in (await stage.turn("CALL canvas_list_open {}")).text
    added = await stage.turn(f"CALL canvas_invoke {_invoke('one', 'add', card='x')}")
    assert '"cards"' in added.text
    wrong = await stage.turn(f"CALL canvas_invoke {_invoke('one', 'burn')}")
    assert [call["success"] for call in wrong.calls] == [False]
    assert "burn" in wrong.text
    await stage.turn('CALL canvas_close {"instanceId": "one"}')
    assert stage.board.verbs() == ["open one", "add one", "close one"]

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_play_chart(stage))
        await stage.turn('CALL canvas_open {"canvasId": "chart", "instanceId": "two"}')
        drawn = await stage.turn(f"CALL canvas_invoke {_invoke('two', 'draw')}")
        assert "drawn in the client" in drawn.text
        await stage.turn('CALL canvas_close {"instanceId": "two"}')
    assert "two" not in (await stage.turn("CALL canvas_list_open {}")).text


def _invoke(instance: str, action: str, **given: str) -> str:
    return json.dumps({"instanceId": instance, "actionName": action, "input": given})


async def _play_chart(stage: Stage) -> None:
    """The client answers what the agent asks of its canvas."""
    for kind, result in (("open", {"url": "https://chart.example"}), ("action", {"value": "drawn in the client"})):
        request = await request_for(stage.client, "two", kind)
        await complete(stage.client, stage.session, request, result={"kind": kind, **result})
    await complete(stage.client, stage.session, await request_for(stage.client, "two", "close"))


async def test_apps_reach_its_servers_by_the_side_channel_through_the_same_gate(stage: Stage) -> None:
    app, plain = await stage.bench.connect("app"), await stage.bench.connect("plain")
    await app.initialize(stage.session, protocolVersions=["1.0.0"], capabilities={"mcpApps": {}})
    await plain.initialize(stage.session, protocolVersions=["1.0.0"])
    channel = next(one["channel"] for one in every(await stage.bench.state(app, stage.session)) if "channel" in one)
    assert "mcp://" not in json.dumps(await stage.bench.state(plain, stage.session))
    assert "error" in await plain.call("tools/list", channel)
    added = await app.ask("tools/call", channel, name="add", arguments={"a": 1, "b": 2})
    assert added["content"][0]["text"] == "3"
    rule = {"decision": "deny", "kind": "tool", "owner": "mcp:test", "tool": "add", "scope": "everywhere"}
    await app.ask("_ahpkit/rules/add", **rule)
    refusal = await app.refused("tools/call", channel, name="add", arguments={"a": 1, "b": 2})
    assert "A rule denies this" in refusal["message"]


@requirement("enablement:kinds:every-agent")
async def test_a_server_that_is_switched_off_is_gone_at_once_and_comes_back(stage: Stage) -> None:
    await stage.switch("test", on=False)
    gone = await stage.turn('CALL test_add {"a": 1, "b": 2}')
    assert not [call for call in gone.calls if call.get("success")]
    await stage.switch("test", on=True)
    back = await stage.turn('CALL test_add {"a": 1, "b": 2}', decisions=["allow-once"])
    assert [call["content"][0]["text"] for call in back.calls] == ["3"]


@requirement("enablement:kinds:every-agent", "customizations:found:off-is-said")
async def test_a_skill_that_is_switched_off_does_not_reach_it_and_that_is_said(stage: Stage) -> None:
    assert "xylophone" in (await stage.turn("/greet me")).text
    await stage.toggle("greet", "skill", on=False)
    off = await stage.turn("/greet me")
    assert ("xylophone" in str(off.record["responseParts"]), "switched off" in str(off.record)) == (False, True)
    await stage.toggle("greet", "skill", on=True)
    assert "xylophone" in (await stage.turn("/greet me")).text


@requirement("session:stop:last-words")
@pytest.mark.parametrize("kind", ["python", "model", "acp-announced"])  # The demo agent: `test_host_process.py`.
async def test_a_stop_of_the_host_is_told_before_the_connection_closes(kind: str, tmp_path: Path) -> None:
    async with agent_of_kind(kind, tmp_path) as agent, staged(agent, tmp_path) as stage:
        await claim(stage.client, stage.session, canvasProviders=[CHART])
        await stage.client.accepted(stage.chat, say('CALL canvas_open {"canvasId": "chart", "instanceId": "x"}', "t1"))
        request = await request_for(stage.client, "x")
        await stage.bench.host.__aexit__()
        await stage.client.wait_closed()
        said = [envelope["action"] for envelope in stage.client.actions()]
        [cancelled] = [action for action in said if action["type"] == "session/canvasRequestCancelled"]
        assert (cancelled["requestId"], cancelled["reason"]) == (request["requestId"], "hostShutdown")
        [failed] = [action for action in said if action["type"] == "chat/error"]
        assert failed["error"]["errorType"] == "host/stopped"
