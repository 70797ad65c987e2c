"""The active client of each session: cleared when it leaves, its open tool calls failed after a grace period.

Who may claim the role is policy; what the role brings (plugins, canvases) belongs to features.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ahpkit.host.feature import Feature, Registration, Services
from ahpkit.protocol.chat.constructors import chat_tool_call_complete
from ahpkit.protocol.chat.state import ToolCallResult
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.constructors import session_active_client_removed


class ActiveClients(Feature):
    """Watches clients leave and come back."""

    name = "active-client"

    def __init__(self, *, grace: float) -> None:
        self._grace = grace
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.recover(self._recover)
        host.on_client_back(self._client_back)
        host.on_client_gone(self._client_gone)

    def _recover(self) -> None:
        """After a restart nobody is connected: the roles are free. No turn runs, so no call is open."""
        for uri, client_id in list(self._active()):
            self._services.dispatch(uri, session_active_client_removed(client_id=client_id))

    async def aclose(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _client_gone(self, client_id: str) -> None:
        for uri, active in list(self._active()):
            if active == client_id:
                self._services.dispatch(uri, session_active_client_removed(client_id=client_id))
        if any(True for _ in self._open_calls(client_id)):
            timer = asyncio.get_running_loop().call_later(self._grace, self._grace_over, client_id)
            self._timers[client_id] = timer

    def _client_back(self, client_id: str) -> None:
        """The same client connected again: it may finish its calls."""
        timer = self._timers.pop(client_id, None)
        if timer is not None:
            timer.cancel()

    def _grace_over(self, client_id: str) -> None:
        self._timers.pop(client_id, None)
        message = "The client that ran this tool disconnected and did not come back."
        for chat_uri, turn_id, call_id in list(self._open_calls(client_id)):
            result: ToolCallResult = {"success": False, "pastTenseMessage": message, "error": {"message": message}}
            completed = chat_tool_call_complete(turn_id=turn_id, tool_call_id=call_id, result=result)
            self._services.dispatch(chat_uri, completed)

    def _active(self) -> Iterator[tuple[str, str]]:
        """Every session with each client that is active in it."""
        for uri in self._services.session_uris():
            for client in (self._services.state(uri) or {}).get("activeClients", ()):
                yield uri, client["clientId"]

    def _open_calls(self, client_id: str) -> Iterator[tuple[str, str, str]]:
        for session_uri in self._services.session_uris():
            for summary in (self._services.state(session_uri) or {}).get("chats", ()):
                yield from self._open_calls_in(summary["resource"], client_id)

    def _open_calls_in(self, chat_uri: str, client_id: str) -> Iterator[tuple[str, str, str]]:
        turn = (self._services.state(chat_uri) or {}).get("activeTurn")
        if turn is None:
            return
        for part in turn["responseParts"]:
            call: JsonObject = part.get("toolCall") or {}
            owner: JsonObject = call.get("contributor") or {}
            if owner.get("clientId") == client_id and call["status"] in ("running", "pending-confirmation"):
                yield chat_uri, turn["id"], call["toolCallId"]


__all__ = ["ActiveClients"]
