"""The requirements manifest and the tests name each other completely."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def manifest() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_tool", ROOT / "tools" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_requirement_has_a_test_unless_it_is_listed_as_not_yet_built() -> None:
    tool = manifest()
    untested = set(tool.load()) - set(tool.claims()) - set(tool.not_yet())
    assert sorted(untested) == []


def test_no_test_names_an_unknown_requirement() -> None:
    tool = manifest()
    unknown = {id: tests for id, tests in tool.claims().items() if id not in tool.load()}
    assert unknown == {}


def test_the_not_yet_list_names_only_untested_requirements_of_the_manifest() -> None:
    tool = manifest()
    listed = tool.not_yet()
    assert sorted(set(listed) - set(tool.load())) == [], "unknown ids"
    assert sorted(set(listed) & set(tool.claims())) == [], "these have a test: take them off the list"
    assert len(listed) == len(set(listed))


def test_the_requirements_page_is_up_to_date() -> None:
    tool = manifest()
    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(), "run: python tools/requirements.py"


def test_a_missing_test_would_be_noticed() -> None:
    tool = manifest()
    assert tool.load().keys() - {"core:wire:ids"} != tool.load().keys()
    tree = __import__("ast").parse('@requirement("a:b:c")\nasync def test_x() -> None: ...\n')
    assert list(tool._marked(tree)) == [("test_x", "a:b:c")]
