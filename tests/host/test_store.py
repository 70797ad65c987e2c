"""States and the sequence, over a log that only counts."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.host.store import Origin, Store
from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery, Removal, Step, Value
from ahpkit.protocol.codec import decode_json
from ahpkit.protocol.errors import LocalProtocolError
from support import requirement

ROOT = "ahp-root://"
STATE: dict[str, Any] = {"agents": [], "activeSessions": 0}


class ListLog:
    """Takes every step and makes nothing durable by itself."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    @property
    def queued(self) -> int:
        return len(self.steps)

    def append(self, entry: Entry) -> None:
        self.steps.append(entry)

    def snapshot(self, snapshot: ChannelSnapshot) -> None:
        self.steps.append(snapshot)

    def remove(self, channel: str) -> None:
        self.steps.append(Removal(channel))

    def set_value(self, key: str, data: bytes | None) -> None:
        self.steps.append(Value(key, data))

    def entries(self) -> list[Entry]:
        return [step for step in self.steps if isinstance(step, Entry)]


@pytest.fixture
def log() -> ListLog:
    return ListLog()


@pytest.fixture
def store(log: ListLog) -> Store:
    return Store(log, now=lambda: 7)


def sessions(count: int) -> dict[str, Any]:
    return {"type": "root/activeSessionsChanged", "activeSessions": count}


def test_a_channel_is_seen_once_its_opening_is_durable(store: Store, log: ListLog) -> None:
    store.open(ROOT, STATE)
    assert (store.state(ROOT), store.committed(ROOT)) == (STATE, None)
    assert store.commit(log.queued - 1, []) == ([], [])
    assert store.committed(ROOT) is None
    assert store.commit(log.queued, []) == ([ROOT], [])
    assert store.committed(ROOT) == STATE


def test_readers_see_what_is_durable_and_the_next_action_what_is_newest(store: Store, log: ListLog) -> None:
    store.open(ROOT, STATE)
    store.apply(ROOT, sessions(1))
    first = log.queued
    seq, before, after = store.apply(ROOT, sessions(2), Origin("me", 5))
    assert (seq, before["activeSessions"], after["activeSessions"]) == (2, 1, 2)

    store.commit(first, log.entries()[:1])
    assert (store.committed_head, store.head, store.backlog) == (1, 2, 1)
    assert store.committed(ROOT) == {**STATE, "activeSessions": 1}
    assert store.state(ROOT) == {**STATE, "activeSessions": 2}


def test_a_channel_that_was_given_a_new_beginning_is_seen_as_it_was_until_then(store: Store, log: ListLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.queued, [])
    store.apply(ROOT, sessions(1))
    store.open(ROOT, {**STATE, "activeSessions": 9})
    assert (store.opened_at(ROOT), store.committed(ROOT)) == (1, STATE)
    assert store.commit(log.queued, log.entries()) == ([], [])
    assert store.committed(ROOT) == {**STATE, "activeSessions": 9}


def test_a_closed_channel_takes_nothing_and_is_seen_until_its_end_is_durable(store: Store, log: ListLog) -> None:
    store.open(ROOT, STATE)
    store.commit(log.queued, [])
    store.apply(ROOT, sessions(1))
    store.close(ROOT)
    store.close(ROOT)
    assert (store.state(ROOT), store.committed(ROOT), store.channels()) == (None, STATE, [])
    assert store.commit(log.queued - 1, log.entries()) == ([], [])
    assert (store.taken(ROOT), store.committed(ROOT)) == (True, {**STATE, "activeSessions": 1})
    assert store.commit(log.queued, []) == ([], [ROOT])
    assert (store.taken(ROOT), store.committed(ROOT)) == (False, None)


@requirement("core:connection:server-seq-monotonic")
def test_an_action_that_is_not_json_changes_nothing(store: Store, log: ListLog) -> None:
    junk = object()
    store.open(ROOT, STATE)
    steps = list(log.steps)
    with pytest.raises(LocalProtocolError):
        store.apply(ROOT, {**sessions(1), "_meta": junk})
    with pytest.raises(LocalProtocolError):
        store.open("ahp-session:/x", {"junk": junk})
    assert (log.steps, store.head, store.state(ROOT), store.channels()) == (steps, 0, STATE, [ROOT])
    assert store.apply(ROOT, sessions(1))[0] == 1


def test_a_restart_brings_back_what_the_log_has(store: Store, log: ListLog) -> None:
    store.open(ROOT, STATE)
    store.apply(ROOT, sessions(1))
    store.checkpoint(ROOT)
    store.apply(ROOT, sessions(2))
    store.apply(ROOT, sessions(3))
    snapshot = next(step for step in reversed(log.steps) if isinstance(step, ChannelSnapshot))
    assert (snapshot.seq, decode_json(snapshot.state)["activeSessions"]) == (1, 1)

    again = Store(ListLog(), now=lambda: 8)
    values = {"opened/" + ROOT: b"0"}
    again.restore(Recovery(head_seq=3, snapshots={ROOT: snapshot}, tail=log.entries()[1:], values=values))
    assert again.state(ROOT) == again.committed(ROOT) == store.state(ROOT)
    assert (again.head, again.committed_head) == (3, 3)
