"""A model endpoint that runs anywhere: OpenAI's chat completions and Responses, streamed, answered by a function.

    async with FakeModel() as model:
        ...  # point an agent at model.url

    python -m ahpkit.testing.fake_model --port 18080

Without a function of its own it follows the last user message: `CALL name {json}` calls a tool that the request
offers, `FAIL 400 text` answers with that status, `SLOW n` streams n words with pauses; everything else is echoed. After
a tool's result it says what the result was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, in either of the two forms."""

    text: str
    """What the user said last."""
    result: str | None
    """The result of the tool the model called last, if that is what the request ends with."""
    tools: tuple[str, ...]
    body: Json


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with words; `pause` seconds between them."""

    text: str
    pause: float = 0.0
    thought: str = ""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool."""

    name: str
    arguments: Json
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:12]}")


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an HTTP error."""

    status: int
    message: str


Reply = Say | CallTool | Fail


def follow(asked: Asked) -> Reply:
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

    def __init__(self, answer: Callable[[Asked], Reply] = follow, *, port: int = 0) -> None:
        self.requests: list[Asked] = []
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
        path = path.partition("?")[0]
        if path.endswith("/models"):
            models = [{"id": "fake-model", "object": "model", "created": 0, "owned_by": "ahpkit"}]
            _write_json(writer, 200, {"object": "list", "data": models})
        elif path.endswith(("/chat/completions", "/responses")):
            self.headers.append(headers)
            await self._answer_prompt(json.loads(body), writer, chat=path.endswith("/completions"))
        else:
            _write_json(writer, 404, {"error": {"message": f"no such path: {path}"}})

    async def _answer_prompt(self, body: Json, writer: asyncio.StreamWriter, *, chat: bool) -> None:
        asked = _asked_chat(body) if chat else _asked_responses(body)
        self.requests.append(asked)
        reply = self._answer(asked)
        if isinstance(reply, Fail):
            _write_json(writer, reply.status, {"error": {"message": reply.message, "type": "fake"}})
            return
        if not body.get("stream"):
            _write_json(writer, 200, _whole(reply))
            return
        _write_head(writer, 200, "text/event-stream")
        events = _chat_events(reply) if chat else _responses_events(reply)
        async for name, event in events:
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


# What is asked.


def _asked_chat(body: Json) -> Asked:
    messages: list[Json] = body.get("messages", [])
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["function"]["name"]) for tool in offered if "function" in tool)
    last = messages[-1] if messages else {}
    result = _text(last.get("content")) if last.get("role") == "tool" else None
    return Asked(_last_said(messages), result, tools, body)


def _asked_responses(body: Json) -> Asked:
    given = body.get("input", [])
    items = cast("list[Json]", given) if isinstance(given, list) else [{"role": "user", "content": given}]
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["name"]) for tool in offered if "name" in tool)
    last = items[-1] if items else {}
    result = _text(last.get("output")) if last.get("type") == "function_call_output" else None
    return Asked(_last_said(items), result, tools, body)


def _last_said(messages: list[Json]) -> str:
    """The last user message that is one: agents add reminders in the user's name, in tags."""
    said = [_text(message.get("content")) for message in messages if message.get("role") == "user"]
    own = [text for text in said if not text.lstrip().startswith("<")]
    return next(iter(reversed(own or said)), "")


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [cast("Json", part) for part in cast("list[Any]", content) if isinstance(part, dict)]
        return "".join(str(part.get("text", "")) for part in parts)
    return content if isinstance(content, str) else json.dumps(content)


# What is answered.


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _whole(reply: Say | CallTool) -> Json:
    message: Json = {"role": "assistant", "content": reply.text if isinstance(reply, Say) else None}
    if isinstance(reply, CallTool):
        message["tool_calls"] = [_function(reply)]
    finish = "stop" if isinstance(reply, Say) else "tool_calls"
    return {"id": "fake", "object": "chat.completion", "choices": [{"message": message, "finish_reason": finish}]}


def _function(reply: CallTool) -> Json:
    function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
    return {"index": 0, "id": reply.id, "type": "function", "function": function}


async def _chat_events(reply: Say | CallTool) -> AsyncIterator[tuple[str, Any]]:
    def chunk(delta: Json, finish: str | None = None) -> tuple[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {"id": "fake", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}

    if isinstance(reply, CallTool):
        yield chunk({"role": "assistant", "content": None, "tool_calls": [_function(reply)]})
        yield chunk({}, "tool_calls")
    else:
        if reply.thought:
            yield chunk({"role": "assistant", "reasoning_content": reply.thought})
        for word in _words(reply.text):
            await asyncio.sleep(reply.pause)
            yield chunk({"role": "assistant", "content": word})
        yield chunk({}, "stop")
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    last: Json = {"id": "fake", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}
    yield "", last | {"usage": usage}
    yield "", "[DONE]"


async def _responses_events(reply: Say | CallTool) -> AsyncIterator[tuple[str, Any]]:
    item = _responses_item(reply, status="in_progress")
    yield _event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})
    yield _event("response.output_item.added", output_index=0, item=item)
    if isinstance(reply, Say):
        for word in _words(reply.text):
            await asyncio.sleep(reply.pause)
            yield _event("response.output_text.delta", item_id=item["id"], output_index=0, content_index=0, delta=word)
    else:
        arguments = json.dumps(reply.arguments)
        yield _event("response.function_call_arguments.delta", item_id=item["id"], output_index=0, delta=arguments)
    done = _responses_item(reply, status="completed")
    yield _event("response.output_item.done", output_index=0, item=done)
    usage: Json = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": "resp_1", "status": "completed", "output": [done], "usage": usage}
    yield _event("response.completed", response=response)


def _responses_item(reply: Say | CallTool, *, status: str) -> Json:
    done = status == "completed"
    if isinstance(reply, CallTool):
        arguments = json.dumps(reply.arguments) if done else ""
        call = {"type": "function_call", "id": "fc_1", "call_id": reply.id, "name": reply.name}
        return call | {"arguments": arguments, "status": status}
    content: list[Json] = [{"type": "output_text", "text": reply.text, "annotations": []}] if done else []
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}


def _event(type: str, **fields: Any) -> tuple[str, Json]:
    return type, {"type": type, **fields}


async def _serve_for_ever(port: int) -> None:
    async with FakeModel(port=port):
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake model endpoint on loopback.")
    parser.add_argument("--port", type=int, default=18080)
    asyncio.run(_serve_for_ever(parser.parse_args().port))


__all__ = ["Asked", "CallTool", "Fail", "FakeModel", "Reply", "Say", "follow", "main"]

if __name__ == "__main__":
    main()
