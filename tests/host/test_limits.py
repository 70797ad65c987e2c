"""Limits of one connection."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.limits import (
    MAX_PENDING_REQUESTS,
    SHARE_MESSAGES,
    SHARE_SECONDS,
    FloodLimit,
    Inflow,
    check_subscriptions,
)
from ahpkit.host.registration import Command, Registration
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from support.bench import Bench
from support.waiting import BOUND


def test_a_burst_passes_and_the_message_after_it_does_not() -> None:
    limit = FloodLimit(now=0.0, rate=10, burst=3)
    assert [limit.take(now=0.0) for _ in range(4)] == [True, True, True, False]


def test_messages_come_back_with_time_up_to_the_burst() -> None:
    limit = FloodLimit(now=0.0, rate=10, burst=3)
    for _ in range(3):
        limit.take(now=0.0)
    assert limit.take(now=0.1)
    assert not limit.take(now=0.1)
    assert [limit.take(now=100.0) for _ in range(4)] == [True, True, True, False]


def test_bytes_beyond_the_burst_have_to_wait_for_their_share() -> None:
    limit = FloodLimit(now=0.0, rate=10, burst=30)
    assert limit.wait(30, now=0.0) == 0
    assert limit.wait(5, now=0.0) == 0.5
    assert limit.wait(5, now=0.5) == 0.5
    assert limit.wait(5, now=100.0) == 0


async def test_a_connection_that_sends_too_many_bytes_is_read_more_slowly(bench: Bench) -> None:
    clock = [0.0]
    await bench.stop()
    bench.config = replace(bench.config, byte_rate=1_000_000, byte_burst=10_000)
    await bench.start(monotonic=lambda: clock[0])
    client = await bench.client(ROOT_URI)
    began = asyncio.get_running_loop().time()
    await client.call("ping", text="x" * 100_000)
    assert await client.ask("ping") is None
    assert asyncio.get_running_loop().time() - began > 0.08


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    limit = FloodLimit(now=10.0, rate=1, burst=2)
    assert limit.take(now=5.0)
    assert limit.take(now=5.0)
    assert not limit.take(now=5.0)


@given(st.lists(st.floats(min_value=0, max_value=2), max_size=200))
def test_never_more_than_burst_plus_rate_times_time(gaps: list[float]) -> None:
    limit, now, passed = FloodLimit(now=0.0, rate=5, burst=10), 0.0, 0
    for gap in gaps:
        now += gap
        passed += limit.take(now=now)
    assert passed <= 10 + 5 * now + 1e-6


def inflow(*, messages: tuple[float, float], size: tuple[float, float]) -> Inflow:
    """Each limit as rate and burst."""
    return Inflow(
        FloodLimit(now=0.0, rate=messages[0], burst=messages[1]), FloodLimit(now=0.0, rate=size[0], burst=size[1])
    )


@given(st.lists(st.tuples(st.floats(min_value=0, max_value=2), st.integers(0, 500)), max_size=200), st.integers(1, 200))
def test_shares_let_through_no_more_than_the_rates(arriving: list[tuple[float, int]], burst: int) -> None:
    counted, now, passed, size = inflow(messages=(5, burst), size=(100, 1000)), 0.0, 0, 0
    for gap, length in arriving:
        now += gap
        if not counted.count(length):
            delay = counted.renew(now=now)
            if delay is None:
                break
            now += delay
        passed, size = passed + 1, size + length
        assert passed <= burst + 5 * now + 1e-6
        assert size <= 1000 + 100 * now + 1e-6


def test_a_share_is_over_after_some_messages() -> None:
    counted = inflow(messages=(1000, 1000), size=(1e9, 1e9))
    over = [number for number in range(200) if not counted.count(1) and counted.renew(now=0.0) == 0]
    assert over == [0, SHARE_MESSAGES, 2 * SHARE_MESSAGES, 3 * SHARE_MESSAGES]


def test_a_share_is_over_when_its_messages_took_long() -> None:
    """An action in a list of thousands takes long; others are served after a few of them."""
    counted, over = inflow(messages=(1000, 1000), size=(1e9, 1e9)), list[int]()
    for number in range(30):
        if not counted.count(1):
            assert counted.renew(now=0.0) == 0
            over.append(number)
        counted.took(SHARE_SECONDS / 10 + 1e-9)
    assert over == [0, 10, 20]


def test_a_person_is_far_below_the_default_limit() -> None:
    limit = FloodLimit(now=0.0)
    assert all(limit.take(now=second / 1000) for second in range(60_000))


def test_one_subscription_too_many_is_refused_with_what_to_do() -> None:
    assert check_subscriptions(5, limit=5) is None
    assert "unsubscribe" in (check_subscriptions(6, limit=5) or "")


def test_ten_thousand_subscriptions_on_one_connection_are_too_many() -> None:
    assert check_subscriptions(10_000) is not None


class Gate(Feature):
    """Serves `_gate`: counts who came in and lets nobody out before it opens."""

    def __init__(self) -> None:
        self.inside = 0
        self.full = asyncio.Event()
        self.open = asyncio.Event()

    def register(self, host: Registration, services: Services) -> None:
        host.commands.add(Command("_gate", self._pass))

    async def _pass(self, client: ConnectedClient, params: JsonObject) -> int:
        self.inside += 1
        if self.inside == MAX_PENDING_REQUESTS:
            self.full.set()
        await self.open.wait()
        return self.inside


async def test_a_client_with_too_many_requests_is_read_more_slowly_and_answered_completely(tmp_path: Path) -> None:
    gate, bench = Gate(), Bench(tmp_path)
    bench.features = [gate]
    await bench.start()
    try:
        client = await bench.client()
        asked = [asyncio.create_task(client.ask("_gate")) for _ in range(MAX_PENDING_REQUESTS + 20)]
        async with asyncio.timeout(BOUND):
            await gate.full.wait()
            for _ in range(20):
                await asyncio.sleep(0)
            assert gate.inside == MAX_PENDING_REQUESTS
            gate.open.set()
            await asyncio.gather(*asked)
        assert gate.inside == MAX_PENDING_REQUESTS + 20
    finally:
        await bench.stop()
