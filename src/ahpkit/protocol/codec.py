"""The codec, under the name it had before it moved to `ahpkit.wire.codec`."""

from __future__ import annotations

from ahpkit.wire.codec import (
    MAX_ANSWER_DEPTH,
    MAX_BYTES,
    MAX_DEPTH,
    ErrorResponse,
    Json,
    Message,
    Notification,
    Request,
    Response,
    decode,
    decode_json,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    is_deeper,
)

__all__ = [
    "MAX_ANSWER_DEPTH",
    "MAX_BYTES",
    "MAX_DEPTH",
    "ErrorResponse",
    "Json",
    "Message",
    "Notification",
    "Request",
    "Response",
    "decode",
    "decode_json",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "is_deeper",
]
