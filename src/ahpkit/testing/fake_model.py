"""A model endpoint for tests: speaks the APIs of several makers, streams, and answers with a function.

    async with FakeModel() as model:
        ...  # point an agent at model.url

    python -m ahpkit.testing.fake_model --port 18080

It speaks OpenAI's chat completions and Responses, Anthropic's Messages and Gemini's generateContent. Without a function
of its own it follows the last user message: `CALL name {json}` calls a tool that the request offers, `FAIL 400 text`
answers with that status, `SLOW n` streams n words with pauses; everything else is echoed. After a tool's result it says
what the result was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ahpkit.testing.model_apis import CallTool, Fail, Json, ModelApi, ModelRequest, Reply, Say, api_at


def follow(asked: ModelRequest) -> Reply:
    """The built-in way to answer."""
    if asked.result is not None:
        return Say(f"The tool returned: {asked.result[:200]}")
    if (call := re.search(r"CALL (\w+) (\{.*\})", asked.text, re.DOTALL)) and call[1] in asked.tools:
        return CallTool(call[1], json.loads(call[2]))
    if fail := re.search(r"FAIL (\d{3}) (.*)", asked.text):
        return Fail(int(fail[1]), fail[2])
    if slow := re.search(r"SLOW (\d+)", asked.text):
        return Say(" ".join(str(number) for number in range(int(slow[1]))), pause=0.05)
    return Say(f"You said: {asked.text}")


class FakeModel:
    """`async with FakeModel(answer) as model`; `model.url` is the base URL, `model.requests` what was asked."""

    def __init__(self, answer: Callable[[ModelRequest], Reply] = follow, *, port: int = 0) -> None:
        self.requests: list[ModelRequest] = []
        self.headers: list[dict[str, str]] = []
        self._answer = answer
        self._port = port
        self._server: asyncio.Server
        self._connections: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._respond(*await _read_request(reader), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _respond(self, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        path, _, query = path.partition("?")
        api = api_at(path)
        if path.endswith("/models"):
            models = [{"id": "fake-model", "object": "model", "created": 0, "owned_by": "ahpkit"}]
            _write_json(writer, 200, {"object": "list", "data": models})
        elif api is not None:
            self.headers.append(headers)
            given = json.loads(body)
            await self._answer_prompt(api, given, writer, stream=given.get("stream") or "alt=sse" in query)
        else:
            _write_json(writer, 404, {"error": {"message": f"no such path: {path}"}})

    async def _answer_prompt(self, api: ModelApi, body: Json, writer: asyncio.StreamWriter, *, stream: bool) -> None:
        asked = api.asked(body)
        self.requests.append(asked)
        reply = self._answer(asked)
        if isinstance(reply, Fail):
            _write_json(writer, reply.status, {"error": {"message": reply.message, "type": "fake"}})
            return
        if not stream:
            _write_json(writer, 200, api.whole(reply))
            return
        _write_head(writer, 200, "text/event-stream")
        async for name, event in api.events(reply):
            label = f"event: {name}\n" if name else ""
            writer.write(f"{label}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
            await writer.drain()


# HTTP.


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        return head[0].split()[1], headers, await _read_chunks(reader)
    return head[0].split()[1], headers, await reader.readexactly(int(headers.get("content-length", "0")))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    return body


def _write_head(writer: asyncio.StreamWriter, status: int, content_type: str, length: int | None = None) -> None:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n{size}Connection: close\r\n\r\n"
    writer.write(head.encode())


def _write_json(writer: asyncio.StreamWriter, status: int, value: Json) -> None:
    body = json.dumps(value).encode()
    _write_head(writer, status, "application/json", len(body))
    writer.write(body)


async def _serve_for_ever(port: int) -> None:
    async with FakeModel(port=port) as model:
        sys.stdout.write(f"A fake model answers at {model.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake model endpoint on loopback.")
    parser.add_argument("--port", type=int, default=18080, help="0 takes a free one.  [default: 18080]")
    asyncio.run(_serve_for_ever(parser.parse_args().port))


__all__ = ["CallTool", "Fail", "FakeModel", "ModelRequest", "Reply", "Say", "follow", "main"]

if __name__ == "__main__":
    main()
