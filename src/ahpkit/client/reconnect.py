"""When to try again after a lost connection. Pure: knows no clock, no socket, and is given its randomness."""

from __future__ import annotations

from dataclasses import dataclass

from ahpkit.wire.backoff import backoff


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: a random time between nothing and a bound that doubles with every attempt."""

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
        return backoff(attempt, lambda: chance, base=self.first, longest=self.longest)


__all__ = ["Backoff"]
