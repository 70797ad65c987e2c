"""A plain HTTP GET for tests, on a socket of its own: nothing is added to what the test says."""

from __future__ import annotations

import asyncio
import json
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
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    async with asyncio.timeout(BOUND):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            sent = {"Host": parts.netloc, **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
            writer.write(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())
            data = await reader.read()
        finally:
            writer.close()
    start, _, body = data.decode().partition("\r\n\r\n")
    status, *lines = start.split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Answer(int(status.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


__all__ = ["Answer", "get"]
