"""Plain HTTP requests for tests, each on a socket of its own: nothing is added to what the test says."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from support.waiting import BOUND


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


async def get(url: str, **headers: str) -> Answer:
    """GET `url`; `headers` replace the ones that are sent anyway."""
    return await request("GET", url, b"", **headers)


async def post(url: str, value: Any, **headers: str) -> Answer:
    """POST a value as JSON; bytes are sent as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return await request("POST", url, body, **{"Content-Length": str(len(body)), **headers})


async def request(method: str, url: str, body: bytes = b"", **headers: str) -> Answer:
    """Send a request and read the whole answer."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    async with asyncio.timeout(BOUND):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            sent = {"Host": parts.netloc, "Connection": "close", **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
            writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
            data = await reader.read()
        finally:
            writer.close()
            with suppress(OSError):  # Whoever answered may have cut the connection.
                await writer.wait_closed()
    start, _, text = data.decode().partition("\r\n\r\n")
    status, *lines = start.split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Answer(int(status.split()[1]), {name.lower(): value for name, _, value in pairs}, text)


__all__ = ["Answer", "get", "post", "request"]
