"""The root of all exceptions of ahpkit, and the exceptions of JSON-RPC 2.0 with their wire form.

AhpError
├── RpcError                          an error a peer sends, or is sent: code, message, data
│   ├── CodedError                    an error whose class says its code
│   │   ├── ParseError                -32700
│   │   ├── InvalidRequest            -32600
│   │   │   ├── InvalidAnswer         an answer that cannot be read
│   │   │   └── InvalidNotification   the same of a notification
│   │   ├── MethodNotFound            -32601
│   │   ├── InvalidParams             -32602
│   │   ├── InternalError             -32603
│   │   └── …                         those of a protocol, for example `ahpkit.protocol.errors`
├── ProtocolError                     the rules were broken
│   ├── LocalProtocolError            by our own code
│   └── RemoteProtocolError           by the peer
└── TransportClosed                   the connection is gone: reason, code

A protocol has its own error codes, and two protocols may use the same code for different things. So each connection
gets the classes for its protocol's codes (`ErrorClasses`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

_MAX_MESSAGE = 4096
"""Characters of an error's text that are sent. Many texts quote what the peer itself sent, which may be long."""

RequestId = int | str
"""What identifies a request. We send numbers and accept both."""


class AhpError(Exception):
    """The base of all exceptions that ahpkit raises on purpose."""


class RpcError(AhpError):
    """An error of the wire. `message` and `data` are seen by the peer: no secrets, no internals."""

    request_id: RequestId | None = None
    """The id of the request that this error answers, if it could be read from an unusable message."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code}, {self.message!r})"

    def _field(self, name: str) -> Any:
        data: Any = self.data
        return cast("Mapping[str, Any]", data).get(name) if isinstance(data, Mapping) else None


class CodedError(RpcError):
    """An error whose code is fixed by its class."""

    CODE: ClassVar[int]
    MESSAGE: ClassVar[str]

    def __init__(self, message: str | None = None, data: Any = None) -> None:
        super().__init__(self.CODE, message or self.MESSAGE, data)


class ParseError(CodedError):
    """The bytes are not JSON."""

    CODE, MESSAGE = -32700, "Parse error"


class InvalidRequest(CodedError):
    """The JSON is not a JSON-RPC 2.0 message."""

    CODE, MESSAGE = -32600, "Invalid request"

    def __init__(self, message: str | None = None, data: Any = None, *, request_id: RequestId | None = None) -> None:
        super().__init__(message, data)
        self.request_id = request_id


class InvalidAnswer(InvalidRequest):
    """An answer that cannot be read. Its id is one of ours, so nothing is sent back; the waiting request fails."""

    def __init__(self, message: str, *, answers: RequestId | None) -> None:
        super().__init__(message)
        self.answers = answers
        """The id of the request that it answers, if it could be read."""


class InvalidNotification(InvalidRequest):
    """A notification whose parameters cannot be read. A notification is never answered, not even with an error."""


class MethodNotFound(CodedError):
    """That method is not served here, or not on that channel."""

    CODE, MESSAGE = -32601, "Method not found"


class InvalidParams(CodedError):
    """The parameters do not have the method's shape, or make no sense."""

    CODE, MESSAGE = -32602, "Invalid params"


class InternalError(CodedError):
    """Something broke on this side; the log says what."""

    CODE, MESSAGE = -32603, "Internal error"


class ProtocolError(AhpError):
    """The rules of the protocol were broken."""


class LocalProtocolError(ProtocolError):
    """We broke the rules: there is a bug in the calling code."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the rules: its answer makes no sense."""


class TransportClosed(AhpError, ConnectionError):
    """The connection is gone. `code` is the WebSocket close code, also for other transports."""

    def __init__(self, reason: str = "connection closed", *, code: int = 1006) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


ErrorClasses = Mapping[int, type[RpcError]]
"""Error code → the exception that it becomes. Codes that are missing become a plain `RpcError`."""

RPC_ERRORS: ErrorClasses = {
    cls.CODE: cls for cls in (ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError)
}
"""The codes of JSON-RPC itself, for a protocol without its own codes."""


def to_error_object(exc: BaseException) -> dict[str, Any]:
    """The wire form of an exception: code and safe text. An exception that is not an `RpcError` becomes "Internal
    error"."""
    error = exc if isinstance(exc, RpcError) else InternalError()
    wire: dict[str, Any] = {"code": error.code, "message": error.message[:_MAX_MESSAGE]}
    if error.data is not None:
        wire["data"] = error.data
    return wire


def from_error_object(obj: Any, classes: ErrorClasses = RPC_ERRORS) -> RpcError:
    """The exception for a peer's error. Never fails, so that a request always gets an answer, even to a malformed
    error."""
    wire = cast("dict[str, Any]", obj) if isinstance(obj, dict) else {}
    code, message = wire.get("code"), wire.get("message")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool):
        return RpcError(InternalError.CODE, "The peer sent a malformed error", wire.get("data"))
    cls = classes.get(code, RpcError)
    error = cls.__new__(cls)
    RpcError.__init__(error, code, message if isinstance(message, str) else cls.__name__, wire.get("data"))
    return error


__all__ = [
    "RPC_ERRORS",
    "AhpError",
    "CodedError",
    "ErrorClasses",
    "InternalError",
    "InvalidAnswer",
    "InvalidNotification",
    "InvalidParams",
    "InvalidRequest",
    "LocalProtocolError",
    "MethodNotFound",
    "ParseError",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestId",
    "RpcError",
    "TransportClosed",
    "from_error_object",
    "to_error_object",
]
