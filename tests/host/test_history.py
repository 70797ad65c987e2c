"""Turns that were held elsewhere, told to a history: they come out as finished turns."""

from pathlib import Path
from typing import Any, cast

from ahpkit.host.agent import Chat
from ahpkit.host.sessions.agent_conversations import RecalledHistory
from support.bench import Bench, running_bench
from support.oldest import check_action
from support.raw_client import RawClient


def store_nothing(session_uri: str, data: bytes, content_type: str) -> str:
    return "ahp-content:/x"


async def told(bench: Bench) -> tuple[RecalledHistory, Chat, RawClient]:
    client = await bench.client()
    await bench.session(client)
    chat = bench.agent.chats[0].chat
    services = bench.host.services
    history = RecalledHistory(chat, new_id=services.new_id, now=services.now, store_content=store_nothing)
    return history, chat, client


async def test_turns_come_out_finished_and_the_chat_itself_is_not_touched(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        history, chat, _ = await told(bench)
        seen = bench.host.spine.log.head_seq

        first = history.turn("hello")
        first.think("hm")
        first.text("Hi")
        first.text(" there")
        second = history.turn("read it")
        call = second.tool_call("read", id="t")
        call.running(tool_input="{}")
        call.complete(message="Read it")
        one, two = cast("list[Any]", history.turns())

        assert (one["message"]["text"], one["state"]) == ("hello", "complete")
        assert [part["content"] for part in one["responseParts"]] == ["hm", "Hi there"]
        assert all(type(part["content"]) is str for part in one["responseParts"])
        assert two["responseParts"][0]["toolCall"]["status"] == "completed"
        assert (bench.host.spine.log.head_seq, list(chat.history)) == (seen, [])


async def test_a_turn_is_over_when_the_next_begins(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        history, *_ = await told(bench)

        first = history.turn("one")
        history.turn("two")
        first.text("too late")

        assert [turn["responseParts"] for turn in history.turns()] == [[], []]


async def test_a_tool_that_a_client_offers_today_was_not_run_by_it_then(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as bench:
        history, chat, client = await told(bench)
        tool = {"name": "read", "inputSchema": {"type": "object"}}
        claim = {
            "type": "session/activeClientChanged",
            "activeClient": {"clientId": client.client_id, "tools": [tool]},
        }
        check_action(claim)
        await client.accepted(chat.session_uri, claim)

        history.turn("x").tool_call("read", id="t")

        [part] = cast("list[Any]", history.turns()[0]["responseParts"])
        assert "contributor" not in part["toolCall"]
