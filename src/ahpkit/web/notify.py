"""Notifies a webhook or a command that something waits. Uses the public client.

    {"event": "needs-you", "session": "ahp-session:/…", "title": "…", "provider": "demo", "url": "http://…/#/s/…"}

Events are `needs-you`, `failed`, and `finished` after more than thirty seconds. They contain nothing of the
conversation except the session's title. They are sent one at a time; when that is slow, the oldest are dropped, and the
host never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from ahpkit.client.client import Client
from ahpkit.protocol.common.status import ERROR, IN_PROGRESS, is_in_progress, is_input_needed
from ahpkit.transports.memory import memory_pair
from ahpkit.wire.transport import Transport

LONG = 30.0
"""A turn that took longer than this many seconds is reported when it is finished."""

_SECONDS = 15.0
"""How long a webhook or a command may take."""

_WAITING = 50
"""Events that may wait to be sent."""

_log = logging.getLogger(__name__)

Event = dict[str, str]
Tell = Callable[[Event], Awaitable[None]]
Serve = Callable[[Transport], Awaitable[None]]


class Watcher:
    """Turns changes of summaries into events. Pure: the clock is passed in."""

    def __init__(self, *, page_url: str) -> None:
        self._page_url = page_url
        self._status: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._looked = False

    def look(self, summaries: Iterable[Mapping[str, Any]], *, now: float) -> Iterator[Event]:
        """The events since the last call. The first call only records the present state."""
        first, self._looked = not self._looked, True
        for summary in summaries:
            uri, status = summary["resource"], int(summary["status"])
            before = self._status.get(uri, status if first else 1)
            self._status[uri] = status
            kind = self._kind(uri, before, status, now)
            if kind is not None:
                yield self._event(kind, summary)

    def _kind(self, uri: str, before: int, after: int, now: float) -> str | None:
        if is_input_needed(after) and not is_input_needed(before):
            return "needs-you"
        if is_in_progress(after):
            self._since.setdefault(uri, now)
            return None
        began = self._since.pop(uri, now)
        if after & ERROR and not before & ERROR:
            return "failed"
        return "finished" if before & IN_PROGRESS and not after & ERROR and now - began > LONG else None

    def _event(self, kind: str, summary: Mapping[str, Any]) -> Event:
        uri = str(summary["resource"])
        return {
            "event": kind,
            "session": uri,
            "title": str(summary.get("title", "")),
            "provider": str(summary.get("provider", "")),
            "url": f"{self._page_url}/#/s/{quote(uri, safe='')}",
        }


def webhook(url: str) -> Tell:
    """POST each event as JSON. Redirects are not followed: the address is the user's, and no other."""

    async def tell(event: Event) -> None:
        await asyncio.to_thread(_post, url, json.dumps(event).encode())

    return tell


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _post(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "User-Agent": "ahpkit"})
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as answer:
        answer.read(1024)


def command(argv: Sequence[str]) -> Tell:
    """Run a program for each event, with the event as one line of JSON on its standard input. No shell is involved."""

    async def tell(event: Event) -> None:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(_SECONDS):
                await process.communicate(json.dumps(event).encode() + b"\n")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    return tell


@asynccontextmanager
async def notifying(serve: Serve, tells: Sequence[Tell], *, page_url: str) -> AsyncGenerator[None]:
    """While the block lasts, notify everyone in `tells` about what happens on the host that `serve` belongs to."""
    if not tells:
        yield
        return
    events: asyncio.Queue[Event] = asyncio.Queue()
    watcher, clock = Watcher(page_url=page_url), asyncio.get_running_loop().time
    async with asyncio.TaskGroup() as tasks:

        async def dial() -> Transport:
            ours, theirs = memory_pair()
            tasks.create_task(_quietly(serve(theirs)), name="serve the notifier")
            return ours

        async with Client(dial, client_id="ahpkit-notify") as client:
            telling = tasks.create_task(_tell_all(events, tells), name="tell the world")

            def changed() -> None:
                for event in watcher.look(sessions.items, now=clock()):
                    while events.qsize() >= _WAITING:
                        events.get_nowait()
                    events.put_nowait(event)

            sessions = client.session_list(changed)
            async with sessions:  # Calls `changed` for the first time before the block begins.
                yield
            telling.cancel()


async def _quietly(serving: Awaitable[None]) -> None:
    with contextlib.suppress(Exception):
        await serving


async def _tell_all(events: asyncio.Queue[Event], tells: Sequence[Tell]) -> None:
    while True:
        event = await events.get()
        for tell in tells:
            try:
                await tell(event)
            except (OSError, TimeoutError, ValueError) as error:
                _log.warning("[notify] could not report %s: %s", event["event"], type(error).__name__)


__all__ = ["LONG", "Event", "Serve", "Tell", "Watcher", "command", "notifying", "webhook"]
