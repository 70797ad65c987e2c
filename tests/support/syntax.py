"""Reads the syntax of our own files, for tests about them. Much faster than `ast.walk` and `ast.unparse`."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    enabled = gc.isenabled()
    gc.disable()  # A tree has a hundred thousand objects, and none of them is garbage.
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if enabled:
            gc.enable()


@cache
def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """The node and everything below it, the outermost first."""
    found = [node]
    for one in found:
        for value in vars(one).values():
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]  # pyright: ignore[reportUnknownVariableType]  # Anything may be in a field.
    return tuple(found)


def dotted(node: ast.AST) -> str:
    """`a.b.c` as a text; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


@cache
def aliases(tree: ast.Module) -> dict[str, str]:
    """The full name of everything that a module imports, by the name that it has there: `{"now": "time.time"}`."""
    found: dict[str, str] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def full_name(node: ast.AST, tree: ast.Module) -> str:
    """Like `dotted`, with what the module imported under another name or by itself: `time.time` for `now`."""
    first, dot, rest = dotted(node).partition(".")
    return aliases(tree).get(first, first) + dot + rest


def forget() -> None:
    """Drop all trees from memory."""
    tree_of.cache_clear()
    walk.cache_clear()
    aliases.cache_clear()
