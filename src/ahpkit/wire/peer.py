"""A JSON-RPC 2.0 peer without I/O: ids, pending requests in both directions, limits.

    Peer.request / notify / respond / fail    our messages, as bytes to send
    Peer.receive(bytes) -> Event              one message of the other side

`receive` never raises: a message that breaks the rules becomes `Rejected`, with a reply to send if one is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ahpkit.wire.codec import (
    ErrorResponse,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)
from ahpkit.wire.errors import (
    RPC_ERRORS,
    AhpError,
    ErrorClasses,
    InternalError,
    InvalidAnswer,
    InvalidNotification,
    InvalidRequest,
    LocalProtocolError,
    RemoteProtocolError,
    RequestId,
    RpcError,
)

MAX_PENDING = 1024
"""Requests in flight in each direction: far above any honest use, and low enough to stop a runaway loop early."""

MAX_BYTES = 256 * 1024 * 1024
"""Bytes of one message. Most transports have a lower limit; this one is for transports without a limit."""

TOO_MANY_REQUESTS = -32099
"""The error code for a request over `max_pending`. It is in the range that JSON-RPC leaves to implementations, and AHP
and ACP do not use it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one of our requests: a result, or with `error` an error."""

    id: int
    result: Any = None
    error: RpcError | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The other side broke the rules. Send `reply` if there is one, log `error`, and continue."""

    reply: bytes | None
    error: AhpError


Event = Request | Notification | Answered | Rejected
"""A request is answered with `respond` or `fail`."""


class Peer:
    """One side of one connection. `errors` are the classes of its protocol's error codes."""

    __slots__ = (
        "_asked",
        "_asking",
        "_errors",
        "_given_up",
        "_last_id",
        "_max_bytes",
        "_max_escapes",
        "_max_pending",
        "_max_values",
    )

    def __init__(
        self,
        *,
        max_pending: int = MAX_PENDING,
        max_bytes: int = MAX_BYTES,
        max_values: int | None = None,
        max_escapes: int | None = None,
        errors: ErrorClasses = RPC_ERRORS,
    ) -> None:
        self._max_pending = max_pending
        self._max_bytes = max_bytes
        self._max_values = max_values
        self._max_escapes = max_escapes
        self._errors = errors
        self._last_id = 0
        self._asked: set[int] = set()
        self._asking: set[RequestId] = set()
        self._given_up = deque[int](maxlen=max_pending)
        """The latest requests whose answers are no longer wanted, but may still come."""

    # Our messages.

    def request(self, method: str, params: Mapping[str, Any]) -> tuple[int, bytes]:
        """A request of ours: its id, and the bytes to send. Raises `LocalProtocolError` if too many requests wait."""
        if len(self._asked) >= self._max_pending:
            raise LocalProtocolError(f"{method}: {self._max_pending} requests are waiting for an answer already")
        data = encode_request(self._last_id + 1, method, params)
        self._last_id += 1
        self._asked.add(self._last_id)
        return self._last_id, data

    def notify(self, method: str, params: Mapping[str, Any]) -> bytes:
        """A notification, as bytes to send."""
        return encode_notification(method, params)

    def respond(self, id: RequestId, result: Any) -> bytes:
        """The answer to an incoming request. Answering a request twice raises `LocalProtocolError`."""
        self._check_asking(id)
        data = encode_response(id, result)
        self._asking.discard(id)
        return data

    def respond_in_pieces(self, id: RequestId) -> bytes:
        """The beginning of the answer to a request. Its result follows as JSON, then a closing brace."""
        self._check_asking(id)
        self._asking.discard(id)
        return b'{"jsonrpc":"2.0","id":%b,"result":' % encode(id)

    def fail(self, id: RequestId, exc: BaseException) -> bytes:
        """The refusal of an incoming request: an `RpcError` as it is, any other exception without its text."""
        self._check_asking(id)
        self._asking.discard(id)
        try:
            return encode_error(id, exc)
        except LocalProtocolError:  # Its `data` is not JSON, but the request still needs an answer.
            return encode_error(id, InternalError())

    def forget(self, id: int) -> None:
        """Forget a request. Its answer is no longer wanted, and is dropped when it comes."""
        if id in self._asked:
            self._asked.discard(id)
            self._given_up.append(id)

    def close(self) -> list[int]:
        """Note that the connection is over; returns the ids of our requests without an answer, the oldest first."""
        unanswered = sorted(self._asked)
        self._asked.clear()
        return unanswered

    # Messages of the other side.

    def receive(self, data: bytes) -> Event:
        """Read and handle one message of the other side. Never raises."""
        return self.take(self.read(data))

    def read(self, data: bytes) -> Message | RpcError:
        """The message in `data`, or the error in it. This changes nothing, so a thread may read a long message."""
        try:
            return decode(
                data,
                max_bytes=self._max_bytes,
                max_values=self._max_values,
                max_escapes=self._max_escapes,
                errors=self._errors,
            )
        except RpcError as error:
            return error

    def take(self, message: Message | RpcError) -> Event:
        """Handle a message that was read."""
        match message:
            case Notification():
                return message
            case InvalidAnswer():
                return self._on_invalid_answer(message)
            case InvalidNotification():
                return Rejected(None, message)
            case RpcError():
                return Rejected(encode_error(message.request_id, message), message)
            case Request():
                return self._on_request(message)
            case Response() | ErrorResponse():
                return self._on_response(message)

    def _on_request(self, request: Request) -> Request | Rejected:
        error = self._refusal(request)
        if error is not None:
            return Rejected(encode_error(request.id, error), error)
        self._asking.add(request.id)
        return request

    def _refusal(self, request: Request) -> RpcError | None:
        if request.id in self._asking:
            return InvalidRequest(f"id {request.id!r} is in use by a request that is not answered yet")
        if len(self._asking) >= self._max_pending:
            return RpcError(TOO_MANY_REQUESTS, f"{self._max_pending} requests are being served: wait for an answer")
        return None

    def _on_response(self, response: Response | ErrorResponse) -> Answered | Rejected:
        id = response.id
        if isinstance(id, int) and id in self._given_up:
            self._given_up.remove(id)
        elif not isinstance(id, int) or id not in self._asked:
            return Rejected(None, RemoteProtocolError(f"answer to unknown request {id!r}"))
        self._asked.discard(id)
        if isinstance(response, ErrorResponse):
            return Answered(id, error=response.error)
        return Answered(id, response.result)

    def _on_invalid_answer(self, error: InvalidAnswer) -> Answered | Rejected:
        """Fail the request at once, because its answer cannot be read."""
        if not isinstance(error.answers, int) or error.answers not in self._asked:
            return Rejected(encode_error(None, error), error)
        self._asked.discard(error.answers)
        return Answered(error.answers, error=InternalError(f"the answer cannot be read: {error.message}"))

    def _check_asking(self, id: RequestId) -> None:
        if id not in self._asking:
            raise LocalProtocolError(f"request {id!r} is unknown or answered already")


__all__ = [
    "MAX_BYTES",
    "MAX_PENDING",
    "TOO_MANY_REQUESTS",
    "Answered",
    "Event",
    "Peer",
    "Rejected",
]
