"""What a session says of itself is true and the same everywhere: in its snapshot, in lists, in notifications."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import AgentError, Turn
from ahpkit.log.entry import Batch, Entry
from ahpkit.protocol.session.actions import session_customization_updated
from ahpkit.testing.memory_host import MemoryHost
from support import requirement
from support.bench import Bench, say
from support.clients import eventually
from support.raw_client import Json, RawClient

every_version = pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])


async def client_of(bench: Bench, version: str) -> RawClient:
    raw = await bench.connect()
    await raw.initialize("ahp-root://", protocolVersions=[version])
    return raw


def go(version: str, text: str = "go", turn_id: str = "t1") -> Json:
    return say(text, turn_id) if version == "0.4.0" else say(text, turn_id, startedAt="2026-11-15T12:00:00.000Z")


def told(version: str, state: Json) -> Json:
    """What a snapshot says about the session itself."""
    return state["summary"] if version == "0.4.0" else state


async def listed(client: RawClient, session: str) -> Json:
    return next(one for one in (await client.ask("listSessions"))["items"] if one["resource"] == session)


async def agreed(bench: Bench, client: RawClient, version: str, session: str) -> Json:
    """The list's word on a session, which has to be the snapshot's too, when nothing happened between the two."""
    before, entry = None, await listed(client, session)
    shown: Json = {}
    while before != entry:
        before, shown = entry, told(version, await bench.state(client, session))
        entry = await listed(client, session)
    keys = ("status", "activity", "annotations", "title", "workingDirectory", "workingDirectories", "model", "agent")
    keys += ("createdAt", "modifiedAt", "changes") if version == "0.4.0" else ()
    assert {key: shown[key] for key in keys if key in shown} == {key: entry[key] for key in keys if key in entry}
    return entry


def entries(client: RawClient, chat: str) -> list[Json]:
    """What was told so far about a chat in its session's catalogue, whole or in part."""
    updated = [e["action"] for e in client.actions() if e["action"].get("chat") == chat]
    added = [e["action"]["summary"] for e in client.actions() if e["action"]["type"] == "session/chatAdded"]
    return [*(action["changes"] for action in updated if "changes" in action), *added]


async def chat_has_status(client: RawClient, chat: str, status: int) -> None:
    def says(envelope: Json) -> bool:
        action = envelope["action"]
        entry = action.get("changes") if action.get("chat") == chat else action.get("summary")
        return bool(entry) and entry.get("resource", chat) == chat and entry.get("status", 0) & 31 == status

    await client.action(says)


async def turn_over(client: RawClient, turn_id: str) -> None:
    ends = ("chat/turnComplete", "chat/error", "chat/turnCancelled")
    await client.action(lambda e: e["action"]["type"] in ends and e["action"]["turnId"] == turn_id)


async def asking(turn: Turn) -> None:
    turn.activity("reading")
    await turn.tool_call("x").confirm(tool_input="{}")


async def failing(turn: Turn) -> None:
    raise AgentError("no")


def told_status(message: Json) -> int:
    """The status that a client is told of a session: as a change, or with the whole entry when it lost a field."""
    params = message.get("params", {})
    told = {"root/sessionSummaryChanged": "changes", "root/sessionAdded": "summary"}.get(message.get("method", ""), "")
    return params.get(told, {}).get("status", 0)


