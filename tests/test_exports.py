"""The public surface: what a module lists in `__all__` exists, and packages export what users are told to import."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import ahpkit
from support import for_each

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(ahpkit.__path__, "ahpkit.") if not module.name.endswith("__main__")
)

PUBLIC = {
    "ahpkit.agents": {"Agent", "AgentChat", "AgentError", "Toolbox", "ToolError", "Turn", "agent", "text_of"},
    "ahpkit.client": {"Client", "Session", "Chat", "connect", "Approve", "Deny", "InMemoryPlugin"},
    "ahpkit.canvas": {"Canvases", "PythonProvider", "canvas", "canvas_action", "CanvasError"},
    "ahpkit.testing": {"run_reducer_fixtures", "run_round_trips"},
}
"""What the documentation tells people to import, by package."""


@for_each(MODULES)
def test_everything_in_all_exists_once(name: str) -> None:
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", []))
    assert len(exported) == len(set(exported))
    assert [one for one in exported if not hasattr(module, one)] == []


@pytest.mark.parametrize("package", sorted(PUBLIC))
def test_a_package_exports_what_people_are_told_to_import(package: str) -> None:
    module = importlib.import_module(package)
    assert PUBLIC[package] <= set(module.__all__)
