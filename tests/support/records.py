"""Records of a log for tests: an entry or a snapshot with everything that does not matter filled in."""

from __future__ import annotations

from ahpkit.log.entry import ChannelSnapshot, Entry


def entry(
    seq: int, channel: str = "a", *, payload: bytes = b"{}", client: tuple[str, int] | None = None, at: int = 0
) -> Entry:
    client_id, client_seq = client or (None, None)
    return Entry(seq, channel, payload, client_id, client_seq, at)


def entries(first: int, last: int, channel: str = "a") -> list[Entry]:
    """The entries `first` to `last`, both included."""
    return [entry(seq, channel) for seq in range(first, last + 1)]


def opening(channel: str = "a", seq: int = 0, state: bytes = b"{}") -> ChannelSnapshot:
    return ChannelSnapshot(channel, seq, state)


def seqs(found: list[Entry]) -> list[int]:
    return [each.seq for each in found]


__all__ = ["entries", "entry", "opening", "seqs"]
