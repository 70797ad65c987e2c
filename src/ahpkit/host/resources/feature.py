"""The `resource*` methods of the host. Knows no transport; what may be touched is decided in `access`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ahpkit.host.agent import Chat
from ahpkit.host.feature import CommandHandler, ConnectedClient, Feature
from ahpkit.host.resources import files
from ahpkit.host.resources.access import Access, Roots, file_path, resolve
from ahpkit.host.resources.agent_files import AgentFiles
from ahpkit.host.resources.content import ContentStore
from ahpkit.host.resources.unsaved import UnsavedText
from ahpkit.host.resources.watches import Watches
from ahpkit.protocol.common.state import JsonObject

_HOOK_FILES = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".github/hooks",
)
"""Where a workspace declares hooks: what is written there could run later, so nobody writes it through the host."""


class Resources(Feature):
    """Serves files below the sessions' roots, and content that agents stored."""

    name = "resources"

    def __init__(self, *, content_directory: Path | None = None, grantable: Iterable[Path] = ()) -> None:
        self._content = ContentStore(content_directory)
        self._access = Access(self._roots, grantable=grantable)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ahpkit-files")
        self._watches: Watches | None = None

    async def start(self) -> None:
        self._watches = Watches(self.services)

    async def aclose(self) -> None:
        if self._watches is not None:
            self._watches.close()
        self._worker.shutdown()

    @property
    def access(self) -> Access:
        """What clients may reach, for features that reach it for them."""
        return self._access

    @property
    def commands(self) -> Mapping[str, CommandHandler]:
        return {
            "resourceRead": self._read,
            "resourceWrite": self._write,
            "resourceList": self._list,
            "resourceCopy": self._copy,
            "resourceMove": self._move,
            "resourceDelete": self._delete,
            "resourceResolve": self._resolve,
            "resourceMkdir": self._mkdir,
            "resourceRequest": self._request,
            "createResourceWatch": self._create_watch,
        }

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str:
        return self._content.put(data, content_type)

    def on_client_gone(self, client_id: str) -> None:
        self._access.forget(client_id)

    def on_unsubscribed(self, uri: str) -> None:
        if self._watches is not None:
            self._watches.release(uri)

    def agent_files(self, chat: Chat) -> AgentFiles:
        """Files for the agent of a chat: its working directory and what its session shows, no other session's."""
        directory = chat.working_directory

        def roots() -> Roots:
            roots = Roots()
            _add_directory(roots, directory)
            self._add_session(roots, chat.session_uri)
            return roots

        unsaved = UnsavedText(self.services)
        return AgentFiles(
            directory, Access(roots), unsaved=lambda uri: unsaved.of(chat.session_uri, uri), run=self._run
        )

    def _roots(self) -> Roots:
        roots = Roots()
        for uri in self.services.session_uris():
            self._add_session(roots, uri)
        return roots

    def _add_session(self, roots: Roots, uri: str) -> None:
        session = self.services.state(uri) or {}
        directory = session.get("summary", {}).get("workingDirectory")
        if directory is not None:
            _add_directory(roots, file_path(directory))
        for container in session.get("customizations", ()):
            _add_container(roots, container)

    async def _read(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        uri, encoding = params["uri"], params.get("encoding")
        if self._content.owns(uri):
            data, content_type = await self._run(self._content.get, uri)
            return files.encode_content(data, encoding) | {"contentType": content_type}
        return await self._run(files.read, self._access.reading(client.client_id, uri), encoding)

    async def _write(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        path = self._access.writing(client.client_id, params["uri"])
        data = files.decode_content(params["data"], params["encoding"])
        if self._access.may_grow(path):
            await self._run(files.mkdir, path.parent)
        await self._run(
            lambda: files.write(
                path,
                data,
                mode=params.get("mode", "truncate"),
                position=params.get("position", 0),
                create_only=params.get("createOnly", False),
                if_match=params.get("ifMatch"),
            )
        )
        return {}

    async def _list(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        return await self._run(files.list_directory, self._access.reading(client.client_id, params["uri"]))

    async def _copy(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        source = self._access.reading(client.client_id, params["source"])
        destination = self._access.writing(client.client_id, params["destination"], whole=True)
        await self._run(lambda: files.copy(source, destination, fail_if_exists=params.get("failIfExists", False)))
        return {}

    async def _move(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        source = self._access.writing(client.client_id, params["source"], whole=True)
        destination = self._access.writing(client.client_id, params["destination"], whole=True)
        await self._run(lambda: files.move(source, destination, fail_if_exists=params.get("failIfExists", False)))
        return {}

    async def _delete(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        path = self._access.writing(client.client_id, params["uri"], whole=True)
        await self._run(lambda: files.delete(path, recursive=params.get("recursive", False)))
        return {}

    async def _resolve(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        follow = params.get("followSymlinks", True)
        path = self._access.reading(client.client_id, params["uri"])
        if not follow:
            parent = self._access.reading(client.client_id, file_path(params["uri"]).parent.as_uri())
            path = parent / file_path(params["uri"]).name
        return await self._run(lambda: files.resolve_resource(path, follow=follow))

    async def _mkdir(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        await self._run(files.mkdir, self._access.writing(client.client_id, params["uri"]))
        return {}

    async def _request(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        read, write = params.get("read", False), params.get("write", False)
        self._access.grant(client.client_id, params["uri"], read=read, write=write)
        return {}

    async def _create_watch(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        path = self._access.reading(client.client_id, params["uri"])
        assert self._watches is not None
        channel = self._watches.create(path, params)
        await self.services.durable()
        return {"channel": channel}

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """One at a time, off the event loop: a check and the write it belongs to are not interrupted by another."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *arguments)


def _add_directory(roots: Roots, directory: Path) -> None:
    working = resolve(directory)
    roots.write.add(working)
    roots.sealed.update(working / name for name in _HOOK_FILES)


def _add_container(roots: Roots, container: JsonObject) -> None:
    if container.get("type") != "directory" or not container["uri"].startswith("file:"):
        return
    path = resolve(file_path(container["uri"]))
    roots.read.add(path)
    if container.get("writable"):
        roots.write.add(path)
        roots.grown.add(path)
    else:
        roots.sealed.add(path)


__all__ = ["Resources"]
