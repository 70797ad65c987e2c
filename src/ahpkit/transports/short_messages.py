"""Takes short messages out of what a WebSocket client sends, and leaves all other frames to the library.

Almost everything that clients send is one masked text frame below 64 KiB. The library reads it with a chain of
generators; that was a tenth of all that the host did for an action (docs/decisions, 2026-11-15). Here a frame takes a
few steps. The head of every frame is followed (RFC 6455, 5.2), so this module knows where the next frame begins and
whether a message in fragments is incomplete, without asking the library. Faulty frames go to the library, which refuses
them.

It also counts the frames that the library gets, because the limits of messages do not count pings and fragments.
"""

from __future__ import annotations

from collections.abc import Iterator

from websockets.frames import apply_mask  # pyright: ignore[reportPrivateImportUsage]  # In C where it can be.

_FINAL = 0x80
_TEXT = _FINAL | 0x1
_KIND, _CONTROL = 0x0F, 0x8
"""Values in the first byte of a frame: it is the last of its message; it is a text and the last; the mask for its kind;
the lowest kind that is not data."""

_MASKED, _SIZE, _TWO_BYTES = 0x80, 0x7F, 126
"""Values in the second byte: the frame is masked; the mask for its size; the size 126, which means that the size
follows in two bytes. The size 127 means eight bytes."""

_MASK = 4
"""Bytes of the mask, directly before the data."""

_MAX_OTHERS = 2048
"""Frames that the library gets from one portion of bytes. It reads all of them in one step of the event loop, which
takes some milliseconds. One portion can contain 40,000 pings; reading those took 146 ms."""


class TooManyFrames(Exception):
    """Too many control frames or fragments came at once."""

    def __init__(self) -> None:
        super().__init__(f"more than {_MAX_OTHERS} control frames or fragments at once")


class ShortMessages:
    """Divides the bytes of one client into short messages and bytes for the library."""

    __slots__ = ("_begun", "_in_fragments", "_left", "_longest", "_passed_on")

    def __init__(self, longest: int) -> None:
        """`longest`: the bytes of the longest message that is taken here."""
        self._longest = longest
        self._begun = b""
        """The beginning of a frame that is not complete: of a short message, or of the head of another frame."""
        self._passed_on = 0
        """How many bytes of it the library already has."""
        self._left = 0
        """Bytes that are still missing of a frame that the library reads."""
        self._in_fragments = False
        """Whether the library has the beginning of a message, but not its last frame."""

    @property
    def held_back(self) -> bytes:
        """The bytes that arrived and were not passed on yet."""
        return self._begun[self._passed_on :]

    def split(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Divide the bytes that arrived: yields short messages with the bytes for the library that follow them. Raises
        `TooManyFrames`."""
        data = self._begun + data
        messages: list[bytes] = []
        allowed = _MAX_OTHERS
        others, at, end, is_short = self._passed_on, self._left, len(data), False
        while at < end:
            first = data[at]
            second = data[at + 1] if at + 1 < end else _MASKED
            start, stop = _place(data, at, second)
            is_short = (
                first == _TEXT
                and _MASKED <= second <= _MASKED + _TWO_BYTES
                and stop - start <= self._longest
                and not self._in_fragments
            )
            if start > end or (is_short and stop > end):
                break
            if is_short:
                if others < at:
                    yield messages, data[others:at]
                    messages = []
                messages.append(apply_mask(data[start:stop], data[start - _MASK : start]))
                others = stop
            else:
                allowed -= 1
                if allowed < 0:
                    yield messages, data[others:at]  # The library may find a faulty one among them.
                    raise TooManyFrames
                if first & _KIND < _CONTROL:
                    self._in_fragments = first < _FINAL
            at = stop
        self._begun = data[at:]
        self._passed_on = 0 if is_short else len(self._begun)
        self._left = max(0, at - end)
        yield messages, data[others : at + self._passed_on]


def _place(data: bytes, at: int, second: int) -> tuple[int, int]:
    """Where the data of a frame begins and ends. If its head is incomplete, the beginning is after the end of the bytes
    that arrived."""
    start = at + 2
    size = second & _SIZE
    if size >= _TWO_BYTES:
        start += 2 if size == _TWO_BYTES else 8
        size = int.from_bytes(data[at + 2 : start], "big")
    if second & _MASKED:
        start += _MASK
    return start, start + size


__all__ = ["ShortMessages", "TooManyFrames"]
