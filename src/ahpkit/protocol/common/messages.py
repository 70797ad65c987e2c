"""JSON-RPC 2.0 messages as types, for round trips and schemas. `ahpkit.wire.codec` reads and writes them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import JsonObject, JsonValue


class JsonRpcRequest(TypedDict):
    """A request: it needs an answer."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: str
    params: NotRequired[JsonObject]


class JsonRpcNotification(TypedDict):
    """A notification: it has no answer."""

    jsonrpc: Literal["2.0"]
    method: str
    params: NotRequired[JsonObject]


class JsonRpcErrorObject(TypedDict):
    """Why there is no result."""

    code: int
    message: str
    data: NotRequired[JsonValue]


class JsonRpcSuccessResponse(TypedDict):
    """The answer."""

    jsonrpc: Literal["2.0"]
    id: int | str
    result: JsonValue


class JsonRpcErrorResponse(TypedDict):
    """An error instead of a result; `id` is null when the request could not be read."""

    jsonrpc: Literal["2.0"]
    id: int | str | None
    error: JsonRpcErrorObject


JsonRpcResponse = JsonRpcSuccessResponse | JsonRpcErrorResponse

JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse


__all__ = [
    "JsonRpcErrorObject",
    "JsonRpcErrorResponse",
    "JsonRpcMessage",
    "JsonRpcNotification",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "JsonRpcSuccessResponse",
]
