"""Builds the checks of actions and methods before anybody waits for them.

A check is built when it is first needed. That takes up to ten milliseconds, in which the event loop serves nobody. So a
host that runs for long builds them soon after its start: in a thread, one after the other, with pauses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ahpkit.protocol.registry import ACTIONS, COMMANDS, Shape
from ahpkit.protocol.validation import prepare_check

_PAUSE = 0.1
"""Seconds between two of them: all of them are ready some seconds after the start."""

_EVERY_TURN = frozenset({"session", "chat"})
"""Channels whose actions the host itself makes in nearly every turn."""


def shapes() -> Iterator[Shape]:
    """What is checked in nearly every session. The rest is left out, because a check stays in memory: actions of the
    host alone, in channels that few sessions have, are checked once in a while."""
    dispatched = [spec for spec in ACTIONS.values() if spec.client_dispatchable]
    by_host = [spec for spec in ACTIONS.values() if not spec.client_dispatchable and spec.channel in _EVERY_TURN]
    yield from (spec.shape for spec in (*dispatched, *by_host))
    yield from (spec.params for spec in COMMANDS.values())


async def build_checks(*, pause: float = _PAUSE) -> None:
    """Build them all; cancelled when the host stops."""
    for shape in shapes():
        await asyncio.sleep(pause)
        await asyncio.to_thread(prepare_check, shape)


__all__ = ["build_checks", "shapes"]
