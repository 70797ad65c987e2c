"""Reads a client's action from its message in one step.

`dispatchAction` is the most frequent message of clients. Other messages are read in several steps: JSON, then JSON-RPC,
then the method, then the shape of the parameters. For actions this took a seventh of the host's work. Here one decode
does all of these steps. It reads only short messages in the usual spelling and order. All others are read in several
steps, which also find out what is wrong with a message.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ahpkit.protocol.type_schemas import MAX_INTEGER
from ahpkit.protocol.validation import MAX_URI_LENGTH
from ahpkit.wire.codec import MAX_DEPTH, encode

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
    repeated name.
    """
    if len(data) > _SHORT:
        return None
    try:
        call = _decoder.decode(data)
    except _UNREADABLE:
        return None
    return call.params if encode(call) == data else None


__all__ = ["Dispatched", "read_dispatched"]
