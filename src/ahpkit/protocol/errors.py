"""The errors of AHP, with their codes.

    RpcError                          an error a peer sends, or is sent: code, message, data
    ├── SessionNotFound               -32001
    ├── ProviderNotFound              -32002
    ├── SessionAlreadyExists          -32003
    ├── TurnInProgress                -32004
    ├── UnsupportedProtocolVersion    -32005  supported_versions
    ├── ContentNotFound               -32006
    ├── AuthRequired                  -32007  resources
    ├── NotFound                      -32008
    ├── PermissionDenied              -32009  request
    ├── AlreadyExists                 -32010
    └── Conflict                      -32011

The errors of JSON-RPC, and the root of all exceptions, are in `ahpkit.wire.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ahpkit.wire.errors import (
    RPC_ERRORS,
    AhpError,
    CodedError,
    ErrorClasses,
    InternalError,
    InvalidAnswer,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    MethodNotFound,
    ParseError,
    ProtocolError,
    RemoteProtocolError,
    RequestId,
    RpcError,
    TransportClosed,
    from_error_object,
    to_error_object,
)


class SessionNotFound(CodedError):
    """There is no session with that URI."""

    CODE, MESSAGE = -32001, "Session not found"


class ProviderNotFound(CodedError):
    """There is no agent provider with that name."""

    CODE, MESSAGE = -32002, "Provider not found"


class SessionAlreadyExists(CodedError):
    """The session URI that a client chose is taken."""

    CODE, MESSAGE = -32003, "Session already exists"


class TurnInProgress(CodedError):
    """The operation has to wait for the running turn."""

    CODE, MESSAGE = -32004, "A turn is in progress"


class UnsupportedProtocolVersion(CodedError):
    """None of the versions a client offered is spoken here."""

    CODE, MESSAGE = -32005, "No common protocol version"

    def __init__(self, supported_versions: Sequence[str], message: str | None = None) -> None:
        super().__init__(message, {"supportedVersions": list(supported_versions)})

    @property
    def supported_versions(self) -> list[str]:
        """The versions the refusing side speaks."""
        return _strings(self._field("supportedVersions"))


class ContentNotFound(CodedError):
    """A content reference leads nowhere."""

    CODE, MESSAGE = -32006, "Content not found"


class AuthRequired(CodedError):
    """A protected resource needs a token first: send `authenticate` for one of `resources`."""

    CODE, MESSAGE = -32007, "Authentication required"

    def __init__(self, resources: Sequence[Mapping[str, Any]], message: str | None = None) -> None:
        super().__init__(message, {"resources": [dict(resource) for resource in resources]})

    @property
    def resources(self) -> list[Any]:
        """Metadata of the protected resources (RFC 9728)."""
        found: Any = self._field("resources")
        return cast("list[Any]", found) if isinstance(found, list) else []


class NotFound(CodedError):
    """There is nothing with that URI or id."""

    CODE, MESSAGE = -32008, "Not found"


class PermissionDenied(CodedError):
    """Access is refused; `request` is the `resourceRequest` that would ask for it."""

    CODE, MESSAGE = -32009, "Permission denied"

    def __init__(self, message: str | None = None, *, request: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, None if request is None else {"request": dict(request)})

    @property
    def request(self) -> dict[str, Any] | None:
        """Parameters of the `resourceRequest` that asks for access, if there is one."""
        found: Any = self._field("request")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None


class AlreadyExists(CodedError):
    """The target exists and must not be replaced."""

    CODE, MESSAGE = -32010, "Already exists"


class Conflict(CodedError):
    """The target changed since the caller looked at it."""

    CODE, MESSAGE = -32011, "Conflict"


_OWN: tuple[type[CodedError], ...] = (
    SessionNotFound,
    ProviderNotFound,
    SessionAlreadyExists,
    TurnInProgress,
    UnsupportedProtocolVersion,
    ContentNotFound,
    AuthRequired,
    NotFound,
    PermissionDenied,
    AlreadyExists,
    Conflict,
)

ERRORS: ErrorClasses = {**RPC_ERRORS, **{cls.CODE: cls for cls in _OWN}}
"""The exception of each code, for connections that speak AHP."""


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
