"""Whatever a client sends, and however its bytes are divided: what comes out is what the library alone would give."""

from __future__ import annotations

from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State

from ahpkit.transports.short_messages import ShortMessages

LONGEST = 70_000
"""Bytes of a message: more than a short one can have."""


class Library:
    """The library's own reader of a server, with everything it said."""

    def __init__(self, longest: int) -> None:
        self.protocol = Protocol(Side.SERVER, max_size=longest)
        self.frames: list[tuple[Opcode, bytes, bool]] = []
        self.sent: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self.protocol.receive_data(data)
        self.sent += self.protocol.data_to_send()
        events = [event for event in self.protocol.events_received() if isinstance(event, Frame)]
        self.frames += [(event.opcode, bytes(event.data), event.fin) for event in events]

    def result(self) -> tuple[object, ...]:
        return self.frames, self.sent, self.protocol.state, type(self.protocol.parser_exc)


class WithShortMessages(Library):
    """The same, but short messages are taken out of what it gets."""

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self.short = ShortMessages(longest)
        self.taken = 0

    def feed(self, data: bytes) -> None:
        if self.protocol.state is not State.OPEN:
            super().feed(data)
            return
        for messages, others in self.short.split(data):
            self.frames += [(Opcode.TEXT, message, True) for message in messages]
            self.taken += len(messages)
            if others:
                super().feed(others)
                if self.protocol.state is not State.OPEN:
                    break


def frame(first: int, payload: bytes, mask: bytes, *, longer: int = 0) -> bytes:
    """`longer`: the bytes beside the head in which the size is written, also where it fits into fewer."""
    size = len(payload)
    longer = max(longer, 0 if size < 126 else 2 if size < 1 << 16 else 8)
    code = {0: size, 2: 126, 8: 127}[longer]
    body = bytes(a ^ b for a, b in zip(payload, cycle(mask), strict=False))
    return bytes((first, 0x80 | code)) + (size.to_bytes(longer, "big") if longer else b"") + mask + body


sizes = st.sampled_from([0, 1, 2, 5, 124, 125, 126, 127, 300, 65_535, 65_536, LONGEST, LONGEST + 1])
first_bytes = st.one_of(
    st.sampled_from([0x81, 0x81, 0x81, 0x81, 0x01, 0x00, 0x80, 0x89, 0x8A]),  # What clients send.
    st.sampled_from([0x82, 0x02, 0x88, 0x09, 0x83, 0xC1, 0x91, 0x8F]),  # What ends a connection.
    st.integers(0, 255),
)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame, mostly one that is right."""
    size = draw(st.integers(0, 8) | sizes)
    payload = draw(st.binary(min_size=1, max_size=4)).ljust(size, b"x")[:size]
    longer = draw(st.sampled_from([0, 0, 0, 2, 8]))
    made = frame(draw(first_bytes), payload, draw(st.binary(min_size=4, max_size=4)), longer=longer)
    match draw(st.integers(0, 40)):
        case 0:
            return made[:1] + bytes([made[1] & 0x7F]) + made[2:]  # Without a mask.
        case 1:
            return made[:1] + b"\xff" + draw(st.binary(min_size=8, max_size=8)) + made  # Very long, mostly.
        case 2:
            return made[: draw(st.integers(1, len(made)))]  # Cut off: what follows is read as its end.
        case _:
            return made


@st.composite
def portions(draw: st.DrawFn) -> list[bytes]:
    """Frames one after the other, in the portions in which they arrive."""
    data = b"".join(draw(st.lists(frames(), max_size=12)))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    if len(data) < 200 and draw(st.booleans()):
        cuts = list(range(len(data)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@given(portions(), st.sampled_from([100, 1000, LONGEST]))
def test_the_library_alone_would_give_the_same(arrived: list[bytes], longest: int) -> None:
    expected, found = Library(longest), WithShortMessages(longest)
    for portion in arrived:
        expected.feed(portion)
        found.feed(portion)
        if not found.short.held_back:
            assert found.result() == expected.result()
    found.protocol.receive_eof()
    expected.protocol.receive_eof()
    assert found.result() == expected.result()


@given(st.lists(st.integers(0, 300), max_size=8), st.integers(1, 400))
def test_short_messages_never_reach_the_library(lengths: list[int], portion: int) -> None:
    data = b"".join(frame(0x81, b"x" * length, b"mask") for length in lengths)
    reader = WithShortMessages(LONGEST)
    for start in range(0, len(data), portion):
        reader.feed(data[start : start + portion])
    assert reader.taken == len(lengths)
    assert [len(text) for _, text, _ in reader.frames] == lengths
