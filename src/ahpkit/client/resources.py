"""Serves files of this client to the host, read-only: trees under `virtual://` URIs, and unsaved text of files."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import inspect
import mimetypes
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote, unquote

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound, PermissionDenied
from ahpkit.protocol.session.state import ClientPluginCustomization
from ahpkit.wire.errors import InvalidParams

EntryType = Literal["file", "directory"]

METHODS = frozenset(
    f"resource{verb}"
    for verb in ("Read", "Write", "List", "Copy", "Delete", "Move", "Resolve", "Mkdir", "Request")
)  # fmt: skip
"""The methods of the resource family, which a host may send to a client."""

OnUnsavedText = Callable[[str], Awaitable[str | None] | str | None]
"""Returns the unsaved text that an open editor has for a `file:` URI, or None. May be async."""

_NOT_SHOWN = frozenset({".git"})
"""Folders that are never published, because they are large and may contain secrets."""


class ResourceProvider(Protocol):
    """A tree of files. Paths are relative, with forward slashes; the root is the empty path."""

    def read(self, path: str) -> bytes:
        """The content of a file; raises `FileNotFoundError`."""
        ...

    def entries(self, path: str) -> Mapping[str, EntryType] | None:
        """The names and kinds of a directory's entries; None when the path is not a directory."""
        ...


class MemoryResources:
    """Files held in memory, by path."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._files = {_clean(path): _bytes(content) for path, content in files.items()}

    def read(self, path: str) -> bytes:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def entries(self, path: str) -> Mapping[str, EntryType] | None:
        prefix = f"{path}/" if path else ""
        below = [name.removeprefix(prefix) for name in self._files if name.startswith(prefix)]
        found: dict[str, EntryType] = {}
        for name in sorted(below):
            first, slash, _ = name.partition("/")
            found[first] = "directory" if slash else "file"
        return found if found or not path else None


class FolderResources:
    """A folder on disk. Links that lead out of the folder, or to one of their parents, are left out."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve(strict=True)

    def read(self, path: str) -> bytes:
        target = self._locate(path)
        if target is None or not target.is_file():
            raise FileNotFoundError(path)
        return target.read_bytes()

    def entries(self, path: str) -> Mapping[str, EntryType] | None:
        target = self._locate(path)
        if target is None or not target.is_dir():
            return None
        children = sorted(child for child in target.iterdir() if self._shown(child))
        return {child.name: "directory" if child.is_dir() else "file" for child in children}

    def _locate(self, path: str) -> Path | None:
        target = self._root / path
        return target if self._shown(target) else None

    def _shown(self, target: Path) -> bool:
        steps = target.relative_to(self._root).parts
        way = [self._root.joinpath(*steps[:count]).resolve() for count in range(len(steps) + 1)]
        if len(set(way)) < len(way) or not way[-1].is_relative_to(self._root):
            return False
        return _NOT_SHOWN.isdisjoint(way[-1].relative_to(self._root).parts)


