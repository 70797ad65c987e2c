"""Writes lines, streamed text and progress: coloured on a terminal, plain elsewhere. Rings the bell, shows notices.

Also announces that a host accepts connections: one line of JSON for programs, a few lines for people.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, get_args

import click

from ahpkit.cli.text import printable, shorten
from ahpkit.platform.terminal_mode import keys_unseen
from ahpkit.wire.tasks import running

Writer = Callable[[str, str], None]
"""Writes a text in a style, at once."""


class Output:
    """The standard output and the standard error of one command. Each line that is said begins on a new line."""

    def __init__(self) -> None:
        self._out = _writer(sys.stdout)
        self._err = _writer(sys.stderr)
        self._inside_line = False

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        """Write a whole line. With `error` the line goes to standard error, so that it does not disturb output in a
        pipe or a file."""
        if not error or sys.stdout.isatty():
            self.end_line()
        (self._err if error else self._out)(f"{text}\n", style)

    def stream(self, text: str, style: str = "") -> None:
        """Write a piece of a text that continues."""
        if text:
            self._out(text, style)
            self._inside_line = not text.endswith("\n")

    def stream_markdown(self, text: str) -> None:
        """Write a piece of a Markdown text that continues. Only a terminal renders it."""
        self.stream(text)

    def markdown(self, text: str) -> None:
        """Write a whole Markdown text, on separate lines. Only a terminal renders it."""
        if not (sys.stdout.isatty() and is_capable(os.environ)):
            return self.say(text)
        from ahpkit.cli.markdown import rendered  # Imported here: text for a file is not rendered.

        self.end_line()
        lines = rendered(text, shutil.get_terminal_size().columns)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        return None

    def status(self, text: str | None) -> None:
        """Show on a terminal, in one line, what is being done; None removes the line."""

    def panel(self, lines: Sequence[str]) -> bool:
        """Show lines that change in place while something goes on; returns False where that is not possible."""
        return False

    def end_line(self) -> None:
        """End the line of a streamed text, if the text did not end it."""
        if self._inside_line:
            self.stream("\n")


def is_capable(environment: Mapping[str, str]) -> bool:
    """Whether the terminal understands escape sequences."""
    return environment.get("TERM", "dumb") not in ("dumb", "unknown")


def _writer(stream: TextIO) -> Writer:
    return _terminal_writer(stream) if stream.isatty() else _plain_writer(stream)


def _plain_writer(stream: TextIO) -> Writer:
    def write(text: str, style: str) -> None:
        stream.write(text)
        stream.flush()

    return write


def _terminal_writer(stream: TextIO) -> Writer:
    from rich.console import Console  # Imported here: text for a file needs no colours.
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)

    def write(text: str, style: str) -> None:
        console.print(Text(printable(text)), style=style or None, end="", soft_wrap=True)
        stream.flush()

    return write


T = TypeVar("T")

Tell = Callable[[str], None]
"""Shows the progress of some work."""

Explain = Callable[[Tell], Coroutine[Any, Any, None]]
"""Explains what the work waits for, and explains it again when this changes. It is cancelled when the work ends."""

_LONG = 3.0
"""Seconds after which the work may be stuck."""

_PATIENCE = 0.5
"""Seconds after which a person is told what is going on."""


@contextmanager
def progress(doing: str) -> Generator[Callable[[str], None]]:
    """Show what is being done until the block ends. Call the value of the block with a text about the progress."""
    if not sys.stderr.isatty():
        yield lambda how_far: None
        return
    from rich.console import Console

    with keys_unseen(), Console(stderr=True).status(f"{doing} …") as status:
        yield lambda how_far: status.update(f"{doing} … {how_far}")


@contextmanager
def bar(doing: str) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar until the block ends. Call the value of the block with what is done, and with the whole."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with keys_unseen(), Progress(console=Console(stderr=True)) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


async def patiently(
    work: Coroutine[Any, Any, T],
    doing: str,
    *,
    explain: Explain | None = None,
    patience: float = _PATIENCE,
    long: float = _LONG,
) -> T:
    """Wait for work that is usually quick. If it is not, say what is being done; if it takes long, call `explain`."""
    async with running(work) as task:
        done, _ = await asyncio.wait([task], timeout=patience)
        if not done:
            with progress(doing) as tell:
                done, _ = await asyncio.wait([task], timeout=long)
                if not done and explain is not None:
                    async with running(explain(tell if sys.stderr.isatty() else _written(doing))):
                        await asyncio.wait([task])
                else:
                    await asyncio.wait([task])
        return task.result()


def _written(doing: str) -> Tell:
    """Writes one line for each report: for logs, where a line cannot be replaced."""

    def write(text: str) -> None:
        sys.stderr.write(f"{doing} … {text}\n")
        sys.stderr.flush()

    return write


Kind = Literal["none", "bell", "desktop"]
KINDS = get_args(Kind)

_LONGEST = 200
"""Characters of a notification."""

Start = Callable[[Sequence[str]], object]


def notify(kind: str, text: str, *, environment: Mapping[str, str] | None = None, start: Start | None = None) -> None:
    """Tell the person. If the desktop cannot be reached, the terminal's bell rings, if there is a terminal."""
    command = _desktop(shorten(printable(text), _LONGEST), environment or os.environ) if kind == "desktop" else None
    if command is not None:
        (_start if start is None else start)(command)
    elif kind != "none" and sys.stderr.isatty():
        sys.stderr.write("\a")
        sys.stderr.flush()


