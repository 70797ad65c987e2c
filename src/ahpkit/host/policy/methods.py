"""Who may call which method, and when: the policy column of the table of commands. Pure rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ahpkit.protocol.errors import InvalidRequest
from ahpkit.wire.rpc import Params

_QUOTED = 200
"""Characters of a method that a reason repeats."""


class Call(NamedTuple):
    """A method that a connection wants to be served."""

    method: str
    client_id: str
    """Empty before the handshake."""
    params: Params
    """The params that the client sent. Their shape is checked later."""

    @property
    def initialized(self) -> bool:
        return bool(self.client_id)


MethodRule = Callable[[Call], None]
"""Returns if the method may be called; otherwise raises an `RpcError` with a reason for people."""


def anyone(call: Call) -> None:
    """Allowed before and after the handshake."""


def handshake(call: Call) -> None:
    """Allowed only once, before all other methods."""
    if call.initialized:
        raise InvalidRequest("this connection is initialized already")


def known_client(call: Call) -> None:
    """Allowed for every client after the handshake."""
    if not call.initialized:
        raise InvalidRequest(f"{call.method[:_QUOTED]} is not served before initialize")


__all__ = ["Call", "MethodRule", "anyone", "handshake", "known_client"]
