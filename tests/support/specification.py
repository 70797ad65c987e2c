"""The specification's public data, if it is beside the checkout. Tests use it then, but do not need it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]


def specification_folder(*parts: str) -> Path | None:
    """A folder of that data; None when it is not there."""
    folders = (beside.joinpath("shared", *parts) for beside in _CHECKOUT.parents[:2])
    return next((folder for folder in folders if folder.is_dir()), None)


def specification(*parts: str, suffix: str = ".json") -> Sequence[Path]:
    """The files of a folder of that data, JSON unless said otherwise; none when it is not there."""
    folder = specification_folder(*parts)
    return [] if folder is None else sorted(folder.glob(f"*{suffix}"))


def reducer_fixtures() -> Sequence[Path]:
    """The reducer fixtures of 1.0.0: our own, and the public ones when they are there."""
    ours = sorted((_CHECKOUT / "tests/fixtures/reducers/1.0.0").rglob("*.json"))
    return [*ours, *specification("ahp-1.0.0", "fixtures", "reducers")]


__all__ = ["reducer_fixtures", "specification", "specification_folder"]
