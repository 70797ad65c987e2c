"""A person types while an agent works: the line, what is shown above it, and who gets the keys."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.terminal_console import TerminalConsole
from ahpkit.client import ConfirmationNeeded, connect
from support.process import HostProcess, host_process
from support.screen import Screen
from support.terminal import Terminal, terminal
from support.waiting import BOUND, until

AGENT = """
import asyncio
from pathlib import Path
from ahpkit.agents.python import agent


async def told(word):
    while not Path(word).exists():
        await asyncio.sleep(0.01)


@agent(name="slow")
async def slow(turn):
    turn.text("Wait for it. ")
    await told("speak")
    turn.think("hm")
    turn.text("one two three four five six seven 漢字漢字 eight nine ten ")
    await told("ask")
    confirmation = await turn.tool_call("climb", display_name="Climb").confirm(tool_input="a tree")
    turn.text(f"approved: {confirmation.approved}")
"""


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncGenerator[HostProcess]:
    (tmp_path / "slow.py").write_text(AGENT)
    (tmp_path / "host.toml").write_text('[agents.slow]\npython = "slow.py:slow"')
    async with host_process(tmp_path, "--config", "host.toml") as running:
        yield running


@pytest.fixture
def home(host: HostProcess) -> Path:
    return host.home


async def started(person: Terminal) -> None:
    await person.ready()
    person.enter("go")
    await person.see("Wait for it.")


async def test_what_the_agent_says_is_shown_above_the_line_being_typed(home: Path) -> None:
    async with terminal(["chat"], home, columns=20) as person:
        await started(person)
        person.type("my words")
        await person.until(lambda screen: screen.line == "> my words")
        (home / "speak").touch()
        await person.see("\nhm\none two three four\nfive six seven\n漢字漢字 eight nine\nten\n> my words")
        person.type("\x15")
        await person.until(lambda screen: screen.line == "ten")
        (home / "ask").touch()
        await person.until(lambda screen: "? Climb" in screen.text)


async def test_keys_that_type_nothing_leave_the_answer_alone(home: Path) -> None:
    async with terminal(["chat"], home) as person:
        await started(person)
        person.type("\r\r\x04\x1b[B")
        (home / "speak").touch()
        await person.see("ten")
        assert "> go\nWait for it.\nhm\none two" in person.screen.text


async def test_a_sentence_that_is_being_typed_never_answers_an_approval(home: Path) -> None:
    async with terminal(["chat"], home) as person:
        await started(person)
        person.type("no, ")
        await person.until(lambda screen: screen.line == "> no, ")
        (home / "speak").touch()
        (home / "ask").touch()
        await person.see("! the agent waits for an answer; send or clear this line first")
        person.type("yny")
        await person.until(lambda screen: screen.line == "> no, yny")
        person.enter("")
        await person.see("? Climb")
        await person.until(lambda screen: "queued until" in screen.text)
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.type("y")
        await person.see("approved: True", "> no, yny")


async def test_a_line_that_is_cleared_lets_the_question_through(home: Path) -> None:
    async with terminal(["chat"], home) as person:
        await started(person)
        person.type("n")
        await person.until(lambda screen: screen.line == "> n")
        (home / "speak").touch()
        (home / "ask").touch()
        await person.see("! the agent waits for an answer")
        person.type("\x15")
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.interrupt()
        await person.see("✗ cancelled")


async def test_what_is_typed_while_the_chat_is_stopped_is_no_answer_and_the_question_is_shown_again(home: Path) -> None:
    """Ctrl-Z, then `fg` and a key at once: the key comes before the question is on the screen again."""
    async with terminal(["chat"], home) as person:
        await started(person)
        (home / "speak").touch()
        (home / "ask").touch()
        await person.see("? Climb")
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.process.send_signal(signal.SIGSTOP)
        person.type("y")
        person.process.send_signal(signal.SIGCONT)
        await person.until(lambda screen: screen.line == "> y")
        person.type("\x15")
        await person.see("? Climb", "a tree")
        await person.ready("  approve? [y]es [n]o [r]emember [l]ater: ")
        person.type("n")
        await person.see("approved: False")


async def test_a_question_that_is_settled_elsewhere_does_not_wait_for_the_line(host: HostProcess) -> None:
    async with terminal(["chat"], host.home) as person, connect(host.url, token=host.token) as client:
        await started(person)
        person.type("still typing")
        await person.until(lambda screen: screen.line == "> still typing")
        for word in ("speak", "ask"):
            (host.home / word).touch()
        await person.see("! the agent waits for an answer")
        [summary] = await client.sessions()
        chat = await (await client.session(summary["resource"])).chat()
        turn = chat.follow()
        assert turn is not None
        async for event in turn:
            if isinstance(event, ConfirmationNeeded):
                chat.approve(event.call["toolCallId"])
        await person.see("approved: True")
        await person.until(lambda screen: screen.line == "> still typing")
        assert "? Climb" not in person.screen.text


async def test_an_answer_of_one_very_long_line_is_shown_as_fast_as_it_comes(home: Path) -> None:
    async with terminal(["chat", "--agent", "demo"], home) as person:
        await person.ready()
        person.enter("/stream 10000")
        await person.see("delta 10000")
        await person.ready()


class Unseen(TerminalConsole):
    """Notes what is said, and reads keys that a test gives. Draws nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.said = asyncio.Queue[str]()
        self.typed_bytes = asyncio.Queue[bytes]()

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        self.said.put_nowait(text)

    def _draw(self) -> None:
        pass

    def _erase(self) -> None:
        pass

    def _raw(self, text: str) -> None:
        pass

    async def _read(self) -> bytes:
        return await self.typed_bytes.get()


