"""The HTTP APIs of several makers of models: reads their requests, and writes replies as each maker does.

A request becomes an `ModelRequest` and a reply is a `Say`, a `CallTool` or a `Fail`, whatever API they are written in.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

Json = dict[str, Any]

_TAGGED = re.compile(r"<([\w-]+)[^>]*>.*?</\1>|<[\w-]+[^>]*/>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request."""

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
Event = tuple[str, Any]
"""Name, or nothing, and data of a server-sent event."""


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
    """The parts of a content that has some."""
    listed = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Json", part) for part in listed if isinstance(part, dict)]


def _last_user_text(messages: Iterable[Json], key: str = "content") -> str:
    """The last words of the user, without what agents add in the user's name: reminders and the like, in tags."""
    texts = [own for message in messages if (own := _own_words(message, key))]
    return texts[-1] if texts else ""


def _own_words(message: Json, key: str = "content") -> str:
    """The user's own words in a message: the last ones outside of tags, if it is the user's."""
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


__all__ = ["CallTool", "Event", "Fail", "Json", "ModelApi", "ModelRequest", "Reply", "Say", "api_at"]
