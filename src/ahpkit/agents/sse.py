"""A small HTTP client for streams of server-sent events: one request, its events one by one.

The client supports what model endpoints need: TLS, chunked bodies, the text of errors, and cancellation that ends the
connection at once. It follows no redirects and uses no proxy.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import TypeVar
from urllib.parse import urlsplit

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line. An event with an image fits."""

MAX_ERROR = 64 * 1024
"""Bytes that are read of an answer that is not a stream."""

_CONNECT_TIMEOUT = 30.0
_BLOCK = 64 * 1024

T = TypeVar("T")


class HttpError(Exception):
    """The request failed. With `status` 0, the endpoint could not be reached, or the connection broke."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body[:200]}")
        self.status = status
        self.body = body


async def post_events(
    url: str, *, headers: Mapping[str, str], body: bytes, timeout: float
) -> AsyncGenerator[str, None]:
    """The data of each event that the endpoint sends in answer to `body`."""
    wanted = {"content-type": "application/json", "accept": "text/event-stream", **headers}
    data: list[str] = []
    async with aclosing(request("POST", url, headers=wanted, body=body, timeout=timeout)) as lines:
        async for line in lines:
            field, _, value = line.decode("utf-8", "replace").partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data = []
    if data:
        yield "\n".join(data)


async def request(
    method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", timeout: float
) -> AsyncGenerator[bytes, None]:
    """The body of a successful answer, line by line. `timeout` limits each wait for more data."""
    reader, writer = await _connect(url)
    try:
        writer.write(_request_bytes(method, url, headers, body))
        status, answered = await _within(timeout, _read_head(reader))
        async with aclosing(_lines(_body(reader, answered))) as lines:
            if status != 200:
                raise HttpError(status, await _within(timeout, _read_error(lines)))
            while (line := await _within(timeout, anext(lines, None))) is not None:
                yield line
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise HttpError(0, str(error) or f"nothing came for {timeout:g} seconds") from error
    finally:
        writer.transport.abort()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    context = ssl.create_default_context() if secure else None
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            return await asyncio.open_connection(parts.hostname, port, ssl=context, limit=MAX_LINE)
    except OSError as error:
        raise HttpError(0, str(error) or "no answer") from error


def _request_bytes(method: str, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = {"host": parts.netloc.rpartition("@")[2], "connection": "close", "content-length": str(len(body)), **headers}
    if any(character in value for value in sent.values() for character in "\r\n"):
        raise ValueError("a header contains a line break")
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ", 2)[1]), headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            if size > MAX_LINE:
                raise ValueError("a chunk is too large")
            yield (await reader.readexactly(size + 2))[:-2]
        return
    left = int(headers["content-length"]) if "content-length" in headers else None
    while left != 0 and (block := await reader.read(_BLOCK if left is None else min(left, _BLOCK))):
        left = None if left is None else left - len(block)
        yield block


async def _lines(blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    rest = b""
    async for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if len(rest) > MAX_LINE:
            raise ValueError("a line is too long")
    if rest:
        yield rest


async def _read_error(lines: AsyncGenerator[bytes, None]) -> str:
    body = b""
    async for line in lines:
        body += line + b"\n"
        if len(body) > MAX_ERROR:
            break
    return body[:MAX_ERROR].decode("utf-8", "replace").strip()


async def _within(seconds: float, work: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await work


__all__ = ["MAX_ERROR", "MAX_LINE", "HttpError", "post_events", "request"]
