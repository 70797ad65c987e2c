"""What users get is plain JSON while text streams, and costs only those who look."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.client import Chat, Client, TextDelta, ToolCallInputDelta, ToolCallStarted
from ahpkit.client import plain as module
from ahpkit.client.plain import PlainStates, plain
from ahpkit.protocol.rope import Rope
from ahpkit.testing.fake_host import FakeHost
from support.clients import CHAT, SESSION, eventually

ROPE = Rope.of("a").add("b")


def test_ropes_become_strings_wherever_they_are() -> None:
    assert plain({"a": [{"b": ROPE}], "c": 1}) == {"a": [{"b": "ab"}], "c": 1}
    assert type(plain({"a": ROPE})["a"]) is str
    assert json.dumps(plain([ROPE])) == '["ab"]'


def test_a_state_without_ropes_is_not_copied() -> None:
    state = {"a": [{"b": "ab"}], "c": None}
    assert plain(state) is state


def test_what_did_not_change_is_taken_from_the_last_look() -> None:
    states = PlainStates()
    old: dict[str, Any] = {"turns": [{"text": ROPE}], "title": "x"}
    first = states.of(old)
    assert states.of(old) is first
    second = states.of({**old, "title": "y"})
    assert second == {"turns": [{"text": "ab"}], "title": "y"}
    assert second["turns"] is first["turns"]


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.text().map(Rope.of),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
def test_a_look_is_the_same_whatever_was_looked_at_before(values: list[Any]) -> None:
    states = PlainStates()
    for value in values:
        assert states.of(value) == plain(value)
        json.dumps(states.of(value))


async def streaming(host: FakeHost, client: Client) -> Chat:
    chat = await (await client.session(SESSION)).chat()
    host.emit(CHAT, {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "?", "origin": {"kind": "user"}}})
    host.emit(
        CHAT, {"type": "chat/responsePart", "turnId": "t", "part": {"kind": "markdown", "id": "p", "content": ""}}
    )
    await eventually(lambda: chat.follow() is not None)
    return chat


async def test_the_state_of_a_chat_is_plain_while_its_text_streams(host: FakeHost, client: Client) -> None:
    chat = await streaming(host, client)
    for word in ("hello ", "wor", "ld"):
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": word})
    await eventually(lambda: "world" in str(chat.state))
    for state in (chat.state, chat.confirmed, chat.optimistic):
        part: Any = state.get("activeTurn", {})["responseParts"][0]
        assert type(part["content"]) is str
        assert part["content"].upper() == "HELLO WORLD"
        assert "hello world" in json.dumps(state)


async def test_conditions_and_subscriptions_see_plain_states(host: FakeHost, client: Client) -> None:
    await streaming(host, client)
    async with client.subscribe(CHAT) as subscription:
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "hello"})
        state = await subscription.wait_for(lambda state: "hello" in json.dumps(state))
        json.dumps([state, subscription.state, subscription.confirmed, subscription.optimistic])


async def test_who_only_follows_events_pays_nothing(
    host: FakeHost, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []

    def counted(self: PlainStates, state: Any) -> Any:
        looks.append(state)
        return plain(state)

    chat = await streaming(host, client)
    turn = chat.follow()
    assert turn is not None
    monkeypatch.setattr(module.PlainStates, "of", counted)
    for number in range(100):
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": f"{number} "})
    host.emit(CHAT, {"type": "chat/turnComplete", "turnId": "t"})
    text = "".join([event.text async for event in turn if isinstance(event, TextDelta)])
    assert text == "".join(f"{number} " for number in range(100))
    assert looks == []


async def test_the_tool_call_of_an_event_is_plain(host: FakeHost, client: Client) -> None:
    chat = await streaming(host, client)
    turn = chat.follow()
    assert turn is not None
    call = {"turnId": "t", "toolCallId": "c"}
    host.emit(CHAT, {"type": "chat/toolCallStart", **call, "toolName": "x", "displayName": "X"})
    for piece in ('{"a"', ": 1}"):
        host.emit(CHAT, {"type": "chat/toolCallDelta", **call, "content": piece})
    await eventually(lambda: "1}" in str(chat.state))
    late = chat.follow()  # It learns of the call from the state, not from actions.
    host.emit(CHAT, {"type": "chat/turnComplete", "turnId": "t"})
    for stream in (turn, late):
        assert stream is not None
        events = [event async for event in stream]
        json.dumps([event.call for event in events if isinstance(event, ToolCallStarted)])
        assert "".join(event.text for event in events if isinstance(event, ToolCallInputDelta)) == '{"a": 1}'
