"""Anthropic's Messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from ahpkit.testing.model_apis.common import (
    Asked,
    CallTool,
    Event,
    Json,
    ModelApi,
    Say,
    last_said,
    parts_of,
    since_reply,
    text_of,
    words,
)


def _asked(body: Json) -> Asked:
    messages: list[Json] = body.get("messages", [])
    offered: list[Json] = body.get("tools") or []
    tools = tuple(str(tool["name"]) for tool in offered if "name" in tool)
    added = [part for message in since_reply(messages) for part in parts_of(message.get("content"))]
    results = [part for part in added if part.get("type") == "tool_result"]
    result = text_of(results[-1].get("content")) if results else None
    return Asked(last_said(messages), result, tools, body)


def _block(reply: Say | CallTool) -> Json:
    if isinstance(reply, Say):
        return {"type": "text", "text": reply.text}
    return {"type": "tool_use", "id": reply.id, "name": reply.name, "input": reply.arguments}


def _whole(reply: Say | CallTool) -> Json:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-model"}
    usage = {"input_tokens": 11, "output_tokens": 7}
    return message | {"content": [_block(reply)], "stop_reason": _stop(reply), "stop_sequence": None, "usage": usage}


def _stop(reply: Say | CallTool) -> str:
    return "end_turn" if isinstance(reply, Say) else "tool_use"


async def _events(reply: Say | CallTool) -> AsyncIterator[Event]:
    begun: Json = _whole(reply) | {"content": [], "stop_reason": None}
    empty: Json = {"text": ""} if isinstance(reply, Say) else {"input": {}}
    yield _event("message_start", message=begun)
    yield _event("content_block_start", index=0, content_block=_block(reply) | empty)
    if isinstance(reply, Say):
        for word in words(reply.text):
            await asyncio.sleep(reply.pause)
            yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    else:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
        yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": 7})
    yield _event("message_stop")


def _event(type: str, **fields: Any) -> Event:
    return type, {"type": type, **fields}


MESSAGES = ModelApi(_asked, _whole, _events)

__all__ = ["MESSAGES"]
