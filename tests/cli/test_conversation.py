"""What two clients do at the same moment: hard to hit with processes, easy with a host in memory."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from ahpkit.agents.python import agent
from ahpkit.cli.console import Console
from ahpkit.cli.conversation import Conversation
from ahpkit.cli.line_editor import LineEditor
from ahpkit.client import Chat
from ahpkit.host.agent import Turn
from ahpkit.testing.memory_host import memory_host
from support.waiting import BOUND


@agent(name="patient")
async def patient(turn: Turn) -> None:
    if turn.prompt == "wait":
        await asyncio.sleep(60)
    turn.text(f"You said: {turn.prompt}")


class Person(Console):
    """Types lines, and leaves after having seen a text."""

    interactive = True

    def __init__(self, *lines: str, leave_after: str = "") -> None:
        super().__init__()
        self.lines = list(lines)
        self.seen: list[str] = []
        self.kept = ""
        self._last = leave_after
        self._may_leave = asyncio.Event()

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        self.seen.append(text)
        if self._last in text:
            self._may_leave.set()

    def stream(self, text: str, style: str = "") -> None:
        self.say(text)

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        assert editor is not None
        self.kept = editor.text
        if self.lines:
            return self.lines.pop(0)
        await self._may_leave.wait()
        return None


@asynccontextmanager
async def two_chats() -> AsyncGenerator[tuple[Chat, Callable[[Person, int], Awaitable[Conversation]]]]:
    """Somebody else's chat, and what makes a conversation about the same one once it has so many turns."""
    async with memory_host(patient) as host, host.client() as other, host.client() as ours:
        session = await other.create_session()
        our_session = await ours.session(session.uri)
        chat = await our_session.chat()
        async with ours.subscribe(chat.uri) as channel:

            async def conversation(person: Person, turns: int) -> Conversation:
                await channel.wait_for(lambda state: len(state["turns"]) == turns)
                return Conversation(person, ours, our_session, chat, channel)

            yield await session.chat(), conversation


async def test_a_message_that_is_refused_is_kept_for_another_try() -> None:
    async with two_chats() as (other, conversation), asyncio.timeout(BOUND):
        await other.send("wait").__anext__()
        person = Person("too early")
        await (await conversation(person, 0)).run()
        assert person.kept == "too early"
        assert len(person.seen) == 1
        assert person.seen[0].startswith("✗ ")


async def test_turns_that_began_and_ended_unseen_are_shown_in_order() -> None:
    async with two_chats() as (other, conversation), asyncio.timeout(BOUND):
        for text in ("one", "two", "three", "four"):
            await other.ask(text)
        person = Person(leave_after="You said: five")
        talking = await conversation(person, 4)
        await other.ask("five")
        await talking.run()
        marks = {"two": ">", "three": ">", "four": ">", "five": "»"}  # What was said before we came, and by another.
        expected = [(f"{mark} {text}", f"You said: {text}") for text, mark in marks.items()]
        assert list(zip(person.seen[::2], person.seen[1::2], strict=True)) == expected