async def test_a_question_that_comes_together_with_a_key_is_not_kept_secret() -> None:
    console = Unseen()

    async def ask() -> None:
        async with console.asking():
            pass

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as tasks:
        typing = tasks.create_task(console.typed("> ", LineEditor()))
        for _ in range(5):  # Until it waits for a key.
            await asyncio.sleep(0)
        console.typed_bytes.put_nowait(b"1")
        asking = tasks.create_task(ask())
        assert "the agent waits for an answer" in await console.said.get()
        console.typed_bytes.put_nowait(b"\x15")
        await asking
        typing.cancel()


class Window(TerminalConsole):
    """A console on a screen that can get another size."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = Screen(100)
        self.typed_bytes: asyncio.Queue[bytes] = asyncio.Queue()

    @property
    def _columns(self) -> int:
        return self.screen.columns

    @property
    def _lines(self) -> int:
        return 24

    def _raw(self, text: str) -> None:
        self.screen.feed(text.replace("\n", "\r\n"))

    async def _read(self) -> bytes:
        return await self.typed_bytes.get()


async def test_after_fg_the_area_is_drawn_once_below_what_the_shell_wrote() -> None:
    """Ctrl-Z, then `fg` after a while: the status line is due before the signal that says so is looked at."""
    console = Window()
    console.status("works · 1 s")
    console.screen.feed("\r\n[1]+  Stopped\r\n$ fg\r\n")
    console.lose_sight()
    console.status("works · 9 s")
    console.redraw()
    assert console.screen.text == "works · 1 s\n[1]+  Stopped\n$ fg\nworks · 9 s"


async def test_a_window_that_changes_its_size_shows_everything_once() -> None:
    console, words = Window(), "a line that is typed while the agent works, and is longer than the window will be wide"
    console.stream_markdown("The first words of an answer.")
    console.status("demo · answers · 3 s")
    typing = asyncio.create_task(console.line("> "))
    console.typed_bytes.put_nowait(words.encode())
    await until(lambda: console.screen.line == f"> {words}")
    for columns in (50, 33, 80, 21, 100, 200):
        console.screen.resize(columns)
        console.status("demo · answers · 4 s")
        shown = "".join("".join(row) for row in console.screen.rows)
        status = "demo · answers · 4 s" if columns >= 40 else ""
        assert shown == f"The first words of an answer.{status}> {words}", console.screen.text
    typing.cancel()


@pytest.mark.parametrize("then", [40, 55, 170])
async def test_a_long_answer_has_every_word_once_when_the_window_changes_its_size(then: int) -> None:
    console, numbers = Window(), [f"word{number}" for number in range(2000)]
    console.status("demo · answers · 3 s")
    console.stream_markdown("- ")  # A list is one block, however long it gets.
    for place in range(0, len(numbers), 100):
        if place == 1000:
            console.screen.resize(then)
        console.stream_markdown(f"{' '.join(numbers[place : place + 100])} ")
    console.status(None)
    console.end_line()
    shown = "".join("".join(row) + ("" if row.goes_on else " ") for row in console.screen.rows)
    assert shown.split() == ["•", *numbers]
