from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.host.registration import Applied
from ahpkit.host.states import NO_SESSION, NO_STATE
from ahpkit.host.turns.chat_summaries import InputNeeded
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.meta_keys import SETTLED
from ahpkit.protocol.session.actions import session_chat_updated, session_customizations_changed
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import until

STARTED = "2026-11-15T12:00:00.000Z"
LISTED = ("resource", "title", "origin", "interactivity", "status", "changes")


async def delegating(turn: Turn) -> None:
    if turn.prompt == "delegate":
        call = turn.tool_call("delegate")
        call.running(tool_input="{}")
        async with await turn.subchat("Helper", "help", tool_call=call) as helping:
            helping.text("done")
        call.complete()


def changes_told(client: RawClient) -> list[Json]:
    told = (said for said in client.received if said.get("method") == "root/sessionSummaryChanged")
    return [said["params"]["changes"] for said in told]


async def seen(client: RawClient, key: str, check: Callable[[Any], object]) -> None:
    """Wait until a change of a summary says so."""
    await client.wait(
        lambda said: (
            said.get("method") == "root/sessionSummaryChanged"
            and key in said["params"]["changes"]
            and bool(check(said["params"]["changes"][key]))
        )
    )


@requirement("gen:summary:chats", "gen:summary:chats-in-step", "gen:summary:identity-omitted")
async def test_a_summary_lists_the_chats_as_the_session_does_and_keeps_in_step(sockets: Bench) -> None:
    sockets.agent.script = delegating
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    session, chat = await sockets.session(client)
    await client.accepted(chat, say("delegate", "t1", startedAt=STARTED))
    await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
    fork = {"kind": "fork", "chat": chat, "turnId": "t1"}
    await client.ask("createChat", session, chat="ahp-chat:/fork", source=fork)
    await client.ask("subscribe", "ahp-chat:/fork")
    await seen(client, "chats", lambda chats: len(chats) == 3)
    count = {"additions": 3, "deletions": 1, "files": 2}
    update: Any = {"title": "Renamed", "changes": count}
    sockets.host.services.dispatch(session, session_chat_updated(chat="ahp-chat:/fork", changes=update))
    await seen(client, "chats", lambda chats: chats[-1].get("changes") == count and chats[-1]["title"] == "Renamed")
    await client.accepted("ahp-chat:/fork", {"type": "chat/isReadChanged", "isRead": True})
    await seen(client, "chats", lambda chats: chats[-1]["status"] & 32)
    await client.ask("moveChat", "ahp-chat:/fork", destination={"kind": "session", "session": session})
    await seen(client, "chats", lambda chats: chats[0]["resource"] == "ahp-chat:/fork")
    catalogue = (await sockets.state(client, session))["chats"]
    listed = (await client.ask("listSessions"))["items"][0]
    assert listed["chats"] == [{key: one[key] for key in LISTED if key in one} for one in catalogue]
    helper = next(one for one in listed["chats"] if one.get("interactivity") == "read-only")
    assert helper["origin"]["kind"] == "tool"
    assert listed["defaultChat"] == chat
    await client.ask("disposeChat", chat)
    await client.wait(lambda said: "defaultChat" not in entry_of(client, session))
    assert not any({"resource", "provider", "createdAt"} & changes.keys() for changes in changes_told(client))


@requirement("gen:summary:identity-omitted")
async def test_our_client_does_not_let_a_session_become_another_one(sockets: Bench) -> None:
    async with connect(sockets.url) as client, client.session_list() as sessions:
        session = await client.create_session()
        await until(lambda: sessions.items)
        before = sessions.items[0]
        changes = {"resource": "ahp-session:/x", "provider": "x", "createdAt": "x", "title": "Another title"}
        params: Any = {"channel": "ahp-root://", "session": session.uri, "changes": changes}
        sockets.host.clients.to_root("root/sessionSummaryChanged", params)
        await until(lambda: sessions.items[0]["title"] == "Another title")
        after = sessions.items[0]
        assert [after[key] for key in ("resource", "provider", "createdAt")] == [
            before[key] for key in ("resource", "provider", "createdAt")
        ]


