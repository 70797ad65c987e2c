"""Imports go one way: platform, wire → protocol → log, dialects → host | client → everything else → cli."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ahpkit"

EDGE = {"agents", "canvas", "changes", "customizations", "http", "mcp", "tools", "transports"}

ALLOWED: dict[str, set[str]] = {
    "platform": {"platform"},
    "wire": {"wire"},
    "protocol": {"protocol", "wire"},
    "protocol_next": {"protocol", "protocol_next", "wire"},
    "log": {"platform", "protocol", "wire", "log"},
    "dialects": {"protocol", "protocol_next", "wire", "dialects"},
    "host": {"platform", "protocol", "wire", "log", "dialects", "tools", "host"},
    "client": {"platform", "protocol", "wire", "dialects", "client"},
    "transports": {"platform", "protocol", "wire", "transports"},
    "agents": {"platform", "protocol", "wire", "host", "agents", "transports"},
    "customizations": {"platform", "protocol", "wire", "host", "customizations"},
    "http": {"protocol", "wire", "http", "transports"},
    "canvas": {"platform", "protocol", "wire", "host", "canvas", "http", "transports"},
    "cli": {"platform", "protocol", "wire", "log", "dialects", "host", "client", "cli", "testing"} | EDGE,
    "testing": {"platform", "protocol", "protocol_next", "wire", "log", "dialects", "host", "client", "testing"} | EDGE,
    "changes": {"platform", "protocol", "wire", "host", "changes"},
    "tools": {"protocol", "wire", "tools"},
    "mcp": {"platform", "protocol", "wire", "host", "tools", "mcp", "transports"},
}
"""What each package may import of the others. The version, `ahpkit` itself, anyone may."""

EXCEPTIONS = {
    ("client/connect.py", "transports"),  # the one door of the client to real transports
}


def imports(path: Path) -> Iterator[str]:
    """The packages of ahpkit that a module imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" if node.module == "ahpkit" else node.module for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ahpkit" and len(parts) > 1 and (SOURCE / parts[1]).is_dir():
                yield parts[1]


@pytest.mark.parametrize("package", sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()))
def test_a_package_imports_only_what_is_to_its_left(package: str) -> None:
    wrong: set[tuple[str, str]] = set()
    for path in (SOURCE / package).rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        wrong |= {(name, target) for target in imports(path) if target not in ALLOWED[package]}
    assert sorted(wrong - EXCEPTIONS) == []


def test_every_module_says_what_it_is_in_its_first_line() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    silent = [name for name, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert silent == []
