"""Converts results of MCP tools to AHP content, and back for agents. Pure.

Texts stay texts, and links stay links. Images, sounds and files are embedded. Structured results that are objects are
not changed. AHP has no others, so a list or a number is shown as text.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, cast

from ahpkit.host.agent import ToolOutcome
from ahpkit.protocol.chat.state import ToolResultContent
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition

_PARTS = 1000
"""Of one result, at most this many parts are shown."""
_DEFINITION = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")


def definition_of(tool: JsonObject) -> ToolDefinition:
    """An MCP tool as a tool definition of AHP."""
    kept = {key: tool[key] for key in _DEFINITION if tool.get(key) is not None}
    if "title" not in kept and isinstance(title := tool.get("annotations", {}).get("title"), str):
        kept["title"] = title
    return cast("ToolDefinition", kept)


def with_structured_object(result: JsonObject) -> JsonObject:
    """The result of a tool without structured content that is not an object, which older versions of MCP do not allow.
    If the result says nothing else, it is shown as text."""
    structured: Any = result.get("structuredContent")
    if "content" not in result or structured is None or isinstance(structured, dict):
        return result
    rest = {key: value for key, value in result.items() if key != "structuredContent"}
    text = {"type": "text", "text": json.dumps(structured, ensure_ascii=False)}
    return rest if rest["content"] else {**rest, "content": [text]}


def outcome_of(result: JsonObject) -> ToolOutcome:
    """A `CallToolResult` as an outcome."""
    parts: list[JsonObject] = result.get("content") or []
    content = [shown for part in parts[:_PARTS] for shown in _shown(part)]
    structured: Any = result.get("structuredContent")
    texts = [part["text"] for part in content if part["type"] == "text"]
    if not (texts or structured is None or isinstance(structured, dict)):
        content.append({"type": "text", "text": json.dumps(structured, ensure_ascii=False)})
    outcome = ToolOutcome(
        success=result.get("isError") is not True,
        content=content,
        structured_content=cast("JsonObject", structured) if isinstance(structured, dict) else None,
    )
    return outcome if outcome.success else replace(outcome, error="\n".join(outcome.texts) or "the tool failed")


def _shown(part: JsonObject) -> list[ToolResultContent]:
    match part.get("type"):
        case "text":
            return [{"type": "text", "text": str(part.get("text", ""))}]
        case "image" | "audio":
            return [_embedded(part.get("data"), part.get("mimeType"))]
        case "resource":
            resource = cast("JsonObject", part.get("resource") or {})
            if "text" in resource:
                return [{"type": "text", "text": str(resource["text"])}]
            return [_embedded(resource.get("blob"), resource.get("mimeType"))]
        case "resource_link":
            link: JsonObject = {"type": "resource", "uri": str(part.get("uri", ""))}
            link |= {"contentType": part["mimeType"]} if isinstance(part.get("mimeType"), str) else {}
            return [cast("ToolResultContent", link)]
        case _:
            return []


def _embedded(data: Any, kind: Any) -> ToolResultContent:
    return {
        "type": "embeddedResource",
        "data": data if isinstance(data, str) else "",
        "contentType": kind if isinstance(kind, str) else "application/octet-stream",
    }


def result_of(outcome: ToolOutcome) -> JsonObject:
    """An outcome as a `CallToolResult` for an agent. Many agents read the texts alone, so these also say why a call
    failed, or what is in a structured result without text."""
    content = [_as_mcp(cast("JsonObject", part)) for part in outcome.content]
    error = None if outcome.success else outcome.error or "the tool failed"
    words = [] if any(part["type"] == "text" for part in outcome.content) else outcome.texts
    if error is not None and error != "\n".join(outcome.texts):
        words = [error, *words]
    content = [*({"type": "text", "text": text} for text in words), *content]
    result: JsonObject = {"content": content, "isError": not outcome.success}
    if outcome.structured_content is not None:
        result["structuredContent"] = outcome.structured_content
    return result


def _as_mcp(part: JsonObject) -> JsonObject:
    match part.get("type"):
        case "text":
            return {"type": "text", "text": part["text"]}
        case "embeddedResource":
            return _file(part["data"], part["contentType"])
        case "resource":
            kind = {"mimeType": part["contentType"]} if "contentType" in part else {}
            return {"type": "resource_link", "uri": part["uri"], "name": part["uri"], **kind}
        case kind:
            return {"type": "text", "text": f"({kind})"}


def _file(data: str, kind: str) -> JsonObject:
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": data, "mimeType": kind}
    if family == "text":
        return {"type": "text", "text": _decoded(data)}
    return {"type": "resource", "resource": {"uri": "data:", "blob": data, "mimeType": kind}}


def _decoded(data: str) -> str:
    """The text that is encoded in base64; unchanged if it is not base64."""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except ValueError:
        return data


__all__ = ["definition_of", "outcome_of", "result_of", "with_structured_object"]
