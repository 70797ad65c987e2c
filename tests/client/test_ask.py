"""`chat.ask` in a script: it gets an answer, or says what it waits for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.agents import Turn, agent
from ahpkit.client import (
    Approve,
    Chat,
    Client,
    ConfirmationNeeded,
    Deny,
    InputNeeded,
    TurnError,
    TurnTimeout,
    TurnWaiting,
)
from ahpkit.testing.memory_host import memory_host


@agent(name="needy")
async def needy(turn: Turn) -> None:
    if turn.prompt == "sleep":
        await asyncio.sleep(3600)
    elif turn.prompt == "question":
        given = await turn.ask([{"id": "q", "kind": "text", "message": "How high?"}], message="One thing:")
        turn.text(given.response)
    elif turn.prompt == "helper":
        call = turn.tool_call("look", display_name="Look")
        call.running(tool_input="x", message="Looking")
        opened = await turn.subchat("Helper", "look", tool_call=call)
        call.content([{"type": "subagent", "resource": opened.uri, "title": "Helper"}])
        async with opened as helper:
            inner = helper.tool_call("dig", display_name="Dig a hole")
            turn.text(f"{(await inner.confirm(tool_input='deep')).approved}")
        call.complete(message="Looked")
    else:
        call = turn.tool_call("climb", display_name="Climb")
        confirmation = await call.confirm(tool_input="a tree", title="Climb up?")
        turn.text(f"approved: {confirmation.approved}, {confirmation.reason}")
        if turn.prompt == "climb slowly":
            await asyncio.sleep(3600)


@pytest_asyncio.fixture
async def client() -> AsyncGenerator[Client]:
    async with memory_host(needy) as host, host.client() as made:
        yield made


@pytest_asyncio.fixture
async def chat(client: Client) -> Chat:
    return await (await client.create_session()).chat()


async def test_without_anybody_to_decide_it_says_what_waits_and_leaves_it_waiting(chat: Chat) -> None:
    with pytest.raises(TurnWaiting, match=r"waits for somebody: approval of Climb up\? \(a tree\)") as caught:
        await chat.ask("climb")
    assert 'on_approval="allow"' in str(caught.value)
    assert caught.value.error_type == "waiting"
    waiting = caught.value.waiting
    assert isinstance(waiting, ConfirmationNeeded)
    turn = chat.follow()
    assert turn is not None
    chat.approve(waiting.call["toolCallId"])
    assert await turn.text() == "approved: True, None"


async def test_allow_and_deny_decide_about_every_call(chat: Chat) -> None:
    assert await chat.ask("climb", on_approval="allow") == "approved: True, None"
    denied = await chat.ask("climb", on_approval="deny")
    assert denied == "approved: False, the program that asked does not let tools run"


async def test_a_function_decides_plain_or_async(chat: Chat) -> None:
    async def later(needed: ConfirmationNeeded) -> Deny:
        return Deny(reason=needed.call["displayName"])

    assert await chat.ask("climb", on_approval=lambda needed: True) == "approved: True, None"
    assert await chat.ask("climb", on_approval=lambda needed: Approve()) == "approved: True, None"
    assert await chat.ask("climb", on_approval=later) == "approved: False, Climb"


async def test_a_word_that_means_nothing_is_refused_before_anything_is_sent(chat: Chat) -> None:
    with pytest.raises(ValueError, match="'allow', 'deny', 'wait' or a function"):
        await chat.ask("climb", on_approval="yes")  # pyright: ignore[reportArgumentType]  # Wrong on purpose.
    assert chat.state["turns"] == []


def returning(value: Any) -> Callable[[Any], Any]:
    return lambda needed: value


def raises(event: object) -> bool:
    raise RuntimeError("undecided")


@pytest.mark.parametrize(
    ("prompt", "callbacks", "error", "words"),
    [
        ("climb", {"on_approval": returning("allow")}, TypeError, "answered with 'allow'; it must be True"),
        ("climb", {"on_approval": raises}, RuntimeError, "undecided"),
        ("helper", {"on_approval": raises}, RuntimeError, "undecided"),
        ("question", {"on_input": returning("blue")}, TypeError, "answered with 'blue'; it must be a dict"),
        ("question", {"on_input": returning({"nothing": 1})}, LookupError, "has no question 'nothing'"),
    ],
)
async def test_a_callback_that_fails_ends_the_wait(
    chat: Chat, prompt: str, callbacks: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await chat.ask(prompt, **callbacks)


async def test_others_may_decide_when_that_is_wanted(chat: Chat) -> None:
    asking = asyncio.create_task(chat.ask("climb", on_approval="wait"))
    turn = None
    while turn is None:
        await asyncio.sleep(0)
        turn = chat.follow()
    async for event in turn:
        if isinstance(event, ConfirmationNeeded):
            chat.deny(event.call["toolCallId"])
    assert await asking == "approved: False, None"


async def test_a_question_is_said_and_can_be_answered(chat: Chat) -> None:
    with pytest.raises(TurnWaiting, match="the agent asks: One thing:") as caught:
        await chat.ask("question", on_approval="allow")
    assert "on_input=" in str(caught.value)
    assert isinstance(caught.value.waiting, InputNeeded)
    await chat.cancel()
    assert await chat.ask("question", on_input=lambda needed: {"q": "very"}) == "accept"


async def test_what_a_sub_agent_waits_for_is_said_or_decided(chat: Chat) -> None:
    with pytest.raises(TurnWaiting, match=r"approval of Dig a hole \(deep\)"):
        await chat.ask("helper")
    await chat.cancel()
    assert await chat.ask("helper", on_approval="allow") == "True"
    assert await chat.ask("helper", on_approval="deny") == "False"


async def test_callbacks_of_the_client_decide_as_before() -> None:
    async with memory_host(needy) as host, host.client(on_confirmation=lambda needed: True) as client:
        chat = await (await client.create_session()).chat()
        assert await chat.ask("climb") == "approved: True, None"


async def test_a_tool_that_was_approved_and_takes_too_long_did_not_wait_for_approval(chat: Chat) -> None:
    with pytest.raises(TurnTimeout) as caught:
        await chat.ask("climb slowly", on_approval="allow", timeout=2)
    assert "approval" not in str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "timeout", "waited"),
    [("sleep", 0.05, ""), ("climb", 2, "; it waited for approval of Climb up?")],  # The second has to get that far.
)
async def test_a_turn_that_takes_too_long_is_cancelled(chat: Chat, prompt: str, timeout: float, waited: str) -> None:
    with pytest.raises(TurnTimeout) as caught:
        await chat.ask(prompt, on_approval="wait", timeout=timeout)
    assert str(caught.value).startswith(f"no answer within {timeout} s, so the turn was cancelled")
    assert waited in str(caught.value)
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, TurnError)
    assert [turn["state"] for turn in chat.confirmed["turns"]] == ["cancelled"]
