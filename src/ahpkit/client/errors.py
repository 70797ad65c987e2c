"""The exceptions of the client. Their root is `ahpkit.protocol.errors.AhpError`.

AhpError
└── ClientError
    ├── HostNotFound             no URL was given and no running host was found
    ├── ConnectionLost           the connection is gone and will not come back
    ├── ClientClosed             the client was closed before the answer came
    ├── ActionRejected           the host refused an action: channel, action, reason
    ├── LaggedError              a consumer missed actions: channel, last_seq, next_seq
    ├── ChannelGone              the channel does not exist (any more): channel
    ├── SessionFailed            a session could not be created: session, error
    ├── TurnError                a turn failed or was cancelled: error_type, message
    │   ├── TurnWaiting          a turn waits for a decision that no callback makes: waiting
    │   └── TurnTimeout          a turn took longer than its timeout and was cancelled
    ├── UnknownSetting           a session has no such setting: names, known
    └── ExtensionNotSupported    the host did not announce the extension: method, announced
"""

from __future__ import annotations

from collections.abc import Collection

from ahpkit.client.events import AuthenticationNeeded, ConfirmationNeeded, InputNeeded
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""The exceptions that are raised while reading a message that does not have the shape of the protocol."""


class ClientError(AhpError):
    """Base of the client's own errors."""


class HostNotFound(ClientError):
    """No URL was given and no running host was found, or none of that name."""

    def __init__(self, name: str | None = None) -> None:
        if name:
            text = f"no host named {name!r} is running: `ahpkit status` lists those that are, `ahpkit up` starts one"
        else:
            text = "no running host found: start one with `ahpkit up`, or pass its URL"
        super().__init__(text)


class ConnectionLost(ClientError, ConnectionError):
    """The connection is gone and will not come back; the text says why."""


class ClientClosed(ClientError):
    """The client was closed before the host answered. Whether the host took the action is not known."""


class ActionRejected(ClientError):
    """The host refused an action. Its effect was undone."""

    def __init__(self, channel: str, action: JsonObject, reason: str) -> None:
        super().__init__(f"{action.get('type')} was rejected: {reason}")
        self.channel = channel
        self.action = action
        self.reason = reason


class LaggedError(ClientError):
    """A consumer missed actions, because it was too slow or the host could only send a snapshot after a reconnect.

    Other consumers are not affected. The state is up to date: read it and go on iterating.
    """

    def __init__(self, channel: str, last_seq: int, next_seq: int) -> None:
        super().__init__(
            f"{channel}: actions after {last_seq} up to {next_seq} were not delivered; read the state again"
        )
        self.channel = channel
        self.last_seq = last_seq
        self.next_seq = next_seq


class ChannelGone(ClientError):
    """The channel does not exist, or no longer."""

    def __init__(self, channel: str, reason: str = "it does not exist (any more)") -> None:
        super().__init__(reason if channel in reason else f"{channel}: {reason}")
        self.channel = channel


class SessionFailed(ClientError):
    """The host could not create the session."""

    def __init__(self, session: str, error: JsonObject) -> None:
        super().__init__(f"{session}: {error.get('message', 'creation failed')}")
        self.session = session
        self.error = error


class TurnError(ClientError):
    """A turn ended without an answer. If it is `resumable`, `chat.resume()` continues it."""

    def __init__(self, message: str, *, error_type: str, resumable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.error_type = error_type
        self.resumable = resumable


class TurnWaiting(TurnError):
    """A turn waits for an approval, an answer or a login that this client does not give. The turn is not cancelled."""

    def __init__(self, waiting: ConfirmationNeeded | InputNeeded | AuthenticationNeeded, what: str) -> None:
        match waiting:
            case InputNeeded():
                remedy = "Pass on_input=… to answer, or decide elsewhere: ahpkit inbox"
            case AuthenticationNeeded():
                remedy = 'Log in with session.mcp_server(error.waiting.server_id).log_in(), or pass on_approval="wait"'
            case _:
                remedy = 'Pass on_approval="allow", "deny" or a function to decide, or decide elsewhere: ahpkit inbox'
        super().__init__(f"the turn waits for somebody: {what.rstrip('.')}. {remedy}", error_type="waiting")
        self.waiting = waiting


class TurnTimeout(TurnError, TimeoutError):
    """A turn took longer than its timeout, and was cancelled."""

    def __init__(self, seconds: float, waiting: str | None = None) -> None:
        last = f"; it waited for {waiting}" if waiting else ""
        super().__init__(f"no answer within {seconds:g} s, so the turn was cancelled{last}", error_type="timeout")
        self.seconds = seconds


class UnknownSetting(ClientError):
    """The session has no setting of this name, so nothing was sent: the host would ignore it silently."""

    def __init__(self, names: Collection[str], known: Collection[str]) -> None:
        listed = ", ".join(sorted(known)) or "none"
        super().__init__(f"there is no setting {', '.join(map(repr, sorted(names)))}; known: {listed}")
        self.names = tuple(sorted(names))
        self.known = tuple(sorted(known))


class ExtensionNotSupported(ClientError):
    """The host did not announce the extension that this method belongs to, so nothing was sent."""

    def __init__(self, method: str, announced: Collection[str]) -> None:
        names = ", ".join(sorted(announced)) or "none"
        super().__init__(f"{method}: the host did not announce this extension (announced: {names})")
        self.method = method
        self.announced = tuple(sorted(announced))


__all__ = [
    "UNREADABLE",
    "ActionRejected",
    "ChannelGone",
    "ClientClosed",
    "ClientError",
    "ConnectionLost",
    "ExtensionNotSupported",
    "HostNotFound",
    "LaggedError",
    "SessionFailed",
    "TurnError",
    "TurnTimeout",
    "TurnWaiting",
    "UnknownSetting",
]
