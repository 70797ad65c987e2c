"""The session's queue of things that wait: in step with the chats, answered from the session alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ahpkit.host.agent import Turn
from ahpkit.host.feature import Applied
from ahpkit.host.states import NO_SESSION
from ahpkit.host.turns.input_needed import InputNeeded
from ahpkit.protocol.meta_keys import SETTLED
from support import requirement
from support.bench import Bench
from support.raw_client import Json, RawClient

NEWEST = ["1.0.0", "0.9.0"]
MESSAGE = {"text": "hi", "origin": {"kind": "user"}}
STARTED = {"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T12:00:00.000Z", "message": MESSAGE}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    bench = Bench(tmp_path)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


async def client(bench: Bench, client_id: str) -> RawClient:
    raw = await bench.connect(client_id)
    await raw.ask("initialize", clientId=client_id, protocolVersions=NEWEST)
    return raw


async def asked(raw: RawClient, kind: str) -> Json:
    envelope = await raw.action(lambda one: one["action"].get("request", {}).get("kind") == kind)
    return envelope["action"]["request"]


def queue(bench: Bench, session: str) -> list[Any]:
    return (bench.host.services.state(session) or {}).get("inputNeeded", [])


@requirement(
    "gen:input-needed:tool-confirmation-set", "gen:input-needed:answer-unsubscribed", "gen:input-needed:no-orphans"
)
async def test_a_call_that_wants_approval_is_listed_and_approved_from_the_session_alone(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("rm")
        await call.confirm(tool_input="{}")
        call.complete()

    bench.agent.script = script
    owner, watcher = await client(bench, "owner"), await client(bench, "watcher")
    session, chat = await bench.session(owner)
    await watcher.ask("subscribe", session)
    await owner.accepted(chat, STARTED)
    entry = await asked(watcher, "toolConfirmation")
    assert (entry["chat"], entry["turnId"], entry["toolCall"]["status"]) == (chat, "t1", "pending-confirmation")
    call_id = entry["toolCall"]["toolCallId"]
    yes = {"turnId": "t1", "toolCallId": call_id, "approved": True, "confirmed": "user-action"}
    watcher.post(chat, {"type": "chat/toolCallConfirmed", **yes})
    removed = await watcher.action("session/inputNeededRemoved")
    assert removed["action"]["id"] == entry["id"]
    await owner.action("chat/turnComplete")
    assert queue(bench, session) == []


async def test_a_call_that_a_rule_denies_is_not_listed_for_a_moment(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("rm")
        assert not (await call.confirm(tool_input="{}")).approved

    bench.agent.script = script
    owner = await client(bench, "owner")
    session, chat = await bench.session(owner)
    rule = {"decision": "deny", "kind": "tool", "owner": "agent:scripted", "tool": "rm", "scope": "everywhere"}
    await owner.ask("_ahpkit/rules/add", **rule)
    await owner.accepted(chat, STARTED)
    await owner.action("chat/turnComplete")
    call = (await bench.state(owner, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (call["status"], call["_meta"][SETTLED]) == ("cancelled", "rule")
    assert not [one for one in owner.actions(session) if "inputNeeded" in one["action"]["type"]]


async def test_a_note_of_a_client_hides_no_question(bench: Bench) -> None:
    """Only the host says that nobody is asked about a call."""

    async def script(turn: Turn) -> None:
        call = turn.tool_call("rm")
        for tool_input in ("first", "second"):
            await call.confirm(tool_input=tool_input)
        call.complete()

    bench.agent.script = script
    owner = await client(bench, "owner")
    session, chat = await bench.session(owner)
    await owner.accepted(chat, STARTED)

    def asks(tool_input: str) -> Any:
        def found(one: Json) -> bool:
            request: Json = one["action"].get("request", {})
            return one["channel"] == session and request.get("toolCall", {}).get("toolInput") == tool_input

        return found

    for tool_input in ("first", "second"):
        call = (await owner.action(asks(tool_input)))["action"]["request"]["toolCall"]
        yes = {"turnId": "t1", "toolCallId": call["toolCallId"], "approved": True, "confirmed": "user-action"}
        await owner.accepted(chat, {"type": "chat/toolCallConfirmed", **yes, "_meta": {SETTLED: "rule"}})
    await owner.action("chat/turnComplete")


@requirement("gen:input-needed:chat-input-set")
async def test_a_question_is_listed_until_it_is_answered_or_its_turn_ends(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.ask([{"id": "q", "kind": "text", "message": "?"}])

    bench.agent.script = script
    raw = await client(bench, "raw")
    session, chat = await bench.session(raw)
    await raw.accepted(chat, STARTED)
    entry = await asked(raw, "chatInput")
    assert entry["request"]["questions"][0]["id"] == "q"
    await raw.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    await raw.action("session/inputNeededRemoved")
    assert queue(bench, session) == []


@requirement("gen:input-needed:client-execution-set", "gen:input-needed:client-execution-running-only")
async def test_a_call_that_a_client_runs_is_listed_while_it_runs(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.tool_call("look").run_by_client(tool_input="{}")

    bench.agent.script = script
    raw = await client(bench, "raw")
    session, chat = await bench.session(raw)
    entry = {"clientId": "raw", "tools": [{"name": "look"}]}
    await raw.accepted(session, {"type": "session/activeClientSet", "activeClient": entry})
    await raw.accepted(chat, STARTED)
    waiting = await asked(raw, "toolClientExecution")
    assert (waiting["clientId"], waiting["toolCall"]["status"]) == ("raw", "running")
    done = {"turnId": "t1", "toolCallId": waiting["toolCall"]["toolCallId"]}
    result = {"success": True, "pastTenseMessage": "looked"}
    await raw.accepted(chat, {"type": "chat/toolCallComplete", **done, "result": result})
    await raw.action("session/inputNeededRemoved")


@requirement("gen:list:walk", "gen:list:unknown-cursor")
async def test_sessions_are_listed_page_by_page(bench: Bench) -> None:
    raw = await client(bench, "raw")
    made = {(await bench.session(raw))[0] for _ in range(5)}
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = await raw.ask("listSessions", **params)
        seen += [item["resource"] for item in page["items"]]
        if "nextCursor" not in page:
            break
        params = {"limit": 2, "cursor": page["nextCursor"]}
    assert len(seen) == 5
    assert set(seen) == made
    assert len((await raw.ask("listSessions"))["items"]) == 5
    assert (await raw.refused("listSessions", cursor="nonsense"))["code"] == -32602


class Untouched(dict[str, Any]):
    """Stands for the many parts that came before: none of them may be looked at."""

    def __getitem__(self, name: str, _default: Any = None, /) -> Any:
        raise AssertionError(f"looked at {name} of a part that did not change")

    get = __getitem__


def test_an_action_about_a_call_costs_the_same_after_thousands_of_others() -> None:
    listed: list[Any] = []
    index, states = Mock(), Mock()
    index.session_of.return_value, states.session.return_value = "ahp-session:/s", NO_SESSION
    needed = InputNeeded(index, list, states, lambda _, action: listed.append(action))
    call = {"toolCallId": "c", "toolName": "rm", "displayName": "rm", "status": "pending-confirmation"}
    parts = [*(Untouched() for _ in range(5000)), {"kind": "toolCall", "toolCall": call}]
    after = {"activeTurn": {"id": "t1", "responseParts": parts}}
    action = {"type": "chat/toolCallReady", "turnId": "t1", "toolCallId": "c"}
    needed.heard(Applied("ahp-chat:/c", action, None, {}, after))
    assert [each["request"]["kind"] for each in listed] == ["toolConfirmation"]


@requirement("gen:list:no-paging-asked")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.7.0", "1.0.0"])
async def test_without_paging_all_sessions_come_and_the_one_changed_last_is_first(bench: Bench, version: str) -> None:
    raw = await bench.client("ahp-root://", client_id="any", offer=[version])
    made = [await bench.session(raw) for _ in range(3)]
    for session, chat in (made[1], made[0], made[2], made[0]):
        before = (await raw.ask("listSessions"))["items"]
        turn = {**STARTED, "turnId": f"t{len(raw.received)}"}
        if version < "0.6.0":
            del turn["startedAt"]
        await raw.accepted(chat, turn)
        await raw.action(
            lambda said, id=turn["turnId"]: (
                (said["action"]["type"], said["action"].get("turnId")) == ("chat/turnComplete", id)
            )
        )
        items = (await raw.ask("listSessions"))["items"]
        others = [one["resource"] for one in before if one["resource"] != session]
        assert [one["resource"] for one in items] == [session, *others]
    if version == "0.4.0":
        asked = await raw.ask("listSessions", filter={"provider": "none"})
        assert [one["resource"] for one in asked["items"]] == [one["resource"] for one in items]
