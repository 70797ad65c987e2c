"""Follows the active clients of each session, and ends their tool calls when they leave.

A client that loses its connection has the grace period to come back. Until then its entry stays in the session, with
its tools and plugins; its canvases are declared again when it is back. Version 0.4 has one active client, and its role
becomes free at once. The host then keeps the client's entry, and puts it back when the client reconnects in time. A
client that unsubscribes from a session leaves it at once. A restart of the host counts as a lost connection.

Policy decides who may become active; features handle what clients bring (plugins, canvases).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ahpkit.dialects.states_down import primary_mark
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration, SessionApplied
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.protocol.chat.actions import chat_tool_call_complete
from ahpkit.protocol.chat.state import ToolCallContributor, ToolCallResult
from ahpkit.protocol.chat.turns import tool_calls
from ahpkit.protocol.session.actions import session_active_client_removed, session_active_client_set
from ahpkit.protocol.session.state import SessionActiveClient

_NOT_BACK = "The client that ran this tool disconnected and did not come back."
_LEFT = "The client that ran this tool left the session."


@dataclass(slots=True)
class _AwayClient:
    """A client that lost its connection and may still come back."""

    timer: asyncio.TimerHandle
    sessions: set[str] = field(default_factory=set[str])
    """The sessions in which its entry stays until the timer ends."""
    roles: dict[str, SessionActiveClient] = field(default_factory=dict[str, SessionActiveClient])
    """Entries from 0.4 connections, by session. They left the state when the connection ended."""


class ActiveClients(Feature):
    """Watches clients leave and come back."""

    name = "active-client"

    def __init__(self, *, grace: float) -> None:
        self._grace = grace
        self._away: dict[str, _AwayClient] = {}

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.recover.add(self._recover)
        host.actions.listen(self._came, "session/activeClientSet")
        host.actions.listen(self._left, "session/activeClientRemoved")
        host.clients.back.add(self._client_back)
        host.clients.gone.add(self._client_gone)
        host.clients.unsubscribed.add(self._client_unsubscribed)
        host.clients.offered_again.add(self._is_back)

    def _recover(self) -> None:
        """After a restart no client is connected. Each active client has the grace period to come back."""
        for client_id in dict.fromkeys(entry["clientId"] for _, entry in self._entries()):
            self._client_gone(client_id)

    async def aclose(self) -> None:
        for away in self._away.values():
            away.timer.cancel()

    # -- leaving and coming back -----------------------------------------------------------------------------------

    def _client_gone(self, client_id: str) -> None:
        entries = self._entries_of(client_id)
        roles = {uri: entry for uri, entry in entries.items() if primary_mark(entry)}
        for uri in roles:
            self._services.dispatch(uri, session_active_client_removed(client_id=client_id))
        if entries or any(True for _ in self._open_calls(client_id)):
            self._expect(client_id).roles.update(roles)
            self._expect(client_id).sessions.update(entries.keys() - roles.keys())

    def _client_back(self, client_id: str, resumed: bool) -> None:
        """A client is connected again. If it used `reconnect`, it has named everything that it still follows."""
        missing = [uri for uri in self._entries_of(client_id) if not self._follows(client_id, uri)]
        if not resumed and missing:
            self._expect(client_id).sessions.update(missing)
            return
        away = self._away.pop(client_id, None)
        if away is not None:
            away.timer.cancel()
            for uri, entry in away.roles.items() if resumed else ():
                self._give_back(client_id, uri, entry)
        self._leave(client_id, missing, _LEFT)

    def _client_unsubscribed(self, client_id: str, uri: str) -> None:
        entry = self._entries_of(client_id).get(uri)
        if entry is not None and not primary_mark(entry):
            self._leave(client_id, [uri], _LEFT)

    def _left(self, applied: SessionApplied) -> None:
        """A client that removes its own entry no longer runs its calls, although it stays connected. A client of 0.4
        may give up its role and still finish its calls."""
        if applied.action["type"] == "session/activeClientRemoved" and applied.client_id is not None:
            entries = applied.before.get("activeClients", ())
            left = [entry for entry in entries if entry["clientId"] == applied.client_id and not primary_mark(entry)]
            if left:
                self._fail_calls(applied.client_id, [applied.channel], _LEFT)

    def _came(self, applied: SessionApplied) -> None:
        """A client that repeats its offer has come back, even if it does not follow the session."""
        if self._away and applied.action["type"] == "session/activeClientSet":
            self._is_back(applied.client_id or "", applied.channel)

    def _is_back(self, client_id: str, session_uri: str) -> None:
        away = self._away.get(client_id)
        if away is not None:
            away.sessions.discard(session_uri)

    def _expect(self, client_id: str) -> _AwayClient:
        if client_id not in self._away:
            timer = asyncio.get_running_loop().call_later(self._grace, self._grace_over, client_id)
            self._away[client_id] = _AwayClient(timer)
        return self._away[client_id]

    def _give_back(self, client_id: str, uri: str, entry: SessionActiveClient) -> None:
        """Put an entry back if the client still follows the session and nobody took the single role of 0.4."""
        taken = any(map(primary_mark, (self._services.session(uri) or NO_SESSION).get("activeClients", ())))
        if self._follows(client_id, uri) and not taken:
            self._services.dispatch(uri, session_active_client_set(active_client=entry))

    def _grace_over(self, client_id: str) -> None:
        away = self._away.pop(client_id)
        if self._services.client(client_id) is None:
            self._leave(client_id, away.sessions, _NOT_BACK)
            self._fail_calls(client_id, None, _NOT_BACK)
        else:
            unfollowed = [uri for uri in away.sessions if not self._follows(client_id, uri)]
            self._leave(client_id, unfollowed, _LEFT)

    def _leave(self, client_id: str, sessions: Iterable[str], reason: str) -> None:
        entries = self._entries_of(client_id)
        left = [uri for uri in sessions if uri in entries]
        for uri in left:
            self._services.dispatch(uri, session_active_client_removed(client_id=client_id))
        self._fail_calls(client_id, left, reason)

    def _fail_calls(self, client_id: str, sessions: Collection[str] | None, reason: str) -> None:
        for chat_uri, turn_id, call_id in list(self._open_calls(client_id, sessions)):
            result: ToolCallResult = {"success": False, "pastTenseMessage": reason, "error": {"message": reason}}
            completed = chat_tool_call_complete(turn_id=turn_id, tool_call_id=call_id, result=result)
            self._services.dispatch(chat_uri, completed)

    # -- what the states say ---------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[tuple[str, SessionActiveClient]]:
        """Every session with each entry of a client that is active in it."""
        for uri in self._services.unsettled():
            for entry in (self._services.session(uri) or NO_SESSION).get("activeClients", ()):
                yield uri, entry

    def _entries_of(self, client_id: str) -> dict[str, SessionActiveClient]:
        return {uri: entry for uri, entry in self._entries() if entry["clientId"] == client_id}

    def _follows(self, client_id: str, uri: str) -> bool:
        client = self._services.client(client_id)
        return client is not None and client.follows(uri)

    def _open_calls(self, client_id: str, sessions: Collection[str] | None = None) -> Iterator[tuple[str, str, str]]:
        """Calls that a client runs: in the chats of these sessions, or in all."""
        for uri in self._services.unsettled():
            if sessions is None or self._services.session_of(uri) in sessions:
                yield from self._open_calls_in(uri, client_id)

    def _open_calls_in(self, chat_uri: str, client_id: str) -> Iterator[tuple[str, str, str]]:
        turn = (self._services.chat(chat_uri) or NO_CHAT).get("activeTurn")
        if turn is None:
            return
        for call in tool_calls(turn):
            owner: ToolCallContributor | None = call.get("contributor")
            if (
                owner is not None
                and owner.get("clientId") == client_id
                and call["status"] in ("running", "pending-confirmation")
            ):
                yield chat_uri, turn["id"], call["toolCallId"]


__all__ = ["ActiveClients"]
