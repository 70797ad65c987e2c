"""The root of all of ahpkit's exceptions, and those of the wire with their form there. Knows no methods or channels.

AhpError
├── RpcError                          an error a peer sends, or is sent: code, message, data
│   ├── ParseError                    -32700
│   ├── InvalidRequest                -32600
│   │   └── InvalidAnswer             an answer that cannot be read
│   ├── MethodNotFound                -32601
│   ├── InvalidParams                 -32602
│   ├── InternalError                 -32603
│   ├── SessionNotFound               -32001
│   ├── ProviderNotFound              -32002
│   ├── SessionAlreadyExists          -32003
│   ├── TurnInProgress                -32004
│   ├── UnsupportedProtocolVersion    -32005  supported_versions
│   ├── ContentNotFound               -32006
│   ├── AuthRequired                  -32007  resources
│   ├── NotFound                      -32008
│   ├── PermissionDenied              -32009  request
│   ├── AlreadyExists                 -32010
│   └── Conflict                      -32011
├── ProtocolError                     the rules were broken
│   ├── LocalProtocolError            by our own code
│   └── RemoteProtocolError           by the peer
└── TransportClosed                   the connection is gone: reason, code
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

_MAX_MESSAGE = 4096
"""Characters of an error's text that are sent: many texts quote what the peer itself sent, however long."""

RequestId = int | str
"""What identifies a request. We send numbers and accept both."""


class AhpError(Exception):
    """Base of everything ahpkit raises on purpose."""


class RpcError(AhpError):
    """An error of the wire. `message` and `data` are seen by the peer: no secrets, no internals."""

    request_id: RequestId | None = None
    """The request this error answers, where it could be read from a message that is otherwise not usable."""

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


class _Coded(RpcError):
    """An error whose code is fixed by its class."""

    CODE: ClassVar[int]
    MESSAGE: ClassVar[str]

    def __init__(self, message: str | None = None, data: Any = None) -> None:
        super().__init__(self.CODE, message or self.MESSAGE, data)


class ParseError(_Coded):
    """The bytes are not JSON."""

    CODE, MESSAGE = -32700, "Parse error"


class InvalidRequest(_Coded):
    """The JSON is not a JSON-RPC 2.0 message."""

    CODE, MESSAGE = -32600, "Invalid request"

    def __init__(self, message: str | None = None, data: Any = None, *, request_id: RequestId | None = None) -> None:
        super().__init__(message, data)
        self.request_id = request_id


class InvalidAnswer(InvalidRequest):
    """An answer that cannot be read. No reply is due under its id, which is one of ours: whoever asked is told."""

    def __init__(self, message: str, *, answers: RequestId | None) -> None:
        super().__init__(message)
        self.answers = answers
        """The request it was meant for, where that could be read."""


class MethodNotFound(_Coded):
    """Nobody here serves that method, or not on that channel."""

    CODE, MESSAGE = -32601, "Method not found"


class InvalidParams(_Coded):
    """The parameters do not have the method's shape, or mean nothing."""

    CODE, MESSAGE = -32602, "Invalid params"


class InternalError(_Coded):
    """Something broke on this side; the log says what."""

    CODE, MESSAGE = -32603, "Internal error"


class SessionNotFound(_Coded):
    """There is no session with that URI."""

    CODE, MESSAGE = -32001, "Session not found"


class ProviderNotFound(_Coded):
    """There is no agent provider with that name."""

    CODE, MESSAGE = -32002, "Provider not found"


class SessionAlreadyExists(_Coded):
    """The session URI that a client chose is taken."""

    CODE, MESSAGE = -32003, "Session already exists"


class TurnInProgress(_Coded):
    """The operation has to wait for the running turn."""

    CODE, MESSAGE = -32004, "A turn is in progress"


class UnsupportedProtocolVersion(_Coded):
    """None of the versions a client offered is spoken here."""

    CODE, MESSAGE = -32005, "No common protocol version"

    def __init__(self, supported_versions: Sequence[str], message: str | None = None) -> None:
        super().__init__(message, {"supportedVersions": list(supported_versions)})

    @property
    def supported_versions(self) -> list[str]:
        """The versions the refusing side speaks."""
        return _strings(self._field("supportedVersions"))


