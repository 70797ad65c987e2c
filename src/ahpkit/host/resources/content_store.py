"""Stores content that agents produced under its hash, and serves it by a URI."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from ahpkit.host.resources.reading import OpenFile
from ahpkit.host.resources.safe_open import READ
from ahpkit.protocol.errors import ContentNotFound

_SCHEME = "ahp-content:/"

_NAME = re.compile(r"[0-9a-f]{64}")

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class ContentStore:
    """One directory of blobs, each with its type beside it; without a directory everything stays in memory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._memory: dict[str, tuple[bytes, str]] = {}

    @staticmethod
    def owns(uri: str) -> bool:
        return uri.startswith(_SCHEME)

    def put(self, data: bytes, content_type: str) -> str:
        """Store data and return its URI. The same data is stored only once."""
        name = hashlib.sha256(content_type.encode() + b"\0" + data).hexdigest()
        if self._directory is None:
            self._memory[name] = (data, content_type)
        else:
            self._keep(self._directory, name, data, content_type)
        return _SCHEME + name

    @staticmethod
    def _keep(directory: Path, name: str, data: bytes, content_type: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.path.lexists(directory / name):
                return
            _write(folder, f"{name}.json", json.dumps({"contentType": content_type}).encode())
            _write(folder, f"{name}.tmp", data)
            os.replace(f"{name}.tmp", name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def open(self, uri: str) -> tuple[bytes | OpenFile, str]:
        """The bytes or the file that contains them, and their type. The URI ends with a name for people, which is
        ignored."""
        name = uri.removeprefix(_SCHEME).partition("/")[0]
        missing = ContentNotFound(f"there is no content {uri}")
        if not _NAME.fullmatch(name):
            raise missing
        if self._directory is None:
            if name not in self._memory:
                raise missing
            return self._memory[name]
        try:
            about = json.loads(_read(self._directory / f"{name}.json"))
            return OpenFile(os.open(self._directory / name, READ)), about["contentType"]
        except FileNotFoundError:
            raise missing from None


def _write(folder: int, name: str, data: bytes) -> None:
    with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)


def _read(path: Path) -> bytes:
    with open(os.open(path, READ), "rb") as file:
        return file.read()


__all__ = ["ContentStore"]