def fingerprint(provider: ResourceProvider) -> str:
    """A short text that changes when any file does."""
    digest = hashlib.sha256()
    for path in _walk(provider, ""):
        content = provider.read(path)
        digest.update(f"{len(path)}:{path}:{len(content)}:".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


class Resources:
    """The trees that this client shows, by URI. Answers the host's resource requests about them."""

    def __init__(self, client_id: str, *, unsaved_text: OnUnsavedText | None = None) -> None:
        self._base = f"virtual://{quote(client_id, safe='')}"
        self._unsaved_text = unsaved_text
        self._mounts: dict[str, ResourceProvider] = {}
        self._users: dict[str, set[str]] = {}

    def mount(self, name: str, provider: ResourceProvider, *, user: str) -> str:
        """Show a tree for a user, such as a session; returns its URI. A tree with the same name is replaced."""
        uri = f"{self._base}/{quote(name, safe='')}"
        self._mounts[uri] = provider
        self._users.setdefault(uri, set()).add(user)
        return uri

    def unmount(self, uri: str, *, user: str) -> None:
        """Remove a user of the tree. Without users it is no longer shown."""
        self._users[uri].discard(user)
        if not self._users[uri]:
            del self._users[uri], self._mounts[uri]

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Serve one request of the resource family."""
        uri = params.get("uri", params.get("source"))
        if not isinstance(uri, str):
            raise InvalidParams("uri: expected string")
        if self._unsaved_text is not None and method == "resourceRead" and uri.startswith("file:"):
            return await _unsaved(self._unsaved_text, uri)
        provider, path = self._find(uri)
        serve = {"resourceRead": _read, "resourceList": _list, "resourceResolve": _resolve}.get(method)
        if serve is None:
            raise PermissionDenied(f"{uri} is read-only")
        try:
            return await asyncio.to_thread(serve, provider, path, params)
        except OSError:
            raise NotFound(f"there is no {uri}") from None

    def _find(self, uri: str) -> tuple[ResourceProvider, str]:
        for base, provider in self._mounts.items():
            if uri == base or uri.startswith(f"{base}/"):
                return provider, _clean(unquote(uri.removeprefix(base)))
        raise NotFound(f"this client shows nothing at {uri}")


async def _unsaved(unsaved_text: OnUnsavedText, uri: str) -> JsonObject:
    found = unsaved_text(uri)
    text = await found if inspect.isawaitable(found) else found
    if text is None:
        raise NotFound(f"there is no unsaved text of {uri}")
    return {"data": text, "encoding": "utf-8"}


def _read(provider: ResourceProvider, path: str, params: JsonObject) -> JsonObject:
    content = provider.read(path)
    return _encoded(content, params.get("encoding")) | _content_type(path)


def _list(provider: ResourceProvider, path: str, params: JsonObject) -> JsonObject:
    entries = provider.entries(path)
    if entries is None:
        raise NotADirectoryError(path)
    return {"entries": [{"name": name, "type": kind} for name, kind in entries.items()]}


def _resolve(provider: ResourceProvider, path: str, params: JsonObject) -> JsonObject:
    if provider.entries(path) is not None:
        return {"uri": params["uri"], "type": "directory"}
    content = provider.read(path)
    etag = hashlib.sha256(content).hexdigest()
    return {"uri": params["uri"], "type": "file", "size": len(content), "etag": etag} | _content_type(path)


def _encoded(content: bytes, wanted: Any) -> JsonObject:
    """The content as text, or as base64 when that was asked for or the content is not text."""
    if wanted != "base64":
        try:
            return {"data": content.decode(), "encoding": "utf-8"}
        except UnicodeDecodeError:
            pass
    return {"data": base64.b64encode(content).decode(), "encoding": "base64"}


def _content_type(path: str) -> JsonObject:
    guessed, _ = mimetypes.guess_type(path)
    return {"contentType": guessed} if guessed else {}


def _walk(provider: ResourceProvider, path: str) -> Iterator[str]:
    for name, kind in (provider.entries(path) or {}).items():
        child = f"{path}/{name}" if path else name
        if kind == "directory":
            yield from _walk(provider, child)
        else:
            yield child


def _clean(path: str) -> str:
    """A relative path without empty parts. A path with `..` is refused, because it could leave the tree."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise NotFound(f"{path}: paths may not contain '..'")
    return "/".join(parts)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


@dataclass(frozen=True, slots=True)
class InMemoryPlugin:
    """A plugin whose files are not on disk. `files` maps a path in the plugin to its content.

    >>> InMemoryPlugin("notes", {"skills/tidy/SKILL.md": "---\\nname: tidy\\n---\\nTidy up."})  # doctest: +ELLIPSIS
    InMemoryPlugin(name='notes', ...)
    """

    name: str
    files: Mapping[str, str | bytes]


def publish(resources: Resources, plugin: InMemoryPlugin | Path | str, *, session: str) -> ClientPluginCustomization:
    """Show a plugin's files to the host for a session; returns its description. Its nonce changes with every file."""
    name, provider = _open(plugin)
    uri = resources.mount(name, provider, user=session)
    return {
        "type": "plugin",
        "id": uri,
        "uri": uri,
        "name": name,
        "enablement": [{"kind": "global", "enabled": True}],
        "nonce": fingerprint(provider),
    }


def _open(plugin: InMemoryPlugin | Path | str) -> tuple[str, ResourceProvider]:
    if isinstance(plugin, InMemoryPlugin):
        return plugin.name, MemoryResources(plugin.files)
    folder = Path(plugin).resolve(strict=True)
    return folder.name, FolderResources(folder)


__all__ = [
    "METHODS",
    "EntryType",
    "FolderResources",
    "InMemoryPlugin",
    "MemoryResources",
    "OnUnsavedText",
    "ResourceProvider",
    "Resources",
    "fingerprint",
    "publish",
]
