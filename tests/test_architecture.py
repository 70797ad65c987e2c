"""The walks of the architecture page lead through code that exists, and the code map names files that exist."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType

from support import for_each

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "topics" / "architecture.md").read_text(encoding="utf-8")
CODE_MAP = (ROOT / "docs" / "topics" / "code-map.md").read_text(encoding="utf-8")
MODULES = sorted(set(re.findall(r"`(ahpkit(?:\.\w+)+)`", PAGE)))
PLACED = sorted(set(re.findall(r"`([A-Za-z_][\w.]*)`(?:\s+\w+)? in\s+`(ahpkit[\w.]+)`", PAGE)))
NAMED = sorted(set(re.findall(r"`([A-Z][A-Za-z]+\.[a-z_]\w*)`", PAGE)))


def has(module: ModuleType, name: str) -> bool:
    """Whether a module has a class, a function, or a method of a class."""
    try:
        reduce(getattr, name.split("."), module)
    except AttributeError:
        return False
    return True


@for_each(MODULES)
def test_a_module_of_the_page_exists(name: str) -> None:
    assert import_module(name).__doc__


@for_each(PLACED)
def test_a_name_is_in_the_module_where_the_page_says_it_is(placed: tuple[str, str]) -> None:
    name, module = placed
    assert has(import_module(module), name)


@for_each(NAMED)
def test_a_method_of_the_page_exists(name: str) -> None:
    assert any(has(import_module(module), name) for module in MODULES)


def test_the_page_has_its_four_walks() -> None:
    walks = re.findall(r"^## (.*)\n\n1\. ", PAGE, re.M)
    assert len(walks) == 4
    assert len(PLACED) > 20


def rows() -> list[list[str]]:
    """The files of each row of the code map."""
    found = re.findall(r"^\| (?!to …)[a-z].*? \| (.*) \|$", CODE_MAP, re.M)
    return [re.findall(r"`([\w/]+(?:\.py|/))`", row) for row in found]


def test_the_code_map_has_twelve_changes_and_none_needs_more_than_four_files() -> None:
    assert len(rows()) >= 12
    assert all(1 <= len(files) <= 4 for files in rows())


@for_each(sorted({file for row in rows() for file in row}))
def test_a_file_of_the_code_map_exists(name: str) -> None:
    assert (ROOT / "src" / "ahpkit" / name).exists()
