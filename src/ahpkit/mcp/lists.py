"""Reads the lists of a server to their end, within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import mcp_types as types
from mcp import Client, MCPError
from pydantic import BaseModel, ValidationError

from ahpkit.mcp.errors import McpError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.errors import RpcError

_WORDS = 4000
"""Characters of a tool's description that models read."""

_NAME = 100
"""Characters of the name of something that is left out."""


LeftOut = dict[str, str]
"""What cannot be used of a list: the name of each entry, and why."""

MAX_LEFT_OUT = 20
"""Entries that are named. Who has more wrong has all of it wrong."""


async def read_all(
    page: Callable[..., Awaitable[Any]], field: str, limit: int, pages: int, left_out: LeftOut | None = None
) -> list[JsonObject]:
    """Every page of a list, the first of each name. A list without end is cut. What cannot be written is left out."""
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
            entry = _written(item, {} if left_out is None else left_out)
            key = str(entry.get("uri") or entry.get("uriTemplate") or entry.get("name"))
            if entry and len(found) < limit:
                found.setdefault(key, entry)
        cursor = result.next_cursor
        if not cursor or len(found) >= limit:
            break
    return list(found.values())


def _written(item: BaseModel, left_out: LeftOut) -> JsonObject:
    """An entry as plain data; nothing when it cannot be sent on as JSON."""
    try:
        entry = item.model_dump(by_alias=True, mode="json", exclude_none=True)
        decode_own(encode(entry))
    except (ValueError, RecursionError, RpcError) as error:
        leave_out(left_out, str(getattr(item, "name", "")), error)
        return {}
    return entry


def leave_out(left_out: LeftOut, name: str, error: Exception) -> None:
    if len(left_out) < MAX_LEFT_OUT:
        left_out[name[:_NAME] or "a tool without a name"] = _reason(error)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:_WORDS]
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


async def list_good_tools(client: Client, left_out: LeftOut, *, cursor: str | None = None) -> types.ListToolsResult:
    """A page of tools. The SDK refuses a page with one tool that is none: then the page is read as it came, and the
    others are used."""
    try:
        return await client.list_tools(cursor=cursor)
    except ValidationError:
        session: Any = client.session
        asked = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
        data, options = asked.model_dump(by_alias=True, mode="json", exclude_none=True), cast("JsonObject", {})
        session._stamp(data, options)  # There is no public way to an answer before it is checked.
        raw: Any = await session._dispatcher.send_raw_request("tools/list", data.get("params"), options)
        page = types.ListToolsResult(tools=_good(raw.get("tools"), left_out), next_cursor=raw.get("nextCursor"))
        return session._absorb_tool_listing(page, complete=cursor is None and page.next_cursor is None)


def _good(tools: Any, left_out: LeftOut) -> list[types.Tool]:
    if not isinstance(tools, list):
        raise McpError("its list of tools is none")
    good: list[types.Tool] = []
    for tool in cast("list[Any]", tools):
        try:
            good.append(types.Tool.model_validate(tool))
        except ValidationError as error:
            name: Any = cast("JsonObject", tool).get("name") if isinstance(tool, dict) else ""
            leave_out(left_out, name if isinstance(name, str) else "", error)
    return good


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


__all__ = ["MAX_LEFT_OUT", "LeftOut", "checked_tools", "list_good_tools", "read_all", "result_problem"]
