"""Builds the validators of actions and methods before they are needed.

Otherwise a validator is built at its first use, and blocks the event loop for up to ten milliseconds. So a host that
runs for long builds them soon after its start: in a thread, one after the other, with pauses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ahpkit.protocol.registry import ACTIONS, COMMANDS, Shape
from ahpkit.protocol.validation import prepare_check

_PAUSE = 0.1
"""Seconds between two validators. All are ready some seconds after the start."""

_EVERY_TURN = frozenset({"session", "chat"})
"""Channels whose actions the host itself makes in nearly every turn."""


def shapes() -> Iterator[Shape]:
    """The actions and methods that nearly every session uses. Others are left out, because a validator stays in memory:
    few sessions use actions that only the host dispatches in rare channels."""
    dispatched = [spec for spec in ACTIONS.values() if spec.client_dispatchable]
    by_host = [spec for spec in ACTIONS.values() if not spec.client_dispatchable and spec.channel in _EVERY_TURN]
    yield from (spec.shape for spec in (*dispatched, *by_host))
    yield from (spec.params for spec in COMMANDS.values())


async def build_checks(*, pause: float = _PAUSE) -> None:
    """Build all of these validators. Cancelled when the host stops."""
    for shape in shapes():
        await asyncio.sleep(pause)
        await asyncio.to_thread(prepare_check, shape)


__all__ = ["build_checks", "shapes"]
