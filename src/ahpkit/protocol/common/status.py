"""The status bits of sessions and chats.

Bits 0 to 4 are the activity: exactly one of the four values. The bits above are independent flags, known or not.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACTIVITY_MASK",
    "ERROR",
    "IDLE",
    "INPUT_NEEDED",
    "IN_PROGRESS",
    "IS_ARCHIVED",
    "IS_READ",
    "WAITING",
    "is_in_progress",
    "is_input_needed",
    "with_activity",
    "with_flag",
]

IDLE: Final = 1
ERROR: Final = 1 << 1
IN_PROGRESS: Final = 1 << 3
WAITING: Final = 1 << 4
"""The bit that tells waiting from running."""
INPUT_NEEDED: Final = IN_PROGRESS | WAITING
"""Contains the bit of IN_PROGRESS: a turn that waits is still in progress."""
IS_READ: Final = 1 << 5
IS_ARCHIVED: Final = 1 << 6

ACTIVITY_MASK: Final = 0b11111


def with_activity(status: int, activity: int) -> int:
    """`status` with another activity; all flags stay."""
    return status & ~ACTIVITY_MASK | activity


def with_flag(status: int, flag: int, on: bool) -> int:
    """`status` with `flag` set or cleared; all other bits stay."""
    return status | flag if on else status & ~flag


def is_in_progress(status: int) -> bool:
    """A turn is active, whether it streams or waits."""
    return status & IN_PROGRESS != 0


def is_input_needed(status: int) -> bool:
    """A turn waits for the user."""
    return status & INPUT_NEEDED == INPUT_NEEDED
