"""Approvals and questions by callback: once each, by whoever was asked, and left alone by default."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ahpkit.client import (
    Approve,
    Chat,
    Client,
    ConfirmationNeeded,
    Decline,
    InputNeeded,
    TurnStream,
)
from ahpkit.testing.fake_host import FakeHost
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION, eventually, lose_connection, settled

QUESTION = {"id": "q", "kind": "boolean", "message": "Sure?"}


class Asker:
    """Callbacks that remember what they were asked."""

    def __init__(self, decision: Any = True, reply: Any = None) -> None:
        self.asked: list[Any] = []
        self._decision, self._reply = decision, reply

    async def confirm(self, needed: ConfirmationNeeded) -> Any:
        self.asked.append(needed)
        return self._decision

    def answer(self, needed: InputNeeded) -> Any:
        self.asked.append(needed)
        return self._reply


@pytest.fixture
def asker() -> Asker:
    return Asker(reply={"q": True})


@pytest.fixture
async def client(host: FakeHost, asker: Asker) -> AsyncGenerator[Client]:
    async with Client(
        host.dial, client_id="me", backoff=QUICKLY, on_confirmation=asker.confirm, on_input=asker.answer
    ) as client:
        yield client


@pytest.fixture
async def chat(client: Client) -> Chat:
    return await (await client.session(SESSION)).chat()


async def start(turn: TurnStream) -> str:
    assert turn.dispatch is not None
    await turn.dispatch.accepted()
    return turn.turn_id


def call(host: FakeHost, turn_id: str, kind: str, **fields: Any) -> None:
    host.emit(CHAT, {"type": f"chat/toolCall{kind}", "turnId": turn_id, "toolCallId": "call", **fields})


def ask_for_tool(host: FakeHost, turn_id: str) -> None:
    call(host, turn_id, "Start", toolName="rm", displayName="Remove")
    call(host, turn_id, "Ready", invocationMessage="rm -r")


def status(host: FakeHost) -> str:
    return host.states[CHAT]["activeTurn"]["responseParts"][0]["toolCall"]["status"]


async def test_a_callback_approves(host: FakeHost, chat: Chat, asker: Asker):
    turn_id = await start(chat.send("hi"))
    ask_for_tool(host, turn_id)

    await eventually(lambda: status(host) == "running")
    assert [needed.call["toolCallId"] for needed in asker.asked] == ["call"]


@requirement("client-tools:call:ready-without-confirmed-asks")
async def test_a_callback_denies_and_the_call_never_runs(host: FakeHost, chat: Chat):
    denier = Asker(decision=False)
    turn_id = await start(chat.send("hi", on_confirmation=denier.confirm))
    ask_for_tool(host, turn_id)

    await eventually(lambda: status(host) == "cancelled")


async def test_the_callback_of_a_turn_takes_the_place_of_the_clients(host: FakeHost, chat: Chat, asker: Asker):
    mine = Asker(decision=Approve())
    turn_id = await start(chat.send("hi", on_confirmation=mine.confirm))
    ask_for_tool(host, turn_id)
    host.emit(CHAT, {"type": "chat/inputRequested", "request": {"id": "r", "questions": [QUESTION]}})

    await eventually(lambda: status(host) == "running")
    await eventually(lambda: "inputRequests" not in host.states[CHAT])
    assert [type(needed) for needed in mine.asked] == [ConfirmationNeeded]
    assert [type(needed) for needed in asker.asked] == [InputNeeded], "the client's callback still answers questions"


async def test_none_leaves_it_to_others(host: FakeHost, chat: Chat):
    undecided = Asker(decision=None)
    turn_id = await start(chat.send("hi", on_confirmation=undecided.confirm))
    ask_for_tool(host, turn_id)

    await eventually(lambda: undecided.asked)
    await settled()
    assert status(host) == "pending-confirmation"


async def test_without_callbacks_nothing_is_decided(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY) as client:
        chat = await (await client.session(SESSION)).chat()
        ask_for_tool(host, await start(chat.send("hi")))
        await settled()
        assert status(host) == "pending-confirmation"


async def test_what_already_waits_when_a_chat_is_opened_is_asked(host: FakeHost, client: Client, asker: Asker):
    host.emit(CHAT, {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "origin": {"kind": "user"}}})
    ask_for_tool(host, "t")

    await (await client.session(SESSION)).chat()

    await eventually(lambda: status(host) == "running")


async def test_a_reconnect_does_not_ask_again(host: FakeHost, client: Client, chat: Chat):
    undecided = Asker(decision=None)
    turn_id = await start(chat.send("hi", on_confirmation=undecided.confirm))
    ask_for_tool(host, turn_id)
    await eventually(lambda: undecided.asked)
    host.emit(SESSION, {"type": "session/titleChanged", "title": "x"})
    host.forget()

    await lose_connection(host, client)
    await settled()

    assert len(undecided.asked) == 1


async def test_a_call_that_needs_a_second_approval_is_asked_about_again(host: FakeHost, chat: Chat, asker: Asker):
    turn_id = await start(chat.send("hi"))
    ask_for_tool(host, turn_id)
    await eventually(lambda: status(host) == "running")

    call(host, turn_id, "Ready", invocationMessage="rm -rf")

    await eventually(lambda: len(asker.asked) == 2)
    await eventually(lambda: status(host) == "running")


async def test_a_result_is_decided_by_the_same_callback(host: FakeHost, chat: Chat, asker: Asker):
    turn_id = await start(chat.send("hi"))
    call(host, turn_id, "Start", toolName="rm", displayName="Remove")
    call(host, turn_id, "Ready", invocationMessage="rm", confirmed="not-needed")
    result = {"success": True, "pastTenseMessage": "Removed"}
    call(host, turn_id, "Complete", result=result, requiresResultConfirmation=True)

    await eventually(lambda: status(host) == "completed")
    assert asker.asked[0].of == "result"


async def test_questions_are_answered_or_declined(host: FakeHost, chat: Chat):
    decliner = Asker(reply=Decline())
    await start(chat.send("hi", on_input=decliner.answer))
    host.emit(CHAT, {"type": "chat/inputRequested", "request": {"id": "r", "questions": [QUESTION]}})

    await eventually(lambda: host.sent("dispatchAction")[-1]["action"].get("response") == "decline")


async def test_two_handles_of_one_chat_ask_once_and_the_last_one_stops_asking(
    host: FakeHost, client: Client, chat: Chat, asker: Asker
):
    again = await (await client.session(SESSION)).chat()
    turn_id = await start(chat.send("hi"))
    await chat.aclose()
    ask_for_tool(host, turn_id)
    await eventually(lambda: status(host) == "running")
    await settled()
    assert len(asker.asked) == 1

    await again.aclose()
    call(host, turn_id, "Ready", invocationMessage="once more")
    await settled()
    assert len(asker.asked) == 1


async def test_a_decision_that_the_host_refuses_is_logged(host: FakeHost, chat: Chat, caplog: pytest.LogCaptureFixture):
    turn_id = await start(chat.send("hi"))
    host.decide = lambda channel, action: "somebody else was faster"
    ask_for_tool(host, turn_id)

    await eventually(lambda: "somebody else was faster" in caplog.text)


async def test_a_callback_that_fails_decides_nothing(host: FakeHost, chat: Chat, caplog: pytest.LogCaptureFixture):
    def fail(needed: ConfirmationNeeded) -> bool:
        raise RuntimeError("undecided")

    ask_for_tool(host, await start(chat.send("hi", on_confirmation=fail)))

    await eventually(lambda: "undecided" in caplog.text)
    assert status(host) == "pending-confirmation"


async def test_what_a_turn_brought_is_forgotten_when_it_is_over(host: FakeHost, client: Client):
    chat = await (await client.session(SESSION)).chat()
    responder, _ = client._responders._attended[CHAT]  # pyright: ignore[reportPrivateUsage]  # Who is attended is not public.
    turn = chat.send("hello", on_confirmation=lambda needed: True)
    assert responder.elsewhere == {turn.turn_id}

    await eventually(lambda: chat.confirmed.get("activeTurn") is not None)
    host.emit(CHAT, {"type": "chat/turnComplete", "turnId": turn.turn_id})
    async for _ in turn:
        pass

    assert responder.elsewhere == set()