class ContentNotFound(_Coded):
    """A content reference leads nowhere."""

    CODE, MESSAGE = -32006, "Content not found"


class AuthRequired(_Coded):
    """A protected resource needs a token first: send `authenticate` for one of `resources`."""

    CODE, MESSAGE = -32007, "Authentication required"

    def __init__(self, resources: Sequence[Mapping[str, Any]], message: str | None = None) -> None:
        super().__init__(message, {"resources": [dict(resource) for resource in resources]})

    @property
    def resources(self) -> list[Any]:
        """Metadata of the protected resources (RFC 9728)."""
        found: Any = self._field("resources")
        return cast("list[Any]", found) if isinstance(found, list) else []


class NotFound(_Coded):
    """There is nothing with that URI or id."""

    CODE, MESSAGE = -32008, "Not found"


class PermissionDenied(_Coded):
    """Access is refused; `request` is the `resourceRequest` that would ask for it."""

    CODE, MESSAGE = -32009, "Permission denied"

    def __init__(self, message: str | None = None, *, request: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, None if request is None else {"request": dict(request)})

    @property
    def request(self) -> dict[str, Any] | None:
        """Parameters of the `resourceRequest` that would unlock it, when there is one."""
        found: Any = self._field("request")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None


class AlreadyExists(_Coded):
    """The target exists and must not be replaced."""

    CODE, MESSAGE = -32010, "Already exists"


class Conflict(_Coded):
    """The target changed since the caller looked at it."""

    CODE, MESSAGE = -32011, "Conflict"


class ProtocolError(AhpError):
    """The rules of the protocol were broken."""


class LocalProtocolError(ProtocolError):
    """By us: a bug in the calling code."""


class RemoteProtocolError(ProtocolError):
    """By the peer: its answer makes no sense."""


class TransportClosed(AhpError, ConnectionError):
    """The connection is gone. `code` is the WebSocket close code, also for other transports."""

    def __init__(self, reason: str = "connection closed", *, code: int = 1006) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


ERRORS: Mapping[int, type[RpcError]] = {cls.CODE: cls for cls in _Coded.__subclasses__()}
"""Error code → exception."""


def to_error_object(exc: BaseException) -> dict[str, Any]:
    """The wire form of an exception: codes and safe text only, whatever is not an `RpcError` says nothing."""
    error = exc if isinstance(exc, RpcError) else InternalError()
    wire: dict[str, Any] = {"code": error.code, "message": error.message[:_MAX_MESSAGE]}
    if error.data is not None:
        wire["data"] = error.data
    return wire


def from_error_object(obj: Any) -> RpcError:
    """The exception for a peer's error. Never fails: who waits for the answer must get one, however malformed."""
    wire = cast("dict[str, Any]", obj) if isinstance(obj, dict) else {}
    code, message = wire.get("code"), wire.get("message")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool):
        return RpcError(InternalError.CODE, "The peer sent a malformed error", wire.get("data"))
    cls = ERRORS.get(code, RpcError)
    error = cls.__new__(cls)
    RpcError.__init__(error, code, message if isinstance(message, str) else cls.__name__, wire.get("data"))
    return error


def _strings(value: Any) -> list[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


__all__ = [
    "ERRORS",
    "AhpError",
    "AlreadyExists",
    "AuthRequired",
    "Conflict",
    "ContentNotFound",
    "InternalError",
    "InvalidAnswer",
    "InvalidParams",
    "InvalidRequest",
    "LocalProtocolError",
    "MethodNotFound",
    "NotFound",
    "ParseError",
    "PermissionDenied",
    "ProtocolError",
    "ProviderNotFound",
    "RemoteProtocolError",
    "RequestId",
    "RpcError",
    "SessionAlreadyExists",
    "SessionNotFound",
    "TransportClosed",
    "TurnInProgress",
    "UnsupportedProtocolVersion",
    "from_error_object",
    "to_error_object",
]