def _desktop(text: str, environment: Mapping[str, str]) -> list[str] | None:
    path = environment.get("PATH")
    if sys.platform == "darwin" and shutil.which("osascript", path=path):
        # The text is an argument of the script and not a part of it, so that nothing in the text is executed.
        script = 'on run argv\ndisplay notification (item 1 of argv) with title "ahpkit"\nend run'
        return ["osascript", "-e", script, text]
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    program = shutil.which("notify-send", path=path) if has_screen else None
    return None if program is None else [program, "--app-name", "ahpkit", "--", "ahpkit", text]


def _start(command: Sequence[str]) -> None:
    subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def announce(
    url: str, token: str | None, data_dir: Path, agents: Sequence[str], *, page: str | None = None, as_json: bool
) -> None:
    """Print where the host listens, its agents (the default one first), and a command to try."""
    if as_json:
        facts: dict[str, object] = {
            "url": url,
            "token": token,
            "pid": os.getpid(),
            "dataDir": str(data_dir),
            "agents": list(agents),
        }
        click.echo(json.dumps(facts if page is None else {**facts, "page": page}))
        return
    click.echo(f"ahpkit is listening on {url}")
    where_token = "" if token is None else "; the token is in the file 'token' there"
    click.echo(f"Sessions are kept in {tilde(data_dir)}{where_token}")
    click.echo(f"Agents: {', '.join(agents)}")
    if page is not None:
        click.echo(f"Open it in a browser (the link works once):  {page}")
    click.echo(f"Try it in another terminal:  {own_command()} chat")


def tilde(path: Path) -> str:
    """A path in short form: `~` stands for the home directory."""
    if path == Path.home():
        return "~"
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def own_command() -> str:
    """The words that call this program again from the same directory."""
    program = Path(sys.argv[0])
    if program.name != "ahpkit":
        return f"{shlex.quote(sys.executable)} -m ahpkit"
    on_path = shutil.which("ahpkit")
    if on_path is not None and Path(on_path).resolve() == program.resolve():
        return "ahpkit"
    return shlex.quote(os.path.relpath(program))


__all__ = [
    "KINDS",
    "Explain",
    "Kind",
    "Output",
    "Tell",
    "announce",
    "bar",
    "is_capable",
    "notify",
    "own_command",
    "patiently",
    "progress",
    "tilde",
]
