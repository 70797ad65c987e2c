"""What can be typed in a chat besides messages, against a host in memory."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.cli.chat_commands import COMMANDS, Commands, OtherChat
from ahpkit.cli.output import Output
from ahpkit.client import Chat, TurnStream
from ahpkit.testing.memory_host import memory_host


class Notes(Output):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        self.said.append(text)


async def show_nothing(turn: TurnStream) -> None:
    """There is no screen."""


@asynccontextmanager
async def commands() -> AsyncGenerator[tuple[Commands, Notes, Chat]]:
    async with memory_host(DemoAgent()) as host, host.client() as client, asyncio.timeout(10):
        session = await client.create_session()
        chat, notes = await session.chat(), Notes()
        yield Commands(notes, client, session, chat, ask_again=lambda: False, show_turn=show_nothing), notes, chat


@pytest.mark.parametrize("line", [":help", ":model x", "  :set a b  ", ":nosuch"])
def test_a_colon_and_a_word_make_a_command(line: str) -> None:
    assert Commands.are_meant(line)


@pytest.mark.parametrize("line", ["hello", ":)", ": x", "::", "a :help", "/help", ":Help"])
def test_everything_else_is_a_message(line: str) -> None:
    assert not Commands.are_meant(line)


async def test_help_names_every_command() -> None:
    async with commands() as (typed, notes, _):
        assert await typed.run(":help") is None
        assert [line.split()[0] for line in notes.said[:-1]] == [f":{name}" for name in COMMANDS]
        assert max(map(len, notes.said)) <= 80, "each is one line of a usual terminal"


async def test_models_are_listed_and_chosen() -> None:
    async with commands() as (typed, notes, _):
        for line in (":model", ":model demo-large", ":model", ":model huge"):
            await typed.run(line)
        first, chosen, then, refused = notes.said[:3], notes.said[3], notes.said[4:7], notes.said[7]
        assert [line.split()[:2] for line in first] == [["*", "demo-small"], ["demo-large", "Demo"], ["m1", "Demo"]]
        assert first[0].endswith("(in use)")
        assert chosen == "  From now on: demo-large"
        assert then[1].startswith("* demo-large")
        assert refused == "✗ demo has no model 'huge'; known: demo-small, demo-large, m1"


async def test_settings_are_shown_and_changed() -> None:
    async with commands() as (typed, notes, _):
        for line in (":set", ":set greeting Hola", ":set greeting Ciao", ":set nosuch", ":set nosuch x"):
            await typed.run(line)
        assert notes.said[:5] == [
            "  greeting = Hello",
            "      Greeting: How the demo agent greets you.",
            "    * Hello",
            "      Hallo",
            "      Hola",
        ]
        assert "  topic = (not set)" in notes.said
        assert "    * Hola" in notes.said
        assert len([line for line in notes.said if line.startswith("✗ ")]) == 3


async def test_queued_messages_are_listed_and_dropped() -> None:
    async with commands() as (typed, notes, chat):
        await chat.send("/sleep 60").__anext__()
        for text in ("one", "two", "three"):
            await chat.queue(text)
        for line in (":drop 1", ":drop", ":queue", ":drop 7", ":fork", ":chat 1"):
            await typed.run(line)
        assert notes.said[:2] == ["  1. two", "✗ there is only number 1"]
        assert [line[:19] for line in notes.said[2:]] == ["✗ a turn is running"] * 2


async def test_steering_while_nothing_runs_is_a_message() -> None:
    async with commands() as (typed, notes, chat):
        await typed.run(":steer over here")
        turn = chat.state.get("activeTurn")
        assert turn is not None
        assert turn["message"]["text"] == "over here"
        assert (notes.said, typed.later) == ([], [])


async def test_with_nothing_there_the_commands_say_so() -> None:
    async with commands() as (typed, notes, _):
        for line in (":plan", ":queue", ":drop", ":fork", ":steer"):
            await typed.run(line)
        assert notes.said == [
            "  There is no plan.",
            "  Nothing is queued.",
            "✗ there is nothing to choose from",
            "✗ there is no turn to go on from yet",
            "✗ say what: :steer TEXT",
        ]


async def test_a_fork_is_another_chat_of_the_session() -> None:
    async with commands() as (typed, notes, chat):
        await chat.ask("hello")
        forked = await typed.run(":fork")
        assert forked is not None
        assert forked.chat != chat.uri
        assert await typed.run(":chat 1") == OtherChat(chat.uri)
        assert await typed.run(":chat 2") == forked
        await typed.run(":chats")
        assert [line[:4] for line in notes.said] == ["* 1.", "  2."]


async def test_commands_are_completed() -> None:
    async with commands() as (typed, _, _):
        assert [item["insertText"] for item in typed.completions(":chat")] == [":chats", ":chat "]
