"""The list of all sessions, kept up to date: listed once, then changed by what the host announces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Self, cast

from ahpkit.client.core import Core
from ahpkit.client.errors import UNREADABLE
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import SessionSummary
from ahpkit.wire.errors import RemoteProtocolError, TransportClosed

_IDENTITY = frozenset({"resource", "provider", "createdAt"})
"""Fields of a session that never change, whatever a host sends."""


class SessionList:
    """`async with client.session_list() as sessions`: `sessions.items` is always the present list.

    Notifications are never replayed, so the list is fetched anew after every reconnect.
    """

    def __init__(self, core: Core, on_change: Callable[[], Awaitable[None] | None] | None) -> None:
        self._core = core
        self._on_change = on_change
        self._summaries: dict[str, JsonObject] = {}
        self._announced: list[tuple[str, JsonObject]] | None = None
        """Notifications that arrived while the list is being fetched; None at other times."""

    async def __aenter__(self) -> Self:
        self._core.host_requests.listeners.append(self._on_notification)
        try:
            await self._fetch()
        except BaseException:
            self._core.host_requests.listeners.remove(self._on_notification)
            raise
        self._core.connection.listeners.append(self._on_status)  # Not earlier: two fetches must not overlap.
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._core.host_requests.listeners.remove(self._on_notification)
        self._core.connection.listeners.remove(self._on_status)

    @property
    def items(self) -> list[SessionSummary]:
        """The summaries of all sessions, the one changed last first."""
        found = sorted(self._summaries.values(), key=lambda summary: summary["modifiedAt"], reverse=True)
        return cast("list[SessionSummary]", found)

    async def _fetch(self) -> None:
        """Fetch the list, then apply the notifications that arrived meanwhile."""
        self._announced = []
        listed = await self._core.request("listSessions")
        try:
            self._summaries = {summary["resource"]: summary for summary in listed["items"]}
        except UNREADABLE as error:
            raise RemoteProtocolError(f"the host's list of sessions cannot be read: {error!r}") from error
        announced, self._announced = self._announced, None
        for method, params in announced:
            self._apply(method, params)
        self._call_listener()

    def _on_status(self, status: str) -> None:
        if status == "connected":
            self._core.tasks.spawn(self._fetch_again(), name="list sessions")

    async def _fetch_again(self) -> None:
        with suppress(TransportClosed):  # The list is fetched again on the next connection.
            await self._fetch()

    def _on_notification(self, method: str, params: JsonObject) -> None:
        if self._announced is not None:
            self._announced.append((method, params))
        elif self._apply(method, params):
            self._call_listener()

    def _apply(self, method: str, params: Any) -> bool:
        match method:
            case "root/sessionAdded":
                self._summaries[params["summary"]["resource"]] = params["summary"]
            case "root/sessionRemoved":
                self._summaries.pop(params["session"], None)
            case "root/sessionSummaryChanged" if params["session"] in self._summaries:
                known = self._summaries[params["session"]]
                changes = {key: one for key, one in params["changes"].items() if key not in _IDENTITY}
                changed = {**known, **changes}
                self._summaries[params["session"]] = {key: one for key, one in changed.items() if one is not None}
            case _:
                return False
        return True

    def _call_listener(self) -> None:
        if self._on_change is not None:
            self._core.tasks.call(self._on_change)


__all__ = ["SessionList"]
