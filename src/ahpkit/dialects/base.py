"""The interface of a dialect, which translates between the canonical protocol and one generation of clients.

The host works with one protocol. Each connection has one dialect, chosen in the handshake. Every frame of the client is
translated before policy sees it, and so is everything that is sent to the client. All methods are pure: they take data
and return data, and never change what they were given.

Connections whose dialects have the same `stream` get the same bytes of an action, so those are made once for all.
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


class Resync(Exception):
    """This stream cannot express an action. The connection ends; the client reconnects and gets snapshots."""


class Reading(NamedTuple):
    """What translating a client's frame may need besides the frame itself."""

    client_id: str
    """Who sent it; empty before the handshake."""
    now: Callable[[], int]
    """The host's clock, in milliseconds since the epoch."""
    state_of: Callable[[str], JsonObject | None]
    """The newest canonical state of a channel, by URI."""


class Forms:
    """An action that is being sent: its envelope as data, without the number, and the bytes made from it.

    `routes` is the stream of each generation, with and without our canvas actions, once somebody asked.
    """

    __slots__ = ("envelope", "made", "routes")

    def __init__(self, envelope: JsonObject) -> None:
        self.envelope = envelope
        self.made: dict[object, bytes] = {}
        self.routes: dict[bool, Routes] = {}


class Dialect(Protocol):
    """One generation, as one connection speaks it."""

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
        """Whether a chat may be shown in part, and the rest as `chat/turnsLoaded`."""
        ...

    # From the client.

    def read(self, method: str, params: JsonObject, reading: Reading) -> tuple[str, JsonObject]:
        """A request or notification in canonical form. Checks it against this generation's own shapes first.

        Raises an `RpcError` that names the client's own fields. For `dispatchAction` the action is read by
        `read_action`, because a refusal has to send the original back.
        """
        ...

    def read_action(self, channel: str, action: JsonObject, reading: Reading) -> JsonObject:
        """The canonical form of an action the client dispatched, well formed; raises `InvalidParams` when it has
        none."""
        ...

    def read_answer(self, method: str, result: Any) -> Any:
        """The client's answer to a request of the host."""
        ...

    def is_repeat(self, sent: JsonObject, logged: JsonObject) -> bool:
        """Whether an action, as the client sent it, is the one that was logged (in canonical form) under its number."""
        ...

    # To the client.

    def is_same(self, action_type: str) -> bool:
        """Whether actions of this type are sent as they are logged. Called for each delivered action.

        An empty type asks about all actions: then their bytes need not be looked at.
        """
        ...

    def form(self, action_type: str) -> str | None:
        """The name of the form that all actions of this type have for this client; equal names mean equal bytes.

        None: the form depends on what is in the action.
        """
        ...

    def action(self, action_type: str, envelope: bytes, forms: Forms | None = None) -> bytes | None:
        """The envelope of an action for this stream, or None when it is left out. Raises `Resync`.

        With `forms`, nothing has to be decoded or made twice.
        """
        ...

    def rejection(self, envelope: JsonObject) -> JsonObject:
        """An envelope that only this client gets: its own action, as it sent it, with the reason for the refusal."""
        ...

    def state(self, channel: str, state: JsonObject) -> JsonObject:
        """The state of a channel, as snapshots show it."""
        ...

    def result(self, method: str, params: Mapping[str, Any], result: Any) -> Any:
        """The answer to a request; snapshots and replayed actions in it are translated already."""
        ...

    def error(self, method: str, error: RpcError) -> RpcError:
        """The refusal of a request."""
        ...

    def notification(self, method: str, params: JsonObject) -> tuple[str, JsonObject] | None:
        """A notification (not `action`), or None when this generation does not know it."""
        ...

    def request(self, method: str, params: JsonObject) -> tuple[str, JsonObject]:
        """A request of the host to the client."""
        ...


class Identity:
    """The dialect of clients that speak the canonical protocol: everything passes as it is."""

    tolerates_settings = True
    takes_windows = True

    def __init__(self, version: str, stream: str = "canonical") -> None:
        self.version = version
        self.stream = stream

    def read(self, method: str, params: JsonObject, reading: Reading) -> tuple[str, JsonObject]:
        return method, params

    def read_action(self, channel: str, action: JsonObject, reading: Reading) -> JsonObject:
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

    def action(self, action_type: str, envelope: bytes, forms: Forms | None = None) -> bytes | None:
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


__all__ = ["Dialect", "Forms", "Identity", "Reading", "Resync", "SentAction"]
