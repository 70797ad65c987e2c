"""OpenAI's chat completions and Responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

from ahpkit.testing.model_apis.common import (
    Asked,
    CallTool,
    Event,
    Json,
    ModelApi,
    Say,
    last_said,
    since_reply,
    text_of,
    words,
)

# Chat completions.


def _asked_chat(body: Json) -> Asked:
    messages: list[Json] = body.get("messages", [])
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["function"]["name"]) for tool in offered if "function" in tool)
    results = [text_of(added.get("content")) for added in since_reply(messages) if added.get("role") == "tool"]
    return Asked(last_said(messages), results[-1] if results else None, tools, body)


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
        for word in words(reply.text):
            await asyncio.sleep(reply.pause)
            yield chunk({"role": "assistant", "content": word})
        yield chunk({}, "stop")
    last: Json = {"id": "fake", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}
    yield "", last | {"usage": _USAGE}
    yield "", "[DONE]"


# Responses.


def _asked_responses(body: Json) -> Asked:
    given = body.get("input", [])
    items = cast("list[Json]", given) if isinstance(given, list) else [{"role": "user", "content": given}]
    offered: list[Json] = body.get("tools") or []
    tools = tuple(name for tool in offered for name in _names(tool))
    last = items[-1] if items else {}
    result = text_of(last.get("output")) if last.get("type") == "function_call_output" else None
    return Asked(last_said(items), result, tools, body)


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
        for word in words(reply.text):
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


def _event(type: str, **fields: Any) -> Event:
    return type, {"type": type, **fields}


CHAT = ModelApi(_asked_chat, _whole_chat, _chat_events)
RESPONSES = ModelApi(_asked_responses, _whole_response, _responses_events)

__all__ = ["CHAT", "RESPONSES"]
