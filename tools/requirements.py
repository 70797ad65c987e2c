"""The requirements manifest and the tests that prove it, both ways. Run it to write `docs/requirements.md`.

    python tools/requirements.py          write the page
    python tools/requirements.py --check  exit 1 when the page is out of date

A test proves a requirement when it carries `@requirement("id")`. Ids in `requirements/not-yet.txt` have no test yet.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"


@dataclass(slots=True)
class Requirement:
    """One sentence to prove."""

    id: str
    text: str
    source: str
    side: str
    tests: list[str] = field(default_factory=list[str])


def load() -> dict[str, Requirement]:
    """Every requirement by id."""
    found: dict[str, Requirement] = {}
    for path in sorted((ROOT / "requirements").glob("*.toml")):
        for id, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[id] = Requirement(id, fields["text"], fields["source"], fields["side"])
    return found


def not_yet() -> list[str]:
    """Ids that have no test yet, one per line; `#` starts a comment."""
    lines = (ROOT / "requirements" / "not-yet.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]


@cache
def claims() -> dict[str, list[str]]:
    """Ids that tests name, with the tests: `path::test`."""
    named: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        marked = _marked(ast.parse(source)) if "@requirement" in source else ()
        for test, id in marked:
            named[id].append(f"{path.relative_to(ROOT).as_posix()}::{test}")
    return dict(named)


def _marked(scope: ast.Module | ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                for id in _ids(decorator):
                    yield node.name, id
        if isinstance(node, ast.ClassDef):
            yield from _marked(node)


def _ids(decorator: ast.expr) -> Iterator[str]:
    if isinstance(decorator, ast.Call) and _is_marker(decorator.func):
        for argument in decorator.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def _is_marker(func: ast.expr) -> bool:
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    return name == "requirement"


def render() -> str:
    """The page: requirement, source, tests, state."""
    requirements, named, pending = load(), claims(), set(not_yet())
    lines = [
        "# Requirements",
        "",
        "Every sentence of the specification that can be tested, and the tests that prove it.",
        "Written by `tools/requirements.py`.",
        "",
        f"{len(requirements)} requirements: {len(requirements) - len(pending)} tested, {len(pending)} not yet built.",
    ]
    area = ""
    for requirement in requirements.values():
        if requirement.id.partition(":")[0] != area:
            area = requirement.id.partition(":")[0]
            lines += ["", f"## {area}", "", "| requirement | source | tests | state |", "|---|---|---|---|"]
        tests = "<br>".join(f"`{test}`" for test in named.get(requirement.id, ())) or "–"
        state = "not yet built" if requirement.id in pending else "tested"
        text = requirement.text.replace("|", "\\|")
        lines.append(f"| `{requirement.id}` {text} | {requirement.source.replace('|', '/')} | {tests} | {state} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    page = render()
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
