"""Computes how long to wait before trying again: full jitter over a doubling bound. Pure: randomness is passed in.

The random wait keeps many peers of a restarted one from coming back at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable

BASE = 0.25
"""Seconds: the bound of the first wait. A process that died once is usually fine the second time."""

LONGEST = 10.0
"""Seconds: a person is waiting for the turn that starts it."""

_MAX_DOUBLINGS = 30
"""Far beyond any `longest`; keeps the power of two within a float however long the other side stays away."""


def backoff(failures: int, random: Callable[[], float], *, base: float = BASE, longest: float = LONGEST) -> float:
    """Seconds to wait after `failures` in a row; `random()` is in [0, 1)."""
    if failures <= 0:
        return 0.0
    return random() * min(longest, base * 2 ** min(failures - 1, _MAX_DOUBLINGS))


__all__ = ["BASE", "LONGEST", "backoff"]
