"""Promises about the code that no type checker proves: exceptions have reasons, and tests give limits as arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools", "bench", "examples")

IGNORE = re.compile(r"# (?:type|pyright): ignore(?!\[[\w, -]+\]  # \S)")
"""A place where types are not checked, without the rule that is broken and the reason."""

PATCHING = {"stuck_host.py"}
"""Programs that put a fault into a real one before they run it."""


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (TOP / folder).rglob("*.py")


def test_every_unchecked_type_names_the_rule_and_the_reason() -> None:
    found: list[str] = []
    for path in sources(*FOLDERS):
        lines = path.read_text(encoding="utf-8").splitlines() if path != Path(__file__).resolve() else []
        found += [f"{path.relative_to(TOP)}:{n}" for n, line in enumerate(lines, 1) if IGNORE.search(line)]
    assert found == []


def is_ours_to_give(name: str) -> bool:
    """Whether a name is private or a constant: such a thing is given where it is used, for example to a constructor."""
    return name.startswith("_") or name.isupper()


def patched(path: Path) -> Iterator[str]:
    """The private names and constants of ahpkit that a test replaces."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {name for node in ast.walk(tree) for name in _imported_modules(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in ("setattr", "patch", "object", "delattr"):
                yield from _patched_by_call(node, modules)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) in modules:
                    yield target.attr


def _imported_modules(node: ast.AST) -> Iterator[str]:
    """Names of modules of ahpkit in this file."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ahpkit"):
        yield from (alias.asname or alias.name for alias in node.names if alias.name.islower())


def _patched_by_call(call: ast.Call, modules: set[str]) -> Iterator[str]:
    match call.args:
        case [ast.JoinedStr(), *_]:
            yield "_made_up"  # A name that is put together cannot be looked at.
        case [ast.Constant(value=str(target)), *_] if target.startswith("ahpkit."):
            yield target.rpartition(".")[2]
        case [target, ast.Constant(value=str(name)), *_] if ast.unparse(target).split(".")[0] in modules:
            yield name
        case _:
            pass


@pytest.mark.parametrize(
    "line", ['monkeypatch.setattr("ahpkit.a._B", 1)', 'patch.setattr(a, "LIMIT", 1)', "a.LIMIT = 1"]
)
def test_a_patched_limit_is_seen(line: str, tmp_path: Path) -> None:
    test = tmp_path / "test_a.py"
    test.write_text(f"from ahpkit import a\n{line}\n")
    assert any(map(is_ours_to_give, patched(test)))


def test_no_test_replaces_a_private_name_or_a_constant_of_ahpkit() -> None:
    found = {
        f"{path.relative_to(TOP)}: {name}"
        for path in sources("tests", "bench")
        if path.name not in PATCHING
        for name in patched(path)
        if is_ours_to_give(name)
    }
    assert sorted(found) == []


def test_no_module_cuts_a_path_out_of_a_file_uri_by_itself() -> None:
    """`ahpkit.platform.files` does it: percent signs, hosts and other systems are easy to forget."""
    cuts = re.compile(r"""removeprefix\(["']file:|\.replace\(["']file:""")
    assert [path.name for path in sources("src") if cuts.search(path.read_text(encoding="utf-8"))] == []
