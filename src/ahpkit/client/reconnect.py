"""When to try again after a lost connection. Pure: knows no clock, no socket, and is given its randomness."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_DOUBLINGS = 30
"""Far beyond any `longest`; keeps the power of two within a float however long the host stays away."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: a random time between nothing and a bound that doubles with every attempt.

    Spreading over the whole interval keeps many clients of a restarted host from coming back at the same moment.
    """

    first: float = 0.1
    """Seconds the first attempt waits at most."""
    longest: float = 15.0
    """Seconds any attempt waits at most."""
    max_attempts: int | None = None
    """Give up after so many failures in a row; None: never."""

    def delay(self, attempt: int, chance: float) -> float | None:
        """Seconds before attempt number `attempt` (from 1), for a `chance` in [0, 1); None: give up."""
        if self.max_attempts is not None and attempt > self.max_attempts:
            return None
        return chance * min(self.longest, self.first * 2 ** min(attempt - 1, _MAX_DOUBLINGS))


__all__ = ["Backoff"]
