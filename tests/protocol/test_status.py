"""The status bitset."""

import pytest

from ahpkit.protocol.common.status import (
    ACTIVITY_MASK,
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    IS_ARCHIVED,
    IS_READ,
    is_in_progress,
    is_input_needed,
    with_activity,
    with_flag,
)
from support import requirement

UNKNOWN = 1 << 10


@requirement("session:status:bit-values")
def test_the_bits_have_the_values_of_the_specification() -> None:
    assert (IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, IS_READ, IS_ARCHIVED) == (1, 2, 8, 24, 32, 64)


@requirement("session:status:checked-by-bits")
def test_a_turn_that_waits_is_in_progress_too() -> None:
    assert is_in_progress(IN_PROGRESS | IS_READ)
    assert is_in_progress(INPUT_NEEDED)
    assert not is_in_progress(IDLE | IS_READ | IS_ARCHIVED)
    assert is_input_needed(INPUT_NEEDED | IS_ARCHIVED)
    assert not is_input_needed(IN_PROGRESS)


@requirement("core:chat:status-activity-exclusive", "core:chat:status-other-bits")
@pytest.mark.parametrize("before", [IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, ACTIVITY_MASK])
@pytest.mark.parametrize("after", [IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED])
def test_a_change_of_activity_replaces_it_and_leaves_every_flag(before: int, after: int) -> None:
    flags = IS_READ | IS_ARCHIVED | UNKNOWN
    assert with_activity(before | flags, after) == after | flags


def test_a_flag_changes_its_own_bit_only() -> None:
    assert with_flag(IDLE | UNKNOWN, IS_READ, True) == IDLE | UNKNOWN | IS_READ
    assert with_flag(IDLE | UNKNOWN | IS_READ, IS_READ, False) == IDLE | UNKNOWN
