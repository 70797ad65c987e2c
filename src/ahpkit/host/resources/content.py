"""Content that agents produced: kept by its hash, served under a URI of its own. Knows no clients and no turns."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ahpkit.protocol.errors import ContentNotFound

_SCHEME = "ahp-content:/"


class ContentStore:
    """One directory of blobs, each with its type beside it; without a directory everything stays in memory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._memory: dict[str, tuple[bytes, str]] = {}

    @staticmethod
    def owns(uri: str) -> bool:
        return uri.startswith(_SCHEME)

    def put(self, data: bytes, content_type: str) -> str:
        """Store, once however often it is stored; returns its URI."""
        name = hashlib.sha256(content_type.encode() + b"\0" + data).hexdigest()
        if self._directory is None:
            self._memory[name] = (data, content_type)
        elif not (self._directory / name).exists():
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._directory / f"{name}.json").write_text(json.dumps({"contentType": content_type}))
            draft = self._directory / f"{name}.tmp"
            draft.write_bytes(data)
            draft.replace(self._directory / name)
        return _SCHEME + name

    def get(self, uri: str) -> tuple[bytes, str]:
        """The bytes and their type."""
        name = uri.removeprefix(_SCHEME)
        if self._directory is None and name in self._memory:
            return self._memory[name]
        if self._directory is not None and name.isalnum() and (self._directory / name).is_file():
            about = json.loads((self._directory / f"{name}.json").read_text())
            return (self._directory / name).read_bytes(), about["contentType"]
        raise ContentNotFound(f"there is no content {uri}")


__all__ = ["ContentStore"]
