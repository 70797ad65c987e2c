"""The gate's table: nothing runs but after an allow, and every way ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.tools.gate import OVER, WAY, CallPassage, Event

EVENTS: list[Event] = ["passed", "doubt", "ask", "allow", "deny", "finish", "review", "withdraw"]


@given(st.lists(st.sampled_from(EVENTS), max_size=12))
def test_nothing_runs_without_guards_and_an_allow(events: list[Event]) -> None:
    passage, taken = CallPassage(), list[Event]()
    for event in events:
        before = passage.step
        try:
            passage.take(event)
        except LocalProtocolError:
            assert passage.step == before
            continue
        taken.append(event)
        if passage.may_run:
            assert taken[0] == "passed" or taken[:2] == ["doubt", "ask"]
            assert taken[-1] == "allow"
    if "deny" in taken or "withdraw" in taken:
        assert passage.over


def test_every_step_can_be_withdrawn_until_it_is_over() -> None:
    assert all("withdraw" in events for events in WAY.values() if events)
    assert {"done", "denied", "withdrawn"} == OVER


def test_a_way_that_is_not_in_the_table_is_our_own_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="guarding cannot finish"):
        CallPassage().take("finish")
