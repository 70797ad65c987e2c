"""Sessions as documents, in pieces of the right size; a host in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.cli.session_documents import export_session, import_session, pieces
from ahpkit.client import Client
from ahpkit.host.host import Host
from ahpkit.host.sessions.session_import import register
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.errors import InvalidParams
from ahpkit.testing.memory_host import MemoryHost


def turn(number: int, length: int = 0) -> Any:
    parts = [{"kind": "markdown", "id": "p", "content": "x" * length}]
    message = {"text": "hi", "origin": {"kind": "user"}}
    return {"id": f"t{number}", "message": message, "responseParts": parts, "state": "complete"}


def document(*chats: Any) -> Any:
    listed = [{"title": f"Chat {number}", "turns": list(turns)} for number, turns in enumerate(chats)]
    return {"format": 1, "title": "Imported", "provider": "demo", "chats": listed}


@asynccontextmanager
async def client_of_a_host() -> AsyncGenerator[tuple[Host, Client]]:
    """A host in memory that imports sessions."""
    host = Host(MemoryStorage(), agents=[DemoAgent()])
    register(host.extension, host.sessions)
    async with host:
        running = MemoryHost(host)
        async with running.client() as client:
            yield host, client
    await running.wait_idle()


def ids(exported: Any, size: int) -> list[tuple[int, list[str]]]:
    return [(chat, [turn["id"] for turn in turns]) for chat, turns in pieces(exported, size)]


def test_turns_are_packed_until_a_piece_is_full() -> None:
    turns = [turn(number, 1000) for number in range(5)]
    assert ids(document(turns), 2500) == [(0, ["t0", "t1"]), (0, ["t2", "t3"]), (0, ["t4"])]


def test_a_turn_is_never_cut() -> None:
    assert ids(document([turn(0), turn(1, 5000), turn(2)]), 1000) == [(0, ["t0"]), (0, ["t1"]), (0, ["t2"])]


def test_a_piece_belongs_to_one_chat_and_empty_chats_have_none() -> None:
    assert ids(document([turn(0)], [], [turn(1)]), 10_000) == [(0, ["t0"]), (2, ["t1"])]


async def test_a_document_survives_the_way_in_and_out() -> None:
    whole = document([turn(number, 500) for number in range(10)], [turn(0)], [])
    told: list[str] = []
    async with client_of_a_host() as (_, client):
        made = await import_session(client, whole, told.append, piece=2000)
        assert told[-1] == "11 of 11 turns"
        assert await export_session(client, made["session"], told.append, page=3) == whole
        assert told[-1] == "11 turns"


async def test_nothing_is_sent_of_a_document_that_is_no_session() -> None:
    async with client_of_a_host() as (_, client):
        with pytest.raises(InvalidParams, match=r"document\.chats\[0\]\.turns\[1\]\.id"):
            await import_session(client, document([turn(0), turn(0)]), lambda how_far: None)
        assert await client.sessions() == []


async def test_the_default_chat_comes_first() -> None:
    async with client_of_a_host() as (host, client):
        session = await client.create_session()
        await (await session.chat()).ask("first")
        other = await session.create_chat()
        await other.ask("second")
        async with client.subscribe(session.uri) as channel:
            host.services.dispatch(session.uri, {"type": "session/defaultChatChanged", "defaultChat": other.uri})
            await channel.wait_for(lambda state: state["defaultChat"] == other.uri)
        exported = await export_session(client, session.uri, lambda how_far: None)
        assert [chat["turns"][0]["message"]["text"] for chat in exported["chats"]] == ["second", "first"]


async def test_a_chat_of_thousands_of_turns_is_imported_although_one_message_may_not_hold_it() -> None:
    many = document([turn(number) for number in range(6000)])
    assert max(len(turns) for _, turns in pieces(many, 1 << 30)) < 3000
    async with client_of_a_host() as (_, client):
        told = await import_session(client, many, lambda _: None)
        back = await export_session(client, told["session"], lambda _: None)
    assert len(back["chats"][0]["turns"]) == 6000
