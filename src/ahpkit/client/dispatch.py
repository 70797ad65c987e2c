"""The outcome of a dispatched action: accepted, rejected, or still open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ahpkit.client.errors import ActionRejected
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError


@dataclass(frozen=True, slots=True)
class Accepted:
    """The host applied the action."""

    server_seq: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """The host refused the action; the optimistic state no longer contains its effect."""

    reason: str


Outcome = Accepted | Rejected


class Dispatch:
    """A dispatched action. Its effect is in the optimistic state at once; `await` gives the outcome.

    It stays open while the client is offline and is settled after the reconnect.
    """

    def __init__(self, channel: str, action: JsonObject, client_seq: int) -> None:
        self.channel = channel
        self.action = action
        self.client_seq = client_seq
        self._settled: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, or None while the host has not answered."""
        settled = self._settled.done() and self._settled.exception() is None
        return self._settled.result() if settled else None

    def __await__(self) -> Generator[Any, None, Outcome]:
        return asyncio.shield(self._settled).__await__()

    async def accepted(self) -> int:
        """Wait for the outcome and return the serverSeq. Raises `ActionRejected` if the host refused the action."""
        match await self:
            case Accepted(server_seq):
                return server_seq
            case Rejected(reason):
                raise ActionRejected(self.channel, self.action, reason)

    def then(self, callback: Callable[[Outcome | None], None]) -> None:
        """Call `callback` with the outcome once it is known, or with None when it will never be known."""
        self._settled.add_done_callback(lambda _: callback(self.outcome))

    def settle(self, outcome: Outcome | AhpError) -> None:
        """Set the outcome, or the error because of which there is none. Only the client calls this."""
        if isinstance(outcome, AhpError):
            self._settled.set_exception(outcome)
            self._settled.exception()  # Without this asyncio warns when the error is never awaited.
        else:
            self._settled.set_result(outcome)


__all__ = ["Accepted", "Dispatch", "Outcome", "Rejected"]
