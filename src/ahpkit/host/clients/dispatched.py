"""Reads a client's action from its message in one step.

`dispatchAction` is what clients send most. The general way reads JSON, then JSON-RPC, then the method, then the shape
of the parameters; that took a seventh of all that the host did for an action. Here one decode does all of it, for a
short message that is written as all clients known to us write it. Any other message takes the general way, which also
says what is wrong with it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ahpkit.protocol.type_schemas import MAX_INTEGER
from ahpkit.protocol.validation import MAX_URI_LENGTH
from ahpkit.wire.codec import MAX_DEPTH, encode

_SHORT = 2 * MAX_DEPTH
"""Bytes of a message that cannot break the limits of the codec: it is not too deep, and has not too much of
anything."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Dispatched(msgspec.Struct, forbid_unknown_fields=True):
    """An action that a client dispatches. Only the action itself is still to be checked."""

    channel: Annotated[str, msgspec.Meta(max_length=MAX_URI_LENGTH)]
    clientSeq: Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
    action: dict[str, Any]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: Literal["dispatchAction"]
    params: Dispatched


_decoder = msgspec.json.Decoder(_Call)


def read_dispatched(data: bytes) -> Dispatched | None:
    """The action that a message dispatches; None when the message has to take the general way.

    What encodes to the same bytes repeats no name, and is not written in another order or spelling.
    """
    if len(data) > _SHORT:
        return None
    try:
        call = _decoder.decode(data)
    except _UNREADABLE:
        return None
    return call.params if encode(call) == data else None


__all__ = ["Dispatched", "read_dispatched"]
