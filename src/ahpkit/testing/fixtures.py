"""Reads conformance fixtures: every `*.json` under a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

__all__ = ["Fixture", "MalformedFixture", "fixture_paths", "read_fixture"]

Fixture = dict[str, Any]


class MalformedFixture(ValueError):
    """A file that is not a fixture; the text says what is wrong with it."""


def fixture_paths(directory: Path) -> list[Path]:
    """The fixture files under `directory`, at any depth, in order of their names."""
    return sorted(path for path in directory.rglob("*.json") if path.is_file())


def read_fixture(path: Path, required: Mapping[str, type | tuple[type, ...]]) -> Fixture:
    """The fixture in `path`, with the required members of the given types. Raises `MalformedFixture`."""
    try:
        data: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as exc:
        raise MalformedFixture(f"cannot be read: {exc}") from exc
    if not isinstance(data, dict):
        raise MalformedFixture("is not a JSON object")
    fixture = cast("Fixture", data)
    problems = list(_problems(fixture, required))
    if problems:
        raise MalformedFixture("; ".join(problems))
    return fixture


def _problems(fixture: Fixture, required: Mapping[str, type | tuple[type, ...]]) -> Iterator[str]:
    for name, kind in required.items():
        if name not in fixture:
            yield f'has no "{name}"'
        elif not isinstance(fixture[name], kind):
            yield f'"{name}" is a {type(fixture[name]).__name__}'
