"""Any history of a storage, restarts included, agrees with a model that is too simple to be wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ahpkit.log.entry import RESERVED, Batch, ChannelRemoval, ChannelSnapshot, Entry, Recovery, Step, Value
from ahpkit.log.errors import NotInLog
from ahpkit.testing.storage import divided
from support.properties import examples
from support.records import holder_of

CHANNELS = st.sampled_from(["a", "b", "ahp-chat:/c"])
CLIENTS = st.sampled_from([None, "me", "you"])


class StorageHistory(RuleBasedStateMachine):
    """The model is the list of all steps ever committed, and the number below which entries are trimmed."""

    kind: Literal["memory", "sqlite"] = "memory"

    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.holder = holder_of(self.kind, Path(self.directory.name))
        self.head = 0
        self.oldest = 1
        self.entries: list[Entry] = []
        self.open: dict[str, ChannelSnapshot] = {}
        self.mine: dict[str, list[int]] = {}
        """Numbers of the entries of each open channel, since it was opened."""
        self.values: dict[str, bytes] = {}
        self.batch: Batch = []

    def teardown(self) -> None:
        if hasattr(self, "holder"):
            self.holder.storage.close()
            self.directory.cleanup()

    def add(self, step: Step) -> None:
        self.batch.append(step)

    @rule(channel=CHANNELS, client=CLIENTS, payload=st.binary(max_size=20))
    def append(self, channel: str, client: str | None, payload: bytes) -> None:
        self.head += 1
        entry = Entry(self.head, channel, payload, client, self.head if client else None, self.head * 10)
        self.entries.append(entry)
        if channel in self.open:
            self.mine[channel].append(self.head)
        self.add(entry)

    @rule(channel=CHANNELS, state=st.binary(max_size=20))
    def snapshot(self, channel: str, state: bytes) -> None:
        if channel not in self.open:
            self.mine[channel] = []
        self.open[channel] = ChannelSnapshot(channel, self.head, state)
        self.add(self.open[channel])

    @rule(channel=CHANNELS, parts=st.lists(st.binary(max_size=5), min_size=2, max_size=6), finished=st.booleans())
    def store_in_parts(self, channel: str, parts: list[bytes], finished: bool) -> None:
        if (is_new := channel not in self.open) or self.open[channel].seq < self.head:
            if is_new:
                self.add(ChannelSnapshot(channel, RESERVED, b""))
            ahead, snapshot = divided(channel, self.head, *parts)
            for part in ahead:
                self.add(part)
                self.commit()
            if finished:
                self.mine[channel] = [] if is_new else self.mine[channel]
                self.open[channel] = ChannelSnapshot(channel, self.head, b"".join(parts))
                self.add(snapshot)
            elif is_new:
                self.add(ChannelRemoval(channel))

    @rule(channel=CHANNELS)
    def remove(self, channel: str) -> None:
        self.open.pop(channel, None)
        self.add(ChannelRemoval(channel))

    @rule(key=st.sampled_from("xyz"), data=st.none() | st.binary(max_size=5))
    def set_value(self, key: str, data: bytes | None) -> None:
        self.values.pop(key, None)
        if data is not None:
            self.values[key] = data
        self.add(Value(key, data))

    @rule()
    def commit(self) -> None:
        self.holder.storage.commit(self.batch)
        self.batch = []

    @rule(back=st.integers(-2, 8))
    def trim(self, back: int) -> None:
        self.commit()
        wanted = min(self.head + 1, max(self.oldest, self.head - back))
        needed = [seq for channel in self.open for seq in self.tail_of(channel)]
        self.oldest = max(self.oldest, min([wanted, *needed]))
        assert self.holder.storage.trim(self.head - back) == self.oldest

    @rule()
    def restart(self) -> None:
        self.commit()
        highest = {each.client_id: each.client_seq or 0 for each in self.entries if each.client_id}
        assert self.holder.restart() == Recovery(
            head_seq=self.head,
            oldest_seq=self.oldest,
            snapshots=self.open,
            tail=[
                each for each in self.entries if each.channel in self.open and each.seq in self.tail_of(each.channel)
            ],
            values=self.values,
            clients=highest,
        )

    @rule(after=st.integers(0, 30), channels=st.none() | st.sets(CHANNELS), limit=st.none() | st.integers(1, 5))
    def read(self, after: int, channels: set[str] | None, limit: int | None) -> None:
        self.commit()
        if not self.oldest - 1 <= after <= self.head:
            with pytest.raises(NotInLog):
                self.holder.storage.read(after, channels=channels, limit=limit)
            return
        wanted = [channel for channel in self.open if channels is None or channel in channels]
        expected = [each for each in self.entries if each.channel in wanted and each.seq in self.mine[each.channel]]
        found = self.holder.storage.read(after, channels=channels, limit=limit)
        assert found == [each for each in expected if each.seq > after][:limit]

    @rule(client=st.sampled_from(["me", "you"]), number=st.integers(1, 30))
    def look_for(self, client: str, number: int) -> None:
        self.commit()
        logged = {each.client_seq for each in self.entries if each.client_id == client}
        trimmed = max([each for each in logged if each is not None and each < self.oldest], default=0)
        expected = number if number in logged and number >= self.oldest else 0 if number <= trimmed else None
        assert self.holder.storage.seen(client, number) == expected

    @invariant()
    def a_mark_knows_the_bytes_until_the_head(self) -> None:
        if hasattr(self, "holder") and not self.batch and self.oldest <= self.head:
            total = sum(len(each.payload) for each in self.entries)
            assert self.holder.storage.mark(self.head).total - self.holder.storage.mark(
                self.oldest
            ).total == total - sum(len(each.payload) for each in self.entries if each.seq <= self.oldest)

    def tail_of(self, channel: str) -> list[int]:
        return [seq for seq in self.mine[channel] if seq > self.open[channel].seq]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_any_history_agrees_with_the_model(kind: Literal["memory", "sqlite"]) -> None:
    class History(StorageHistory):
        pass

    History.kind = kind
    run_state_machine_as_test(
        History,
        settings=settings(
            examples(0.6 if kind == "memory" else 0.3),
            stateful_step_count=40,
        ),
    )
