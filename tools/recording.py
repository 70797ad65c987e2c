"""Makes the recording and the screenshot of the README: a real chat with the demo agent, typed by a script.

    python tools/recording.py

Writes `docs/images/first-session.cast` (for asciinema players), `docs/images/first-session.svg` (the same, moving, for
a page) and `docs/images/chat.svg` (its last picture). Needs a terminal of the system, and nothing from the network.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pyte

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLUMNS, ROWS = 100, 28
SCRIPT: list[tuple[str, str]] = [
    ("> ", "hello\r"),
    ("> ", '/tool calculate {"expression": "6*7"}\r'),
    ("choose one, or [e]dit [r]emember [l]ater: ", "1"),
    ("> ", ":model\r"),
    ("> ", "/stream 30\r"),
    ("> ", ""),
]
"""Pairs: the text to wait for at the cursor, and what to type then."""

_LONGEST = 1.0
"""The longest pause in the recording, in seconds."""

_WIDTH, _HEIGHT, _SIZE = 8.4, 18, 14
_COLOURS = {
    "default": "#d4d4d4", "black": "#808080", "red": "#f48771", "green": "#89d185", "brown": "#e5c07b",
    "blue": "#6cb6ff", "magenta": "#d291e4", "cyan": "#4ec9d6", "white": "#ffffff", "brightblack": "#808080",
    "brightcyan": "#7fe3ee", "brightblue": "#9ccfff",
}  # fmt: skip


class Recorder:
    """A command in a terminal, with everything it wrote and when."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._screen: Any = pyte.Screen(COLUMNS, ROWS)
        self._stream: Any = pyte.Stream(self._screen)
        self._last = time.monotonic()
        self._now = 0.0
        self._changed = asyncio.Event()
        self.events: list[tuple[float, str]] = []
        self.frames: list[tuple[float, list[str]]] = []

    def read(self) -> None:
        try:
            text = os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            return
        now = self._passed()
        text = re.sub(r"(?<=Session )[0-9a-f]{8}", "3f2a9c11", text)
        self.events.append((now, text))
        self._stream.feed(text)
        self.frames.append((now, list(rows(self._screen))))
        self._changed.set()

    def _passed(self) -> float:
        """Seconds since the beginning. Delays of a busy machine do not become pauses in the recording."""
        last, self._last = self._last, time.monotonic()
        self._now += min(self._last - last, _LONGEST)
        return self._now

    def begin(self) -> None:
        """Begin the recording here, with what is on the screen: how long the start took depends on the machine."""
        above = [str(line).rstrip() for line in self._screen.display[: self._screen.cursor.y + 1]]
        self._now, self._last = 0.0, time.monotonic()
        self.events = [(0.0, "\r\n".join(above) + " ")]
        self.frames = [(0.0, list(rows(self._screen)))]

    async def ready(self, prompt: str) -> None:
        """Wait for a prompt at the cursor."""
        async with asyncio.timeout(60):
            while not self._line().endswith(prompt) or (prompt == "> " and self._line() != prompt):
                self._changed.clear()
                await self._changed.wait()

    def _line(self) -> str:
        cursor = self._screen.cursor
        return str(self._screen.display[cursor.y])[: cursor.x]

    async def type(self, text: str) -> None:
        await asyncio.sleep(0.7)
        for key in text:
            os.write(self._master, key.encode())
            await asyncio.sleep(0.06)


def rows(screen: Any) -> Iterator[str]:
    """The rows of a screen as SVG: one `tspan` for each run of characters that look the same."""
    for number in range(ROWS):
        line = screen.buffer[number]
        runs: list[tuple[tuple[str, bool, bool], str]] = []
        for column in range(COLUMNS):
            char = line[column]
            look = (str(char.fg), bool(char.bold), bool(char.italics))
            if runs and runs[-1][0] == look:
                runs[-1] = (look, runs[-1][1] + char.data)
            else:
                runs.append((look, char.data))
        yield "".join(_span(look, text) for look, text in runs).rstrip()


