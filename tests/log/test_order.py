from __future__ import annotations

import pytest

from ahpkit.log.errors import LogError, OutOfOrder
from ahpkit.log.order import Order
from ahpkit.protocol.errors import LocalProtocolError
from support import requirement
from support.records import entry, opening


@requirement("core:connection:server-seq-monotonic")
def test_numbers_go_on_over_all_channels() -> None:
    order = Order(5, {"a": opening("a"), "b": opening("b")})

    order.append(entry(6, "a"))
    order.append(entry(7, "b"))

    for wrong in (6, 7, 9):
        with pytest.raises(OutOfOrder, match=f"entry {wrong} of a cannot follow 7"):
            order.append(entry(wrong, "a"))
    assert order.head_seq == 7


def test_a_channel_is_open_from_its_snapshot_to_its_removal() -> None:
    order = Order(0, {})
    with pytest.raises(OutOfOrder, match="entry 1 is for a, which no snapshot has opened"):
        order.append(entry(1, "a"))

    order.snapshot(opening("a"))
    order.append(entry(1, "a"))
    order.remove("a")

    with pytest.raises(OutOfOrder, match="entry 2 is for a"):
        order.append(entry(2, "a"))


@pytest.mark.parametrize("seq", [3, 8], ids=["older than the one before", "ahead of the log"])
def test_a_snapshot_lies_between_the_one_before_and_the_head(seq: int) -> None:
    order = Order(7, {"a": opening("a", 4)})

    with pytest.raises(OutOfOrder, match=f"a snapshot of a at {seq} does not fit a log at 7"):
        order.snapshot(opening("a", seq))

    order.snapshot(opening("a", 7))


def test_a_break_of_the_order_is_our_own_fault_and_an_error_of_the_log() -> None:
    assert issubclass(OutOfOrder, LogError)
    assert issubclass(OutOfOrder, LocalProtocolError)
