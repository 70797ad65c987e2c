"""The host's clock."""

from __future__ import annotations

from ahpkit.host.clock import steady


def test_it_follows_the_clock_and_stands_still_while_that_is_behind() -> None:
    times = iter([100, 105, 90, 104, 106])
    now = steady(lambda: next(times))
    assert [now() for _ in range(5)] == [100, 105, 105, 105, 106]
