"""Looks for damage in the write-ahead log of SQLite, which a crash left behind.

SQLite treats the first commit that it cannot read as the end, and silently drops what follows. That is right for
a commit that was being written. It is wrong when bytes changed on the disk: later commits were reported as safe.

A log is a header and frames. A frame holds one page; the last frame of a commit says how many pages the database has.
Frames of this log carry the two numbers ("salts") of its header: others are left over from an earlier log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_BYTE_ORDERS = {0x377F0682: "<", 0x377F0683: ">"}
"""The byte order of the checksum, by the first number of the file."""
_WRAP = 0xFFFFFFFF

_Sum = tuple[int, int]


class _Frame(NamedTuple):
    salts: tuple[int, int]
    ends_commit: bool
    expected: _Sum
    summed: bytes
    """The bytes that its checksum covers."""


def damage(wal: Path) -> str | None:
    """Why commits of this file are lost; None when it is whole, or when only its end was still being written."""
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return None
    with file:
        head = file.read(_HEADER.size)
        if not head.strip(b"\0"):  # All zeros is a log whose first commit never reached the disk.
            return None
        if len(head) < _HEADER.size:
            return f"the write-ahead log {wal.name} was cut off, the newest entries may be lost"
        magic, _version, page_size, _number, *salts, sum1, sum2 = _HEADER.unpack(head)
        order = _BYTE_ORDERS.get(magic, "<")
        running = _add((0, 0), head[:24], order)
        if magic not in _BYTE_ORDERS or running != (sum1, sum2):
            return f"the write-ahead log {wal.name} is damaged, the newest entries may be lost"
        lost = _lost_commits(file, page_size, (salts[0], salts[1]), running, order)
        if not lost:
            return None
        return f"the write-ahead log {wal.name} is damaged, {lost} of the newest commits may be lost"


def _lost_commits(file: BinaryIO, page_size: int, salts: tuple[int, int], running: _Sum, order: str) -> int:
    """Commits of this log after the first damaged frame."""
    lost, broken = 0, False
    for frame in _frames(file, page_size):
        if not broken and frame.salts == salts:
            running = _add(running, frame.summed, order)
            broken = running != frame.expected
        else:
            broken = True
        lost += broken and frame.ends_commit and frame.salts == salts
    return lost


def _frames(file: BinaryIO, page_size: int) -> Iterator[_Frame]:
    while len(data := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
        _page, pages, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(data)
        yield _Frame((salt1, salt2), pages > 0, (sum1, sum2), data[:8] + data[_FRAME.size :])


def _add(running: _Sum, data: bytes, order: str) -> _Sum:
    """SQLite's checksum of these bytes, continued from an earlier one."""
    first, second = running
    numbers = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for one, two in zip(numbers, numbers, strict=True):
        first = (first + one + second) & _WRAP
        second = (second + two + first) & _WRAP
    return first, second


__all__ = ["damage"]
