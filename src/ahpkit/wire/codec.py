"""Converts between bytes, JSON and JSON-RPC messages.

What comes in is plain JSON data and keeps everything the sender wrote: unknown members, nulls, integers of any size.
What cannot be kept is refused or repaired, always the same way (docs/reference/protocol.md says why):

- not JSON, invalid UTF-8, NaN, a number beyond a double, too deep nesting: `ParseError`
- a member twice in one object, a batch, a scalar, more than `max_bytes`, not JSON-RPC 2.0: `InvalidRequest`
- parameters in a list instead of an object: `InvalidParams`
- a lone surrogate becomes U+FFFD, in both directions: no peer can be made to send invalid Unicode through us
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast

import msgspec

from ahpkit.wire.errors import (
    RPC_ERRORS,
    ErrorClasses,
    InvalidAnswer,
    InvalidNotification,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    ParseError,
    RequestId,
    RpcError,
    from_error_object,
    to_error_object,
)

MAX_BYTES = 32 * 1024 * 1024
"""The default limit of one message: three times the longest text of our benchmarks (10 MB), and still harmless."""

MAX_DEPTH = 200
"""Levels of nesting in a call. States reach about 20, and values of users may add more. Parsers stop near 1000 levels
and the validator near 255, and an accepted value must still be encodable deeper inside a state."""

MAX_ANSWER_DEPTH = 256
"""The same for an answer, which may contain a state, and in it the values of many calls."""

_MAX_DIGITS = 100
"""Digits of a number in a message that is so long that its values are counted. The cost of writing a number grows
faster than its length."""

_LONG_NUMBER = b"0" * (_MAX_DIGITS + 1)
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")

_SMALL = 64 * 1024
"""Bytes of a message that is encoded again to see whether our encoder would write the same bytes."""

_MAX_REPAIRED = 1024 * 1024
"""Bytes of a message in which a lone surrogate is replaced. That is slow; a longer message is refused."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_CONTAINERS = frozenset((dict, list))
_SURROGATE = re.compile("[\ud800-\udfff]")

JsonObject = dict[str, Any]
"""An object as JSON has it."""

Json = Any
"""Any JSON value. Shapes are checked elsewhere."""


class Request(msgspec.Struct, frozen=True):
    """A request: it needs an answer."""

    id: RequestId
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct, frozen=True):
    """A notification: it has no answer."""

    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    """The answer to a request."""

    id: RequestId
    result: Json


class ErrorResponse(msgspec.Struct, frozen=True):
    """The refusal of a request; `id` is None when the peer could not read which."""

    id: RequestId | None
    error: RpcError


Message = Request | Notification | Response | ErrorResponse


# -- JSON -------------------------------------------------------------------------------------------------------------


def whole(value: Any) -> Any:
    """An integer for a float that is one; anything else as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


def encode(obj: Json) -> bytes:
    """`obj` as compact JSON. NaN and infinities, which JSON does not have, become null.

    An object with a `__json__` method is written as what that returns.
    """
    try:
        try:
            return _encoder.encode(obj)
        except UnicodeEncodeError:
            return _encoder.encode(_without_surrogates(msgspec.to_builtins(obj, enc_hook=_encode_hook)))
    except (TypeError, RecursionError) as exc:
        raise LocalProtocolError(f"cannot be written as JSON: {exc}") from exc


def decode_json(data: bytes | str) -> Json:
    """The JSON value in `data`, however long. Raises `ParseError` or `InvalidRequest`."""
    value, repeated = _read(_as_bytes(data))
    if repeated:
        raise InvalidRequest(_twice(repeated))
    return value


def decode_own(data: bytes | msgspec.Raw) -> Json:
    """The JSON value in what `encode` wrote: it repeats no name, so that is not checked. Raises `ParseError`."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ParseError(f"Parse error: {exc}") from None


def _as_bytes(data: bytes | str) -> bytes:
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data


def _read(data: bytes) -> tuple[Json, list[str]]:
    """The value, and the names that occur more than once in the same object."""
    try:
        value = _decoder.decode(data)
        # Data that encodes to itself repeats no name. In other spellings (spaces, escapes) the members are counted, and
        # only data that repeats some is read a second time.
        if len(data) <= _SMALL and _encoder.encode(value) == data:
            return value, []
        if _count_members(value) == _outside_strings(data).count(b":"):
            return value, []
        return value, _read_slowly(data)[1]
    except msgspec.DecodeError as exc:
        if len(data) > _MAX_REPAIRED or not _SURROGATE_ESCAPE.search(data):
            raise ParseError(f"Parse error: {exc}") from None
    except UnicodeDecodeError:
        raise ParseError("Parse error: invalid UTF-8") from None
    except RecursionError:
        raise ParseError("Parse error: nested too deeply") from None
    return _read_slowly(data)


