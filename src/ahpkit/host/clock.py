"""Makes a clock that does not go back, unless it was far ahead by mistake.

Clocks are set back: by time servers, by people, by a virtual machine that wakes up. Then an answer must not be older
than its question, and the session changed last must stay the one changed last. But when a clock was set far ahead by
mistake and is corrected, the correction is followed: otherwise everything would be dated in the future for good.
"""

from __future__ import annotations

from collections.abc import Callable

_MISTAKE = 5 * 60 * 1000
"""Milliseconds. A clock that is further back than this was ahead by mistake."""


def steady(now: Callable[[], int]) -> Callable[[], int]:
    """`now`, except that it stands still while the real clock is a little behind what was returned before."""
    latest = 0

    def steady_now() -> int:
        nonlocal latest
        present = now()
        if not present < latest <= present + _MISTAKE:
            latest = present
        return latest

    return steady_now


__all__ = ["steady"]
