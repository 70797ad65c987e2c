"""A transport that lets through what a device's right allows, and refuses the rest.

    watch        see everything, change nothing
    answer       also approve, deny, and answer questions; not with an input of one's own
    everything   what the token may

The host never sees what is refused. The client is told, so that it takes back its optimistic change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import PermissionDenied, RpcError
from ahpkit.web.devices import Right
from ahpkit.wire.codec import Notification, Request, decode, encode_error, encode_notification
from ahpkit.wire.transport import NORMAL_CLOSURE, PeerInfo, Transport

WATCHING = frozenset(
    {
        "initialize",
        "reconnect",
        "ping",
        "subscribe",
        "unsubscribe",
        "listSessions",
        "fetchTurns",
        "resourceRead",
        "resourceList",
        "resourceResolve",
    }
)
"""Methods that only look."""

ANSWERS = frozenset(
    {
        "chat/toolCallConfirmed",
        "chat/toolCallResultConfirmed",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
        "chat/isReadChanged",
        "session/isReadChanged",
    }
)
"""Actions that answer what was asked."""


_TELEMETRY = "ahp-otlp:"
"""Channels that tell of everybody's work."""


def _channels(params: JsonObject) -> list[str]:
    """The channels that a request names."""
    lists = [params.get(key) for key in ("initialSubscriptions", "subscriptions")]
    named = [params.get("channel"), *(uri for one in lists if isinstance(one, list) for uri in cast("list[Any]", one))]
    return [uri for uri in named if isinstance(uri, str)]


def refusal(right: Right, method: str, params: JsonObject) -> str | None:
    """Why a device with this right may not do this; None: it may."""
    if right == "everything":
        return None
    if any(uri.startswith(_TELEMETRY) for uri in _channels(params)):
        return f"this device may {right} only; telemetry of the host needs the right to everything"
    if method in WATCHING:
        return None
    if method != "dispatchAction":
        return f"this device may {right} only; {method} needs the right to everything"
    action = cast("JsonObject", params["action"]) if isinstance(params.get("action"), dict) else {}
    kind: Any = action.get("type")
    if right == "answer" and kind in ANSWERS:
        edited = "editedToolInput" in action
        return "this device may answer, but not with an input of its own" if edited else None
    return f"this device may {right} only; {kind} needs the right to everything"


class RightsTransport:
    """A transport whose incoming messages pass the device's right. `right_of` is asked each time: it may change."""

    def __init__(self, inner: Transport, right_of: Callable[[], Right]) -> None:
        self._inner = inner
        self._right_of = right_of
        self._client_id = ""
        self._in_pieces = False
        self._refusals: list[bytes] = []

    @property
    def peer(self) -> PeerInfo:
        return self._inner.peer

    @property
    def framing(self) -> str:
        return self._inner.framing

    @property
    def buffered(self) -> int:
        return self._inner.buffered

    @property
    def is_over(self) -> bool:
        return self._inner.is_over

    async def receive(self) -> bytes:
        while True:
            message = await self._inner.receive()
            answer = self._judge(message)
            if answer is None:
                return message
            self._refuse(self.frame(answer))

    def _refuse(self, frame: bytes) -> None:
        """Say it now, or after the message that is being sent in pieces."""
        if self._in_pieces:
            self._refusals.append(frame)
        else:
            self.write(frame)

    def frame(self, message: bytes) -> bytes:
        return self._inner.frame(message)

    def part(self, piece: bytes, *, first: bool, last: bool) -> bytes:
        self._in_pieces = not last
        written = self._inner.part(piece, first=first, last=last)
        if last and self._refusals:
            written = b"".join([written, *self._refusals])
            self._refusals.clear()
        return written

    def write(self, frames: bytes) -> None:
        self._inner.write(frames)

    async def drain(self) -> None:
        await self._inner.drain()

    async def aclose(self, *, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        await self._inner.aclose(code=code, reason=reason)

    def abort(self) -> None:
        self._inner.abort()

    def _judge(self, message: bytes) -> bytes | None:
        """What to tell the device instead of passing its message on; None: pass it on."""
        try:
            call = decode(message)
        except RpcError:
            return None  # The host says what is wrong with it.
        if not isinstance(call, Request | Notification):
            return None
        if call.method in ("initialize", "reconnect"):
            self._client_id = str(call.params.get("clientId", ""))
        reason = refusal(self._right_of(), call.method, call.params)
        if reason is None:
            return None
        return (
            encode_error(call.id, PermissionDenied(reason))
            if isinstance(call, Request)
            else self._rejected(call, reason)
        )

    def _rejected(self, call: Notification, reason: str) -> bytes:
        params = call.params
        origin = {"clientId": self._client_id, "clientSeq": params.get("clientSeq", 0)}
        envelope: JsonObject = {
            "channel": params.get("channel", ""),
            "action": params.get("action", {}),
            "serverSeq": 0,
            "origin": origin,
            "rejectionReason": reason,
        }
        return encode_notification("action", envelope)


__all__ = ["ANSWERS", "WATCHING", "RightsTransport", "refusal"]
