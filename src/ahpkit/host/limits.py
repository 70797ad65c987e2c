"""Limits of what one connection may ask of the host, with the reason for each number. Pure: time is passed in.

Slow readers are limited by the byte budget of the fan-out, big messages by the transport.
"""

from __future__ import annotations

MESSAGES_PER_SECOND = 20_000
"""Sustained rate of one connection. People cause tens of messages a second, a busy tool hundreds; more than the whole
host is expected to handle is a runaway loop or an attack."""

MESSAGE_BURST = 40_000
"""Messages that may come at once: a client that was offline sends all the messages that it has kept."""

BYTES_PER_SECOND = 16 * 1024 * 1024
"""Sustained rate of one connection: one of the largest messages every second."""

BYTE_BURST = 64 * 1024 * 1024
"""Bytes that may come at once: a few large files."""

SHARE_MESSAGES, SHARE_BYTES, SHARE_SECONDS = 64, 256 * 1024, 0.005
"""The most messages, bytes and time that one client gets before others are served: some milliseconds of work."""

MAX_VALUES = 50_000
"""JSON values in one message. Each value costs time in every part that handles the message. A long text is one
value."""

MAX_PROGRAM_VALUES = 200_000
"""The same for a message of an agent or a canvas extension. Some of these programs send lists of thousands of entries.
Such a list is cut where it is shown."""

MAX_ESCAPES = 1_000_000
"""Backslashes in one message. It takes ten times as long to read or write a text in which every character is escaped. A
source file of 10 MB has some hundred thousand backslashes."""

MAX_ACTION_BYTES = 8 * 1024 * 1024
"""Bytes of a message that dispatches an action: an image fits. The whole action is written to the log and sent to every
subscriber."""

LONG_MESSAGE = 64 * 1024
"""Bytes. A longer message is read in a thread, so that it does not block the event loop."""

MAX_SUBSCRIPTIONS = 4_096
"""Subscriptions of one connection: enough for every chat that a person could have open, and every list that a tool
could follow. More are refused, because one connection could otherwise slow down every batch of the fan-out."""

MAX_PENDING_REQUESTS = 256
"""Requests of one connection that run at the same time. A client that sends more requests at a time is read more
slowly. No request is refused, and unfinished work cannot fill the memory."""

MAX_QUEUED_MESSAGES = 100
"""Messages waiting in one chat. Each becomes a turn that costs money; nobody wants a longer queue."""

MAX_REASON = 2_000
"""Characters of the reason for a refusal. Many reasons quote the client's text, which may be long."""

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
"""Sessions of one host: a hundred a day for more than a year. Each session takes memory and a place in every list."""

MAX_CHATS = 1_000
"""Chats of one session, those of sub-agents not counted. The session's state lists them all."""

MAX_ID = 1_000
"""Characters of an id that a client chooses: of a turn, a queued message, an annotation. Many actions repeat it."""

MAX_ATTACHMENTS = 1_000
"""Attachments of one message: more than a person adds by hand. Every step of a turn goes through all of them."""

MAX_ATTACHED_CHATS = 20
"""Chats attached to one message. Each is written out for the agent."""

MAX_ANNOTATIONS = 5_000
"""Annotations of one session. One annotation may have twice as many entries. Each change goes through all of them."""

MAX_RULES = 1_000
"""Approval rules of a host."""

MAX_RULES_OF_A_TOOL = 100
"""Approval rules about one tool, or about a server as a whole. Each call is compared with all of them."""

MAX_IMPORTED_TURNS = 20_000
"""Turns of one imported chat: years of conversation."""

MAX_TOKEN = 64 * 1024
"""Characters of a token. Agents get the token in an environment variable, and the operating system limits the length of
a variable."""

MAX_TITLE = 1_000
"""Characters of a title. It is shown in one line, and sent with every list of sessions."""

MAX_DIRECTORIES = 32
"""Working directories of a session. Each is looked through for customizations and changes."""

MAX_TOOLS = 1_000
"""Tools that a client may offer in one session: more than any model can choose from."""

MAX_PLUGINS = 100
"""Plugins that a client may bring into one session. The host reads each plugin over the client's connection and shows
it to everybody."""

MAX_OFFERED_BYTES = 1024 * 1024
"""Bytes of everything that a client offers in one session (mostly tools). All of it is in the session's state, which
every client gets."""


class FloodLimit:
    """A token bucket. Each message or byte takes one token; `rate` tokens come back every second, up to `burst`."""

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
        """Count as many messages as are allowed at `now`, but at most `most`; returns how many were counted."""
        self._refill(now)
        taken = min(most, int(self._tokens))
        self._tokens -= taken
        return taken

    def wait(self, amount: float, *, now: float) -> float:
        """Count `amount` at `now`; returns the seconds to wait before anything more is taken."""
        self._refill(now)
        self._tokens -= amount
        return 0.0 if self._tokens >= 0 else -self._tokens / self.rate

    def up_to(self, most: int) -> int:
        """How much is allowed now without waiting, but at most `most`."""
        return max(0, min(most, int(self._tokens)))

    def _refill(self, now: float) -> None:
        passed = now - self._at
        if passed > 0:
            tokens = self._tokens + passed * self.rate
            self._tokens = tokens if tokens < self.burst else self.burst
        self._at = now


class Inflow:
    """Counts what one connection sends.

    The connection gets a share of messages, bytes and time, and each message is subtracted from it. The two rates are
    checked only when the share is used up, because checking them for each message costs more. The time is what handling
    the messages takes: in a list of thousands one action takes thirty times as long as elsewhere.
    """

    __slots__ = ("_byte_rate", "_bytes", "_message_rate", "_messages", "_seconds", "_share_bytes")

    def __init__(self, message_rate: FloodLimit, byte_rate: FloodLimit) -> None:
        self._message_rate = message_rate
        self._byte_rate = byte_rate
        self._messages = self._bytes = 0
        """Messages and bytes that remain of the share."""
        self._share_bytes = 0
        """Bytes of the whole share."""
        self._seconds = SHARE_SECONDS
        """Time that remains of the share."""

    def count(self, size: int) -> bool:
        """Count a message; False when the share is used up: call `renew` before handling the message."""
        self._messages -= 1
        self._bytes -= size
        return self._messages >= 0 and self._bytes >= 0 and self._seconds > 0

    def took(self, seconds: float) -> None:
        """Count how long it took to handle a message."""
        self._seconds -= seconds

    def renew(self, *, now: float) -> float | None:
        """Begin another share; the message that was counted last belongs to it. Returns the seconds to wait before this
        message is handled, or None when the client has sent too many messages."""
        self._messages += self._message_rate.take_up_to(SHARE_MESSAGES - 1 - self._messages, now=now)
        delay = self._byte_rate.wait(self._share_bytes - self._bytes, now=now)
        self._share_bytes = self._bytes = self._byte_rate.up_to(SHARE_BYTES)
        self._seconds = SHARE_SECONDS
        return None if self._messages < 0 else delay


def is_sendable(token: str) -> bool:
    """Whether a token can be sent in a header of HTTP. The error about one that cannot be sent would quote it."""
    return token.isascii() and token.isprintable() and " " not in token


def check_subscriptions(count: int, *, limit: int = MAX_SUBSCRIPTIONS) -> str | None:
    """Why a connection may not have `count` subscriptions; None: it may."""
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
    "SHARE_SECONDS",
    "FloodLimit",
    "Inflow",
    "check_subscriptions",
    "is_sendable",
]