def _read_slowly(data: bytes) -> tuple[Json, list[str]]:
    """Like the fast parser, but accepts surrogates and notices repeated names."""
    repeated: list[str] = []

    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        obj = dict(pairs)
        if len(obj) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.extend(name for name, count in counts.items() if count > 1)
        return obj

    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=to_dict, parse_constant=_no_constant, parse_float=_finite)
        return _without_surrogates(value) if _SURROGATE_ESCAPE.search(data) else value, repeated
    except RecursionError:
        raise ParseError("Parse error: nested too deeply") from None
    except ValueError as exc:
        raise ParseError(f"Parse error: {exc}") from None


def _outside_strings(data: bytes) -> bytes:
    """The JSON text without its strings."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(data.split(b'"')[::2])


def _count_members(value: Json) -> int:
    count = 0
    todo: list[Any] = [value] if type(value) in _CONTAINERS else []
    while todo:
        container = todo.pop()
        if type(container) is dict:
            count += len(cast("dict[str, Any]", container))
        todo += [item for item in _members(container) if type(item) in _CONTAINERS]
    return count


def too_much(data: bytes, *, max_values: int | None, max_escapes: int | None) -> str | None:
    """Why a message is not read: reading it would take too long. None if it is read."""
    if max_escapes is not None and len(data) > max_escapes and data.count(b"\\") > max_escapes:
        # Reading and writing escapes takes ten times as long as other text.
        return f"one message may hold {max_escapes} backslashes; send long text with many escapes as base64"
    if max_values is None or len(data) <= 2 * max_values:
        return None
    if (
        data.count(b'"') - data.count(b'\\"') > 4 * max_values
        or _values_in(bare := _outside_strings(data)) > max_values
    ):
        return f"one message may hold {max_values} values"  # Each value costs time in every step.
    if _LONG_NUMBER in bare.translate(_AS_ZEROS):
        return f"in a long message a number has at most {_MAX_DIGITS} digits"
    return None


def _values_in(bare: bytes) -> int:
    """The number of values in JSON without its strings, or a few more."""
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


def _head(data: bytes) -> dict[str, Any]:
    """The id and the method of a message that is not read, for refusing it."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"method": ""}
    return {"id": head.id} if head.method is None else {"id": head.id, "method": head.method}


class _Head(msgspec.Struct):
    id: int | float | str | None = None
    method: str | None = None


def _check_depth(value: Json, data: bytes) -> None:
    is_answer = isinstance(value, dict) and "method" not in value
    limit = MAX_ANSWER_DEPTH if is_answer else MAX_DEPTH
    if data.count(b"{") + data.count(b"[") > limit and is_deeper(value, limit):
        raise ParseError(f"Parse error: nested more than {limit} levels deep")


def is_deeper(value: Json, limit: int) -> bool:
    """Whether objects and lists are nested more than `limit` deep. Does not recurse itself."""
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    for _ in range(limit):
        level = [item for container in level for item in _members(container) if type(item) in _CONTAINERS]
    return bool(level)


def _members(container: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", container).values() if type(container) is dict else container


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in cast("dict[str, Any]", value).items()}
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"number out of range: {text}")
    return number


def _twice(repeated: list[str]) -> str:
    return f"Invalid request: {repeated[0][:100]!r} is given twice in one object"


