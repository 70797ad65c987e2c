"""The requirements manifest and the tests name each other completely."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_tool", ROOT / "tools" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def known(tool: ModuleType) -> set[str]:
    return set(tool.load())


@pytest.fixture(scope="module")
def claimed(tool: ModuleType) -> set[str]:
    return set(tool.claims())


def test_every_requirement_has_a_test_unless_it_is_listed_as_not_yet_built(
    tool: ModuleType, known: set[str], claimed: set[str]
) -> None:
    assert sorted(known - claimed - set(tool.not_yet())) == []


def test_no_test_names_an_unknown_requirement(known: set[str], claimed: set[str]) -> None:
    assert sorted(claimed - known) == []


def test_the_not_yet_list_names_only_untested_requirements_of_the_manifest(
    tool: ModuleType, known: set[str], claimed: set[str]
) -> None:
    listed = tool.not_yet()
    assert sorted(set(listed) - known) == [], "unknown ids"
    assert sorted(set(listed) & claimed) == [], "these have a test: take them off the list"
    assert len(listed) == len(set(listed))


def test_the_requirements_page_is_up_to_date(tool: ModuleType) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(), "run: python tools/requirements.py"


def test_only_what_a_test_is_marked_with_is_claimed(tool: ModuleType) -> None:
    source = (
        '@requirement("a:b:c", "a:b:d")\n@other("a:b:e")\nasync def test_x() -> None: ...\ndef test_y() -> None: ...'
    )
    assert list(tool._marked(ast.parse(source))) == [("test_x", "a:b:c"), ("test_x", "a:b:d")]
