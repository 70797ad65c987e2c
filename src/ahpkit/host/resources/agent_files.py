"""Reads and writes text files for the agent of one chat, by the rules of `resource*`. The unsaved text of an editor
comes before the file on disk.

An agent reaches the same files in the session's directories as clients do. Files that can cause execution are written
only when a person approved it (`needs_approval` says what kind of file it is).

Unsaved text of open editors is newer than the file on disk. A client offers it by advertising `ahpkit/unsaved-text`.
The host asks it with the protocol's own `resourceRead` for a `file:` URI. The client answers `NotFound` for a file
without unsaved text.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ahpkit.host.feature import ConnectedClient, Services
from ahpkit.host.resources import files, reading
from ahpkit.host.resources.access import Access
from ahpkit.host.resources.claims import Claim, Claims
from ahpkit.host.resources.reading import ResourceContent
from ahpkit.host.resources.safe_open import Entry, SafeOpener, reach, real_path
from ahpkit.host.workers import RunInThread
from ahpkit.protocol.common.commands import ResourceReadParams
from ahpkit.protocol.common.state import ROOT_URI
from ahpkit.protocol.errors import AhpError, InvalidParams, NotFound, PermissionDenied, RemoteProtocolError
from ahpkit.protocol.meta_keys import UNSAVED_TEXT

_PATIENCE = 1.0
"""Seconds for an editor's answer. The editor has the text in memory, and the agent is waiting."""

_log = logging.getLogger(__name__)


class UnsavedText:
    """Asks the clients that watch a session: the active ones first."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def of(self, session_uri: str, uri: str) -> str | None:
        """The unsaved text of a file in an open editor; None: the file on disk is the latest."""
        asked: ResourceReadParams = {"channel": ROOT_URI, "uri": uri, "encoding": "utf-8"}
        for client in self._in_force(session_uri):
            try:
                return _answered_text(await client.request("resourceRead", asked, timeout=_PATIENCE))
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


def _answered_text(answer: object) -> str:
    """The text of a `resourceRead` result."""
    match answer:
        case {"data": str() as data, "encoding": "utf-8"}:
            return data
        case _:
            raise RemoteProtocolError("the answer is not a text")


_AGENT = ""
"""The id of agents in `Access`. No client has this id, so nothing is ever granted to it."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval to write one file that can cause execution: its real path, and what kind of file it is."""

    path: Path
    what: str


class AgentFiles:
    """Files for one agent. Every refusal is an error of the protocol that names the path. `unsaved` finds newer text
    than the disk has."""

    def __init__(
        self,
        directory: Path,
        access: Access,
        *,
        unsaved: Callable[[str], Awaitable[str | None]],
        run: RunInThread,
        claims: Claims | None = None,
        learn: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`run` runs work in a thread. `claims` orders writes to the same places. `learn` updates the directories that
        `access` allows."""
        self._directory = directory
        self._access = access
        self._unsaved = unsaved
        self._run = run
        self._claims = claims or Claims()
        self._learn = learn

    async def read(self, path: Path) -> str:
        opener = await self._opener(path, lambda: self._access.to_read(_AGENT, path.as_uri()))
        text = await self._unsaved(_name(path))
        return text if text is not None else _text(path, await self._run(lambda: self._read(path, opener)))

    async def needs_approval(self, path: Path) -> Approval | None:
        """The kind of file, if writing it needs a person's approval; None if it needs none, or if it is refused in any
        case."""

        def look() -> Approval | None:
            real = real_path(path)
            what = self._access.why_sealed(real)
            return None if what is None else Approval(real, what)

        found = await self._run(look) if path.is_absolute() else None
        if found is not None:  # A path that no approval could allow is refused without asking anybody.
            allowed = found.path
            await self._opener(path, lambda: self._access.to_write(_AGENT, path.as_uri(), approved=allowed))
        return found

    async def write(self, path: Path, content: str, *, approved: Approval | None = None) -> None:
        """Write a file. `approved`: a person agreed to write exactly this file, although it can cause execution."""
        allowed = None if approved is None else approved.path
        data = reading.decode_content(content, "utf-8")
        if len(data) > reading.MAX_READ:
            raise InvalidParams(f"content: more than {reading.MAX_READ} bytes")
        opener = await self._opener(path, lambda: self._access.to_write(_AGENT, path.as_uri(), approved=allowed))

        async def work(claim: Claim) -> None:
            await self._run(lambda: self._write(path, claim.limit(opener), data))

        await self._claims.run(None, [path], work)

    async def _opener(self, path: Path, make: Callable[[], SafeOpener]) -> SafeOpener:
        """The opener for a path. The path is checked once now, so that no person is asked about a path that cannot be
        allowed."""
        if not path.is_absolute():
            raise InvalidParams(f"path: {path} is not absolute")
        if self._learn is not None:
            await self._learn()
        opener = self._in_words(make(), path)
        await self._run(lambda: opener.check(real_path(path)))
        return opener

    def _in_words(self, opener: SafeOpener, named: Path) -> SafeOpener:
        def check(path: Path) -> None:
            try:
                opener.check(path)
            except PermissionDenied as denied:
                if denied.request is None:  # Inside the directory, but not writable.
                    raise
                raise PermissionDenied(f"{named} is outside the working directory {self._directory}") from None

        return SafeOpener(check, opener.barred)

    def _read(self, path: Path, opener: SafeOpener) -> ResourceContent:
        with files.errors(path):
            return reach(path, opener, lambda entry: reading.read(entry, "utf-8"))

    def _write(self, path: Path, opener: SafeOpener, data: bytes) -> None:
        def write(entry: Entry) -> None:
            files.write(entry, data, mode="truncate", position=0, create_only=False, if_match=None)

        with files.errors(path):
            reach(path, opener, write, make=True)


def _name(path: Path) -> str:
    """The URI under which an editor knows the file: links are not followed."""
    return Path(os.path.normpath(path)).as_uri()


def _text(path: Path, content: ResourceContent) -> str:
    if content["encoding"] != "utf-8":
        raise InvalidParams(f"{path} is not a text file in UTF-8")
    return str(content["data"])


__all__ = ["AgentFiles", "Approval", "UnsavedText"]
