"""The specification's public data, when it lies beside the checkout. Tests use it then, and never need it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]


def specification(*parts: str) -> Sequence[Path]:
    """The JSON files of a folder of that data; none when it is not there."""
    for beside in _CHECKOUT.parents[:2]:
        folder = beside.joinpath("shared", *parts)
        if folder.is_dir():
            return sorted(folder.glob("*.json"))
    return []


__all__ = ["specification"]
