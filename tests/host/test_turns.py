"""Turns: streaming, tool calls, questions, queue, steering, cancel, failure, sub-chats, recovery."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.host.agent import AgentError, Turn
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.waiting import BOUND

APPROVE = {"type": "chat/toolCallConfirmed", "turnId": "t1", "approved": True, "confirmed": "user-action"}
DENY = {"type": "chat/toolCallConfirmed", "turnId": "t1", "approved": False, "reason": "denied"}


async def ended(client: RawClient, kind: str = "chat/turnComplete", turn_id: str = "t1") -> Json:
    return await client.action(lambda e: e["action"]["type"] == kind and e["action"].get("turnId") == turn_id)


async def finished_turn(bench: Bench, client: RawClient, chat: str, kind: str = "chat/turnComplete") -> Json:
    await ended(client, kind)
    return (await bench.state(client, chat))["turns"][-1]


async def hold(turn: Turn) -> None:
    await asyncio.Event().wait()


@requirement("core:chat:create-then-append", "core:chat:append")
async def test_streamed_text_starts_a_part_and_appends_to_it(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.think("hm")
        turn.text("Hello ")
        turn.text("world")
        turn.new_part()
        turn.text("again")

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("hi"))
    turn = await finished_turn(bench, client, chat)
    assert [(part["kind"], part["content"]) for part in turn["responseParts"]] == [
        ("reasoning", "hm"),
        ("markdown", "Hello world"),
        ("markdown", "again"),
    ]
    kinds = [e["action"]["type"] for e in client.actions(chat)]
    assert kinds.index("chat/responsePart") < kinds.index("chat/reasoning")


@requirement("core:chat:tool-call-states")
async def test_a_tool_call_is_approved_with_edited_input_and_an_option(bench: Bench) -> None:
    seen: list[Any] = []

    async def script(turn: Turn) -> None:
        call = turn.tool_call("write", display_name="Write file")
        call.input('{"path":')
        call.input('"a"}')
        options = [{"id": "always", "label": "Always", "kind": "approve"}]
        seen.append(await call.confirm(tool_input='{"path":"a"}', options=options, editable=True))  # type: ignore[arg-type]  # Plain dicts.
        call.content([{"type": "text", "text": "half"}])
        call.complete(message="Wrote", content=[{"type": "text", "text": "done"}])
        call.complete(message="twice")

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    ready = (await client.action("chat/toolCallReady"))["action"]
    assert (await bench.state(client, chat))["status"] == 24
    approve = {**APPROVE, "toolCallId": ready["toolCallId"], "editedToolInput": "{}", "selectedOptionId": "always"}
    await client.accepted(chat, approve)
    turn = await finished_turn(bench, client, chat)
    call = turn["responseParts"][0]["toolCall"]
    assert call["status"] == "completed"
    assert call["toolInput"] == "{}"
    assert call["pastTenseMessage"] == "Wrote"
    assert call["selectedOption"]["id"] == "always"
    assert (seen[0].approved, seen[0].tool_input, seen[0].option_id) == (True, "{}", "always")


@requirement("core:chat:tool-call-states")
async def test_a_denied_call_is_over_and_the_agent_hears_why(bench: Bench) -> None:
    seen: list[Any] = []

    async def script(turn: Turn) -> None:
        call = turn.tool_call("rm")
        seen.append(await call.confirm(tool_input="{}"))
        assert call.over
        call.complete()
        turn.text("As you wish.")

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    call_id = (await client.action("chat/toolCallReady"))["action"]["toolCallId"]
    await client.accepted(chat, {**DENY, "toolCallId": call_id, "reasonMessage": "too dangerous"})
    turn = await finished_turn(bench, client, chat)
    assert turn["responseParts"][0]["toolCall"]["status"] == "cancelled"
    assert (seen[0].approved, seen[0].reason) == (False, "too dangerous")


async def test_of_two_clients_that_answer_the_same_approval_the_first_wins(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("x")
        await call.confirm(tool_input="{}")
        await asyncio.Event().wait()

    bench.agent.script = script
    alice, bob = await bench.client(), await bench.client()
    _, chat = await bench.session(alice)
    await bob.ask("subscribe", chat)
    await alice.accepted(chat, say("go"))
    call_id = (await bob.action("chat/toolCallReady"))["action"]["toolCallId"]
    await alice.accepted(chat, {**APPROVE, "toolCallId": call_id})
    assert "pending" in await bob.rejected(chat, {**DENY, "toolCallId": call_id})


@requirement("core:chat:tool-reconfirmation")
async def test_a_running_tool_may_ask_again(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("x")
        call.running(tool_input="{}")
        answer = await call.confirm(tool_input="{}", message="really?")
        call.complete(success=answer.approved)

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    ready = await client.action(
        lambda e: e["action"]["type"] == "chat/toolCallReady" and "confirmed" not in e["action"]
    )
    await client.accepted(chat, {**APPROVE, "toolCallId": ready["action"]["toolCallId"]})
    turn = await finished_turn(bench, client, chat)
    assert turn["responseParts"][0]["toolCall"]["status"] == "completed"


@requirement("core:chat:reject-unanswered-required")
@requirement("core:chat:reject-wrong-answer-kind")
@requirement("core:chat:reject-unknown-input-request")
async def test_questions_share_drafts_between_clients_and_are_checked(bench: Bench) -> None:
    seen: list[Any] = []
    questions: list[Any] = [
        {"id": "name", "kind": "text", "message": "Name?", "required": True},
        {"id": "age", "kind": "integer", "message": "Age?"},
    ]

    async def script(turn: Turn) -> None:
        seen.append(await turn.ask(questions, message="About you"))

    bench.agent.script = script
    alice, bob = await bench.client(), await bench.client()
    _, chat = await bench.session(alice)
    await bob.ask("subscribe", chat)
    await alice.accepted(chat, say("go"))
    request_id = (await alice.action("chat/inputRequested"))["action"]["request"]["id"]
    complete = {"type": "chat/inputCompleted", "requestId": request_id, "response": "accept"}
    assert "name" in await alice.rejected(chat, complete)
    answer = {"type": "chat/inputAnswerChanged", "requestId": request_id, "questionId": "name"}
    wrong = {"state": "draft", "value": {"kind": "number", "value": 3}}
    assert await alice.rejected(chat, {**answer, "answer": wrong})
    assert await alice.rejected(chat, {**complete, "requestId": "other"})
    draft = {"state": "draft", "value": {"kind": "text", "value": "Ada"}}
    await alice.accepted(chat, {**answer, "answer": draft})
    await bob.action("chat/inputAnswerChanged")
    shared = (await bench.state(bob, chat))["inputRequests"][0]["answers"]["name"]
    assert shared == draft
    assert "name" in await bob.rejected(chat, complete), "a draft is no answer yet"
    await bob.accepted(chat, {**answer, "answer": {**draft, "state": "submitted"}})
    await bob.accepted(chat, complete)
    await ended(alice)
    assert seen[0].response == "accept"
    assert seen[0].answers["name"]["value"]["value"] == "Ada"


async def test_a_question_nobody_waits_for_any_more_is_taken_back(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        question: Any = {"id": "q", "kind": "text", "message": "Name?"}
        asking = asyncio.create_task(turn.ask([question]))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        turn.text("never mind")

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    taken_back = await client.action("chat/inputCompleted")
    assert taken_back["action"]["response"] == "cancel"
    await finished_turn(bench, client, chat)
    assert not (await bench.state(client, chat)).get("inputRequests")


@requirement("core:chat:queue-consumed")
async def test_queued_messages_start_when_the_turn_ends_and_at_once_when_idle(bench: Bench) -> None:
    release = asyncio.Event()

    async def script(turn: Turn) -> None:
        if turn.id == "t1":
            await release.wait()

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("first"))
    for name in ("q1", "q2"):
        message = say(name)["message"]
        action = {"type": "chat/pendingMessageSet", "kind": "queued", "id": name, "message": message}
        await client.accepted(chat, action)
    release.set()
    for name in ("q1", "q2"):
        started = await client.action(lambda e, name=name: e["action"].get("queuedMessageId") == name)
        await ended(client, turn_id=started["action"]["turnId"])
    idle = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q3", "message": say("q3")["message"]}
    await client.accepted(chat, idle)
    started = await client.action(lambda e: e["action"].get("queuedMessageId") == "q3")
    await ended(client, turn_id=started["action"]["turnId"])
    state = await bench.state(client, chat)
    assert [turn["message"]["text"] for turn in state["turns"]] == ["first", "q1", "q2", "q3"]
    assert not state.get("queuedMessages")


@requirement("core:chat:steering-slot")
async def test_a_steering_message_is_taken_during_the_turn(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.text((await turn.wait_steering())["text"])

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": say("left")["message"]}
    await client.accepted(chat, steer)
    turn = await finished_turn(bench, client, chat)
    assert turn["responseParts"][0]["content"] == "left"
    assert "steeringMessage" not in await bench.state(client, chat)


@requirement("core:chat:reject-second-turn")
async def test_a_second_turn_is_refused_while_one_runs(bench: Bench) -> None:
    bench.agent.script = hold
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("one"))
    assert "turn" in await client.rejected(chat, say("two", "t2"))


@requirement("core:chat:reject-cancel-without-turn")
async def test_cancel_stops_the_agent_and_what_it_says_later_is_dropped(bench: Bench) -> None:
    stopped = asyncio.Event()

    async def script(turn: Turn) -> None:
        turn.text("working")
        try:
            await asyncio.Event().wait()
        finally:
            turn.text("too late")
            stopped.set()

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await client.action("chat/delta")
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    async with asyncio.timeout(BOUND):
        await stopped.wait()
    state = await bench.state(client, chat)
    assert state["turns"][0]["state"] == "cancelled"
    assert state["turns"][0]["responseParts"][0]["content"] == "working"
    assert state["status"] & 31 == 1
    assert await client.rejected(chat, {"type": "chat/turnCancelled", "turnId": "t1"})


@requirement("core:chat:turn-end-cancels-calls")
@pytest.mark.parametrize("end", ["cancelled by a client", "ended by the agent", "failed"])
async def test_the_end_of_a_turn_ends_the_calls_that_are_still_open(bench: Bench, end: str) -> None:
    go_on = asyncio.Event()

    async def script(turn: Turn) -> None:
        turn.tool_call("one").running(tool_input="{}")
        asked = asyncio.ensure_future(turn.tool_call("two").confirm(tool_input="{}"))
        await go_on.wait()
        if end == "failed":
            raise AgentError("no more", error_type="quota")
        if end == "cancelled by a client":
            await asked

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await client.action(lambda e: e["action"]["type"] == "chat/toolCallReady" and "confirmed" not in e["action"])
    go_on.set()
    if end == "cancelled by a client":
        await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    await client.action(lambda e: e["action"]["type"] in ("chat/turnComplete", "chat/turnCancelled", "chat/error"))
    calls = _calls((await bench.state(client, chat))["turns"][-1])
    assert [(call["status"], call["reason"]) for call in calls] == [("cancelled", "skipped")] * 2


def _calls(turn: Json) -> list[Json]:
    return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


@requirement("core:chat:truncated")
async def test_a_chat_goes_on_from_the_turn_to_which_it_was_cut_back(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "wait":
            await asyncio.Event().wait()

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    for turn_id in ("t1", "t2", "t3"):
        await client.accepted(chat, say(turn_id, turn_id))
        await ended(client, turn_id=turn_id)
    await client.accepted(chat, say("wait", "t4"))
    await client.accepted(chat, {"type": "chat/truncated", "turnId": "t2"})
    state = await bench.state(client, chat)
    assert [turn["id"] for turn in state["turns"]] == ["t1", "t2"]
    assert "activeTurn" not in state
    await client.accepted(chat, say("on", "t5"))
    await ended(client, turn_id="t5")
    assert [turn["message"]["text"] for turn in bench.agent.turns[-1].chat.history] == ["t1", "t2", "on"]
    await client.accepted(chat, {"type": "chat/truncated"})
    assert (await bench.state(client, chat))["turns"] == []


@requirement("core:chat:status-activity-exclusive", "core:chat:status-other-bits")
async def test_what_a_turn_does_changes_the_activity_and_no_flag(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        await turn.tool_call("x").confirm(tool_input="{}")
        await asyncio.Event().wait()

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(session, {"type": "session/isArchivedChanged", "isArchived": True})
    seen = [await _status(client, session)]
    await client.accepted(chat, say("go"))
    call_id = (await client.action("chat/toolCallReady"))["action"]["toolCallId"]
    seen.append(await _status(client, session))
    await client.accepted(session, {"type": "session/isReadChanged", "isRead": True})
    await client.accepted(chat, {**APPROVE, "toolCallId": call_id})
    seen.append(await _status(client, session))
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    seen.append(await _status(client, session) & ~32)  # What is new is not read.
    assert seen == [64 | 1, 64 | 24, 64 | 32 | 8, 64 | 1]


async def _status(client: RawClient, session: str) -> int:
    listed: list[Json] = (await client.ask("listSessions"))["items"]
    return next(one["status"] for one in listed if one["resource"] == session)


@requirement("session:status:error", "session:status:idle")
async def test_a_failing_agent_ends_the_turn_with_its_words_and_never_a_traceback(bench: Bench) -> None:
    async def fail(turn: Turn) -> None:
        raise AgentError("quota used up", error_type="quota")

    async def crash(turn: Turn) -> None:
        raise RuntimeError("secret internals")

    client = await bench.client()
    _, chat = await bench.session(client)
    bench.agent.script = fail
    await client.accepted(chat, say("go"))
    turn = await finished_turn(bench, client, chat, "chat/error")
    assert turn["error"] == {"errorType": "quota", "message": "quota used up"}
    assert (await bench.state(client, chat))["status"] & 31 == 2
    bench.agent.script = crash
    await client.accepted(chat, say("go", "t2"))
    await ended(client, "chat/error", "t2")
    assert "secret" not in str(client.received)


async def test_truncating_during_a_turn_stops_it(bench: Bench) -> None:
    bench.agent.script = hold
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await client.accepted(chat, {"type": "chat/truncated"})
    assert (await bench.state(client, chat))["turns"] == []
    bench.agent.script = _quick
    await client.accepted(chat, say("again", "t2"))
    await ended(client, turn_id="t2")


async def test_a_sub_chat_is_listed_read_only_and_ends_with_its_block(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("delegate")
        call.running()
        async with await turn.subchat("Helper", "count", tool_call=call) as sub:
            sub.text("1 2 3")
        call.complete()

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    await ended(client)
    entry = (await bench.state(client, session))["chats"][1]
    assert entry["interactivity"] == "read-only"
    assert entry["origin"]["kind"] == "tool"
    assert entry["origin"]["chat"] == chat
    [turn] = (await bench.state(client, entry["resource"]))["turns"]
    assert turn["state"] == "complete"
    assert turn["responseParts"][0]["content"] == "1 2 3"
    assert await client.rejected(entry["resource"], say("me too", "t9"))


async def test_usage_activity_notices_and_stop_reasons_are_shown(bench: Bench) -> None:
    async def script(turn: Turn) -> str:
        turn.activity("Thinking")
        turn.usage({"inputTokens": 3, "outputTokens": 5})
        turn.notice("careful")
        return "max_tokens"

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    turn = await finished_turn(bench, client, chat)
    assert turn["usage"] == {"inputTokens": 3, "outputTokens": 5}
    assert [part["kind"] for part in turn["responseParts"]] == ["systemNotification", "systemNotification"]
    shown = await client.action(lambda e: e["action"].get("activity") == "Thinking")
    assert shown["channel"] == session


@requirement("core:hardening:server-seq-survives-restart")
@requirement("core:hardening:no-phantom-approval")
async def test_after_a_crash_the_turn_ends_with_an_error_and_the_waiting_call_as_not_run(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("rm")
        await call.confirm(tool_input="{}")

    bench.agent.script = script
    client = await bench.client(client_id="c")
    session, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    last = (await client.action("chat/toolCallReady"))["serverSeq"]
    await client.ask("ping")
    storage = bench.storage
    bench.host.sessions.aclose = _nothing
    await bench.stop()
    bench.storage = storage
    await bench.start()
    back = await bench.connect("c")
    result = await back.ask("reconnect", clientId="c", lastSeenServerSeq=last, subscriptions=[session, chat])
    assert result["type"] == "replay"
    error = next(e for e in result["actions"] if e["action"]["type"] == "chat/error")
    assert error["serverSeq"] > last
    state = await bench.state(back, chat)
    assert state["turns"][0]["state"] == "error"
    assert "stopped" in state["turns"][0]["error"]["message"]
    call = state["turns"][0]["responseParts"][0]["toolCall"]
    assert (call["status"], call["reason"]) == ("cancelled", "skipped")
    bench.agent.script = _quick
    back.post(chat, say("again", "t2"), client_seq=100)
    await ended(back, turn_id="t2")


async def _quick(turn: Turn) -> None:
    turn.text("ok")


async def _nothing() -> None:
    return None


async def test_what_a_client_puts_into_a_calls_meta_stays_beside_what_the_agent_says(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("write", meta={"agent.dev/a": 1, "agent.dev/b": 1})
        answer = await call.confirm(tool_input="{}")
        turn.text(str(answer.meta))
        call.meta({"agent.dev/a": 2})
        call.complete()

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, say("go"))
    call = (await client.action("chat/toolCallReady"))["action"]["toolCallId"]
    approved = {"approved": True, "confirmed": "user-action", "_meta": {"client.dev/x": 1, "agent.dev/b": 1}}
    await client.accepted(chat, {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": call, **approved})
    await client.action("chat/turnComplete")
    parts = (await bench.state(client, chat))["turns"][0]["responseParts"]
    assert parts[0]["toolCall"]["_meta"] == {"client.dev/x": 1, "agent.dev/a": 2}
    assert "client.dev/x" in parts[1]["content"]
