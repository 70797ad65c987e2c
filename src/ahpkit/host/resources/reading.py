"""Reads a file for the result of `resourceRead`: at once, or piece by piece as the client reads.

A large file is read from the disk while the answer is sent. If it changes meanwhile, the answer may mix old and new
content.
"""

from __future__ import annotations

import base64
import codecs
import mimetypes
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NotRequired, TypedDict

from ahpkit.host.resources.files import errors
from ahpkit.host.resources.safe_open import Entry, open_regular
from ahpkit.protocol.common.commands import ContentEncoding
from ahpkit.protocol.errors import InvalidParams
from ahpkit.wire.codec import encode
from ahpkit.wire.pieces import Pieces

MAX_READ = 10 * 1024 * 1024
"""Bytes of one resourceRead. In base64 they still fit into one message."""

_SMALL = 256 * 1024
"""Bytes of a file that is read at once."""

_CHUNK = 192 * 1024
"""Bytes read at a time; a multiple of three, so that base64 can be joined."""

_BASE64 = 1024 * 1024
"""Characters of base64 that are decoded at a time (a multiple of four), so that other threads can run in between."""


class ResourceContent(TypedDict):
    """A `ResourceReadResult` whose data may still have to be read."""

    data: str | Pieces
    encoding: ContentEncoding
    contentType: NotRequired[str]


Run = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Does work that may block in a thread."""


def read(entry: Entry, encoding: str | None) -> ResourceContent:
    """The content in the encoding that was asked for, if possible; otherwise as text if it is text."""
    with errors(entry.path), _opened(entry) as file:
        return _typed(encode_content(file.read(0, MAX_READ), encoding), entry)


def read_later(entry: Entry, encoding: str | None, run: Run) -> ResourceContent:
    """Like `read`, but a large file is read while it is written to the client."""
    with errors(entry.path):
        file = _opened(entry)
        return _typed(file.content(encoding, run), entry)


def _typed(content: ResourceContent, entry: Entry) -> ResourceContent:
    content_type = mimetypes.guess_type(entry.name)[0]
    return {**content, "contentType": content_type} if content_type else content


def _opened(entry: Entry) -> OpenFile:
    descriptor, found = open_regular(entry)
    if found.st_size > MAX_READ:
        os.close(descriptor)
        raise InvalidParams(f"uri: {entry.path} is larger than {MAX_READ} bytes")
    return OpenFile(descriptor)


class OpenFile:
    """An open file that is closed when its last user drops it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self, start: int, count: int) -> bytes:
        """This many bytes from an offset; fewer at the end. If the file grows meanwhile, the new bytes are ignored."""
        parts: list[bytes] = []
        while count > 0 and (part := os.pread(self._descriptor, min(count, _CHUNK), start)):
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return b"".join(parts)

    def content(self, encoding: str | None, run: Run) -> ResourceContent:
        """The content for a result. Blocks: a large file is searched for bytes that are not text."""
        first = self.read(0, _SMALL + 1)
        if len(first) <= _SMALL:
            return encode_content(first, encoding)
        if encoding != "base64" and self._is_text():
            return {"data": Pieces(partial(self._text, run)), "encoding": "utf-8"}
        return {"data": Pieces(partial(self._base64, run)), "encoding": "base64"}

    def _is_text(self) -> bool:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in range(0, MAX_READ, _CHUNK):
                decoder.decode(self.read(start, min(_CHUNK, MAX_READ - start)))
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        return True

    async def _text(self, run: Run) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # The file was text when its type was checked.
        yield b'"'
        async for chunk in self._chunks(run):
            yield encode(decoder.decode(chunk))[1:-1]
        yield encode(decoder.decode(b"", final=True))[1:-1] + b'"'

    async def _base64(self, run: Run) -> AsyncIterator[bytes]:
        yield b'"'
        async for chunk in self._chunks(run):
            yield base64.b64encode(chunk)
        yield b'"'

    async def _chunks(self, run: Run) -> AsyncIterator[bytes]:
        for start in range(0, MAX_READ, _CHUNK):
            chunk = await run(partial(self.read, start, min(_CHUNK, MAX_READ - start)))
            yield chunk
            if len(chunk) < _CHUNK:
                return


def encode_content(data: bytes, encoding: str | None) -> ResourceContent:
    """Bytes as a resource result carries them."""
    if encoding != "base64":
        try:
            return {"data": data.decode("utf-8"), "encoding": "utf-8"}
        except UnicodeDecodeError:
            pass
    return {"data": base64.b64encode(data).decode("ascii"), "encoding": "base64"}


def decode_content(data: str, encoding: str) -> bytes:
    """The bytes that a client sent. This takes a while for a large file, so call it in a worker."""
    if encoding == "utf-8":
        return data.encode("utf-8", "replace")
    pieces: list[bytes] = []
    try:
        for start in range(0, len(data), _BASE64):
            if pieces and len(pieces[-1]) < _BASE64 // 4 * 3:
                raise ValueError("Excess data after padding")
            pieces.append(base64.b64decode(data[start : start + _BASE64], validate=True))
    except ValueError as error:
        raise InvalidParams(f"data: not valid base64: {error}") from error
    return b"".join(pieces)


__all__ = ["MAX_READ", "OpenFile", "decode_content", "encode_content", "read", "read_later"]
