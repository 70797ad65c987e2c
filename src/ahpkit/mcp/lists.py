"""Reads the lists of a server to their end, within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from pydantic import BaseModel

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import check_schema, find_problem

_WORDS = 4000
"""Characters of a tool's description that models read."""


async def read_all(page: Callable[..., Awaitable[Any]], field: str, limit: int, pages: int) -> list[JsonObject]:
    """Every page of a list, the first of each name. A list without end is cut."""
    found: dict[str, JsonObject] = {}
    cursor: str | None = None
    for _ in range(pages):
        try:
            result = await page(cursor=cursor)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                break
            raise
        for item in cast("list[BaseModel]", getattr(result, field)):
            entry = item.model_dump(by_alias=True, mode="json", exclude_none=True)
            key = str(entry.get("uri") or entry.get("uriTemplate") or entry.get("name"))
            if len(found) < limit:
                found.setdefault(key, entry)
        cursor = result.next_cursor
        if not cursor or len(found) >= limit:
            break
    return list(found.values())


def checked_tools(tools: Sequence[JsonObject]) -> list[JsonObject]:
    """Tools whose schemas can be used. One that cannot is replaced by "any object", and the description says why."""
    return [_checked(tool) for tool in tools]


def _checked(tool: JsonObject) -> JsonObject:
    said = str(tool.get("description") or "")
    checked = {**tool, "description": said[:_WORDS]} if len(said) > _WORDS else tool
    if (reason := check_schema(tool.get("inputSchema") or {})) is not None:
        told = f"{said[:_WORDS]} (The schema of its input is not used: {reason})".strip()
        checked = {**checked, "inputSchema": {"type": "object"}, "description": told}
    if "outputSchema" in tool and check_schema(tool["outputSchema"]) is not None:
        checked = {key: value for key, value in checked.items() if key != "outputSchema"}
    return checked


def result_problem(schema: Any, structured: Any) -> str | None:
    """Why structured content is not what a tool promises, or None."""
    if structured is None:
        return "there is no structured content"
    problem = find_problem(schema, structured)
    return None if problem is None else f"structured content{problem}"


__all__ = ["checked_tools", "read_all", "result_problem"]
