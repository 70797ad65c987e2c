"""Back-off: bounded, random over the whole interval, and it can end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.client import Backoff


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_lies_between_nothing_and_the_bound(attempt: int, chance: float):
    delay = Backoff(first=0.5, longest=8).delay(attempt, chance)

    assert delay is not None
    assert 0 <= delay <= min(8, 0.5 * 2 ** min(attempt - 1, 10))


def test_the_bound_doubles_until_the_longest():
    backoff = Backoff(first=1, longest=5)

    assert [backoff.delay(attempt, 1.0) for attempt in range(1, 6)] == [1, 2, 4, 5, 5]


def test_the_delay_is_the_given_share_of_the_bound():
    assert Backoff(first=1, longest=5).delay(3, 0.25) == 1


def test_it_gives_up_after_max_attempts():
    backoff = Backoff(max_attempts=2)

    assert backoff.delay(2, 0.5) is not None
    assert backoff.delay(3, 0.5) is None
