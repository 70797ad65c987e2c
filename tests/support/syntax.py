"""Reads the syntax of our own files, for tests about them. Much faster than `ast.walk` and `ast.unparse`."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    enabled = gc.isenabled()
    gc.disable()  # A tree is a hundred thousand objects, and none that can go.
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


def forget() -> None:
    """Let go of all trees."""
    tree_of.cache_clear()
    walk.cache_clear()
