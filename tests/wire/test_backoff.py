from ahpkit.wire.backoff import BASE, LONGEST, backoff


def test_the_first_start_does_not_wait() -> None:
    assert backoff(0, lambda: 0.99) == 0


def test_waits_are_anywhere_under_a_bound_that_doubles_up_to_the_longest() -> None:
    assert [backoff(failures, lambda: 1.0) for failures in (1, 2, 3)] == [BASE, 2 * BASE, 4 * BASE]
    assert backoff(1_000, lambda: 1.0) == LONGEST
    assert backoff(5, lambda: 0.0) == 0
    assert backoff(3, lambda: 0.5, base=1.0, longest=100.0) == 2.0