def empties(value: Any) -> list[Any]:
    """Everything in a message that stands for "nothing" in place of being absent."""
    found: list[Any] = []
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            if key in ("activity", "agent", "defaultChat", "workingDirectory") and inner in ("", None, {"uri": ""}):
                found.append((key, inner))
            found += empties(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            found += empties(inner)
    return found


@requirement("gen:activity:cleared-at-end")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.2", "0.7.0", "0.9.0", "1.0.0"])
async def test_what_is_cleared_is_absent_everywhere(sockets: Bench, version: str) -> None:
    """A partial update cannot say that a field is gone: then the whole entry of the list is told again."""
    going = asyncio.Event()

    async def busy(turn: Turn) -> None:
        turn.activity("Reading")
        await going.wait()

    sockets.agent.script = busy
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    session, chat = await sockets.session(client)
    role: Any = {"type": "agent", "id": "a", "uri": "file:///a.md", "name": "critic"}
    folder: Any = {
        "type": "directory",
        "id": "d",
        "uri": "file:///d",
        "name": "d",
        "enabled": True,
        "contents": "agent",
    }
    folder |= {"writable": False, "children": [role]}
    sockets.host.services.dispatch(session, session_customizations_changed(customizations=[folder]))
    async with connect(sockets.url) as sdk, sdk.session_list() as listed:
        if version == "0.4.0":
            await client.accepted(session, {"type": "session/agentChanged", "agent": {"uri": "file:///a.md"}})
            await seen(client, "agent", lambda agent: agent == {"uri": "file:///a.md"})
        await client.accepted(chat, say("go", "t1", startedAt=STARTED))
        await seen(client, "activity", lambda activity: activity == "Reading")
        await until(lambda: [one.get("activity") for one in listed.items] == ["Reading"])
        going.set()
        await client.action(lambda said: said["channel"] == chat and said["action"]["type"] == "chat/turnComplete")
        await client.wait(lambda said: len(whole(client)) > 1 and "activity" not in entry_of(client, session))
        if version == "0.4.0":
            await client.accepted(session, {"type": "session/agentChanged"})
            await client.wait(lambda said: "agent" not in entry_of(client, session))
        await until(lambda: all("activity" not in one for one in listed.items))
    [now] = (await client.ask("listSessions"))["items"]
    assert entry_of(client, session) == now
    for uri in (session, chat, "ahp-root://"):
        await sockets.state(client, uri)
    assert [message for message in client.received if empties(message)] == []


def whole(client: RawClient) -> list[Json]:
    return [said["params"]["summary"] for said in client.received if said.get("method") == "root/sessionAdded"]


def entry_of(client: RawClient, session: str) -> Json:
    """A session's entry as a client has it that overlays what it is told."""
    entry: Json = {}
    for said in client.received:
        params: Json = said.get("params") or {}
        if said.get("method") == "root/sessionAdded" and params["summary"]["resource"] == session:
            entry = params["summary"]
        elif said.get("method") == "root/sessionSummaryChanged" and params["session"] == session:
            entry = {**entry, **params["changes"]}
    return entry


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_the_title_of_an_only_chat_follows_its_session_by_an_action(sockets: Bench, version: str) -> None:
    """A client that only reduces actions shows the same title as a snapshot."""
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    session, chat = await sockets.session(client)

    async def retitled(title: str, change: Any) -> None:
        await change
        told = await client.action(
            lambda said: (
                said["action"]["type"] == "session/chatUpdated" and said["action"]["changes"].get("title") == title
            )
        )
        assert (told["channel"], told["action"]["chat"]) == (session, chat)
        state = await sockets.state(client, session)
        assert (state.get("summary") or state)["title"] == state["chats"][0]["title"] == title

    await retitled("First words", client.accepted(chat, say("First words", "t1", startedAt=STARTED)))
    renamed = {"type": "session/titleChanged", "title": "Renamed"}
    await retitled("Renamed", client.accepted(session, renamed))
    await client.ask("createChat", session, chat="ahp-chat:/second")
    before = len(client.actions(session))
    await client.accepted(session, {"type": "session/titleChanged", "title": "Of two chats"})
    await client.ask("ping")
    told = [said["action"]["type"] for said in client.actions(session)[before:]]
    assert told == ["session/titleChanged"]


NEWEST = ["1.0.0", "0.9.0"]
MESSAGE = {"text": "hi", "origin": {"kind": "user"}}
TURN_STARTED = {"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T12:00:00.000Z", "message": MESSAGE}


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
    await owner.accepted(chat, TURN_STARTED)
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
    await owner.accepted(chat, TURN_STARTED)
    await owner.action("chat/turnComplete")
    call = (await bench.state(owner, chat))["turns"][-1]["responseParts"][0]["toolCall"]
    assert (call["status"], call["_meta"][SETTLED]) == ("cancelled", "rule")
    assert not [one for one in owner.actions(session) if "inputNeeded" in one["action"]["type"]]


@requirement("gen:input-needed:no-orphans")
@pytest.mark.parametrize("version", ["0.5.1", "0.9.0", "1.0.0"])
async def test_after_a_restart_nothing_waits_whose_turn_ended_with_the_host(bench: Bench, version: str) -> None:
    async def script(turn: Turn) -> None:
        if turn.chat.uri == other:
            await turn.ask([{"id": "q", "kind": "text", "message": "?"}])
        elif turn.prompt == "look":
            await turn.tool_call("look").run_by_client(tool_input="{}")
        else:
            await turn.tool_call("rm").confirm(tool_input="{}")

    other = "ahp-chat:/other"
    bench.agent.script = script
    owner = await bench.client(client_id="owner", offer=[version])
    session, chat = await bench.session(owner)
    looks = {"clientId": "owner", "tools": [{"name": "look"}]}
    await owner.accepted(session, {"type": "session/activeClientSet", "activeClient": looks})
    for place in (other, "ahp-chat:/third"):
        await owner.ask("createChat", session, chat=place)
        await owner.ask("subscribe", place)
    await owner.accepted(chat, TURN_STARTED)
    await owner.accepted(other, TURN_STARTED)
    look = {**TURN_STARTED, "message": {**MESSAGE, "text": "look"}}
    await owner.accepted("ahp-chat:/third", look)
    for kind in ("toolConfirmation", "chatInput", "toolClientExecution"):
        await asked(owner, kind)
    assert len((await bench.state(owner, session))["inputNeeded"]) == 3
    await bench.restart()
    reader = await bench.client(client_id="reader", offer=[version])
    state = await bench.state(reader, session)
    assert "inputNeeded" not in state
    assert state["status"] & 16 == 0


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
    await owner.accepted(chat, TURN_STARTED)

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


def waiting_for(done: list[str]) -> Callable[[Json], bool]:
    """Finds an entry of what waits that is none of those that are done."""
    return lambda one: one["action"]["type"] == "session/inputNeededSet" and one["action"]["request"]["id"] not in done


@requirement("gen:input-needed:chat-input-set", "gen:input-needed:answer-unsubscribed", "gen:input-needed:no-orphans")
@pytest.mark.parametrize("version", ["0.5.1", "0.9.0", "1.0.0"])
async def test_a_question_of_any_chat_is_listed_as_it_is_until_it_is_over(bench: Bench, version: str) -> None:
    """Answered by somebody who follows the session alone, ended with its turn, gone with its chat."""

    async def script(turn: Turn) -> None:
        await turn.ask([{"id": "q", "kind": "text", "message": "?"}])

    bench.agent.script = script
    raw, watcher = await client(bench, "raw"), await bench.client(client_id="watcher", offer=[version])
    session, chat = await bench.session(raw)
    await watcher.ask("subscribe", session)
    other = "ahp-chat:/other"
    await raw.ask("createChat", session, chat=other)
    done: list[str] = []
    for place, end in ((chat, "answered"), (other, "cancelled"), (other, "disposed")):
        raw.post(place, {**TURN_STARTED, "turnId": end})
        entry = (await watcher.action(waiting_for(done)))["action"]["request"]
        assert (entry["kind"], entry["chat"], entry["request"]["questions"][0]["id"]) == ("chatInput", place, "q")
        answer = {"state": "submitted", "value": {"kind": "text", "value": "yes"}}
        about = {"requestId": entry["request"]["id"]}
        if end == "answered":
            watcher.post(place, {"type": "chat/inputAnswerChanged", **about, "questionId": "q", "answer": answer})
            await watcher.action(lambda one: one["action"].get("request", {}).get("request", {}).get("answers"))
            watcher.post(place, {"type": "chat/inputCompleted", **about, "response": "accept"})
        elif end == "cancelled":
            raw.post(place, {"type": "chat/turnCancelled", "turnId": end, "duration": 1})
        else:
            await raw.ask("disposeChat", place)
        done.append(entry["id"])
        await watcher.action(lambda one, id=entry["id"]: one["action"].get("id") == id)
        assert queue(bench, session) == []


@requirement(
    "gen:input-needed:client-execution-set",
    "gen:input-needed:client-execution-running-only",
    "gen:input-needed:tool-confirmation-set",
    "core:chat:tool-result-confirmation",
)
@pytest.mark.parametrize("version", ["0.5.1", "0.9.0", "1.0.0"])
async def test_a_call_that_a_client_runs_is_listed_while_it_runs(bench: Bench, version: str) -> None:
    """Until it has completed, or its turn ended; a result that somebody has to confirm is listed as such."""

    async def script(turn: Turn) -> None:
        await turn.tool_call("look").run_by_client(tool_input="{}")

    bench.agent.script = script
    raw = await bench.client(client_id="raw", offer=[version])
    session, chat = await bench.session(raw)
    entry = {"clientId": "raw", "tools": [{"name": "look"}]}
    await raw.accepted(session, {"type": "session/activeClientSet", "activeClient": entry})
    done: list[str] = []

    async def running(turn_id: str) -> Json:
        await raw.accepted(chat, {**TURN_STARTED, "turnId": turn_id})
        waiting = (await raw.action(waiting_for(done)))["action"]["request"]
        assert (waiting["kind"], waiting["clientId"]) == ("toolClientExecution", "raw")
        assert (waiting["turnId"], waiting["toolCall"]["status"]) == (turn_id, "running")
        done.append(waiting["id"])
        return {"turnId": turn_id, "toolCallId": waiting["toolCall"]["toolCallId"]}

    async def gone() -> None:
        await raw.action(
            lambda one: one["action"]["type"].endswith("NeededRemoved") and one["action"]["id"] == done[-1]
        )

    complete = {"type": "chat/toolCallComplete", "result": {"success": True, "pastTenseMessage": "looked"}}
    await raw.accepted(chat, {**complete, **await running("t1")})
    await gone()
    await running("t2")
    await raw.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t2", "duration": 1})
    await gone()
    call = await running("t3")
    await raw.accepted(chat, {**complete, **call, "requiresResultConfirmation": True})
    waiting = await asked(raw, "toolConfirmation")
    assert (waiting["turnId"], waiting["toolCall"]["status"]) == ("t3", "pending-result-confirmation")
    assert [one["kind"] for one in (await bench.state(raw, session))["inputNeeded"]] == ["toolConfirmation"]
    done.append(waiting["id"])
    await raw.accepted(chat, {"type": "chat/toolCallResultConfirmed", **call, "approved": True})
    await gone()
    told = [one["action"]["request"] for one in raw.actions(session) if "NeededSet" in one["action"]["type"]]
    assert {one["toolCall"]["status"] for one in told if one["kind"] == "toolClientExecution"} == {"running"}
    assert queue(bench, session) == []


@requirement("gen:list:walk", "gen:list:unknown-cursor")
@pytest.mark.parametrize("version", ["0.5.1", "0.7.0", "1.0.0"])
async def test_sessions_are_listed_page_by_page(bench: Bench, version: str) -> None:
    """Also those that change, come and go between two pages: what is there all the time is told once."""
    raw = await bench.client(client_id="raw", offer=[version])
    made = [(await bench.session(raw))[0] for _ in range(7)]
    newest = [item["resource"] for item in (await raw.ask("listSessions"))["items"]]
    assert sorted(newest) == sorted(made)
    page = await raw.ask("listSessions", limit=2)
    told = [item["resource"] for item in page["items"]]
    assert told == newest[:2]
    for session in (newest[-1], newest[0]):
        await raw.accepted(session, {"type": "session/titleChanged", "title": "Touched"})
    await raw.ask("disposeSession", newest[3])
    await bench.session(raw)
    while "nextCursor" in page:
        page = await raw.ask("listSessions", limit=2, cursor=page["nextCursor"])
        told += [item["resource"] for item in page["items"]]
    assert told == [*newest[:3], *newest[4:]]
    assert page["items"][-1]["title"] == "Touched"
    assert len((await raw.ask("listSessions"))["items"]) == 7
    assert (await raw.refused("listSessions", cursor="nonsense"))["code"] == -32602


async def test_a_page_that_was_asked_for_before_a_restart_goes_on_where_it_ended(sockets: Bench) -> None:
    raw = await client(sockets, "raw")
    for _ in range(3):
        await sockets.session(raw)
    newest = [item["resource"] for item in (await raw.ask("listSessions"))["items"]]
    page = await raw.ask("listSessions", limit=2)
    await sockets.restart()
    again = await client(sockets, "raw")
    rest = await again.ask("listSessions", limit=2, cursor=page["nextCursor"])
    assert [item["resource"] for item in page["items"] + rest["items"]] == newest
    assert "nextCursor" not in rest


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
    after = cast("ChatState", {"activeTurn": {"id": "t1", "responseParts": parts}})
    action = cast("StateAction", {"type": "chat/toolCallReady", "turnId": "t1", "toolCallId": "c"})
    needed.on_applied(Applied("ahp-chat:/c", action, None, NO_STATE, after, 0))
    assert [each["request"]["kind"] for each in listed] == ["toolConfirmation"]


@requirement("gen:list:no-paging-asked")
@pytest.mark.parametrize("version", ["0.4.0", "0.5.0", "0.7.0", "1.0.0"])
async def test_without_paging_all_sessions_come_and_the_one_changed_last_is_first(bench: Bench, version: str) -> None:
    ticks = itertools.count(1_900_000_000_000)
    await bench.restart(now=lambda: next(ticks))  # Two turns within one millisecond would have no order.
    raw = await bench.client("ahp-root://", client_id="any", offer=[version])
    made = [await bench.session(raw) for _ in range(3)]
    for session, chat in (made[1], made[0], made[2], made[0]):
        before = (await raw.ask("listSessions"))["items"]
        turn = {**TURN_STARTED, "turnId": f"t{len(raw.received)}"}
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
