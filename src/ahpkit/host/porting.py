"""Importing sessions: the extension `ahpkit/sessions`, because the protocol has no command for it. Knows no files.

`_ahpkit/sessions/import` takes what `ahpkit sessions export` wrote and makes a new session of it: same summary, same
chats, same finished turns, new URIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.chat.state import Turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.validation import check

if TYPE_CHECKING:
    from ahpkit.host.host import Host

EXTENSION = "ahpkit/sessions"
FORMAT = 1
"""Version of the export. A newer one is refused, not guessed at."""


class ExportedChat(TypedDict):
    """One chat of an export."""

    title: str
    turns: list[Turn]


class Export(TypedDict):
    """A session outside of a host."""

    format: Literal[1]
    title: str
    provider: str
    chats: list[ExportedChat]


class _Import(TypedDict):
    document: Export


def register(host: Host) -> None:
    """Offer the extension."""
    extension = host.extension(EXTENSION, version=str(FORMAT))

    @extension.request("import")
    async def import_session(client: ConnectedClient, params: JsonObject) -> JsonObject:
        check(_Import, params)
        uri = host.sessions.import_session(params["document"])
        await host.durable()
        return {"session": uri}


__all__ = ["EXTENSION", "FORMAT", "Export", "ExportedChat", "register"]
