"""Reads a plugin from the client that publishes it, by `resourceList` and `resourceRead`, and checks every answer.

A client may be slow, answer nonsense or lead in circles; the limits and the time of `source.load` hold for it too.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.customizations.source import Listing
from ahpkit.customizations.tree import Content, File, Limits, Unreadable, join
from ahpkit.host.feature import ConnectedClient
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound, RpcError

CLIENT_LIMITS = Limits(entries=10_000, files=2_000, file_bytes=1024 * 1024, total_bytes=16 * 1024 * 1024, depth=10)
"""A client's plugin travels over its connection: less of it than of a folder on our own disk."""

_AT_ONCE = 8
"""Requests for one plugin that a client has to answer at the same time."""

ALL_AT_ONCE = 256
"""The same for all its plugins together; a connection can have some more."""


class ClientSource:
    """The files below `uri`, as the client `client` serves them."""

    def __init__(
        self, client: ConnectedClient, *, uri: str, name: str, timeout: float, shared: asyncio.Semaphore | None = None
    ) -> None:
        """`shared` limits the requests of all plugins of this client together."""
        self.uri = uri.rstrip("/")
        self.name = name
        self._client = client
        self._timeout = timeout
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._shared = shared or asyncio.Semaphore(ALL_AT_ONCE)

    async def list(self, folders: Sequence[str], *, limit: int) -> Sequence[Listing]:
        return await asyncio.gather(*(self._list(folder, limit) for folder in folders))

    async def read(self, files: Sequence[File], *, limit: int) -> Sequence[Content | Unreadable]:
        return await asyncio.gather(*(self._read(file, limit) for file in files))

    async def _list(self, folder: str, limit: int) -> Listing:
        try:
            answer = await self._ask("resourceList", self._uri_of(folder))
        except NotFound:
            return Listing(missing=True)
        except RpcError as error:
            level = "error" if folder == "" else "warning"
            return Listing(findings=[Diagnostic(level, "unreadable", f"cannot be listed ({error.message})", folder)])
        entries = answer.get("entries")
        if not isinstance(entries, list):
            return Listing(findings=[_nonsense(folder)])
        listing = Listing()
        for entry in cast("list[Any]", entries)[:limit]:
            self._entry(listing, folder, entry)
        return listing

    def _entry(self, listing: Listing, folder: str, entry: Any) -> None:
        fields = cast("JsonObject", entry) if isinstance(entry, dict) else {}
        name = fields.get("name")
        if not isinstance(name, str) or not name or "/" in name or "\\" in name or name in (".", ".."):
            listing.findings.append(_nonsense(folder))
        elif fields.get("type") == "directory":
            listing.folders.append(name)
        else:
            path = join(folder, name)
            listing.files.append(File(path, self._uri_of(path)))

    async def _read(self, file: File, limit: int) -> Content | Unreadable:
        try:
            answer = await self._ask("resourceRead", file.real)
        except RpcError as error:
            return Unreadable(f"cannot be read ({error.message})")
        data = answer.get("data")
        if not isinstance(data, str):
            return Unreadable("the client answered without data")
        try:
            content = base64.b64decode(data, validate=True) if answer.get("encoding") == "base64" else data.encode()
        except (binascii.Error, UnicodeEncodeError, ValueError):
            return Unreadable("the client answered with data that cannot be decoded")
        if len(content) > limit:
            return Content(content[:limit], f"longer than {limit} bytes; the rest was not read")
        return Content(content)

    async def _ask(self, method: str, uri: str) -> JsonObject:
        async with self._slots, self._shared:
            params = {"channel": ROOT_URI, "uri": uri}
            answer = await self._client.request(method, params, timeout=self._timeout)
        return cast("JsonObject", answer) if isinstance(answer, dict) else {}

    def _uri_of(self, path: str) -> str:
        return f"{self.uri}/{quote(path.encode('utf-8', 'replace'))}" if path else self.uri


def _nonsense(folder: str) -> Diagnostic:
    level = "error" if folder == "" else "warning"
    return Diagnostic(level, "bad-answer", "the client's list of files is not one", folder)


__all__ = ["CLIENT_LIMITS", "ClientSource"]
