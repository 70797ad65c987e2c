"""A clock that never goes back.

Clocks are set back: by time servers, by people, by a virtual machine that wakes up. Then an answer must not be older
than its question, and the session changed last must stay the one changed last.
"""

from __future__ import annotations

from collections.abc import Callable


def steady(now: Callable[[], int]) -> Callable[[], int]:
    """`now`, standing still while it is behind what it said before."""
    latest = 0

    def steady_now() -> int:
        nonlocal latest
        latest = max(latest, now())
        return latest

    return steady_now


__all__ = ["steady"]
