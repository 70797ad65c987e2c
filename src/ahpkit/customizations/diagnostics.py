"""Describes problems of a container for people, and derives its load state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ahpkit.customizations.text import clean_text
from ahpkit.protocol.session.customizations import CustomizationLoadState

Level = Literal["note", "warning", "error"]
"""`note`: everything was read, something is odd. `warning`: something was repaired, skipped or cut, so the container is
degraded. `error`: the container as a whole could not be read."""

_SHOWN = 3
"""The number of problems that a load message names. All others are only in the diagnostics."""

_MESSAGE_LIMIT = 1_000
"""Characters of one load message. It is sent with every update of its container."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `path` is relative to the container, `line` counts from 1."""

    level: Level
    code: str
    message: str
    path: str = ""
    line: int | None = None
    paths: tuple[str, ...] = ()
    """All files of a finding that replaces many of the same kind."""

    @property
    def thing(self) -> str:
        """The subject of the finding: a key that the message begins with, or else the file."""
        return self.message.split("`")[1] if self.message.startswith("`") else self.path

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return clean_text(f"{where}: {self.message}" if where else self.message)


_OF_A_KIND = 3
"""The number of findings of one code that are listed separately. If there are more, one line counts them."""


def grouped(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same findings, with one line in place of many notes or warnings of a kind."""
    kinds: dict[tuple[Level, str], list[Diagnostic]] = {}
    for item in diagnostics:
        kinds.setdefault((item.level, item.code), []).append(item)
    return [line for items in kinds.values() for line in _as_lines(items)]


def _as_lines(items: list[Diagnostic]) -> list[Diagnostic]:
    if len(items) <= _OF_A_KIND or items[0].level == "error":
        return items
    first = items[0]
    paths = sorted({item.path for item in items if item.path})  # Folders list their files in no order.
    shown = ", ".join(paths[:_OF_A_KIND])
    more = f" and {len(paths) - _OF_A_KIND} more" if len(paths) > _OF_A_KIND else ""
    where = f": {shown}{more}" if shown else ""
    return [Diagnostic(first.level, first.code, f"{len(items)} times: {first.message}{where}", paths=tuple(paths))]


UNLISTED = frozenset({"inner-plugins", "no-type", "not-a-skill", "not-listed"})
"""Codes of notes about files that were found and cannot be listed."""

_UNLISTED_LINES = 5
"""Lines about such files that are sent with a plugin."""


def unlisted(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """The files that were found and not listed, in a few lines."""
    lines = [str(item)[:_MESSAGE_LIMIT] for item in grouped(item for item in diagnostics if item.code in UNLISTED)]
    more = len(lines) - _UNLISTED_LINES
    return [*lines[:_UNLISTED_LINES], *([f"and {more} more"] if more > 0 else [])]


@dataclass(slots=True)
class Report:
    """Collects diagnostics while something is read."""

    items: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def note(self, code: str, message: str, path: str = "", line: int | None = None) -> None:
        self.items.append(Diagnostic("note", code, message, path, line))

    def warn(self, code: str, message: str, path: str = "", line: int | None = None) -> None:
        self.items.append(Diagnostic("warning", code, message, path, line))

    def error(self, code: str, message: str, path: str = "", line: int | None = None) -> None:
        self.items.append(Diagnostic("error", code, message, path, line))

    @property
    def failed(self) -> bool:
        return any(item.level == "error" for item in self.items)


def load_state(diagnostics: Sequence[Diagnostic]) -> CustomizationLoadState:
    """The worst of `error`, `degraded` and `loaded`. Notes do not count."""
    errors = [item for item in diagnostics if item.level == "error"]
    if errors:
        return {"kind": "error", "message": summary(errors)}
    warnings = [item for item in diagnostics if item.level == "warning"]
    if warnings:
        return {"kind": "degraded", "message": summary(warnings)}
    return {"kind": "loaded"}


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """The first few findings and how many more there are."""
    items = grouped(diagnostics)
    text = "; ".join(str(item) for item in items[:_SHOWN])
    if len(text) > _MESSAGE_LIMIT:
        text = text[: _MESSAGE_LIMIT - 1] + "…"
    rest = len(items) - _SHOWN
    return f"{text}; and {rest} more" if rest > 0 else text


__all__ = ["UNLISTED", "Diagnostic", "Level", "Report", "grouped", "load_state", "summary", "unlisted"]