@every_version
@requirement("session:summary:current")
async def test_a_snapshot_shows_the_status_that_lists_show(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    session, chat = await bench.session(client)
    assert (await agreed(bench, client, version, session))["status"] & 31 == 1
    bench.agent.script = asking
    await client.accepted(chat, go(version))
    await chat_has_status(client, chat, 24)
    entry = await agreed(bench, client, version, session)
    assert entry["status"] & 31 == 24
    assert entry["activity"] == "reading"
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    await client.action(lambda e: e["action"]["type"] == "session/activityChanged" and not e["action"].get("activity"))
    entry = await agreed(bench, client, version, session)
    assert entry["status"] & 31 == 1
    assert "activity" not in entry
    bench.agent.script = failing
    await client.accepted(chat, go(version, turn_id="t2"))
    await turn_over(client, "t2")
    assert (await agreed(bench, client, version, session))["status"] & 31 == 2
    await client.wait(lambda m: told_status(m) & 31 == 2)


@every_version
@requirement("session:aggregate:both-bits", "session:status:input-needed")
async def test_a_session_that_needs_input_and_has_failed_says_both(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    session, chat = await bench.session(client)
    bench.agent.script = failing
    await client.accepted(chat, go(version))
    await turn_over(client, "t1")
    bench.agent.script = asking
    await client.ask("createChat", session, chat="ahp-chat:/other")
    await client.ask("subscribe", "ahp-chat:/other")
    await client.accepted("ahp-chat:/other", go(version))
    await chat_has_status(client, "ahp-chat:/other", 24)
    assert (await agreed(bench, client, version, session))["status"] & 31 == 26


@every_version
@requirement("session:status:creation-failed")
async def test_a_session_whose_creation_failed_is_in_error(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    bench.agent.fail_open = AgentError("no backend")
    await client.ask("createSession", "ahp-session:/bad")
    state = (await client.ask("subscribe", "ahp-session:/bad"))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await client.action("session/creationFailed")
    assert (await agreed(bench, client, version, "ahp-session:/bad"))["status"] & 31 == 2


@every_version
@requirement("session:summary:current")
async def test_annotations_and_times_in_a_snapshot_are_those_of_the_list(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    session, chat = await bench.session(client)
    place: Json = {"turnId": "t1"} if version == "0.4.0" else {"origin": {"session": session}}
    entry: Json = {"id": "e", "text": "look"}
    note: Json = {"id": "a", "resource": "file:///x.py", "resolved": False, "entries": [entry], **place}
    await client.ask("subscribe", f"{session}/annotations")
    await client.accepted(f"{session}/annotations", {"type": "annotations/set", "annotation": note})
    await client.accepted(chat, go(version))
    await turn_over(client, "t1")
    found = await agreed(bench, client, version, session)
    assert (found["annotations"]["annotationCount"], found["annotations"]["entryCount"]) == (1, 1)


@every_version
@requirement("session:activity:absent-when-cleared", "session:activity:entry-agrees")
async def test_a_cleared_activity_is_absent_everywhere(bench: Bench, version: str) -> None:
    go_on = asyncio.Event()

    async def busy(turn: Turn) -> None:
        turn.activity("reading")
        await go_on.wait()

    bench.agent.script = busy
    client = await client_of(bench, version)
    session, chat = await bench.session(client)
    await client.accepted(chat, go(version))
    await client.action(lambda e: e["action"].get("changes", {}).get("activity") == "reading")
    assert (await bench.state(client, session))["chats"][0]["activity"] == "reading"
    assert (await bench.state(client, chat))["activity"] == "reading"
    go_on.set()
    await turn_over(client, "t1")
    state = await bench.state(client, session)
    for where in (state["chats"][0], told(version, state), await bench.state(client, chat)):
        assert "activity" not in where
    assert "activity" not in await listed(client, session)
    assert all(entry.get("activity", "reading") == "reading" for entry in entries(client, chat))


@requirement("session:activity:absent-when-cleared")
async def test_a_cleared_agent_is_absent_everywhere(bench: Bench) -> None:
    client = await client_of(bench, "0.4.0")
    session, chat = await bench.session(client)
    reviewer: Json = {"type": "agent", "id": "a", "uri": "file:///reviewer.md", "name": "Reviewer"}
    plugin: Any = {"type": "plugin", "id": "p", "uri": "x:p", "name": "P", "children": [reviewer]}
    bench.host.services.dispatch(session, session_customization_updated(customization=plugin))
    await client.accepted(session, {"type": "session/agentChanged", "agent": {"uri": "file:///reviewer.md"}})
    assert (await agreed(bench, client, "0.4.0", session))["agent"] == {"uri": "file:///reviewer.md"}
    await client.accepted(session, {"type": "session/agentChanged"})
    assert "agent" not in await agreed(bench, client, "0.4.0", session)
    assert "agent" not in (await bench.state(client, session))["chats"][0]
    assert "agent" not in await bench.state(client, chat)


@every_version
@requirement("session:activity:not-after-restart")
async def test_the_activity_of_a_dead_turn_is_gone_after_a_restart(bench: Bench, version: str, tmp_path: Path) -> None:
    bench.agent.script = asking
    client = await client_of(bench, version)
    session, chat = await bench.session(client)
    await client.accepted(chat, go(version))
    await chat_has_status(client, chat, 24)
    await bench.host.services.durable()
    crashed = Bench(tmp_path)
    crashed.storage = bench.storage
    await crashed.start()  # On what the first one wrote, as after a crash.
    try:
        back = await client_of(crashed, version)
        entry = await agreed(crashed, back, version, session)
        assert "activity" not in entry
        assert entry["status"] & 31 == 2
        assert "activity" not in (await crashed.state(back, session))["chats"][0]
        assert "activity" not in await crashed.state(back, chat)
    finally:
        await crashed.stop()


@requirement("session:fork:takes-over", "commands:create-session:config")
async def test_a_fork_takes_over_model_agent_configuration_and_directory(bench: Bench, tmp_path: Path) -> None:
    mode: Json = {"type": "string", "title": "Mode", "sessionMutable": True}

    async def session_config(directory: Any, values: Any) -> Any:
        return {"type": "object", "properties": {"mode": mode}}

    bench.agent.session_config = session_config  # type: ignore[method-assign]  # The test replaces a method.
    work = tmp_path / "work"
    work.mkdir()
    client = await client_of(bench, "0.4.0")
    given: Json = {"workingDirectory": work.as_uri(), "model": {"id": "large"}}
    session, chat = await bench.session(client, config={"mode": "do", "strange": 1}, **given)
    assert (await bench.state(client, session))["config"]["values"] == {"mode": "do"}
    await client.accepted(chat, say("hi"))
    await turn_over(client, "t1")
    fork: Json = {"session": session, "turnId": "t1"}
    await client.ask("createSession", "ahp-session:/fork", fork=fork)
    state = await bench.state(client, "ahp-session:/fork")
    assert state["config"]["values"] == {"mode": "do"}
    summary = state["summary"]
    assert {name: summary[name] for name in given} == given
    assert summary["project"]["uri"] == work.as_uri()
    assert summary["title"] == state["chats"][0]["title"] == "hi"
    await agreed(bench, await client_of(bench, "1.0.0"), "1.0.0", "ahp-session:/fork")
    own: Json = {"model": {"id": "small"}, "workingDirectory": tmp_path.as_uri()}
    await client.ask("createSession", "ahp-session:/own", fork=fork, config={"mode": "ask"}, **own)
    state = await bench.state(client, "ahp-session:/own")
    assert {name: state["summary"][name] for name in own} == own
    assert state["config"]["values"] == {"mode": "ask"}


@every_version
@requirement("session:title:only-chat", "session:title:no-command", "session:activity:entry-agrees")
async def test_the_only_chat_is_called_like_its_session_and_a_command_is_no_title(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    session, chat = await bench.session(client)

    async def titles() -> set[str]:
        state = await bench.state(client, session)
        entry = await listed(client, session)
        own = (await bench.state(client, chat))["title"]
        return {told(version, state)["title"], state["chats"][0]["title"], own, entry["title"]}

    unnamed = await titles()
    await client.accepted(chat, go(version, "/stream 3"))
    await turn_over(client, "t1")
    assert await titles() == unnamed
    opening = (await listed(client, session)).get("_meta", {}).get("ahpkit/opening")
    assert opening == (None if version == "0.4.0" else "/stream 3"), "which tells it from others"
    await client.accepted(chat, go(version, "Make a plan\nfor today", "t2"))
    await turn_over(client, "t2")
    assert await titles() == {"Make a plan"}
    await client.accepted(session, {"type": "session/titleChanged", "title": "Mine"})
    assert await titles() == {"Mine"}
    await client.ask("createChat", session, chat="ahp-chat:/second")
    await client.accepted(session, {"type": "session/titleChanged", "title": "Both"})
    await client.action(lambda e: e["action"].get("changes", {}).get("title") == "Mine")
    state = await bench.state(client, session)
    assert told(version, state)["title"] == "Both"
    assert [one["title"] for one in state["chats"]] == ["Mine", "New chat"]
    assert [(await bench.state(client, one["resource"]))["title"] for one in state["chats"]] == ["Mine", "New chat"]
    await client.ask("disposeChat", "ahp-chat:/second")
    await client.action(lambda e: e["action"].get("changes", {}).get("title") == "Both")
    assert await titles() == {"Both"}


@every_version
@requirement("core:chat:steering-waits", "core:chat:steering-slot")
async def test_steering_while_nothing_runs_waits_for_a_turn(bench: Bench, version: str) -> None:
    async def script(turn: Turn) -> None:
        turn.text((await turn.wait_steering())["text"])

    bench.agent.script = script
    client = await client_of(bench, version)
    _, chat = await bench.session(client)
    steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": say("left")["message"]}
    await client.accepted(chat, {**steer, "id": "earlier", "message": say("right")["message"]})
    await client.accepted(chat, steer)
    state = await bench.state(client, chat)
    assert state["steeringMessage"]["id"] == "s", "there is one place for it"
    assert "activeTurn" not in state
    await client.accepted(chat, go(version))
    await turn_over(client, "t1")
    state = await bench.state(client, chat)
    assert "steeringMessage" not in state
    [turn] = state["turns"]
    assert turn["responseParts"][0]["content"] == "left"
    await client.accepted(chat, {**steer, "id": "late"})
    state = await bench.state(client, chat)
    assert state["steeringMessage"]["id"] == "late", "after a turn it waits as well"
    assert "activeTurn" not in state
    assert len(state["turns"]) == 1


@every_version
@requirement("core:chat:queue-removal-first")
async def test_a_queued_message_leaves_the_queue_by_its_own_action_before_its_turn(bench: Bench, version: str) -> None:
    client = await client_of(bench, version)
    _, chat = await bench.session(client)
    message = say("later")["message"]
    commits: list[set[int]] = []
    commit = bench.storage.commit

    def noted(batch: Batch) -> None:
        commits.append({step.seq for step in batch if isinstance(step, Entry)})
        commit(batch)

    bench.storage.commit = noted
    await client.accepted(chat, {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message})
    await client.action("chat/turnComplete")
    _, removed, started = client.actions(chat)[:3]
    assert removed["action"] == {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "q"}
    assert (started["action"]["type"], started["action"]["queuedMessageId"]) == ("chat/turnStarted", "q")
    assert started["serverSeq"] == removed["serverSeq"] + 1
    assert any({started["serverSeq"], removed["serverSeq"]} <= seqs for seqs in commits)


@requirement("session:stop:last-words")
async def test_a_host_that_stops_tells_how_turns_end_and_keeps_the_queue(bench: Bench) -> None:
    async def busy(turn: Turn) -> None:
        await asyncio.Event().wait()

    bench.agent.script = busy
    client = await client_of(bench, "0.4.0")
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    message = say("later")["message"]
    await client.accepted(chat, {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message})
    await bench.host.__aexit__()
    closed = await client.wait_closed()
    assert "shutting down" in str(closed)
    last = client.actions(chat)[-1]["action"]
    assert (last["type"], "stopped" in last["error"]["message"]) == ("chat/error", True)


@requirement("session:summary:sdk-derives", "gen:summary:no-activity-action", "gen:summary:sdk-idle-after-answer")
async def test_the_sdk_shows_the_status_that_the_chats_have(bench: Bench) -> None:
    bench.agent.script = asking
    async with MemoryHost(bench.host).client() as client, await client.create_session() as session:
        chat = await session.chat()
        assert session.state["status"] & 31 == 1
        chat.send("go")
        await eventually(lambda: session.state["status"] & 31 == 24)
        assert session.state.get("activity") == "reading"
        await chat.cancel()
        await eventually(lambda: session.state["status"] & 31 == 1 and not session.state.get("inputNeeded"))
        assert "activity" not in session.state


@every_version
@requirement(
    "session:aggregate:status-from-default-chat",
    "session:aggregate:input-needed-promoted",
    "session:aggregate:error-promoted",
    "session:aggregate:activity-from-default-chat",
    "session:aggregate:activity-from-winning-chat",
    "session:action:activity-changed",
    "session:aggregate:modified-at",
    "session:aggregate:flags-session-scoped",
    "session:aggregate:single-chat",
)
async def test_a_running_host_sums_its_chats_up_as_the_rules_say(bench: Bench, version: str) -> None:
    async def does(turn: Turn) -> None:
        turn.activity(f"at {turn.chat.uri}")
        match turn.message["text"]:
            case "ask":
                await turn.tool_call("x").confirm(tool_input="{}")
            case "fail":
                raise AgentError("no")
            case _:
                await asyncio.Event().wait()

    bench.agent.script = does
    client = await client_of(bench, version)
    session, first = await bench.session(client)
    created = milliseconds((await listed(client, session))["createdAt"])
    other = "ahp-chat:/other"

    async def agrees(status: int, activity: str | None) -> None:
        entry = await agreed(bench, client, version, session)
        assert (entry["status"] & 31, entry.get("activity")) == (status, activity)
        doing = [a.get("activity") for a in actions_of(client, session) if a["type"] == "session/activityChanged"]
        assert doing[-1] == activity, "reducers follow it"
        latest = max(chat["modifiedAt"] for chat in (await bench.state(client, session))["chats"])
        assert milliseconds(entry["modifiedAt"]) == max(created, milliseconds(latest))

    await client.accepted(first, go(version, "work"))
    await chat_has_status(client, first, 8)
    await agrees(8, f"at {first}")
    await client.ask("createChat", session, chat=other)
    await client.ask("subscribe", other)
    await agrees(8, f"at {first}")
    await client.accepted(other, go(version, "ask"))
    await chat_has_status(client, other, 24)
    await agrees(24, f"at {other}")
    await client.accepted(other, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    await chat_has_status(client, other, 1)
    await agrees(8, f"at {first}")
    await client.accepted(other, go(version, "fail", "t2"))
    await turn_over(client, "t2")
    await agrees(2, None)  # An error overrides what the default chat does.
    before = (await listed(client, session))["modifiedAt"]
    await client.accepted(session, {"type": "session/isArchivedChanged", "isArchived": True})
    assert (await listed(client, session))["modifiedAt"] == before
    await client.accepted(session, {"type": "session/titleChanged", "title": "Mine"})  # A person's change counts.
    assert milliseconds((await listed(client, session))["modifiedAt"]) > milliseconds(before)
    assert (await listed(client, session))["status"] & 64 == 64
    assert {chat["status"] & 64 for chat in (await bench.state(client, session))["chats"]} == {0}


def actions_of(client: RawClient, channel: str) -> list[Json]:
    return [envelope["action"] for envelope in client.actions(channel)]


def milliseconds(time: str | int) -> int:
    return time if isinstance(time, int) else round(datetime.fromisoformat(time).timestamp() * 1000)


@requirement("session:aggregate:model-and-agent-not")
async def test_what_a_chat_chose_for_itself_stays_with_the_chat(bench: Bench) -> None:
    client = await client_of(bench, "0.4.0")
    session, _ = await bench.session(client, model={"id": "small"})
    before = await agreed(bench, client, "0.4.0", session)
    reviewer: Json = {"type": "agent", "id": "a", "uri": "file:///reviewer.md", "name": "Reviewer"}
    plugin: Any = {"type": "plugin", "id": "p", "uri": "x:p", "name": "P", "children": [reviewer]}
    bench.host.services.dispatch(session, session_customization_updated(customization=plugin))
    chosen: Json = {"model": {"id": "large"}, "agent": {"uri": reviewer["uri"]}}
    await client.ask("createChat", session, chat="ahp-chat:/own", **chosen)
    after = await agreed(bench, client, "0.4.0", session)
    first, own = (await bench.state(client, session))["chats"]
    assert {key: own.get(key) for key in chosen} == chosen
    assert not {key for key in chosen if first.get(key) == chosen[key]}
    keys = ("model", "agent", "workingDirectory")
    assert {key: after.get(key) for key in keys} == {key: before.get(key) for key in keys}
    assert after["model"] == {"id": "small"}
