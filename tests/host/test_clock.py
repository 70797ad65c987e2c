"""The host's clock."""

from __future__ import annotations

from ahpkit.host.clock import steady


def test_it_follows_the_clock_and_stands_still_while_that_is_behind() -> None:
    times = iter([100, 105, 90, 104, 106])
    now = steady(lambda: next(times))
    assert [now() for _ in range(5)] == [100, 105, 105, 105, 106]


def test_it_comes_back_from_a_future_that_was_a_mistake() -> None:
    day = 24 * 3600 * 1000
    times = iter([100, 100 + day, 110, 120, 115])
    now = steady(lambda: next(times))
    assert [now() for _ in range(5)] == [100, 100 + day, 110, 120, 120]
