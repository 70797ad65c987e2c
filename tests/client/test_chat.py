"""What a chat handle sends for each thing a person does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import Chat, Client
from ahpkit.client.answers import open_requests
from ahpkit.testing.fake_host import FakeHost
from support import requirement
from support.clients import CHAT, SESSION, eventually
from support.oldest import check_action


@pytest.fixture
async def chat(client: Client) -> Chat:
    return await (await client.session(SESSION)).chat()


def last_action(host: FakeHost) -> dict[str, Any]:
    action = host.sent("dispatchAction")[-1]["action"]
    check_action(action)
    return action


async def running(host: FakeHost, chat: Chat) -> str:
    """A running turn with a tool call that waits."""
    turn = chat.send("hi")
    assert turn.dispatch is not None
    await turn.dispatch.accepted()
    ids = {"turnId": turn.turn_id, "toolCallId": "call"}
    options = [{"id": "always", "label": "Always", "kind": "approve"}]
    host.emit(CHAT, {"type": "chat/toolCallStart", **ids, "toolName": "rm", "displayName": "Remove"})
    host.emit(CHAT, {"type": "chat/toolCallReady", **ids, "invocationMessage": "rm -r", "options": options})
    await eventually(lambda: chat.confirmed["status"] == 24)
    return turn.turn_id


async def test_a_message_has_text_attachments_and_meta(host: FakeHost, chat: Chat):
    attachment: Any = {"type": "simple", "label": "note"}
    turn = chat.send("hi", attachments=[attachment], meta={"example.com/id": 7})
    assert turn.dispatch is not None
    await turn.dispatch.accepted()

    assert last_action(host) == {
        "type": "chat/turnStarted",
        "turnId": turn.turn_id,
        "message": {
            "text": "hi",
            "origin": {"kind": "user"},
            "attachments": [attachment],
            "_meta": {"example.com/id": 7},
        },
    }


@requirement("session:state:default-chat-may-change")
@requirement("core:chat:own-channel", "session:state:default-chat-routing")
async def test_input_to_the_session_goes_to_its_default_chats_channel(host: FakeHost, client: Client):
    other = "ahp-chat:/other"
    host.open(other, host.states[CHAT])
    host.emit(SESSION, {"type": "session/chatAdded", "summary": {**host.states[CHAT], "resource": other}})
    host.emit(SESSION, {"type": "session/defaultChatChanged", "defaultChat": other})
    session = await client.session(SESSION)

    chat = await session.chat()
    turn = chat.send("hi")
    assert turn.dispatch is not None
    await turn.dispatch.accepted()

    assert host.sent("dispatchAction")[-1]["channel"] == other
    assert "activeTurn" in host.states[other]
    assert "activeTurn" not in host.states[SESSION]


async def test_cancelling_and_truncating(host: FakeHost, chat: Chat):
    turn_id = await running(host, chat)

    await chat.cancel().accepted()
    assert last_action(host) == {"type": "chat/turnCancelled", "turnId": turn_id}
    await chat.truncate(turn_id)
    assert last_action(host) == {"type": "chat/truncated", "turnId": turn_id}
    await chat.truncate()
    assert last_action(host) == {"type": "chat/truncated"}


async def test_what_needs_a_running_turn_says_so(chat: Chat):
    with pytest.raises(LookupError, match="no turn is running"):
        chat.cancel()
    with pytest.raises(LookupError, match="no turn is running"):
        chat.approve("call")


async def test_queueing_reordering_and_taking_back(host: FakeHost, chat: Chat):
    first, second = chat.queue("one"), chat.queue("two")
    await second.accepted()
    ids = [first.action["id"], second.action["id"]]
    assert [message["id"] for message in chat.confirmed.get("queuedMessages", ())] == ids

    await chat.reorder(list(reversed(ids))).accepted()
    assert [message["id"] for message in chat.confirmed.get("queuedMessages", ())] == list(reversed(ids))
    await chat.unqueue(ids[0]).accepted()
    assert [message["id"] for message in chat.confirmed.get("queuedMessages", ())] == [ids[1]]


async def test_a_running_turn_is_steered(host: FakeHost, chat: Chat):
    await running(host, chat)
    await chat.steer("left!").accepted()

    assert last_action(host)["kind"] == "steering"
    assert chat.confirmed.get("steeringMessage", {}).get("message", {}).get("text") == "left!"


async def test_calls_are_approved_and_denied(host: FakeHost, chat: Chat):
    turn_id = await running(host, chat)
    await chat.approve("call", option_id="always", edited_input="{}").accepted()
    assert last_action(host) == {
        "type": "chat/toolCallConfirmed",
        "turnId": turn_id,
        "toolCallId": "call",
        "approved": True,
        "confirmed": "user-action",
        "editedToolInput": "{}",
        "selectedOptionId": "always",
    }

    await chat.cancel().accepted()
    await running(host, chat)
    await chat.deny("call", reason="no").accepted()
    assert last_action(host)["reasonMessage"] == "no"
    assert host.states[CHAT]["activeTurn"]["responseParts"][0]["toolCall"]["status"] == "cancelled"


async def test_deciding_about_a_result(host: FakeHost, chat: Chat):
    turn_id = await running(host, chat)
    ids = {"turnId": turn_id, "toolCallId": "call"}
    result = {"success": True, "pastTenseMessage": "Removed"}
    host.emit(CHAT, {"type": "chat/toolCallComplete", **ids, "result": result, "requiresResultConfirmation": True})

    await chat.confirm_result("call", approved=False).accepted()

    assert last_action(host)["type"] == "chat/toolCallResultConfirmed"
    assert chat.confirmed["activeTurn"]["responseParts"][0]["toolCall"]["status"] == "cancelled"  # type: ignore[typeddict-item]  # The turn is active.


async def test_drafting_answering_and_declining(host: FakeHost, chat: Chat):
    await running(host, chat)
    for id in ("r1", "r2"):
        questions = [{"id": "name", "kind": "text", "message": "Name?"}]
        host.emit(CHAT, {"type": "chat/inputRequested", "request": {"id": id, "questions": questions}})
    await eventually(lambda: len(open_requests(chat.confirmed)) == 2)

    await chat.draft("r1", "name", "Ad").accepted()
    assert last_action(host)["answer"] == {"state": "draft", "value": {"kind": "text", "value": "Ad"}}
    await chat.draft("r1", "name", None).accepted()
    assert "answer" not in last_action(host)
    await chat.answer("r1", {"name": "Ada"}).accepted()
    assert last_action(host)["answers"] == {"name": {"state": "submitted", "value": {"kind": "text", "value": "Ada"}}}
    await chat.decline("r2").accepted()
    assert last_action(host)["response"] == "decline"
    with pytest.raises(LookupError, match="'r1'"):
        chat.answer("r1", {})


@requirement("commands:fetch-turns:history-lazily")
async def test_history_is_paged_back_to_the_beginning(host: FakeHost, chat: Chat):
    turns = [{"id": str(number)} for number in range(5)]

    def fetch(params: dict[str, Any]) -> dict[str, Any]:
        end = next((n for n, turn in enumerate(turns) if turn["id"] == params.get("before")), len(turns))
        start = max(0, end - params["limit"])
        return {"turns": turns[start:end], "hasMore": start > 0}

    host.handlers["fetchTurns"] = fetch

    assert [turn["id"] async for turn in chat.history(page=2)] == ["4", "3", "2", "1", "0"]
    assert [params.get("before") for params in host.sent("fetchTurns")] == [None, "3", "1"]


@requirement("commands:completions:debounced")
async def test_fast_typing_asks_for_completions_once(host: FakeHost, chat: Chat):
    host.handlers["completions"] = lambda params: {"items": [{"insertText": params["text"]}]}
    typing = [asyncio.create_task(chat.completions("/help"[:end], end)) for end in range(1, 6)]

    assert [await task for task in typing] == [[], [], [], [], [{"insertText": "/help"}]]
    assert [params["text"] for params in host.sent("completions")] == ["/help"]


@requirement("commands:completions:whole-text")
async def test_completions_send_the_whole_text_with_the_offset(host: FakeHost, chat: Chat):
    host.handlers["completions"] = lambda params: {"items": [{"insertText": "/help"}]}

    assert await chat.completions("/he and more", 3) == [{"insertText": "/help"}]
    assert host.sent("completions") == [{"channel": CHAT, "kind": "userMessage", "text": "/he and more", "offset": 3}]


async def test_a_disposed_chat_is_no_longer_followed(host: FakeHost, chat: Chat):
    await chat.dispose()

    assert host.sent("disposeChat") == [{"channel": CHAT}]
    assert CHAT not in host.states
