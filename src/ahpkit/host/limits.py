"""Limits of what one connection may ask of the host, with the reason for each number. Pure: time is passed in.

Slow readers are limited by the byte budget of the fan-out, big messages by the transport.
"""

from __future__ import annotations

MESSAGES_PER_SECOND = 20_000
"""Sustained rate of one connection. People cause tens of messages a second, a busy tool hundreds; more than the whole
host is expected to handle is a runaway loop or an attack."""

MESSAGE_BURST = 40_000
"""Messages that may come at once: a client that was offline sends what it kept."""

BYTES_PER_SECOND = 16 * 1024 * 1024
"""Sustained rate of one connection: one of the largest messages every second."""

BYTE_BURST = 64 * 1024 * 1024
"""Bytes that may come at once: a few large files."""

SHARE_MESSAGES, SHARE_BYTES = 64, 256 * 1024
"""What is taken from one client before others are served: some milliseconds of work."""

MAX_VALUES = 50_000
"""JSON values in one message. Each costs time wherever the message goes; long texts are one value."""

MAX_PROGRAM_VALUES = 200_000
"""The same for a message of an agent or a canvas extension. Some send lists of thousands, which are cut where they are
shown."""

MAX_ESCAPES = 1_000_000
"""Backslashes in one message. Text in which every character is escaped takes ten times as long as other text, wherever
it is read or written; a source file of 10 MB has some hundred thousand."""

MAX_ACTION_BYTES = 8 * 1024 * 1024
"""Of a message that dispatches an action: an image fits. It is written to the log and sent to every subscriber, each
time as a whole."""

LONG_MESSAGE = 64 * 1024
"""Bytes of a message that a thread reads, so that the event loop goes on."""

MAX_SUBSCRIPTIONS = 4_096
"""Channels of one connection: every chat a person could have open, and every list a tool could follow. More is refused,
so that one connection cannot make each batch of the fan-out slow for all."""

MAX_PENDING_REQUESTS = 256
"""Requests of one connection that run at the same time. A client that asks faster than it can be answered is read more
slowly: nothing is refused, and it cannot fill our memory with half-done work."""

MAX_QUEUED_MESSAGES = 100
"""Messages waiting in one chat. Each becomes a turn that costs money; nobody wants a longer queue."""

MAX_REASON = 2_000
"""Characters of the reason for a refusal. Many reasons quote what was sent, however long."""

MAX_COMPLETIONS = 1_000
"""Items in one answer to `completions`. The best come first, and the answer says how many more there are."""

MAX_TYPED = 1_000_000
"""Characters of a message that is being typed, for which completions are asked with every key."""

MAX_WATCHES = 100
"""Watches of files that one client may have: an editor has a handful."""

MAX_WATCHES_OF_ALL = 1_000
"""Watches of files of all clients together."""

MAX_WATCHED_FOLDERS = 10_000
"""Folders below a place that is watched recursively. A system allows tens of thousands for all programs of a user
together.
"""

MAX_SESSIONS = 50_000
"""Sessions of one host: a hundred a day for more than a year. Each takes memory and a place in every list."""

MAX_CHATS = 1_000
"""Chats of one session, those of sub-agents not counted. The session's state lists them all."""

MAX_ID = 1_000
"""Characters of an id that a client chooses: of a turn, a queued message, an annotation. Many actions repeat it."""

MAX_ATTACHMENTS = 1_000
"""Attachments of one message: more than a person adds by hand. Each is looked at in every step of a turn."""

MAX_ATTACHED_CHATS = 20
"""Chats attached to one message. Each is written out for the agent."""

MAX_ANNOTATIONS = 5_000
"""Annotations of one session, and entries of one of them twice as many: each change looks through them."""

MAX_RULES = 1_000
"""Approval rules of a host."""

MAX_RULES_OF_A_TOOL = 100
"""Approval rules about one tool, or about a server as a whole. Each call is compared with all of them."""

MAX_IMPORTED_TURNS = 20_000
"""Turns of one imported chat: years of conversation."""

MAX_TOKEN = 64 * 1024
"""Bytes of a token for an agent. Agents get it in a variable, and the system starts no program with a longer one."""

MAX_TITLE = 1_000
"""Characters of a title. It is shown in one line, and sent with every list of sessions."""

MAX_DIRECTORIES = 32
"""Working directories of a session. Each is looked through for customizations and changes."""

MAX_TOOLS = 1_000
"""Tools that a client may offer in one session: more than any model can choose from."""

MAX_PLUGINS = 100
"""Plugins that a client may bring into one session. Each is read over its connection and shown to everybody."""

