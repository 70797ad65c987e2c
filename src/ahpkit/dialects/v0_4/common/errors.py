"""Error codes and the `data` of errors as types. `ahpkit.protocol.errors` raises them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.commands import ResourceRequestParams
from ahpkit.dialects.v0_4.common.state import ProtectedResourceMetadata

JsonRpcErrorCode = Literal[-32700, -32600, -32601, -32602, -32603]

AhpErrorCode = Literal[-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009, -32010, -32011]


class UnsupportedProtocolVersionErrorData(TypedDict):
    """`data` of -32005: what the host speaks."""

    supportedVersions: list[str]


class AuthRequiredErrorData(TypedDict):
    """`data` of -32007: what to authenticate for."""

    resources: list[ProtectedResourceMetadata]


class PermissionDeniedErrorData(TypedDict):
    """`data` of -32009: the `resourceRequest` that would unlock it, if any would."""

    request: NotRequired[ResourceRequestParams]


__all__ = [
    "AhpErrorCode",
    "AuthRequiredErrorData",
    "JsonRpcErrorCode",
    "PermissionDeniedErrorData",
    "UnsupportedProtocolVersionErrorData",
]
