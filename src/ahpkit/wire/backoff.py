"""Computes how long to wait before trying again: full jitter over a doubling bound. Pure: randomness is passed in.

The random wait prevents that all peers of a restarted host come back at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable

BASE = 0.25
"""The bound of the first wait, in seconds. A process that died once usually works the second time."""

LONGEST = 10.0
"""The largest bound, in seconds. It is short, because a person may be waiting."""

_MAX_DOUBLINGS = 30
"""The largest exponent: far beyond any `longest`, and small enough that the power of two fits into a float."""


def backoff(failures: int, random: Callable[[], float], *, base: float = BASE, longest: float = LONGEST) -> float:
    """Seconds to wait after `failures` in a row; `random()` is in [0, 1)."""
    if failures <= 0:
        return 0.0
    return random() * min(longest, base * 2 ** min(failures - 1, _MAX_DOUBLINGS))


__all__ = ["BASE", "LONGEST", "backoff"]
