"""The walks of the architecture page lead through modules, classes and functions that exist."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "topics" / "architecture.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_page_exists(name: str) -> None:
    import_module(name)


@pytest.mark.parametrize(("name", "module"), PLACED)
def test_a_name_is_in_the_module_where_the_page_says_it_is(name: str, module: str) -> None:
    assert has(import_module(module), name)


@pytest.mark.parametrize("name", NAMED)
def test_a_method_of_the_page_exists(name: str) -> None:
    assert any(has(import_module(module), name) for module in MODULES)


def test_the_page_has_its_four_walks() -> None:
    walks = re.findall(r"^## (.*)\n\n1\. ", PAGE, re.M)
    assert len(walks) == 4
    assert len(PLACED) > 20
