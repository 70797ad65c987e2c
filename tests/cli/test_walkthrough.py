"""The README and the first tutorial show what a new user sees, letter by letter."""

import re
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.process import HostProcess, host_process, start_host
from support.shell import shell
from support.terminal import Terminal, terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial" / "first-session.md").read_text(encoding="utf-8")


def blocks(page: str, heading: str) -> list[str]:
    """The consoles below a heading."""
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.finditer(r"^(?P<fence>`{3,4})console\n(?P<text>.*?)\n(?P=fence)$", section, re.DOTALL | re.MULTILINE)
    return [one["text"] for one in found]


def seen(person: Terminal) -> list[str]:
    """What is on the screen, with the id the pages use."""
    text = re.sub(r"Session [0-9a-f]{8} ", "Session 3f2a9c11 ", person.screen.text)
    return [line.rstrip() for line in text.rstrip().splitlines()]


def shown(block: str) -> list[str]:
    """What a console shows below its first command."""
    return [line.rstrip() for line in block.splitlines()[1:]]


@pytest_asyncio.fixture(loop_scope="module")
async def host(tmp_path: Path) -> AsyncGenerator[HostProcess]:
    """One that nobody has used: the pages name sessions by titles that must be the only ones."""
    async with host_process(tmp_path) as running:
        yield running


async def test_the_first_session_of_the_readme(host: HostProcess) -> None:
    session, others = blocks(README, "A first session")
    async with terminal(["chat"], host.home, columns=120) as person:
        await person.ready()
        person.enter("hello")
        await person.see("I am the demo agent")
        await person.ready()
        person.enter('/tool calculate {"expression": "6*7"}')
        await person.ready("  choose one, or [e]dit [r]emember [l]ater: ")
        person.type("1")
        await person.see("42")
        await person.ready()
        assert seen(person) == shown(session)
        listing, joining, tailing, prompting = (
            line.partition("#")[0].strip().replace("$ .venv/bin/", "") for line in others.splitlines()
        )
        _, output, _ = await shell(listing, host.home)
        assert output.endswith(" hello\n")
        async with terminal(joining.split()[1:], host.home) as other:
            await other.see("> hello")
        _, output, errors = await shell(f"{tailing} --json | head -2", host.home)
        assert (output.count("\n"), errors) == (2, "")
        assert await shell(prompting, host.home) == (0, "delta 1 delta 2 delta 3 delta 4 delta 5 \n", "")


@pytest.fixture
def home() -> Iterator[Path]:
    """Short, as homes are: the names of sockets in it must be."""
    with tempfile.TemporaryDirectory(prefix="home") as directory:
        yield Path(directory)


async def test_the_start_in_the_tutorial(home: Path) -> None:
    [block] = blocks(TUTORIAL, "Start a host")
    async with terminal(["serve", "--port", "0"], home, columns=160) as person:
        await person.see("chat")
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:7110", person.screen.text)
        text = re.sub(r"//ahpkit-\w+\.localhost:\d+/in\?code=.*", "//ahpkit-5f0c2a91.localhost:7110/in?code=…", text)
        text = re.sub(r"terminal:  .*", "terminal:  .venv/bin/ahpkit chat", text)
        assert text.splitlines() == shown(block)
        person.interrupt()
        assert await person.exited() == 0


async def test_two_terminals_in_the_tutorial(host: HostProcess) -> None:
    [chat] = blocks(TUTORIAL, "Chat")
    [watching] = blocks(TUTORIAL, "Watch from somewhere else")
    async with terminal(["chat"], host.home, columns=120) as person:
        await person.ready()
        person.enter("hello")
        await person.see("I am the demo agent")
        assert seen(person)[:2] == shown(chat)
        await person.ready()
        name = person.screen.text.split()[1]
        async with terminal(["chat", "--session", name], host.home, columns=120) as other:
            await other.see("Hello! You said:")
            listing = r"[0-9a-f]{8}  \d{4}-\d\d-\d\d \d\d:\d\d  demo        idle            hello"
            assert re.fullmatch(listing, shown(watching)[0])
            _, output, _ = await shell("ahpkit sessions list", host.home)
            assert all(re.fullmatch(listing, line) for line in output.splitlines())
            assert seen(other)[:3] == shown(watching)[2:5]


async def test_pulling_the_plug_in_the_tutorial(tmp_path: Path) -> None:
    [block] = blocks(TUTORIAL, "Pull the plug")
    async with host_process(tmp_path) as first, terminal(["chat"], tmp_path, columns=120) as person:
        await person.ready()
        person.enter("/sleep 60")
        await person.see("Sleeping")
        first.kill()
        await person.see("connection lost")
        await first.process.wait()
        second = await start_host(tmp_path)
        try:
            await person.see("✗ ")
            await person.ready()
            assert seen(person)[1:] == [line.rstrip() for line in block.splitlines()]
        finally:
            await second.stop()