def _span(look: tuple[str, bool, bool], text: str) -> str:
    colour, bold, italics = look
    shown = escape(text.replace(" ", "\u00a0"))
    if not text.strip():
        return shown
    fill = _COLOURS.get(colour, f"#{colour}" if re.fullmatch("[0-9a-f]{6}", colour) else _COLOURS["default"])
    style = (' font-weight="bold"' if bold else "") + (' font-style="italic"' if italics else "")
    return f'<tspan fill="{fill}"{style}>{shown}</tspan>'


def picture(frame: list[str]) -> str:
    return "".join(
        f'<text x="12" y="{24 + number * _HEIGHT}">{row}</text>'
        for number, row in enumerate(frame)
        if row.strip("\u00a0")
    )


def svg(content: str, style: str = "") -> str:
    width, height = int(24 + COLUMNS * _WIDTH), 24 + ROWS * _HEIGHT
    font = f"text{{font:{_SIZE}px ui-monospace,Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<style>{font}{style}</style><rect width="100%" height="100%" rx="8" fill="#1e1e1e"/>{content}</svg>\n'
    )


def moving(frames: list[tuple[float, list[str]]]) -> str:
    """All pictures on top of each other; each is shown from its time until that of the next one."""
    chosen = [
        frame
        for frame, after in zip(frames, [*frames[1:], None], strict=True)
        if after is None or after[0] - frame[0] > 0.04
    ]
    total = chosen[-1][0] + 3
    style, content = "", ""
    for number, ((begin, frame), after) in enumerate(zip(chosen, [*chosen[1:], (total, [])], strict=True)):
        start, end = 100 * begin / total, 100 * after[0] / total
        seen = f"{start + 0.01:.2f}%,{end:.2f}%{{opacity:1}}{min(end + 0.01, 100):.2f}%,100%{{opacity:0}}"
        style += f"@keyframes k{number}{{0%,{start:.2f}%{{opacity:0}}{seen}}}"
        style += f".f{number}{{opacity:0;animation:k{number} {total:.1f}s infinite step-end}}"
        content += f'<g class="f{number}">{picture(frame)}</g>'
    return svg(content, style)


async def record(home: Path) -> Recorder:
    runtime = home / "runtime"
    runtime.mkdir(mode=0o700)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LANG": "C.UTF-8",
        "TERM": "xterm-256color", "COLORTERM": "", "AHPKIT_AUTO_START": "0",
    }  # fmt: skip
    serve = [sys.executable, "-m", "ahpkit", "serve", "--port", "0", "--json", "--durability", "memory"]
    host = await asyncio.create_subprocess_exec(*serve, cwd=home, env=environment, stdout=asyncio.subprocess.PIPE)
    assert host.stdout is not None
    await host.stdout.readline()
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    chat = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ahpkit", "chat", "--notify", "none",
        cwd=home, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    recorder = Recorder(master)
    asyncio.get_running_loop().add_reader(master, recorder.read)
    try:
        await recorder.ready(SCRIPT[0][0])
        recorder.begin()
        for prompt, typed in SCRIPT:
            await recorder.ready(prompt)
            await recorder.type(typed)
    finally:
        asyncio.get_running_loop().remove_reader(master)
        for process in (chat, host):
            process.terminate()
            await process.wait()
        os.close(master)
        os.close(slave)
    return recorder


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="home") as home:
        recorder = asyncio.run(record(Path(home)))
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "A first session with ahpkit"}
    lines = [json.dumps(header), *(json.dumps([round(at, 3), "o", text]) for at, text in recorder.events)]
    (IMAGES / "first-session.cast").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (IMAGES / "first-session.svg").write_text(moving(recorder.frames), encoding="utf-8")
    (IMAGES / "chat.svg").write_text(svg(picture(recorder.frames[-1][1])), encoding="utf-8")


if __name__ == "__main__":
    main()
