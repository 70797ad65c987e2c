"""Gemini's `generateContent`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

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
    contents: list[Json] = body.get("contents", [])
    offered: list[Json] = body.get("tools") or []
    declared = [entry for tool in offered for entry in parts_of(tool.get("functionDeclarations"))]
    added = [part for content in since_reply(contents, "model", "parts") for part in parts_of(content.get("parts"))]
    results = [part["functionResponse"] for part in added if "functionResponse" in part]
    result = text_of(results[-1].get("response")) if results else None
    return Asked(last_said(contents, "parts"), result, tuple(str(entry["name"]) for entry in declared), body)


def _candidate(part: Json, finish: str | None) -> Json:
    ended = {} if finish is None else {"finishReason": finish}
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": [part]}, **ended}
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model"}


def _whole(reply: Say | CallTool) -> Json:
    if isinstance(reply, Say):
        return _candidate({"text": reply.text}, "STOP")
    return _candidate({"functionCall": {"id": reply.id, "name": reply.name, "args": reply.arguments}}, "STOP")


async def _events(reply: Say | CallTool) -> AsyncIterator[Event]:
    if isinstance(reply, CallTool):
        yield "", _whole(reply)
        return
    for word in words(reply.text):
        await asyncio.sleep(reply.pause)
        yield "", _candidate({"text": word}, None)
    yield "", _candidate({"text": ""}, "STOP")


GENERATE = ModelApi(_asked, _whole, _events)

__all__ = ["GENERATE"]
