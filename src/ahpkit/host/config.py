"""The settings of a host, with their defaults and the reason for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ahpkit.dialects import SPOKEN, Generation
from ahpkit.host.limits import BYTE_BURST, BYTES_PER_SECOND, MAX_CHATS, MAX_SESSIONS, MESSAGE_BURST, MESSAGES_PER_SECOND
from ahpkit.tools.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Settings of one host."""

    default_directory: Path = field(default_factory=Path.home)
    """Working directory of sessions that name none."""
    default_provider: str | None = None
    """Agent of sessions that name none; without it, the first one registered."""
    client_grace: float = 30.0
    """Seconds for which a client that lost its connection keeps its place in sessions. After that its tools are removed
    and its calls fail."""
    max_message_bytes: int = 16 * 1024 * 1024
    """Largest message a client may send: a pasted file or an image fits."""
    max_client_backlog: int = 3 * 1024 * 1024
    """Bytes that a client may leave unread before it is disconnected. Together with buffers in the system, such a
    client costs less than 8 MiB."""
    message_rate: float = MESSAGES_PER_SECOND
    """Messages a second that one connection may send all the time; see `ahpkit.host.limits`."""
    message_burst: float = MESSAGE_BURST
    byte_rate: float = BYTES_PER_SECOND
    """Bytes a second that one connection may send all the time. A connection that sends more is read more slowly."""
    byte_burst: float = BYTE_BURST
    max_replay_bytes: int = 32 * 1024 * 1024
    """Bytes of actions in one replay. If there are more, the client gets snapshots instead, because some clients refuse
    such a large message and would reconnect for ever."""
    reader_patience: float = 0.005
    """Seconds to wait for a reader that is far behind. Producers wait as long as the reader makes progress. After this
    time without progress they continue."""
    extension_patience: float = 60.0
    """Seconds for a client to answer an agent: enough for a person to react, and short enough that the agent does not
    hang."""
    max_log_backlog: int = 20_000
    """Actions that may wait for the disk before connections are read more slowly."""
    rest_after: float = 60.0
    """Seconds after which an unused session goes to rest. While it rests, only its text is in memory."""
    max_idle: int = 50
    """Above this number of live sessions, unused ones go to rest at once, the longest unused first."""
    max_sessions: int = MAX_SESSIONS
    """Sessions of this host."""
    max_chats: int = MAX_CHATS
    """Chats of one session."""
    rules: Sequence[Rule] = ()
    """Approval rules from the configuration, besides those that people make."""
    spoken: Sequence[Generation] = SPOKEN
    """The generations of the protocol that clients may speak."""


__all__ = ["HostConfig"]
