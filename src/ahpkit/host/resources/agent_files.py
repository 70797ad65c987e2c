"""Text files as the agent of one chat reaches them through the host: the policy of `resource*`, unsaved text first.

Knows no protocol of agents. What clients may not reach in the session's directories, its agent may not either.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ahpkit.host.resources import files
from ahpkit.host.resources.access import Access
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, PermissionDenied

_AGENT = ""
"""Who asks, for `Access`: no client's id, so nothing was ever granted to it."""


class AgentFiles:
    """Every refusal is an error of the protocol that names the path. `unsaved` may have newer text than the disk."""

    def __init__(
        self,
        directory: Path,
        access: Access,
        *,
        unsaved: Callable[[str], Awaitable[str | None]],
        run: Callable[..., Awaitable[Any]],
    ) -> None:
        self._directory = directory
        self._access = access
        self._unsaved = unsaved
        self._run = run

    async def read(self, path: Path) -> str:
        target = self._checked(path, self._access.reading)
        text = await self._unsaved(_name(path))
        return text if text is not None else _text(target, await self._run(files.read, target, "utf-8"))

    async def write(self, path: Path, content: str) -> None:
        target = self._checked(path, self._access.writing)
        data = files.decode_content(content, "utf-8")
        if len(data) > files.MAX_READ:
            raise InvalidParams(f"content: more than {files.MAX_READ} bytes")
        await self._run(_write, target, data)

    def _checked(self, path: Path, check: Callable[[str, str], Path]) -> Path:
        if not path.is_absolute():
            raise InvalidParams(f"path: {path} is not absolute")
        try:
            return check(_AGENT, path.as_uri())
        except PermissionDenied as denied:
            if denied.request is None:  # Inside, and yet not to be written.
                raise
            raise PermissionDenied(f"{path} is outside the working directory {self._directory}") from None


def _name(path: Path) -> str:
    """The URI that an editor knows the file by: links are not followed."""
    return Path(os.path.normpath(path)).as_uri()


def _text(path: Path, content: JsonObject) -> str:
    if content["encoding"] != "utf-8":
        raise InvalidParams(f"{path} is not a text file in UTF-8")
    return content["data"]


def _write(path: Path, data: bytes) -> None:
    files.mkdir(path.parent)
    files.write(path, data, mode="truncate", position=0, create_only=False, if_match=None)


__all__ = ["AgentFiles"]
