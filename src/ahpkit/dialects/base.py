"""The interface of a dialect, which translates between the canonical protocol and one generation of clients.

The host works with one protocol. Each connection has one dialect, chosen in the handshake. It translates every frame of
the client before policy checks it, and every frame to the client. All methods are pure: they take data and return data,
and never change their arguments.

Connections whose dialects have the same `stream` share the bytes of an action, which are made once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NewType, Protocol

from ahpkit.dialects.generations import Routes
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import RpcError
from ahpkit.protocol.validation import check_action

SentAction = NewType("SentAction", JsonObject)
"""An action as a client sent it, in its own protocol version. A refusal sends it back unchanged."""


class MustReconnect(Exception):
    """The client's version cannot express an action. The connection ends; the client reconnects and gets snapshots."""


class ClientFacts(NamedTuple):
    """What translating a client's frame may need besides the frame itself."""

    client_id: str
    """The sender; empty before the handshake."""
    now: Callable[[], int]
    """The host's clock, in milliseconds since the epoch."""
    state_of: Callable[[str], JsonObject | None]
    """The newest canonical state of a channel, by URI."""


class OutgoingAction:
    """The forms of one action that is being sent: its envelope as data, without the number, and the bytes made from it.

    `routes` caches the stream of each generation, with and without the canvas actions of ahpkit.
    """

    __slots__ = ("envelope", "made", "routes")

    def __init__(self, envelope: JsonObject) -> None:
        self.envelope = envelope
        self.made: dict[object, bytes] = {}
        self.routes: dict[bool, Routes] = {}


class Dialect(Protocol):
    """Translates for one connection between 1.0.0 and the client's version."""

    @property
    def version(self) -> str:
        """The agreed version, exactly as the client offered it."""
        ...

    @property
    def stream(self) -> str:
        """Names the byte stream of actions; equal names mean equal bytes."""
        ...

    @property
    def tolerates_settings(self) -> bool:
        """Whether unknown settings are left out silently. For clients of 0.4 they are an error."""
        ...

    @property
    def takes_windows(self) -> bool:
        """Whether a snapshot of a chat may contain only its newest turns, with older ones sent as
        `chat/turnsLoaded`."""
        ...

    # From the client.

    def read(self, method: str, params: JsonObject, facts: ClientFacts) -> tuple[str, JsonObject]:
        """Check a request or notification against the client's version and translate it to canonical form.

        Raises an `RpcError` that names the client's own fields. The action in `dispatchAction` is not translated here
        but by `read_action`, because a refusal sends the original back.
        """
        ...

    def read_action(self, channel: str, action: JsonObject, facts: ClientFacts) -> JsonObject:
        """The canonical form of an action that the client dispatched; raises `InvalidParams` when it is malformed."""
        ...

    def read_answer(self, method: str, result: Any) -> Any:
        """The client's answer to a request of the host."""
        ...

    def is_repeat(self, sent: JsonObject, logged: JsonObject) -> bool:
        """Whether an action as the client sent it is the same as an action that was logged in canonical form."""
        ...

    # To the client.

    def is_same(self, action_type: str) -> bool:
        """Whether actions of this type are sent exactly as they are logged. Called for each delivered action.

        An empty type asks about all actions.
        """
        ...

    def form(self, action_type: str) -> str | None:
        """The name of the form in which this client gets all actions of this type. Equal names mean equal bytes.

        None: the form depends on the content of the action.
        """
        ...

    def action(self, action_type: str, envelope: bytes, outgoing: OutgoingAction | None = None) -> bytes | None:
        """The envelope of an action as this client gets it, or None when it gets none. Raises `MustReconnect`.

        `outgoing` caches decoded data and made bytes for all connections.
        """
        ...

    def rejection(self, envelope: JsonObject) -> JsonObject:
        """An envelope that only this client gets: its own action, as it sent it, with the reason for the refusal."""
        ...

    def state(self, channel: str, state: JsonObject) -> JsonObject:
        """The state of a channel for a snapshot."""
        ...

    def result(self, method: str, params: Mapping[str, Any], result: Any) -> Any:
        """The answer to a request; snapshots and replayed actions in it are translated already."""
        ...

    def error(self, method: str, error: RpcError) -> RpcError:
        """The error that refuses a request."""
        ...

    def notification(self, method: str, params: JsonObject) -> tuple[str, JsonObject] | None:
        """A notification (not `action`), or None when this generation does not know it."""
        ...

    def request(self, method: str, params: JsonObject) -> tuple[str, JsonObject]:
        """A request of the host to the client."""
        ...


class Identity:
    """The dialect of clients that speak the canonical protocol: it changes nothing."""

    tolerates_settings = True
    takes_windows = True

    def __init__(self, version: str, stream: str = "canonical") -> None:
        self.version = version
        self.stream = stream

    def read(self, method: str, params: JsonObject, facts: ClientFacts) -> tuple[str, JsonObject]:
        return method, params

    def read_action(self, channel: str, action: JsonObject, facts: ClientFacts) -> JsonObject:
        check_action(action)
        return action

    def read_answer(self, method: str, result: Any) -> Any:
        return result

    def is_repeat(self, sent: JsonObject, logged: JsonObject) -> bool:
        return sent == logged

    def is_same(self, action_type: str) -> bool:
        return True

    def form(self, action_type: str) -> str | None:
        return self.stream

    def action(self, action_type: str, envelope: bytes, outgoing: OutgoingAction | None = None) -> bytes | None:
        return envelope

    def rejection(self, envelope: JsonObject) -> JsonObject:
        return envelope

    def state(self, channel: str, state: JsonObject) -> JsonObject:
        return state

    def result(self, method: str, params: Mapping[str, Any], result: Any) -> Any:
        return result

    def error(self, method: str, error: RpcError) -> RpcError:
        return error

    def notification(self, method: str, params: JsonObject) -> tuple[str, JsonObject] | None:
        return method, params

    def request(self, method: str, params: JsonObject) -> tuple[str, JsonObject]:
        return method, params


__all__ = ["ClientFacts", "Dialect", "Identity", "MustReconnect", "OutgoingAction", "SentAction"]
