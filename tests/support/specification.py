"""The specification's public data, when it lies beside the checkout. Tests use it then, and never need it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]


def specification(*parts: str, suffix: str = ".json") -> Sequence[Path]:
    """The files of a folder of that data, JSON unless said otherwise; none when it is not there."""
    for beside in _CHECKOUT.parents[:2]:
        folder = beside.joinpath("shared", *parts)
        if folder.is_dir():
            return sorted(folder.glob(f"*{suffix}"))
    return []


__all__ = ["specification"]
