"""Prompts and resources of servers: offered while a person types, filled in when the message is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import AgentError
from ahpkit.mcp.prompts import arguments
from mcp_servers.test_configured import declared, entry, host
from support.bench import Bench, say
from support.raw_client import Json, RawClient


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    async with host(tmp_path, declared(tmp_path)) as made:
        yield made


async def ready(bench: Bench) -> tuple[RawClient, str]:
    client = await bench.client()
    session, chat = await bench.session(client)
    await entry(bench, client, session, "ready")
    return client, chat


async def offered(client: RawClient, chat: str, text: str) -> list[Json]:
    return (await client.ask("completions", chat, kind="userMessage", text=text, offset=len(text)))["items"]


def ended(message: Json) -> tuple[str, str]:
    return "chat/turnComplete", message["turnId"]


async def prompts_seen(bench: Bench, client: RawClient, chat: str, message: Json) -> str:
    await client.accepted(chat, message)
    await client.action(lambda one: (one["action"]["type"], one["action"].get("turnId")) == ended(message))
    return bench.agent.turns[-1].prompt


async def test_a_prompt_is_offered_and_becomes_what_its_server_says(bench: Bench) -> None:
    client, chat = await ready(bench)
    [item] = await offered(client, chat, "/test:po")
    assert item["insertText"] == "/test:poem "
    assert await offered(client, chat, "please /test:po") == []
    assert await prompts_seen(bench, client, chat, say("/test:poem the sea")) == "Write a poem about the sea"


async def test_every_prompt_that_is_offered_can_be_sent_whatever_its_name_is(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path, "my server", env={"TEST_MODES": "prompts"})) as bench:
        client = await bench.client()
        session, chat = await bench.session(client)
        await entry(bench, client, session, "ready", "my server")
        inserted = [item["insertText"] for item in await offered(client, chat, "/my")]
        assert inserted == [
            f"/my server:{name} " for name in ("poem", "poem, a long one!", "poème", "illustrated poem")
        ]
        for number, (text, name) in enumerate(
            [
                ("/my server:poem, a long one! the sea", "poem, a long one!"),
                (" /my server:poème\n'the sea'", "poème"),
                ("/my server:poem the sea", "poem"),
            ]
        ):
            assert await prompts_seen(bench, client, chat, say(text, f"t{number}")) == f"Write a {name} about the sea"
        for number, text in enumerate(("/my server:poems the sea", "/my server", "read /my server:poem the sea")):
            assert await prompts_seen(bench, client, chat, say(text, f"u{number}")) == text


async def test_what_is_no_text_in_a_prompt_is_named(tmp_path: Path) -> None:
    async with host(tmp_path, declared(tmp_path, env={"TEST_MODES": "prompts"})) as bench:
        client, chat = await ready(bench)
        prompt = await prompts_seen(bench, client, chat, say("/test:illustrated poem the sea"))
        assert prompt.split("\n\n") == [
            "Write a illustrated poem about the sea",
            "(image)",
            "(resource_link, test://notes)",
            "sea, tea",
        ]


async def test_a_prompt_without_what_it_needs_fails_in_words(bench: Bench) -> None:
    client, chat = await ready(bench)
    await client.accepted(chat, say("/test:poem"))
    error = (await client.action("chat/error"))["action"]["error"]
    assert "needs: topic" in error["message"]


async def test_a_resource_is_attached_and_read_when_the_message_is_sent(bench: Bench) -> None:
    client, chat = await ready(bench)
    [item] = await offered(client, chat, "look at @test:no")
    assert item["insertText"] == "@test:notes "
    message = say("look at @test:notes")
    message["message"]["attachments"] = [item["attachment"]]
    prompt = await prompts_seen(bench, client, chat, message)
    assert prompt.startswith("look at @test:notes\n\n")
    assert "remember the milk" in prompt


async def test_a_resource_of_a_server_that_is_gone_is_told(bench: Bench) -> None:
    client, chat = await ready(bench)
    attachment = {"type": "simple", "label": "x", "_meta": {"ahpkit/mcp-resource": {"server": "gone", "uri": "a:b"}}}
    message = say("look")
    message["message"]["attachments"] = [attachment]
    assert "a:b cannot be read" in await prompts_seen(bench, client, chat, message)


PROMPT: Json = {"name": "p", "arguments": [{"name": "a", "required": True}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("one", {"a": "one"}),
        ("one two", {"a": "one", "b": "two"}),
        ("one two three", {"a": "one", "b": "two three"}),
        ('"one two" three', {"a": "one two", "b": "three"}),
        ("b=2 one", {"b": "2", "a": "one"}),
        ("it's", {"a": "it's"}),
    ],
)
def test_words_become_arguments(words: str, expected: dict[str, Any]) -> None:
    assert arguments(PROMPT, words) == expected


def test_what_is_missing_is_named() -> None:
    with pytest.raises(AgentError, match="needs: a"):
        arguments(PROMPT, "b=1")
