"""States and what is durable of them, over a log that gives its numbers late."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any, cast

import pytest

from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.store import Origin, Store
from ahpkit.log.engine import Refused
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.protocol.root import RootState
from ahpkit.protocol.session.state import SessionState
from ahpkit.wire.codec import decode_json
from support import requirement
from support.late_log import LateLog

ROOT = "ahp-root://"
STATE: RootState = {"agents": [], "activeSessions": 0}


@pytest.fixture
def log() -> LateLog:
    return LateLog(gap=0, by_hand=True)


@pytest.fixture
def store(log: LateLog) -> Store:
    return Store(log, ChannelKinds(DurableValues(log.set_value)), now=lambda: 7)


def sessions(count: int) -> Any:
    return {"type": "root/activeSessionsChanged", "activeSessions": count}


def test_a_channel_is_seen_once_its_opening_is_durable(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    assert (store.state(ROOT), store.committed(ROOT)) == (STATE, None)
    assert store.commit(log.commit(0)) == ([], [])
    assert store.committed(ROOT) is None
    assert store.commit(log.commit()) == ([ROOT], [])
    assert store.committed(ROOT) == STATE


def test_readers_see_what_is_durable_and_the_next_action_what_is_newest(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.apply(ROOT, sessions(1))
    before, after, _ = store.apply(ROOT, sessions(2), Origin("me", 5))
    assert (before, after) == ({**STATE, "activeSessions": 1}, {**STATE, "activeSessions": 2})

    store.commit(log.commit(2))
    assert (store.committed_head, store.backlog) == (1, 1)
    assert store.committed(ROOT) == {**STATE, "activeSessions": 1}
    assert store.state(ROOT) == {**STATE, "activeSessions": 2}


def test_a_channel_that_was_given_a_new_beginning_is_seen_as_it_was_until_then(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.commit())
    store.apply(ROOT, sessions(1))
    store.open(ROOT, {**STATE, "activeSessions": 9})
    assert store.committed(ROOT) == STATE
    assert store.commit(log.commit()) == ([], [])
    assert store.committed(ROOT) == {**STATE, "activeSessions": 9}
    assert (store.can_replay(0, [ROOT]), store.can_replay(1, [ROOT])) == (False, True)


def test_a_closed_channel_takes_nothing_and_is_seen_until_its_end_is_durable(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.commit())
    store.apply(ROOT, sessions(1))
    store.close(ROOT)
    store.close(ROOT)
    assert (store.state(ROOT), store.committed(ROOT), store.channels()) == (None, STATE, [])
    assert store.commit(log.commit(1)) == ([], [])
    assert (store.taken(ROOT), store.committed(ROOT)) == (True, {**STATE, "activeSessions": 1})
    assert store.commit(log.commit()) == ([], [ROOT])
    assert (store.taken(ROOT), store.committed(ROOT)) == (False, None)


@requirement("core:connection:server-seq-monotonic")
def test_an_action_that_is_not_json_changes_nothing(store: Store, log: LateLog) -> None:
    junk = object()
    store.open(ROOT, STATE)
    steps = log.steps
    with pytest.raises(LocalProtocolError):
        store.apply(ROOT, sessions(1) | {"_meta": junk})
    with pytest.raises(LocalProtocolError):
        store.open("ahp-session:/x", cast("SessionState", {"junk": junk}))
    assert (log.steps, store.state(ROOT), store.channels()) == (steps, STATE, [ROOT])
    store.apply(ROOT, sessions(1))
    assert [entry.seq for entry in log.commit().entries] == [1]


async def test_a_restart_brings_back_what_the_log_has(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.apply(ROOT, sessions(1))
    store.commit(log.commit())
    store.apply(ROOT, sessions(2))
    await store.checkpoint(ROOT)
    store.apply(ROOT, sessions(3))
    log.commit()
    snapshot = log.disk.snapshots[ROOT]
    assert (snapshot.seq, decode_json(snapshot.state)["activeSessions"]) == (1, 1)

    again = restarted(log)
    assert again.state(ROOT) == again.committed(ROOT) == store.state(ROOT)
    assert again.committed_head == 3


def restarted(log: LateLog) -> Store:
    store = Store(late := LateLog(log.disk), ChannelKinds(DurableValues(late.set_value)), now=lambda: 8)
    store.restore(LateLog(log.disk).take_recovery())
    return store


def steps(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """What the event loop does with `work`, one step at a time."""
    with suppress(StopIteration):
        while True:
            work.send(None)
            yield


def large(megabytes: int) -> RootState:
    return {**STATE, "_meta": {f"text {number}": "x" * 1024 for number in range(megabytes * 1024)}}


def test_a_large_state_is_stored_in_many_small_steps_and_what_comes_meanwhile_is_not_lost(
    store: Store, log: LateLog
) -> None:
    store.open(ROOT, large(5))
    store.apply(ROOT, sessions(1))
    store.commit(log.commit())
    count = 0
    largest = 0
    for count, _ in enumerate(steps(store.checkpoint(ROOT)), start=1):
        if count == 3:
            store.apply(ROOT, sessions(2))
        store.commit(log.commit())
        largest = max([largest, *map(len, log.disk.parts.values())])
    assert count >= 50
    assert 0 < largest < 600_000
    assert log.disk.snapshots[ROOT].seq == 0
    store.commit(log.commit())
    assert log.disk.snapshots[ROOT].seq == 1
    assert restarted(log).state(ROOT) == store.state(ROOT)


@pytest.mark.parametrize("opened", [True, False])
def test_a_large_state_is_stored_in_many_small_steps_before_its_channel_is_opened(
    store: Store, log: LateLog, opened: bool
) -> None:
    async def prepare() -> None:
        async with store.preparing(ROOT, large(5)) as prepared:
            assert store.taken(ROOT)
            if opened:
                store.open(ROOT, large(5), prepared=prepared)

    largest = 0
    for _ in steps(prepare()):
        assert (store.state(ROOT), store.channels(), store.commit(log.commit())) == (None, [], ([], []))
        assert restarted(log).channels() == [], "after a crash there is nothing"
        largest = max([largest, *map(len, log.disk.parts.values())])
    assert 0 < largest < 600_000
    assert store.commit(log.commit()) == ([ROOT] if opened else [], [])
    assert restarted(log).state(ROOT) == store.state(ROOT) == (large(5) if opened else None)
    assert store.taken(ROOT) is opened


def test_a_state_that_is_being_stored_is_not_that_of_a_channel_which_began_anew(store: Store, log: LateLog) -> None:
    store.open(ROOT, large(1))
    store.apply(ROOT, sessions(1))
    store.commit(log.commit())
    work = steps(store.checkpoint(ROOT))
    next(work)
    store.open(ROOT, STATE)
    list(work)
    log.commit()
    assert decode_json(log.disk.snapshots[ROOT].state) == STATE


async def test_a_channel_whose_new_beginning_is_not_durable_is_not_stored_as_it_was(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.commit())
    store.open(ROOT, {**STATE, "activeSessions": 7})
    await store.checkpoint(ROOT)
    log.commit()
    assert decode_json(log.disk.snapshots[ROOT].state)["activeSessions"] == 7


def test_an_action_that_could_not_be_stored_never_happened(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.commit())
    for count in (1, 2, 3):
        store.apply(ROOT, sessions(count) | ({"_meta": {}} if count == 2 else {}))
    done = log.commit()
    middle = done.entries[2]
    assert store.state(ROOT) == {**STATE, "activeSessions": 3}
    store.commit(done._replace(entries=done.entries[:2], refused=[Refused(middle, done.step, "too large")]))
    assert store.state(ROOT) == store.committed(ROOT) == {**STATE, "activeSessions": 2}
    assert store.committed_head == 2


@pytest.mark.parametrize("is_retold", [False, True])
async def test_the_state_of_every_channel_is_stored_when_that_is_due(
    store: Store, log: LateLog, is_retold: bool
) -> None:
    store.open(ROOT, STATE, is_retold=is_retold)
    store.apply(ROOT, sessions(1))
    store.commit(log.commit())
    await store.checkpoint(ROOT)
    log.commit()
    assert log.disk.snapshots[ROOT].seq == 1
    assert decode_json(log.disk.snapshots[ROOT].state)["activeSessions"] == 1


async def test_a_state_that_is_stored_is_not_stored_again(store: Store, log: LateLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.commit())
    await store.checkpoint(ROOT)
    assert log.steps == 1
    store.apply(ROOT, sessions(1))
    await store.checkpoint(ROOT)  # The action is not durable yet.
    assert log.steps == 2


def test_a_large_channel_that_rests_is_stored_in_many_small_steps(store: Store, log: LateLog) -> None:
    store.open(ROOT, large(5))
    for count in range(300):
        store.apply(ROOT, sessions(count))
    store.commit(log.commit())
    later = LateLog(log.disk, gap=0, by_hand=True)
    again = Store(later, ChannelKinds(DurableValues(later.set_value)), now=lambda: 8)
    again.restore(later.take_recovery())
    taken = 0
    for _ in steps(again.checkpoint(ROOT)):
        taken += 1
        later.commit()
    later.commit()
    assert taken > 150  # reading it, its actions, and writing it
    assert log.disk.snapshots[ROOT].seq == 300
    assert again.state(ROOT) == restarted(log).state(ROOT) == store.state(ROOT)


async def test_a_very_large_channel_does_not_rest_because_its_text_would_be_made_in_one_step(
    store: Store, log: LateLog
) -> None:
    small: RootState = {**STATE, "_meta": {"x": "small"}}
    large: RootState = {**STATE, "_meta": {"x": ["x" * 1_000_000] * 20}}
    for state in (small, large):
        store.open(ROOT, state)
        store.commit(log.commit())
        await store.rest(ROOT)
        assert store.state(ROOT) == state
        assert (store.state(ROOT) is state) == (state is large)