def _encode_hook(obj: Any) -> Json:
    if (form := getattr(obj, "__json__", None)) is not None:
        return form()
    if isinstance(obj, msgspec.Raw):  # Encoded before. It comes here only if a surrogate beside it is replaced.
        return _decoder.decode(obj)
    raise TypeError(f"{type(obj).__name__} is not JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)
_decoder = msgspec.json.Decoder()


# -- JSON-RPC ---------------------------------------------------------------------------------------------------------


def decode(
    data: bytes | str,
    *,
    max_bytes: int = MAX_BYTES,
    max_values: int | None = None,
    max_escapes: int | None = None,
    errors: ErrorClasses = RPC_ERRORS,
) -> Message:
    """The message in `data`; an error in it becomes one of `errors`.

    Raises `ParseError`, `InvalidRequest` or `InvalidParams`, with `request_id` where one could be read.
    """
    raw = _as_bytes(data)
    size = len(raw)
    if size > max_bytes:
        raise InvalidRequest(f"Invalid request: {size} bytes, at most {max_bytes} are accepted")
    if (reason := too_much(raw, max_values=max_values, max_escapes=max_escapes)) is not None:
        head = _head(raw)
        raise _refusal(f"Invalid request: {reason}", head, known=_request_id(head))
    value, repeated = _read(raw)
    if size > 2 * MAX_DEPTH:
        _check_depth(value, raw)
    if isinstance(value, list):
        raise InvalidRequest("Invalid request: batches are not supported")
    if not isinstance(value, dict):
        raise InvalidRequest("Invalid request: a message is an object")
    message = cast("dict[str, Any]", value)
    if repeated:
        raise _refusal(_twice(repeated), message, known=None if "id" in repeated else _request_id(message))
    if message.get("jsonrpc") != "2.0":
        raise _refusal('Invalid request: "jsonrpc" must be "2.0"', message, known=_request_id(message))
    return _call(message) if "method" in message else _answer(message, errors)


def _refusal(reason: str, message: dict[str, Any], *, known: RequestId | None) -> InvalidRequest:
    """The error for a malformed message. A call is answered under its id; the id of an answer is one of ours, so
    nothing is sent under it."""
    return InvalidRequest(reason, request_id=known) if "method" in message else InvalidAnswer(reason, answers=known)


def _call(message: dict[str, Any]) -> Request | Notification:
    method, params = message["method"], message.get("params")
    request_id = _request_id(message) if "id" in message else None
    if request_id is None and "id" in message:
        raise InvalidRequest('Invalid request: "id" must be a string or a whole number')
    if not isinstance(method, str):
        raise InvalidRequest('Invalid request: "method" must be a string', request_id=request_id)
    if "result" in message or "error" in message:
        raise InvalidRequest("Invalid request: a call has no result and no error", request_id=request_id)
    if params is None:
        params = {}
    elif not isinstance(params, dict):
        raise _unusable_params(request_id, in_order=isinstance(params, list))
    params = cast("dict[str, Any]", params)
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def _unusable_params(request_id: RequestId | None, *, in_order: bool) -> RpcError:
    """JSON-RPC allows parameters by their order, in a list. Our methods have named parameters only."""
    reason = '"params" must be an object'
    if request_id is None:
        return InvalidNotification(f"Invalid request: {reason}")
    if not in_order:
        return InvalidRequest(f"Invalid request: {reason}", request_id=request_id)
    error = InvalidParams(f"Invalid params: {reason}, not a list")
    error.request_id = request_id
    return error


def _answer(message: dict[str, Any], errors: ErrorClasses) -> Response | ErrorResponse:
    request_id = _request_id(message)
    if ("result" in message) == ("error" in message):
        reason = "Invalid request: neither a call nor an answer with one of result and error"
        raise InvalidAnswer(reason, answers=request_id)
    if "error" in message:
        if request_id is None and message.get("id") is not None:
            raise InvalidRequest('Invalid request: "id" must be a string or a whole number')
        return ErrorResponse(request_id, from_error_object(message["error"], errors))
    if request_id is None:
        raise InvalidRequest('Invalid request: an answer needs the "id" of its request')
    return Response(request_id, message["result"])


def _request_id(message: dict[str, Any]) -> RequestId | None:
    value = whole(message.get("id"))
    return value if type(value) is int or isinstance(value, str) else None


def encode_request(request_id: RequestId, method: str, params: Json) -> bytes:
    """A call that needs an answer."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: Json) -> bytes:
    """A call that has no answer."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_response(request_id: RequestId, result: Json) -> bytes:
    """An answer."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(request_id: RequestId | None, exc: BaseException) -> bytes:
    """A refusal. Of an exception that is not an `RpcError`, the peer learns only "internal error"."""
    return encode({"jsonrpc": "2.0", "id": request_id, "error": to_error_object(exc)})


__all__ = [
    "MAX_ANSWER_DEPTH",
    "MAX_BYTES",
    "MAX_DEPTH",
    "ErrorResponse",
    "Json",
    "JsonObject",
    "Message",
    "Notification",
    "Request",
    "Response",
    "decode",
    "decode_json",
    "decode_own",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "is_deeper",
    "too_much",
    "whole",
]
