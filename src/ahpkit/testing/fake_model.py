"""A model endpoint for tests. It speaks the APIs of several makers, streams, and takes its answers from a function.

    async with FakeModel() as model:
        ...  # point an agent at model.url

    python -m ahpkit.testing.fake_model --port 18080

It speaks OpenAI's chat completions and Responses, Anthropic's Messages and Gemini's generateContent. Without a function
it follows the last user message: `CALL name {json}` calls a tool that the request offers, `FAIL 400 text` answers with
that status, `SLOW n` streams n words with pauses; everything else is echoed. After a tool's result it says what the
result was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

Json = dict[str, Any]

_TAGGED = re.compile(r"<([\w-]+)[^>]*>.*?</\1>|<[\w-]+[^>]*/>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request."""

    text: str
    """What the user said last."""
    result: str | None
    """The result of the last tool call, if the request ends with one."""
    tools: tuple[str, ...]
    body: Json


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with words, with `pause` seconds between them."""

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
Event = tuple[str, Any]
"""The name (or None) and the data of a server-sent event."""


@dataclass(frozen=True, slots=True)
class ModelApi:
    """How one maker's requests are read and answered."""

    asked: Callable[[Json], ModelRequest]
    whole: Callable[[Say | CallTool], Json]
    events: Callable[[Say | CallTool], AsyncIterator[Event]]


def _text_of(content: Any) -> str:
    """The words of a content, whether it is a string, a list of parts or something else."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in _parts_of(cast("list[Any]", content)))
    return content if isinstance(content, str) else json.dumps(content)


def _parts_of(content: Any) -> list[Json]:
    """The parts of a content, if it has parts."""
    listed = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Json", part) for part in listed if isinstance(part, dict)]


def _last_user_text(messages: Iterable[Json], key: str = "content") -> str:
    """The last words of the user, without what agents add in the user's name: reminders and the like, in tags."""
    texts = [own for message in messages if (own := _own_words(message, key))]
    return texts[-1] if texts else ""


def _own_words(message: Json, key: str = "content") -> str:
    """The user's own words in a message of the user: the last words outside of tags."""
    content = message.get(key) if message.get("role") == "user" else None
    texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in _parts_of(content)]
    own = [words for text in texts if (words := _TAGGED.sub("", text).strip())]
    return own[-1] if own else ""


def _since_reply(messages: list[Json], model: str = "assistant", key: str = "content") -> list[Json]:
    """The messages since the last words of the model or the user: results of tools, reminders."""
    spoke = [
        index for index, message in enumerate(messages) if message.get("role") == model or _own_words(message, key)
    ]
    return messages[spoke[-1] + 1 :] if spoke else messages


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _event(type: str, **fields: Any) -> Event:
    return type, {"type": type, **fields}


# -- OpenAI: chat completions ------------------------------------------------------------------------------------------


def _asked_chat(body: Json) -> ModelRequest:
    messages: list[Json] = body.get("messages", [])
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["function"]["name"]) for tool in offered if "function" in tool)
    results = [_text_of(added.get("content")) for added in _since_reply(messages) if added.get("role") == "tool"]
    return ModelRequest(_last_user_text(messages), results[-1] if results else None, tools, body)


def _whole_chat(reply: Say | CallTool) -> Json:
    message: Json = {"role": "assistant", "content": reply.text if isinstance(reply, Say) else None}
    if isinstance(reply, CallTool):
        message["tool_calls"] = [_function(reply)]
    finish = "stop" if isinstance(reply, Say) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "fake", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": _USAGE}


_USAGE: Json = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _function(reply: CallTool) -> Json:
    function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
    return {"index": 0, "id": reply.id, "type": "function", "function": function}


async def _chat_events(reply: Say | CallTool) -> AsyncIterator[Event]:
    def chunk(delta: Json, finish: str | None = None) -> Event:
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
    last: Json = {"id": "fake", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}
    yield "", last | {"usage": _USAGE}
    yield "", "[DONE]"


# -- OpenAI: Responses ------------------------------------------------------------------------------------------------


def _asked_responses(body: Json) -> ModelRequest:
    given = body.get("input", [])
    items = cast("list[Json]", given) if isinstance(given, list) else [{"role": "user", "content": given}]
    offered: list[Json] = body.get("tools") or []
    tools = tuple(name for tool in offered for name in _names(tool))
    last = items[-1] if items else {}
    result = _text_of(last.get("output")) if last.get("type") == "function_call_output" else None
    return ModelRequest(_last_user_text(items), result, tools, body)


def _names(tool: Json) -> list[str]:
    """A tool's name; those of a namespace as `namespace.name`."""
    inner: list[Json] = tool.get("tools") or []
    if tool.get("type") == "namespace":
        return [f"{tool['name']}.{one['name']}" for one in inner]
    return [str(tool["name"])] if "name" in tool else []


def _whole_response(reply: Say | CallTool) -> Json:
    usage: Json = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    item = _item(reply, status="completed")
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}


