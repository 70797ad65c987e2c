"""The transport interface: receives whole messages, sends framed bytes, names the peer.

Implementations are in `ahpkit.transports`. Host, client, ACP agents and extensions use only this interface.

Writing is split in two so that a fan-out frames a message once and writes the same bytes to many:
`write(b"".join(frame(m) for m in batch))`. Frames may be joined; they fit every transport with the same `framing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

NORMAL_CLOSURE = 1000
"""The close code of an orderly end. Codes are those of RFC 6455, 7.4.1, on every transport."""

ABNORMAL_CLOSURE = 1006
"""The connection ended without a close message: reset, killed, aborted."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """Who is at the other end."""

    kind: str
    """"websocket", "unix", "stdio" or "memory"."""
    address: str
    """The address of the peer, in words for logs and error texts."""
    credential: str | None = None
    """A stable fingerprint of the secret it presented, never the secret; None when it presented none."""


class Transport(Protocol):
    """A message connection. One task receives; anyone on the event loop may write."""

    @property
    def peer(self) -> PeerInfo:
        """Who is at the other end."""
        ...

    @property
    def framing(self) -> str:
        """Names the byte format of `frame`: frames are shared only between transports that agree on it."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes that were written and that the peer (or the kernel for it) has not taken yet."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether nothing that is written now can arrive: the connection is closed or being closed."""
        ...

    async def receive(self) -> bytes:
        """The next whole message. Cancelling it loses nothing.

        Raises `TransportClosed` with the code and the reason: after the last message when the peer has closed, at once
        when this side has.
        """
        ...

    def frame(self, message: bytes) -> bytes:
        """One message as bytes for `write`, of this and of every transport with the same `framing`."""
        ...

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        """One piece of a message that is sent in several, for `write`. Until the last, no frame may come between."""
        ...

    def write(self, frames: bytes) -> None:
        """Send one frame or several joined ones: in order, without waiting. After a close it does nothing."""
        ...

    async def drain(self) -> None:
        """Wait until `buffered` is small again or the connection is over. Never raises because of a close."""
        ...

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        """Send what is buffered, tell the peer why, and close; waits a bounded time. A second call does nothing."""
        ...

    def abort(self) -> None:
        """Drop the connection and everything buffered, now."""
        ...


__all__ = ["ABNORMAL_CLOSURE", "NORMAL_CLOSURE", "PeerInfo", "Transport"]
