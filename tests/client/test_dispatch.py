"""A dispatch can be awaited by many, by nobody, and in vain."""

from __future__ import annotations

import asyncio

import pytest

from ahpkit.client import Accepted, ActionRejected, ClientClosed, Dispatch, Outcome, Rejected


async def test_everyone_who_waits_gets_the_outcome_also_when_one_gives_up():
    dispatch = Dispatch("ahp-session:/s", {"type": "x"}, 1)
    waiting = [asyncio.ensure_future(_outcome(dispatch)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)

    dispatch.settle(Accepted(7))

    assert await waiting[1] == Accepted(7)
    assert dispatch.outcome == Accepted(7)


async def _outcome(dispatch: Dispatch) -> Outcome:
    return await dispatch


async def test_accepted_gives_the_number_or_raises_the_reason():
    dispatch = Dispatch("ahp-session:/s", {"type": "x"}, 1)
    dispatch.settle(Accepted(7))
    assert await dispatch.accepted() == 7

    refused = Dispatch("ahp-session:/s", {"type": "x"}, 2)
    refused.settle(Rejected("no"))
    with pytest.raises(ActionRejected, match="x was rejected: no"):
        await refused.accepted()


async def test_a_callback_hears_the_outcome_or_that_there_will_be_none():
    heard: list[Outcome | None] = []
    for settle_with in (Rejected("no"), ClientClosed("over")):
        dispatch = Dispatch("ahp-session:/s", {"type": "x"}, 1)
        dispatch.then(heard.append)
        dispatch.settle(settle_with)
        await asyncio.sleep(0)

    assert heard == [Rejected("no"), None]
