"""Reads what an MCP server offers: tools, prompts, resources.

Every list is read to its end, within limits. An entry that cannot be used is left out, and `Lists.left_out` says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import mcp_types as types
from mcp import Client, MCPError
from pydantic import BaseModel, ValidationError

from ahpkit.mcp.calls import Limits
from ahpkit.mcp.tolerance import LISTS, REST, LeftOut, TolerantConnection, leave_out, plain, words_of
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.errors import RpcError

_WORDS = 4000
"""Characters of a tool's description that models read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The tools, prompts and resources that a server offers, as plain data."""

    tools: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names of entries and whole lists that cannot be used, with the reasons."""


async def read_lists(client: Client, connection: TolerantConnection, has: JsonObject, limits: Limits) -> Lists:
    """Read everything that a server with these capabilities offers.

    If its tools cannot be read, the SDK's exception is raised. Prompts and resources that cannot be read are left out.
    """
    left_out = connection.left_out = LeftOut()
    reader = _Reader(connection, limits)
    listed = await reader.all(client.list_tools, "tools") if "tools" in has else []
    tools = await asyncio.to_thread(checked_tools, listed)
    found = Lists(tools=tools, left_out=left_out)
    if "prompts" in has:
        found = replace(found, prompts=await reader.if_possible(client.list_prompts, "prompts"))
    if "resources" in has:
        resources = await reader.if_possible(client.list_resources, "resources")
        templates = await reader.if_possible(client.list_resource_templates, "resourceTemplates")
        found = replace(found, resources=resources, templates=templates)
    return found


class _Reader:
    def __init__(self, connection: TolerantConnection, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._left_out = connection.left_out

    async def if_possible(self, page: Callable[..., Awaitable[Any]], key: str) -> Sequence[JsonObject]:
        """A list; empty if it cannot be read, because the server's tools can still be used."""
        try:
            return await self.all(page, key)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
                raise
            self._left_out[f"every {LISTS[key][2]}"] = words_of(error)
            return ()

    async def all(self, page: Callable[..., Awaitable[Any]], key: str) -> list[JsonObject]:
        """All pages of a list; of several entries with one name only the first. An endless list is cut. Entries that
        are left out are named."""
        _, attribute, called = LISTS[key]
        found: dict[str, JsonObject] = {}
        cursor: str | None = None
        for _ in range(self._limits.pages):
            try:
                result = await self._page(page, cursor)
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    break
                raise
            items = cast("list[BaseModel]", getattr(result, attribute))
            await asyncio.to_thread(self._add, [*items, *take_rest(result.meta)], called, found)
            cursor = result.next_cursor
            if not cursor or len(found) > self._limits.listed:
                break
        if cursor or len(found) > self._limits.listed:
            self._left_out[f"every further {called}"] = f"the first {min(len(found), self._limits.listed)} are used"
        return list(found.values())[: self._limits.listed]

    def _add(self, items: Sequence[BaseModel | JsonObject], called: str, found: dict[str, JsonObject]) -> None:
        """Add the entries of a page by their names, and name those that are left out."""
        for item in items:
            entry = _written(item, called, self._left_out)
            name = str(entry.get("uri") or entry.get("uriTemplate") or entry.get("name"))
            if entry and name in found:
                leave_out(self._left_out, called, name, ValueError("it is listed twice; the first one is used"))
            elif entry:
                found[name] = entry

    async def _page(self, page: Callable[..., Awaitable[Any]], cursor: str | None) -> Any:
        """One page. The SDK refuses a whole page if one entry is bad. Then the page is requested again, and bad entries
        are removed before the SDK reads it."""
        try:
            return await page(cursor=cursor)
        except ValidationError:
            self._connection.filters_lists = True
            return await page(cursor=cursor)


def take_rest(meta: JsonObject | None) -> list[JsonObject]:
    """Remove the entries of a list that the SDK did not see from the `_meta` of its answer, and return them."""
    rest: Any = (meta or {}).pop(REST, None)
    return cast("list[JsonObject]", rest) if isinstance(rest, list) else []


def whole_list(answer: JsonObject) -> JsonObject:
    """An answer with all entries of its list again. Other answers are unchanged."""
    rest = take_rest(answer.get("_meta"))
    return {**answer, **{key: [*answer[key], *rest] for key in LISTS if rest and key in answer}}


def _written(item: BaseModel | JsonObject, called: str, left_out: LeftOut) -> JsonObject:
    """An entry as plain data; empty if it cannot be written as JSON."""
    try:
        entry = plain(item) if isinstance(item, BaseModel) else item
        decode_own(encode(entry))
    except (ValueError, RecursionError, RpcError) as error:
        leave_out(left_out, called, str(getattr(item, "name", "")), error)
        return {}
    return entry


def checked_tools(tools: Sequence[JsonObject]) -> list[JsonObject]:
    """The tools with schemas that can be used. A schema that cannot be used is replaced by "any object", and the tool's
    description says why."""
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
    """Why structured content does not match the tool's output schema; None: it does."""
    if structured is None:
        return "there is no structured content"
    problem = find_problem(schema, structured)
    return None if problem is None else f"structured content{problem}"


__all__ = ["Lists", "read_lists", "result_problem", "whole_list"]
