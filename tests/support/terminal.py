"""A command in a real terminal: a pty, a screen to look at, keys to press. Always ended."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import select
import signal
import struct
import termios
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.process import environment
from support.screen import Screen
from support.template import Started, start
from support.waiting import BOUND, until


class Terminal:
    """A running command, the person in front of it, and what they see."""

    def __init__(self, master: int, slave: int, process: asyncio.subprocess.Process | Started, columns: int) -> None:
        self.process = process
        self.screen = Screen(columns)
        self.raw = ""
        """Everything that the command wrote."""
        self._master, self._slave = master, slave
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._changed = asyncio.Event()
        self._seen = 0
        self._problem: AssertionError | None = None
        """The error of the screen when the command wrote something that it must not write."""

    def read(self) -> None:
        try:
            text = self._decoder.decode(os.read(self._master, 65536))
        except OSError:
            return
        self.raw += text
        try:
            self.screen.feed(text)
        except AssertionError as error:
            self._problem = error
        self._changed.set()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, line: str) -> None:
        self.type(f"{line}\r")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.type("\x03")

    def resize(self, columns: int) -> None:
        """Give the window another width; the system notifies the program."""
        self.screen.resize(columns)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    async def until(self, condition: Callable[[Screen], object]) -> None:
        """Look at the screen until something is there."""
        try:
            async with asyncio.timeout(BOUND):
                while self._problem is None and not condition(self.screen):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not seen; the screen shows:\n{self.screen.text}") from None
        if self._problem is not None:
            raise self._problem

    async def see(self, *texts: str) -> None:
        """Wait for texts, one below the other, each below all that was waited for before."""
        for text in texts:
            await self.until(lambda screen, text=text: text in screen.text[self._seen :])
            self._seen = self.screen.text.index(text, self._seen) + len(text)

    async def ready(self, prompt: str = "> ") -> None:
        """Wait for a prompt at the cursor. Later output may replace it."""
        await self.until(lambda screen: screen.line == prompt)
        self._seen = self.screen.above

    async def asked(self, question: str) -> None:
        """Wait for a question at the cursor, and until the program sleeps over it.

        Python notices a Ctrl-C between the question and the read that waits for the answer only with the next key.
        """
        await self.until(lambda screen: screen.line.rstrip() == question)
        await until(lambda: _sleeps(self.process.pid))

    async def exited(self) -> int:
        """Wait for the end of the command; its exit code. Everything it wrote is on the screen then."""
        async with asyncio.timeout(BOUND):
            code = await self.process.wait()
        while select.select([self._master], [], [], 0)[0]:
            self.read()
        if self._problem is not None:
            raise self._problem
        return code

    @property
    def mode(self) -> list[Any]:
        """The modes of the terminal, as termios has them."""
        return termios.tcgetattr(self._slave)

    @property
    def is_sane(self) -> bool:
        """Whether the next program finds a terminal that echoes and edits lines."""
        local: int = self.mode[3]
        modes = (local & termios.ECHO, local & termios.ICANON, local & termios.ISIG)
        return all(modes) and self.screen.modes == {"25"}


def _sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@asynccontextmanager
async def terminal(
    arguments: Sequence[str],
    home: Path,
    *,
    columns: int = 100,
    program: Sequence[str] = (),
    **extra: str,
) -> AsyncGenerator[Terminal]:
    """Run the command line, or another program, in a terminal of its own."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    seen = {**environment(home), "TERM": "xterm-256color", **extra}
    if program:
        process = await asyncio.create_subprocess_exec(
            *program, *arguments,
            cwd=home, env=seen, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip
    else:
        process = await start("ahpkit", arguments, directory=home, environment=seen, terminal=slave)
    made = Terminal(master, slave, process, columns)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, made.read)
    try:
        yield made
    finally:
        loop.remove_reader(master)
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
        os.close(master)
        os.close(slave)


__all__ = ["Terminal", "terminal"]
