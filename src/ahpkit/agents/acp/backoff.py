"""How long to wait before an agent is started again: full jitter over a doubling bound. Pure: randomness comes in."""

from __future__ import annotations

from collections.abc import Callable

BASE = 0.25
"""Seconds: the bound of the first wait. A process that died once is usually fine the second time."""

LONGEST = 10.0
"""Seconds: a person is waiting for the turn that starts it."""


def backoff(failures: int, random: Callable[[], float]) -> float:
    """Seconds to wait after `failures` in a row; `random()` is in [0, 1)."""
    if failures <= 0:
        return 0.0
    return random() * min(LONGEST, BASE * 2 ** min(failures - 1, 16))


__all__ = ["BASE", "LONGEST", "backoff"]
