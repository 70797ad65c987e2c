"""A turn as a stream: its end, its errors, slow consumers and lost connections."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.client import (
    ActionRejected,
    ChannelGone,
    Chat,
    Client,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnError,
    TurnEvent,
    TurnStarted,
    TurnStream,
)
from ahpkit.testing.fake_host import FakeHost
from ahpkit.wire.errors import RemoteProtocolError
from support.clients import CHAT, SESSION, eventually, lose_connection


@pytest.fixture
async def chat(client: Client) -> Chat:
    return await (await client.session(SESSION)).chat()


class Script:
    """What an agent says, told to the fake host."""

    def __init__(self, host: FakeHost, turn_id: str) -> None:
        self._host = host
        self._turn_id = turn_id

    def say(self, kind: str, **fields: Any) -> None:
        self._host.emit(CHAT, {"type": f"chat/{kind}", "turnId": self._turn_id, **fields})

    def part(self, content: str = "") -> None:
        self.say("responsePart", part={"kind": "markdown", "id": "p", "content": content})

    def text(self, content: str) -> None:
        self.say("delta", partId="p", content=content)

    def complete(self) -> None:
        self.say("turnComplete")


async def begun(host: FakeHost, chat: Chat) -> tuple[TurnStream, Script]:
    turn = chat.send("hi")
    assert turn.dispatch is not None
    await turn.dispatch.accepted()
    return turn, Script(host, turn.turn_id)


def running(chat: Chat) -> Any:
    return chat.confirmed.get("activeTurn")


async def test_the_iteration_ends_with_the_turn(host: FakeHost, chat: Chat):
    turn, agent = await begun(host, chat)
    agent.part("Hello")
    agent.complete()

    events = [event async for event in turn]

    assert [type(event) for event in events] == [TurnStarted, TextDelta, TurnCompleted]
    assert [event async for event in turn] == [], "it is over"


async def test_a_refused_turn_raises_the_reason(host: FakeHost, chat: Chat):
    host.decide = lambda channel, action: "a turn is still running"

    with pytest.raises(ActionRejected, match="still running"):
        async for _ in chat.send("hi"):
            pass
    assert "activeTurn" not in chat.state


async def test_ask_gives_the_whole_answer(host: FakeHost, chat: Chat):
    def answer(uri: str, action: dict[str, Any]) -> None:
        script = Script(host, action["turnId"])
        script.part("It is ")
        script.text("42.")
        script.complete()

    host.on_applied.append(answer)

    assert await chat.ask("?") == "It is 42."


async def test_ask_raises_what_ended_the_turn(host: FakeHost, chat: Chat):
    for end, error_type in (("error", "quota"), ("turnCancelled", "cancelled")):
        turn, agent = await begun(host, chat)
        agent.say(end, **({"error": {"errorType": "quota", "message": "no money"}} if end == "error" else {}))
        with pytest.raises(TurnError) as caught:
            await turn.text()
        assert caught.value.error_type == error_type


async def test_a_consumer_that_is_far_behind_gets_longer_deltas_and_loses_none(host: FakeHost, chat: Chat):
    letters = "abcdefgh" * 200
    turn, agent = await begun(host, chat)
    agent.part()
    for letter in letters:
        agent.text(letter)
    agent.complete()
    await eventually(lambda: "activeTurn" not in chat.confirmed)

    deltas = [event.text async for event in turn if isinstance(event, TextDelta)]

    assert "".join(deltas) == letters
    assert len(deltas) < len(letters)


@pytest.mark.parametrize("log_lost", [False, True])
async def test_a_turn_goes_on_over_a_lost_connection(host: FakeHost, client: Client, chat: Chat, log_lost: bool):
    turn, agent = await begun(host, chat)
    agent.part("a")
    events: list[TurnEvent] = [await anext(turn), await anext(turn)]
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    agent.text("b")
    if log_lost:
        host.forget()
    host.accepting = True
    await client.wait_connected()
    agent.text("c")
    agent.complete()

    events += [event async for event in turn]

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "abc"
    assert isinstance(events[-1], TurnCompleted)


async def test_a_turn_that_ended_while_we_were_away_ends(host: FakeHost, client: Client, chat: Chat):
    turn, agent = await begun(host, chat)
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    agent.part("answer")
    agent.complete()
    host.forget()
    host.accepting = True

    assert await turn.text() == "answer"


async def test_a_chat_that_is_gone_ends_the_turn_with_an_error(host: FakeHost, client: Client, chat: Chat):
    turn, _ = await begun(host, chat)
    host.close(CHAT)
    await lose_connection(host, client)

    with pytest.raises(ChannelGone):
        await turn.text()


async def test_a_running_turn_can_be_followed_from_its_beginning(host: FakeHost, chat: Chat):
    assert chat.follow() is None
    _, agent = await begun(host, chat)
    agent.part("early ")
    await eventually(lambda: running(chat)["responseParts"])

    following = chat.follow()
    assert following is not None
    agent.text("late")
    agent.complete()

    assert await following.text() == "early late"


async def test_a_turn_that_was_cut_from_the_history_before_we_heard_of_it_ends(
    host: FakeHost, client: Client, chat: Chat
):
    host.connections[-1].channels.clear()  # We hear nothing of what follows.
    turn = chat.send("hi")
    await eventually(lambda: "activeTurn" in host.states[CHAT])
    host.emit(CHAT, {"type": "chat/truncated"})
    host.forget()

    await lose_connection(host, client)

    assert [event async for event in turn] == [TurnCancelled(None)]


async def test_a_turn_goes_on_though_the_chats_handle_is_closed(host: FakeHost, chat: Chat):
    turn, agent = await begun(host, chat)
    await chat.aclose()
    agent.part("still here")
    agent.complete()

    assert await turn.text() == "still here"
    await eventually(lambda: {"channel": CHAT} in host.sent("unsubscribe"))


async def test_leaving_the_loop_leaves_the_turn_running(host: FakeHost, chat: Chat):
    turn, agent = await begun(host, chat)
    async for _ in turn:
        break
    assert running(chat)["id"] == turn.turn_id
    over: list[bool] = []
    turn.when_over(lambda: over.append(True))

    agent.complete()

    await eventually(lambda: over)


async def test_a_turn_that_cannot_be_read_ends_its_stream_with_one_error(host: FakeHost, chat: Chat):
    turn = chat.send("hello")
    await eventually(lambda: chat.confirmed.get("activeTurn"))
    host.notify(
        "action",
        {
            "channel": CHAT,
            "action": {"type": "chat/responsePart", "turnId": turn.turn_id, "part": {"kind": "markdown"}},
            "serverSeq": host.seq + 1,
        },
    )

    with pytest.raises(RemoteProtocolError, match="the host's turn cannot be read"):
        await turn.text()
    with pytest.raises(RemoteProtocolError):
        await anext(turn)
