"""Asks open editors for unsaved text, which is newer than the file on disk.

A client offers it by advertising `ahpkit/unsaved-text`. It is asked with the protocol's own `resourceRead` for a
`file:` URI, and answers `NotFound` for every file that it has no unsaved text of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from ahpkit.host.feature import ConnectedClient, Services
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError, NotFound, RemoteProtocolError
from ahpkit.protocol.meta_keys import UNSAVED_TEXT

_PATIENCE = 1.0
"""Seconds for an editor's answer: it only has to look into its memory, and the agent is waiting."""

_log = logging.getLogger(__name__)


class UnsavedText:
    """Asks the clients that watch a session: the active ones first."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def of(self, session_uri: str, uri: str) -> str | None:
        """The text of a file as an open editor has it, or None: the disk has the latest."""
        asked: JsonObject = {"channel": session_uri, "uri": uri, "encoding": "utf-8"}
        for client in self._in_force(session_uri):
            try:
                return _text(await client.request("resourceRead", asked, timeout=_PATIENCE))
            except NotFound:
                continue
            except (AhpError, TimeoutError, ConnectionError) as error:
                _log.warning("%s did not say whether it has unsaved text of %s: %r", client.client_id, uri, error)
        return None

    def _in_force(self, session_uri: str) -> Iterator[ConnectedClient]:
        state = self._services.state(session_uri) or {}
        active = (self._services.client(one["clientId"]) for one in state.get("activeClients", ()))
        first = {client.client_id: client for client in active if client is not None}
        clients = first | {client.client_id: client for client in self._services.subscribers(session_uri)}
        return (client for client in clients.values() if UNSAVED_TEXT in client.capabilities.get("_meta", {}))


def _text(answer: Any) -> str:
    """The text of a `resourceRead` result."""
    match answer:
        case {"data": str() as data, "encoding": "utf-8"}:
            return data
        case _:
            raise RemoteProtocolError("the answer is not a text")


__all__ = ["UnsavedText"]
