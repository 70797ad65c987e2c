"""Reads messages of a client in one step: a short action completely, and of a refused message what its answer needs.

`dispatchAction` is the most frequent message of clients. Other messages are read in several steps: JSON, then JSON-RPC,
then the method, then the shape of the parameters. For actions this took a seventh of the host's work. Here one decode
does all of these steps. It reads only short messages in the usual spelling and order. All others are read in several
steps, which also find out what is wrong with a message.

A message that is too long or cannot be decoded is refused. To whom the refusal goes is in its outline: the id of a
request, or the number of an action.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from ahpkit.protocol.type_schemas import MAX_INTEGER
from ahpkit.protocol.validation import MAX_URI_LENGTH
from ahpkit.wire.codec import MAX_DEPTH, encode, whole
from ahpkit.wire.errors import RequestId

_SHORT = 2 * MAX_DEPTH
"""Bytes. A message that is not longer cannot break the limits of the codec (depth, values, escapes)."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Dispatched(msgspec.Struct, forbid_unknown_fields=True):
    """An action that a client dispatches. Everything except `action` has been checked."""

    channel: Annotated[str, msgspec.Meta(max_length=MAX_URI_LENGTH)]
    clientSeq: Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
    action: dict[str, Any]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: Literal["dispatchAction"]
    params: Dispatched


_decoder = msgspec.json.Decoder(_Call)


def read_dispatched(data: bytes) -> Dispatched | None:
    """The action that a message dispatches; None if the message has to be read in several steps.

    The message is encoded again and compared. Equal bytes prove that it has the usual order and spelling, and no
    repeated name. Spaces do not count, because many libraries write them.
    """
    if len(data) > _SHORT:
        return None
    try:
        call = _decoder.decode(data)
    except _UNREADABLE:
        return None
    written = encode(call)
    return call.params if written == data or written == msgspec.json.format(data, indent=-1) else None


_MAX_NAMES = 4096
"""Characters of names that a refusal repeats."""

_NUMBERS = (b"-Infinity", b"Infinity", b"NaN")
"""The words that Python writes for numbers that JSON does not have."""

T = TypeVar("T")


class _Asked(msgspec.Struct):
    method: str
    id: int | float | str | None = None


class _Action(msgspec.Struct):
    type: str


class _Params(msgspec.Struct):
    channel: str
    clientSeq: int | float
    action: _Action


class _Dispatch(msgspec.Struct):
    params: _Params


class SentActionHead(NamedTuple):
    """An action that a client sent."""

    channel: str
    client_seq: int
    type: str


class MessageOutline(NamedTuple):
    """What a message is."""

    request: RequestId | None = None
    """The id of a request that can be answered."""
    is_action: bool = False
    dispatched: SentActionHead | None = None
    """The action, if it can be refused under its number."""


def outline_of(data: bytes) -> MessageOutline:
    """The outline of a message. This is fast even if the message is long."""
    asked = _decode(data, _Asked)
    if asked is None:
        data = _mended(data)
        asked = _decode(data, _Asked)
    if asked is None:
        return MessageOutline()
    is_action = asked.method == "dispatchAction"
    return MessageOutline(_request_id(asked), is_action, _dispatched(data) if is_action else None)


def _mended(data: bytes) -> bytes:
    """A message in which parts that are not JSON are replaced: numbers such as NaN, and halves of characters. Texts may
    change, too.

    This takes no regular expression: on a long message that would keep everybody waiting.
    """
    for before in (b":", b": ", b",", b", ", b"["):
        for number in _NUMBERS:
            data = data.replace(before + number, before + b"0")
    return data.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0")


def _request_id(asked: _Asked) -> RequestId | None:
    id = whole(asked.id)
    return id if isinstance(id, int) or (isinstance(id, str) and len(id) <= _MAX_NAMES) else None


def _dispatched(data: bytes) -> SentActionHead | None:
    found = _decode(data, _Dispatch)
    if found is None or len(found.params.channel) + len(found.params.action.type) > _MAX_NAMES:
        return None
    seq = whole(found.params.clientSeq)
    return SentActionHead(found.params.channel, seq, found.params.action.type) if isinstance(seq, int) else None


def _decode(data: bytes, shape: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


__all__ = ["Dispatched", "MessageOutline", "SentActionHead", "outline_of", "read_dispatched"]
