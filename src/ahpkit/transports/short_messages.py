"""Takes short messages out of what a WebSocket client sends, and leaves all other frames to the library.

Almost everything that clients send is one masked text frame below 64 KiB. The library reads it with a chain of
generators; that was a tenth of all that the host did for an action (docs/decisions, 2026-11-15). Here it is a few
steps. The head of every frame is followed (RFC 6455, 5.2), so it is known where the next one begins and whether a
message in fragments is under way, without a look into the library. What is wrong with a frame, the library says.

It also counts the frames that the library gets: no limit of messages knows of pings and fragments.
"""

from __future__ import annotations

from collections.abc import Iterator

from websockets.frames import apply_mask  # pyright: ignore[reportPrivateImportUsage]  # In C where it can be.

_FINAL = 0x80
_TEXT = _FINAL | 0x1
_KIND, _CONTROL = 0x0F, 0x8
"""Of the first byte of a frame: it ends its message; so does a text; the bits of its kind; the lowest kind that is not
data."""

_MASKED, _SIZE, _TWO_BYTES = 0x80, 0x7F, 126
"""Of the second byte: it is masked; the bits of its size; a size which says that the size is in the next two bytes. The
only larger one says that it is in the next eight."""

_MASK = 4
"""Bytes of the mask, directly before the data."""

_MAX_OTHERS = 2048
"""Frames that the library gets in one portion. It reads all of them in one step of the event loop, which takes some
milliseconds. A portion can hold 40,000 pings: those took 146."""


class TooManyFrames(Exception):
    """Too many control frames or fragments came at once."""

    def __init__(self) -> None:
        super().__init__(f"more than {_MAX_OTHERS} control frames or fragments at once")


class ShortMessages:
    """Divides the bytes that one client sends, from the beginning of a frame on."""

    __slots__ = ("_begun", "_in_fragments", "_left", "_longest", "_passed_on")

    def __init__(self, longest: int) -> None:
        """`longest`: bytes of a message that may be taken."""
        self._longest = longest
        self._begun = b""
        """The beginning of a frame: of a short message, or less than the head of another frame."""
        self._passed_on = 0
        """Bytes of it that the library has."""
        self._left = 0
        """Bytes that are still to come of a frame that the library reads."""
        self._in_fragments = False
        """Whether the library has the beginning of a message, but not its last frame."""

    @property
    def held_back(self) -> bytes:
        """What arrived and was given to nobody yet."""
        return self._begun[self._passed_on :]

    def split(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Divide what arrived: some short messages, then bytes for the library, then messages again … Raises
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
                    yield messages, data[others:at]  # The library may find that one of them is wrong.
                    raise TooManyFrames
                if first & _KIND < _CONTROL:
                    self._in_fragments = first < _FINAL
            at = stop
        self._begun = data[at:]
        self._passed_on = 0 if is_short else len(self._begun)
        self._left = max(0, at - end)
        yield messages, data[others : at + self._passed_on]


def _place(data: bytes, at: int, second: int) -> tuple[int, int]:
    """Where the data of a frame begins and ends. It begins after all that arrived when its head is not there as a
    whole."""
    start = at + 2
    size = second & _SIZE
    if size >= _TWO_BYTES:
        start += 2 if size == _TWO_BYTES else 8
        size = int.from_bytes(data[at + 2 : start], "big")
    if second & _MASKED:
        start += _MASK
    return start, start + size


__all__ = ["ShortMessages", "TooManyFrames"]
