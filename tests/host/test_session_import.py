"""Importing sessions: what is taken, what is refused, and what is forgotten with the connection."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.host.sessions import session_import
from ahpkit.protocol.errors import InvalidParams
from support.bench import Bench, say

IMPORT, STAGE = "_ahpkit/sessions/import", "_ahpkit/sessions/stage"


def turn(id: Any = "t1", **fields: Any) -> Any:
    message = {"text": "hi", "origin": {"kind": "user"}}
    return {"id": id, "message": message, "responseParts": [], "state": "complete", **fields}


def document(*chats: Any, **fields: Any) -> Any:
    listed = [{"title": "Main", "turns": list(turns)} for turns in chats]
    return {"format": 1, "title": "Imported", "provider": "scripted", "chats": listed, **fields}


def call(status: str) -> Any:
    fields = {"toolCallId": "c", "toolName": "n", "displayName": "N", "status": status, "invocationMessage": ""}
    return {"kind": "toolCall", "toolCall": {**fields, "confirmed": "user-action"}}


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    bench = Bench(tmp_path)
    await bench.start(lambda host: session_import.register(host.extension, host.sessions))
    try:
        yield bench
    finally:
        await bench.stop()


async def test_the_session_has_the_title_the_chats_and_the_turns_of_the_document(bench: Bench) -> None:
    client = await bench.client()
    made = await client.ask(IMPORT, document=document([turn("a"), turn("b")], [turn("c")]))
    state = await bench.state(client, made["session"])
    assert (state["summary"]["title"], made["provider"]) == ("Imported", "scripted")
    chats = [await bench.state(client, chat["resource"]) for chat in state["chats"]]
    assert [[one["id"] for one in chat["turns"]] for chat in chats] == [["a", "b"], ["c"]]


async def test_a_conversation_can_be_gone_on_with(bench: Bench) -> None:
    client = await bench.client()
    made = await client.ask(IMPORT, document=document([turn("a")]))
    chat = (await bench.state(client, made["session"]))["chats"][0]["resource"]
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("go on"))
    await client.action("chat/turnComplete")
    assert [past["id"] for past in bench.agent.turns[0].chat.history] == ["a", "t1"]


async def test_a_document_without_chats_becomes_a_session_with_an_empty_one(bench: Bench) -> None:
    client = await bench.client()
    made = await client.ask(IMPORT, document=document())
    assert len((await bench.state(client, made["session"]))["chats"]) == 1


async def test_an_agent_the_host_does_not_have_is_replaced(bench: Bench) -> None:
    client = await bench.client()
    assert (await client.ask(IMPORT, document=document(provider="gone")))["provider"] == "scripted"


async def test_staged_turns_come_after_those_of_the_document(bench: Bench) -> None:
    client = await bench.client()
    assert await client.ask(STAGE, chat=0, turns=[turn("b")]) == {"staged": 1}
    assert await client.ask(STAGE, chat=1, turns=[turn("x")]) == {"staged": 2}
    assert await client.ask(STAGE, chat=0, turns=[turn("c")]) == {"staged": 3}
    made = await client.ask(IMPORT, document=document([turn("a")], []), staged=3)
    chats = (await bench.state(client, made["session"]))["chats"]
    found = [(await bench.state(client, chat["resource"]))["turns"] for chat in chats]
    assert [[one["id"] for one in turns] for turns in found] == [["a", "b", "c"], ["x"]]


async def test_staged_turns_are_used_once(bench: Bench) -> None:
    client = await bench.client()
    await client.ask(STAGE, chat=0, turns=[turn()])
    await client.ask(IMPORT, document=document([]), staged=1)
    error = await client.refused(IMPORT, document=document([]), staged=1)
    assert "0 turns are here; the connection was lost meanwhile, start again" in error["message"]


async def test_staged_turns_belong_to_their_connection(bench: Bench) -> None:
    first, second = await bench.client(), await bench.client()
    await first.ask(STAGE, chat=0, turns=[turn()])
    assert "staged" in (await second.refused(IMPORT, document=document([]), staged=1))["message"]
    await first.ask(IMPORT, document=document([]), staged=1)


@pytest.mark.parametrize(
    ("chat", "turns", "problem"),
    [
        (0, [turn(id=1)], "turns[0].id: expected string, got number"),
        ("0", [turn()], "chat: expected integer, got string"),
        (0, None, "turns: expected array, got null"),
    ],
)
async def test_malformed_pieces_are_refused_with_the_path(bench: Bench, chat: Any, turns: Any, problem: str) -> None:
    client = await bench.client()
    error = await client.refused(STAGE, chat=chat, turns=turns)
    assert error["code"] == -32602
    assert problem in error["message"]


@pytest.mark.parametrize("chat", [-1, 1])
async def test_pieces_for_a_chat_that_is_not_there_are_refused(bench: Bench, chat: int) -> None:
    client = await bench.client()
    await client.ask(STAGE, chat=chat, turns=[turn()])
    error = await client.refused(IMPORT, document=document([]), staged=1)
    assert error["message"] == f"document.chats: turns were staged for chat {chat}, which is not there"


async def test_what_is_refused_leaves_nothing_behind(bench: Bench) -> None:
    client = await bench.client()
    await client.ask(STAGE, chat=0, turns=[turn("a")])
    await client.refused(IMPORT, document=document([turn("a")]), staged=1)
    assert (await client.ask("listSessions"))["items"] == []
    await client.ask(IMPORT, document=document([turn("a")]))


async def test_one_more_than_the_host_takes_is_refused(bench: Bench) -> None:
    await bench.stop()
    bench.config = replace(bench.config, max_sessions=1)
    await bench.start(lambda host: session_import.register(host.extension, host.sessions))
    client = await bench.client()
    await client.ask(IMPORT, document=document([turn("a")]))
    error = await client.refused(IMPORT, document=document([turn("a")]))
    assert "this host has 1 sessions" in error["message"]


async def test_a_session_nobody_could_open_is_refused(bench: Bench) -> None:
    await bench.stop()
    await bench.start(lambda host: session_import.register(host.extension, host.sessions, max_bytes=1000))
    client = await bench.client()
    long = {"kind": "markdown", "id": "p", "content": "x" * 600}
    await client.ask(STAGE, chat=0, turns=[turn(responseParts=[long])])
    error = await client.refused(STAGE, chat=0, turns=[turn(responseParts=[long])])
    assert error["message"] == "turns: the session is larger than 1000 bytes"


@pytest.mark.parametrize(
    ("exported", "problem"),
    [
        (None, "document: expected object, got null"),
        ([], "document: expected object, got array"),
        ({}, "document.format: missing"),
        (document(format=2), "document.format: only format 1 can be read, not 2; is ahpkit up to date?"),
        (document(format="1"), "document.format: only format 1 can be read, not '1'"),
        (document(title=1), "document.title: expected string, got number"),
        (document(title=" "), "document.title: expected 1 to 1000 characters, got 1"),
        (document(title="x" * 1001), "document.title: expected 1 to 1000 characters, got 1001"),
        (document(chats={}), "document.chats: expected array, got object"),
        (document(chats=[1]), "document.chats[0]: expected object, got number"),
        (document(chats=[{"title": "", "turns": []}]), "document.chats[0].title: expected 1 to 1000 characters, got 0"),
        (document([], [turn(id=1)]), "document.chats[1].turns[0].id: expected string, got number"),
        (document([turn(state="running")]), "document.chats[0].turns[0].state: expected one of"),
        (document([turn(message={})]), "document.chats[0].turns[0].message"),
        (document([turn(responseParts="")]), "document.chats[0].turns[0].responseParts: expected array, got string"),
        (document([turn(), turn()]), "document.chats[0].turns[1].id: 't1' is the id of another turn"),
        (
            document([turn(responseParts=[call("running")])]),
            "document.chats[0].turns[0].responseParts[0].toolCall.status: expected one of completed, cancelled",
        ),
    ],
)
def test_a_document_that_is_no_session_is_refused_with_the_path(exported: Any, problem: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        session_import.check_export(exported)
    assert str(caught.value).startswith(problem)


def test_what_a_newer_export_adds_is_taken() -> None:
    session_import.check_export(document([turn(responseParts=[{"kind": "hologram"}], mood="fine")], colour="red"))
