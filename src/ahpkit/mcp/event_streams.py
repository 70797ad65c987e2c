"""Splits batches in a stream of server-sent events (MCP 2025-03-26), because the SDK reads one message from each event.
Refuses messages with too many values."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2
from pydantic_core import to_json

from ahpkit.host.limits import LONG_MESSAGE
from ahpkit.mcp.tolerance import batch_in, readable

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""The bytes that end an event."""


class UnbatchedEvents(httpx2.AsyncByteStream):
    """A stream of events in which each batch has become one event for each of its messages.

    An event of more than `limit` bytes is passed on unchanged, and refused by its reader.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        waiting = bytearray()
        searched, too_long = 0, False
        async for chunk in self._stream:
            waiting += chunk
            begin = 0
            while (end := _END.search(waiting, max(searched - 3, begin))) is not None:
                event = bytes(waiting[begin : end.end()])
                yield event if too_long else await _taken(event)
                begin, too_long = end.end(), False
            del waiting[:begin]
            searched = len(waiting)
            if too_long or searched > self._limit:
                yield bytes(waiting[:-3])  # The bytes that end the event may arrive in two pieces.
                del waiting[:-3]
                searched, too_long = len(waiting), True
        if waiting:
            yield bytes(waiting)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _taken(event: bytes) -> bytes:
    """The bytes that replace an event. A long event is read in a thread, so that it does not block the event loop."""
    return await asyncio.to_thread(unbatched, event) if len(event) > LONG_MESSAGE else unbatched(event)


def unbatched(event: bytes) -> bytes:
    """The events that replace one event: one for each message of a batch, or the event itself. The last one keeps its
    id. A message with too many values becomes an error for the request that it answers; other such messages are
    dropped."""
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    if (taken := readable(data)) is not data:
        messages = [taken] if taken else []
    elif data.lstrip()[:1] != b"[":
        return event
    else:
        try:
            messages = [to_json(message) for message in batch_in(data)]
        except (ValueError, RecursionError):
            return event
    if not messages:
        return b""
    fields = [line for line in lines if line and not line.startswith((b"data:", b"id:"))]
    events = [[*fields, b"data: " + message] for message in messages]
    events[-1] += [line for line in lines if line.startswith(b"id:")]
    return b"".join(b"\n".join(lines) + b"\n\n" for lines in events)


__all__ = ["UnbatchedEvents", "unbatched"]
