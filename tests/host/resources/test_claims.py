"""Changes of the same places wait for each other, in their order; others do not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ahpkit.host.resources.claims import Claim, Claims
from ahpkit.host.resources.safe_open import anywhere
from ahpkit.protocol.errors import Conflict


class Work:
    """A change that goes on until it is told to end."""

    def __init__(self, claims: Claims, *paths: str, who: str | None = None) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.task = asyncio.create_task(claims.run(who, map(Path, paths), self._run))

    async def _run(self, _: Claim) -> None:
        self.began.set()
        await self.may_end.wait()

    async def end(self) -> None:
        await self.began.wait()
        self.may_end.set()
        await self.task


@pytest.mark.parametrize("second", ["/w/a", "/w/a/b/c", "/w", "/W/A/x"])
async def test_a_change_waits_for_one_of_the_same_place(second: str) -> None:
    claims = Claims()
    first, later = Work(claims, "/w/a"), Work(claims, second)
    beside = Work(claims, "/wa", "/v")
    await beside.end()
    assert first.began.is_set()
    assert not later.began.is_set()
    await first.end()
    await later.end()


async def test_the_changes_of_one_client_keep_their_order() -> None:
    claims = Claims()
    works = [Work(claims, f"/w/{number}", who="me") for number in range(3)]
    other = Work(claims, "/w/2", who="you")
    for number, work in enumerate(works):
        await work.began.wait()
        assert not any(later.began.is_set() for later in [*works[number + 1 :], other])
        await work.end()
    await other.end()


async def test_a_change_that_is_given_up_keeps_nobody_waiting() -> None:
    claims = Claims()
    first, given_up, last = Work(claims, "/w"), Work(claims, "/w"), Work(claims, "/w")
    await first.began.wait()
    given_up.task.cancel()
    await first.end()
    await last.end()
    assert not given_up.began.is_set()


async def test_where_a_link_leads_is_claimed_as_well() -> None:
    claims = Claims()
    first = Work(claims, "/real")
    tried: list[str] = []
    trying = asyncio.Event()

    async def through_a_link(claim: Claim) -> None:
        tried.append("link")
        trying.set()
        claim.limit(anywhere()).check(Path("/real/file"))
        tried.append("file")

    later = asyncio.create_task(claims.run(None, [Path("/link/file")], through_a_link))
    await first.began.wait()
    await trying.wait()
    assert tried == ["link"]
    await first.end()
    await later
    assert tried == ["link", "link", "file"]


async def test_a_place_above_the_claimed_one_is_not_claimed() -> None:
    places = iter(range(100))

    async def always_elsewhere(claim: Claim) -> None:
        claim.limit(anywhere()).check(Path(f"/w/{next(places)}"))

    with pytest.raises(Conflict):
        await Claims().run(None, [Path("/w/a/b")], always_elsewhere)