async def _responses_events(reply: Say | CallTool) -> AsyncIterator[Event]:
    item = _item(reply, status="in_progress")
    yield _event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})
    yield _event("response.output_item.added", output_index=0, item=item)
    if isinstance(reply, Say):
        for word in _words(reply.text):
            await asyncio.sleep(reply.pause)
            yield _event("response.output_text.delta", item_id=item["id"], output_index=0, content_index=0, delta=word)
    else:
        arguments = json.dumps(reply.arguments)
        yield _event("response.function_call_arguments.delta", item_id=item["id"], output_index=0, delta=arguments)
    yield _event("response.output_item.done", output_index=0, item=_item(reply, status="completed"))
    yield _event("response.completed", response=_whole_response(reply))


def _item(reply: Say | CallTool, *, status: str) -> Json:
    done = status == "completed"
    if isinstance(reply, CallTool):
        arguments = json.dumps(reply.arguments) if done else ""
        namespace, _, name = reply.name.rpartition(".")
        call = {"type": "function_call", "id": "fc_1", "call_id": reply.id, "name": name}
        call |= {"namespace": namespace} if namespace else {}
        return call | {"arguments": arguments, "status": status}
    content: list[Json] = [{"type": "output_text", "text": reply.text, "annotations": []}] if done else []
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}


# -- Anthropic: Messages -----------------------------------------------------------------------------------------------


def _asked_messages(body: Json) -> ModelRequest:
    messages: list[Json] = body.get("messages", [])
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["name"]) for tool in offered if "name" in tool)
    added = [part for message in _since_reply(messages) for part in _parts_of(message.get("content"))]
    results = [part for part in added if part.get("type") == "tool_result"]
    result = _text_of(results[-1].get("content")) if results else None
    return ModelRequest(_last_user_text(messages), result, tools, body)


def _block(reply: Say | CallTool) -> Json:
    if isinstance(reply, Say):
        return {"type": "text", "text": reply.text}
    return {"type": "tool_use", "id": reply.id, "name": reply.name, "input": reply.arguments}


def _whole_message(reply: Say | CallTool) -> Json:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-model"}
    usage = {"input_tokens": 11, "output_tokens": 7}
    return message | {"content": [_block(reply)], "stop_reason": _stop(reply), "stop_sequence": None, "usage": usage}


def _stop(reply: Say | CallTool) -> str:
    return "end_turn" if isinstance(reply, Say) else "tool_use"


async def _message_events(reply: Say | CallTool) -> AsyncIterator[Event]:
    begun: Json = _whole_message(reply) | {"content": [], "stop_reason": None}
    empty: Json = {"text": ""} if isinstance(reply, Say) else {"input": {}}
    yield _event("message_start", message=begun)
    yield _event("content_block_start", index=0, content_block=_block(reply) | empty)
    if isinstance(reply, Say):
        for word in _words(reply.text):
            await asyncio.sleep(reply.pause)
            yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    else:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": 7})
    yield _event("message_stop")


# -- Gemini: generateContent -------------------------------------------------------------------------------------------


def _asked_contents(body: Json) -> ModelRequest:
    contents: list[Json] = body.get("contents", [])
    offered: list[Json] = body.get("tools") or []
    declared = [entry for tool in offered for entry in _parts_of(tool.get("functionDeclarations"))]
    added = [part for content in _since_reply(contents, "model", "parts") for part in _parts_of(content.get("parts"))]
    results = [part["functionResponse"] for part in added if "functionResponse" in part]
    result = _text_of(results[-1].get("response")) if results else None
    return ModelRequest(
        _last_user_text(contents, "parts"), result, tuple(str(entry["name"]) for entry in declared), body
    )


def _candidate(part: Json, finish: str | None) -> Json:
    ended = {} if finish is None else {"finishReason": finish}
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": [part]}, **ended}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model"}


def _whole_content(reply: Say | CallTool) -> Json:
    if isinstance(reply, Say):
        return _candidate({"text": reply.text}, "STOP")
    return _candidate({"functionCall": {"id": reply.id, "name": reply.name, "args": reply.arguments}}, "STOP")


async def _content_events(reply: Say | CallTool) -> AsyncIterator[Event]:
    if isinstance(reply, CallTool):
        yield "", _whole_content(reply)
        return
    for word in _words(reply.text):
        await asyncio.sleep(reply.pause)
        yield "", _candidate({"text": word}, None)
    yield "", _candidate({"text": ""}, "STOP")


_CHAT = ModelApi(_asked_chat, _whole_chat, _chat_events)
_RESPONSES = ModelApi(_asked_responses, _whole_response, _responses_events)
_MESSAGES = ModelApi(_asked_messages, _whole_message, _message_events)
_GENERATE = ModelApi(_asked_contents, _whole_content, _content_events)

_BY_END = {
    "/chat/completions": _CHAT,
    "/responses": _RESPONSES,
    "/messages": _MESSAGES,
    ":generateContent": _GENERATE,
    ":streamGenerateContent": _GENERATE,
}


def api_at(path: str) -> ModelApi | None:
    """The API that is spoken at a path."""
    return next((api for end, api in _BY_END.items() if path.endswith(end)), None)


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