MAX_OFFERED_BYTES = 1024 * 1024
"""Of all that a client offers in one session, its tools above all. It is in the state, which every client gets."""


class FloodLimit:
    """A token bucket: each message takes one, `rate` come back every second, up to `burst`. Bytes are counted alike."""

    __slots__ = ("_at", "_tokens", "burst", "rate")  # Slots: every connection has two of these.

    def __init__(self, *, now: float, rate: float = MESSAGES_PER_SECOND, burst: float = MESSAGE_BURST) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._at = now

    def take(self, *, now: float) -> bool:
        """Count one message at `now` (seconds, monotonic); False when it is one too many."""
        return self.take_up_to(1, now=now) == 1

    def take_up_to(self, most: int, *, now: float) -> int:
        """Count as many messages as may come at `now`, `most` at most; returns how many."""
        self._refill(now)
        taken = min(most, int(self._tokens))
        self._tokens -= taken
        return taken

    def wait(self, amount: float, *, now: float) -> float:
        """Count `amount` at `now`; returns the seconds to wait before more are taken."""
        self._refill(now)
        self._tokens -= amount
        return 0.0 if self._tokens >= 0 else -self._tokens / self.rate

    def up_to(self, most: int) -> int:
        """How much may come without waiting, `most` at most."""
        return max(0, min(most, int(self._tokens)))

    def _refill(self, now: float) -> None:
        passed = now - self._at
        if passed > 0:
            tokens = self._tokens + passed * self.rate
            self._tokens = tokens if tokens < self.burst else self.burst
        self._at = now


class Inflow:
    """Counts what one connection sends.

    It is counted down from a share, so that the clock and the two rates are only looked at when the share is over.
    """

    __slots__ = ("_byte_rate", "_bytes", "_message_rate", "_messages", "_share_bytes")

    def __init__(self, message_rate: FloodLimit, byte_rate: FloodLimit) -> None:
        self._message_rate = message_rate
        self._byte_rate = byte_rate
        self._messages = self._bytes = 0
        """What is left of the share."""
        self._share_bytes = 0
        """Bytes that it had."""

    def count(self, size: int) -> bool:
        """Count a message; False when the share is over: `renew` it before the message is handled."""
        self._messages -= 1
        self._bytes -= size
        return self._messages >= 0 and self._bytes >= 0

    def renew(self, *, now: float) -> float | None:
        """Begin another share, with the message that was counted last; returns the seconds to wait before that, None
        when there were too many messages."""
        self._messages += self._message_rate.take_up_to(SHARE_MESSAGES - 1 - self._messages, now=now)
        delay = self._byte_rate.wait(self._share_bytes - self._bytes, now=now)
        self._share_bytes = self._bytes = self._byte_rate.up_to(SHARE_BYTES)
        return None if self._messages < 0 else delay


def check_subscriptions(count: int, *, limit: int = MAX_SUBSCRIPTIONS) -> str | None:
    """Why a connection may not have `count` subscriptions."""
    if count <= limit:
        return None
    return f"one connection may have {limit} subscriptions, not {count}; unsubscribe from some first"


__all__ = [
    "BYTES_PER_SECOND",
    "BYTE_BURST",
    "LONG_MESSAGE",
    "MAX_ACTION_BYTES",
    "MAX_ANNOTATIONS",
    "MAX_ATTACHED_CHATS",
    "MAX_ATTACHMENTS",
    "MAX_CHATS",
    "MAX_COMPLETIONS",
    "MAX_DIRECTORIES",
    "MAX_ESCAPES",
    "MAX_ID",
    "MAX_IMPORTED_TURNS",
    "MAX_OFFERED_BYTES",
    "MAX_PENDING_REQUESTS",
    "MAX_PLUGINS",
    "MAX_PROGRAM_VALUES",
    "MAX_QUEUED_MESSAGES",
    "MAX_REASON",
    "MAX_RULES",
    "MAX_RULES_OF_A_TOOL",
    "MAX_SESSIONS",
    "MAX_TITLE",
    "MAX_TOKEN",
    "MAX_TOOLS",
    "MAX_TYPED",
    "MAX_VALUES",
    "MAX_WATCHED_FOLDERS",
    "MAX_WATCHES",
    "MAX_WATCHES_OF_ALL",
    "MESSAGES_PER_SECOND",
    "MESSAGE_BURST",
    "SHARE_BYTES",
    "SHARE_MESSAGES",
    "FloodLimit",
    "Inflow",
    "check_subscriptions",
]
