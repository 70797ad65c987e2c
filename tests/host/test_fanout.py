"""One client's way out, and one batch to many: order, one write each, bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ahpkit.dialects import AgreedVersion, Dialect, Generation, SessionLists, dialect_for
from ahpkit.dialects.base import Identity, MustReconnect, OutgoingAction
from ahpkit.dialects.dialect import GenerationDialect
from ahpkit.host.clients.outlet import Outlet
from ahpkit.host.spine.fanout import Fanout
from ahpkit.log.entry import Entry
from ahpkit.wire.codec import encode
from ahpkit.wire.peer import Peer
from ahpkit.wire.tasks import Tasks
from ahpkit.wire.transport import PeerInfo
from support import requirement

BUDGET = 1000


class Wire:
    """A transport whose peer takes nothing until it is told to."""

    def __init__(self, framing: str = "test") -> None:
        self.framing = framing
        self.peer = PeerInfo("test", "nowhere")
        self.writes: list[bytes] = []
        self.unread = 0
        self.aborted = False

    @property
    def buffered(self) -> int:
        return self.unread

    @property
    def is_over(self) -> bool:
        return self.aborted

    def frame(self, message: bytes) -> bytes:
        return b"<" + message + b">"

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        raise NotImplementedError

    def write(self, frames: bytes) -> None:
        self.writes.append(frames)
        self.unread += len(frames)

    def read_all(self) -> None:
        self.unread = 0

    def abort(self) -> None:
        self.aborted = True

    async def receive(self) -> bytes:
        raise NotImplementedError

    async def drain(self) -> None:
        raise NotImplementedError

    async def aclose(self, *, code: int = 1000, reason: str = "") -> None:
        raise NotImplementedError


def outlet(wire: Wire, dialect: Dialect | None = None, *, on_resync: Callable[[], None] = lambda: None) -> Outlet:
    peer = Peer()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"reconnect","params":{}}')
    spoken = dialect or Identity("0.4.0")
    return Outlet(
        wire,
        peer,
        spoken,
        budget=BUDGET,
        on_lagging=lambda: None,
        on_resync=on_resync,
        tasks=Tasks(),
    )


def entry(seq: int, channel: str) -> Entry:
    return Entry(seq, channel, b"%d" % seq, None, None, 0)


def sent(wire: Wire) -> list[str]:
    """What each write brought, without the envelope around it."""
    return [write.decode().replace('{"jsonrpc":"2.0","method":"action","params":', "") for write in wire.writes]


@requirement("core:hardening:slow-reader-bounded")
def test_a_reader_that_stops_is_dropped_once_it_left_more_than_its_budget_unread() -> None:
    wire = Wire()
    out = outlet(wire)
    for _ in range(100):
        out.send(b"x" * 98)
    assert wire.aborted
    assert out.lagging
    assert wire.unread <= BUDGET + 200


def test_a_reader_that_reads_is_never_dropped() -> None:
    wire = Wire()
    out = outlet(wire)
    for _ in range(100):
        out.send(b"x" * 900)
        wire.read_all()
    assert not wire.aborted


def test_a_message_larger_than_the_budget_arrives_and_so_does_what_follows_it() -> None:
    wire = Wire()
    out = outlet(wire)
    out.send(b"y" * 500)
    out.send(b"x" * 50 * BUDGET)
    out.send(b"y" * 400)
    assert not wire.aborted
    wire.read_all()
    out.send(b"y" * 500)
    assert not wire.aborted


@requirement("core:hardening:slow-reader-bounded")
def test_who_asks_for_much_and_does_not_read_it_is_dropped() -> None:
    wire = Wire()
    out = outlet(wire)
    out.send(b"x" * 50 * BUDGET)
    out.send(b"x" * 50 * BUDGET)
    assert wire.aborted


def test_a_large_message_that_was_read_allows_nothing_any_more() -> None:
    wire = Wire()
    out = outlet(wire)
    out.send(b"x" * 50 * BUDGET)
    wire.read_all()
    for _ in range(3):
        out.send(b"y" * 900)
    assert wire.aborted


def test_what_is_kept_back_comes_after_the_answer_in_one_write() -> None:
    wire = Wire()
    out = outlet(wire)
    out.hold()
    out.send(b"one")
    out.send(b"x" * 3 * BUDGET)
    assert wire.writes == []
    out.respond(1, "reconnect", {}, "answer")
    answer = b'<{"jsonrpc":"2.0","id":1,"result":"answer"}>'
    assert wire.writes == [answer + b"<one><" + b"x" * 3 * BUDGET + b">"]
    assert not wire.aborted


@pytest.mark.parametrize("framings", [("a", "a"), ("a", "b")])
def test_a_batch_is_one_write_for_each_subscriber_in_the_order_of_the_log(framings: tuple[str, str]) -> None:
    first, second = Wire(framings[0]), Wire(framings[1])
    fanout, one, two = Fanout(), outlet(first), outlet(second)
    fanout.subscribe("a", one)
    fanout.subscribe("b", one)
    fanout.subscribe("b", two)
    fanout.deliver([entry(1, "a"), entry(2, "b"), entry(3, "b"), entry(4, "a"), entry(5, "c")])
    assert sent(first) == ["<1}><2}><3}><4}>"]
    assert sent(second) == ["<2}><3}>"]


class PatientWire(Wire):
    """Takes messages in several parts."""

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        return (b"<" if first else b"") + piece + (b">" if last else b"")

    async def drain(self) -> None:
        self.read_all()


def long_entry(seq: int, channel: str) -> Entry:
    return Entry(seq, channel, b"x" * 1_000_000, None, None, 0, "annotations/set")


async def test_a_long_action_is_written_in_later_steps_and_nothing_overtakes_it() -> None:
    wires = PatientWire("a"), PatientWire("b")
    fanout, outlets = Fanout(), [outlet(wire) for wire in wires]
    for out in outlets:
        fanout.subscribe("a", out)
    fanout.deliver([entry(1, "a"), long_entry(2, "a"), entry(3, "a")])
    fanout.deliver([entry(4, "a")])
    assert [sent(wire) for wire in wires] == [["<1}>"], ["<1}>"]]
    assert all(out.unread > 1_000_000 for out in outlets)
    for wire, out in zip(wires, outlets, strict=True):
        await out.room()
        assert "".join(sent(wire)) == "<1}><" + "x" * 1_000_000 + "}><3}><4}>"
        assert max(map(len, wire.writes)) < 200_000
        assert out.unread == 0
    fanout.deliver([entry(5, "a")])
    assert [sent(wire)[-1] for wire in wires] == ["<5}>", "<5}>"]


async def test_what_was_held_back_comes_before_a_long_action() -> None:
    wire = PatientWire()
    fanout, out = Fanout(), outlet(wire)
    fanout.subscribe("a", out)
    out.latencies["a"] = 1.0
    fanout.deliver([entry(1, "a")])
    assert wire.writes == []
    fanout.deliver([long_entry(2, "a")])
    await out.room()
    assert "".join(sent(wire)) == "<1}><" + "x" * 1_000_000 + "}>"


async def test_a_long_action_that_comes_before_the_answer_to_reconnect_is_sent_after_it() -> None:
    wire = PatientWire()
    fanout, out = Fanout(), outlet(wire)
    fanout.subscribe("a", out)
    out.hold()
    fanout.deliver([long_entry(2, "a")])
    assert wire.writes == []
    out.respond(1, "reconnect", {}, "answer")
    answer = '<{"jsonrpc":"2.0","id":1,"result":"answer"}>'
    assert "".join(sent(wire)) == answer + "<" + "x" * 1_000_000 + "}>"


@requirement("core:hardening:slow-reader-bounded")
async def test_long_actions_that_wait_count_as_unread() -> None:
    wire = PatientWire()
    fanout, out = Fanout(), outlet(wire)
    fanout.subscribe("a", out)
    fanout.deliver([long_entry(1, "a")])
    assert not wire.aborted
    fanout.deliver([long_entry(2, "a")])
    assert wire.aborted
    assert out.lagging


def test_who_left_a_channel_gets_nothing_of_it() -> None:
    wire = Wire()
    fanout, out = Fanout(), outlet(wire)
    fanout.subscribe("a", out)
    fanout.subscribe("b", out)
    fanout.unsubscribe("a", out)
    fanout.close("b")
    fanout.deliver([entry(1, "a"), entry(2, "b")])
    assert wire.writes == []
    assert out.channels == set()
    assert not fanout.has_subscribers("a")


class Shouting(Identity):
    """Tells one action in other words, leaves one out, and cannot tell a third."""

    def __init__(self) -> None:
        super().__init__("0.0.1", stream="shouting")
        self.projected = 0

    def is_same(self, action_type: str) -> bool:
        return action_type == "same"

    def form(self, action_type: str) -> str | None:
        return None

    def action(self, action_type: str, envelope: bytes, outgoing: OutgoingAction | None = None) -> bytes | None:
        self.projected += 1
        if action_type == "impossible":
            raise MustReconnect
        return None if action_type == "unknown" else envelope + b"!"


def typed(seq: int, kind: str) -> Entry:
    return entry(seq, "a")._replace(type=kind)


def test_connections_of_one_stream_share_what_is_projected_once() -> None:
    plain, loud, also_loud = Wire(), Wire(), Wire()
    fanout, dialect = Fanout(), Shouting()
    fanout.subscribe("a", outlet(plain))
    fanout.subscribe("a", outlet(loud, dialect))
    fanout.subscribe("a", outlet(also_loud, dialect))
    fanout.deliver([typed(1, "same"), typed(2, "other"), typed(3, "unknown")])
    assert sent(plain) == ["<1}><2}><3}>"]
    assert sent(loud) == sent(also_loud) == ["<1}><2!}>"]
    assert dialect.projected == 2


def test_a_stream_that_cannot_tell_an_action_is_ended_and_the_others_go_on() -> None:
    plain, loud, ended = Wire(), Wire(), list[str]()
    fanout = Fanout()
    fanout.subscribe("a", outlet(plain))
    fanout.subscribe("a", outlet(loud, Shouting(), on_resync=lambda: ended.append("loud")))
    fanout.deliver([typed(1, "other"), typed(2, "impossible")])
    assert (sent(plain), sent(loud), ended) == (["<1}><2}>"], [], ["loud"])


class Nowhere:
    """Surroundings of dialects that project no states."""

    lists = SessionLists()

    def kind(self, uri: str) -> str | None:
        return None

    def session_of(self, uri: str) -> str | None:
        return None

    def summary(self, session: str) -> dict[str, Any] | None:
        return None

    def title(self, chat: str) -> str | None:
        return None


def every_generation(wire: type[Wire]) -> tuple[Fanout, dict[Generation, Wire]]:
    """A fan-out with a subscriber of each generation."""
    fanout, wires = Fanout(), {generation: wire() for generation in Generation}
    for generation, one in wires.items():
        fanout.subscribe("a", outlet(one, dialect_for(AgreedVersion(generation.release, generation), Nowhere())))
    return fanout, wires


def logged(seq: int, action: dict[str, Any]) -> Entry:
    envelope = {"channel": "a", "action": action}
    return typed(seq, action["type"])._replace(
        payload=encode({**envelope, "serverSeq": seq}), outgoing=OutgoingAction(envelope)
    )


STREAMED: list[dict[str, Any]] = [
    {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"},
    {"type": "chat/usage", "turnId": "t", "usage": {}},
    {"type": "terminal/data", "data": "y"},
]

FAILED: dict[str, Any] = {
    "type": "chat/error",
    "turnId": "t",
    "duration": 1,
    "part": {"kind": "error", "error": {"message": "no"}},
}


@requirement("gen:project:identical-undecoded")
def test_what_streams_is_decoded_for_nobody_and_framed_once_for_all_generations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(data: bytes) -> None:
        raise AssertionError("an action that is the same for all was decoded")

    monkeypatch.setattr("ahpkit.dialects.actions_down.decode_own", never)
    monkeypatch.setattr("ahpkit.host.spine.store.decode_own", never)
    fanout, wires = every_generation(Counting)
    Counting.framed = 0
    fanout.deliver([logged(number, action) for number, action in enumerate(STREAMED)])
    assert Counting.framed == len(STREAMED)
    assert len({bytes(wire.writes[0]) for wire in wires.values()}) == 1


@requirement("gen:project:three-streams")
def test_a_batch_is_written_in_three_forms_at_most() -> None:
    fanout, wires = every_generation(Counting)
    Counting.framed = 0
    fanout.deliver([logged(1, FAILED)])
    assert Counting.framed == 3
    forms = {generation: wire.writes[0] for generation, wire in wires.items()}
    assert forms[Generation.V1_0] == forms[Generation.V0_9]
    assert len({forms[one] for one in Generation if Generation.V0_4 < one < Generation.V0_9}) == 1
    assert len(set(forms.values())) == 3


def test_of_nine_versions_only_one_of_each_form_looks_at_the_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    action = GenerationDialect.action

    def counting(dialect: GenerationDialect, *given: Any) -> bytes | None:
        looked.append(dialect.stream)
        return action(dialect, *given)

    monkeypatch.setattr(GenerationDialect, "action", counting)
    fanout, wires = every_generation(Wire)
    fanout.deliver([logged(number, FAILED) for number in range(50)])
    assert len(looked) == 3 * 50
    assert len({wire.writes[0] for wire in wires.values()}) == 3


class Counting(Wire):
    """Counts what all wires frame together."""

    framed = 0

    def frame(self, message: bytes) -> bytes:
        Counting.framed += 1
        return super().frame(message)
