"""Replays a console of the documentation in a terminal: types what is typed there, and compares the rest by letter.

A line that begins with `$ ` is typed at a shell, one that begins with `> ` inside `ahpkit chat` at its prompt, and the
key behind `later: ` at an approval; `^C` is Ctrl-C. A line `…` stands for any lines. What differs in every run (ids,
times, ports, processes, places) is replaced by what the pages show.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from support import template
from support.terminal import Terminal, terminal

_SHELL, _CHAT = "$ ", "> "
_APPROVAL = re.compile(r"(?P<prompt>  .*\[l\]ater: )(?P<key>\w)")

_REPLACED: Sequence[tuple[str, str]] = (
    (r"127\.0\.0\.1:\d+", "127.0.0.1:7110"),
    (r"//ahpkit-\w+\.localhost:\d+/in\?code=\S+", "//ahpkit-5f0c2a91.localhost:7110/in?code=…"),
    (r"\(process \d+\)", "(process 4711)"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-11-15 10:00"),
    (r"\b[0-9a-f]{8}\b(?!\.localhost)", "3f2a9c11"),
    (r"ahp-session:/3f2a9c11(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ahp-session:/3f2a9c11"),
)


def blocks(page: str, heading: str | None = None) -> list[str]:
    """The consoles of a page, or of the section below one of its headings."""
    section = page if heading is None else page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = re.finditer(r"^(?P<fence>`{3,4})console\n(?P<text>.*?)\n(?P=fence)$", section, re.DOTALL | re.MULTILINE)
    return [one["text"] for one in found]


def as_shown(text: str, replaced: Mapping[str, str] = {}) -> list[str]:
    """The lines of a screen as the pages have them."""
    for old, new in replaced.items():
        text = text.replace(old, new)
    for pattern, new in _REPLACED:
        text = re.sub(pattern, new, text)
    return [line.rstrip() for line in text.rstrip().splitlines()]


class Walk:
    """A shell in a terminal, and the person who follows a page."""

    def __init__(self, person: Terminal, replaced: Mapping[str, str]) -> None:
        self.person = person
        self._replaced = replaced
        self._expected: list[str] = []

    async def replay(self, block: str) -> None:
        """Do what a console shows; it must look the same, from the first letter to the last."""
        for line in block.splitlines():
            approval = _APPROVAL.fullmatch(line)
            if line.startswith(_SHELL):
                await self._type(_SHELL, line)
            elif line.startswith(_CHAT) and self._in_chat():
                await self._type(_CHAT, line)
            elif approval is not None:
                await self._at(approval["prompt"])
                self.person.type(approval["key"])
                self._expected.append(line)
            elif line == "^C":
                await self._at("")
                self.person.interrupt()
                self._expected.append(line)
            else:
                self._expected.append(line)
        await self._at(None)

    async def _type(self, prompt: str, line: str) -> None:
        await self._at(prompt)
        self.person.enter(line.removeprefix(prompt))
        self._expected.append(line)

    async def _at(self, prompt: str | None) -> None:
        """Wait until everything so far is on the screen, and the prompt at the cursor."""
        wanted = as_shown("\n".join(self._expected))

        def there(lines: list[str]) -> bool:
            return _fits(wanted, lines if prompt is None else lines[: len(lines) - bool(prompt)])

        try:
            await self.person.until(
                lambda screen: (not prompt or screen.line.endswith(prompt)) and there(self._lines(screen.text))
            )
        except AssertionError:
            shown = "\n".join(self._lines(self.person.screen.text))
            raise AssertionError("expected:\n" + "\n".join(wanted) + f"\n\nshown:\n{shown}") from None

    def _lines(self, text: str) -> list[str]:
        return as_shown(text, self._replaced)

    def _in_chat(self) -> bool:
        typed = [line for line in self._expected if line.startswith(_SHELL)]
        return bool(typed) and "chat" in typed[-1].split()


def _fits(wanted: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether a screen shows these lines and no others; at its end, a prompt may wait."""
    if wanted and wanted[0] == "…":
        return any(_fits(wanted[1:], lines[number:]) for number in range(len(lines) + 1))
    if not wanted or not lines:
        return not wanted and all(line in ("", "$", ">") for line in lines)
    return wanted[0] == lines[0] and _fits(wanted[1:], lines[1:])


@asynccontextmanager
async def walking(home: Path, programs: Path | None = None, **extra: str) -> AsyncGenerator[Walk]:
    """A shell in which `ahpkit`, and the stand-ins in `programs`, are on the PATH."""
    places = [str(one) for one in (template.programs(), programs, Path(sys.executable).parent) if one is not None]
    variables = {"PS1": _SHELL, "PATH": ":".join([*places, "/usr/bin", "/bin"]), **extra}
    async with terminal([], home, columns=160, program=("/bin/sh", "-i"), **variables) as person:
        yield Walk(person, {str(home): "~"})


__all__ = ["Walk", "as_shown", "blocks", "walking"]
