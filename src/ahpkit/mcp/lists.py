"""Reads what an MCP server offers: tools, prompts, resources. Every list to its end, within limits.

One entry that cannot be used costs only itself: it is left out, and `Lists.left_out` says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import mcp_types as types
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp_types.methods import parse_server_result
from pydantic import BaseModel, ValidationError

from ahpkit.mcp.calls import Limits, plain, words_of
from ahpkit.mcp.connect import ServerConnection, Streams
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.json_schema import check_schema, find_problem
from ahpkit.wire.codec import decode_own, encode
from ahpkit.wire.errors import RpcError

_WORDS = 4000
"""Characters of a tool's description that models read."""

_NAME = 100
"""Characters of the name of something that is left out."""

MAX_LEFT_OUT = 20
"""Entries that are named. A server with more has something else wrong."""

_LISTS: Mapping[str, tuple[str, str, str]] = {
    "tools": ("tools/list", "tools", "tool"),
    "prompts": ("prompts/list", "prompts", "prompt"),
    "resources": ("resources/list", "resources", "resource"),
    "resourceTemplates": ("resources/templates/list", "resource_templates", "resource template"),
}
"""Each list by its key in an answer: the method, the SDK's attribute, and what one entry is called."""

_NEEDED = ("name", "title", "description", "inputSchema", "arguments", "uri", "uriTemplate", "mimeType")
"""Members without which an entry is of no use. Where another one is wrong, the entry is used without the others."""

LeftOut = dict[str, str]
"""What cannot be used of a list: the name of each entry, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """What a server offers, as plain data."""

    tools: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Entries and whole lists that cannot be used, and why."""


async def read_lists(client: Client, filtered: FilteredConnection, has: JsonObject, limits: Limits) -> Lists:
    """Everything that a server with these capabilities offers.

    Raises what the SDK raises when its tools cannot be read. Prompts and resources that cannot be read are left out.
    """
    left_out: LeftOut = {}
    reader = _Reader(partial(filtered.start_filtering, client.protocol_version, left_out), limits, left_out)
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
    def __init__(self, start_filtering: Callable[[], None], limits: Limits, left_out: LeftOut) -> None:
        self._start_filtering = start_filtering
        self._limits = limits
        self._left_out = left_out

    async def if_possible(self, page: Callable[..., Awaitable[Any]], key: str) -> Sequence[JsonObject]:
        """A list that may be missing: a server whose tools work is not given up for it."""
        try:
            return await self.all(page, key)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
                raise
            self._left_out[f"every {_LISTS[key][2]}"] = words_of(error)
            return ()

    async def all(self, page: Callable[..., Awaitable[Any]], key: str) -> list[JsonObject]:
        """Every page of a list, the first entry of each name. A list without end is cut."""
        _, attribute, called = _LISTS[key]
        found: dict[str, JsonObject] = {}
        cursor: str | None = None
        for _ in range(self._limits.pages):
            try:
                result = await self._page(page, cursor)
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    break
                raise
            for item in cast("list[BaseModel]", getattr(result, attribute)):
                entry = _written(item, called, self._left_out)
                name = str(entry.get("uri") or entry.get("uriTemplate") or entry.get("name"))
                if entry and len(found) < self._limits.listed:
                    found.setdefault(name, entry)
            cursor = result.next_cursor
            if not cursor or len(found) >= self._limits.listed:
                break
        return list(found.values())

    async def _page(self, page: Callable[..., Awaitable[Any]], cursor: str | None) -> Any:
        """One page. The SDK refuses a page for one bad entry: then it is asked for again without those."""
        try:
            return await page(cursor=cursor)
        except ValidationError:
            self._start_filtering()
            return await page(cursor=cursor)


class FilteredConnection:
    """A connection whose lists can be freed from entries that the SDK would refuse, before the SDK reads them.

    It is the transport that the SDK's client takes. It changes nothing until `start_filtering` is called.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._left_out: LeftOut | None = None
        self._version = ""

    def start_filtering(self, version: str, left_out: LeftOut) -> None:
        """From now on drop entries that this version of MCP does not allow, and note them in `left_out`."""
        self._version, self._left_out = version, left_out

    async def __aenter__(self) -> Streams:
        incoming, outgoing = await self._connection.__aenter__()
        return _FilteredStream(incoming, self._filtered), outgoing

    async def __aexit__(self, *exc: object) -> None:
        await self._connection.__aexit__(*exc)

    async def _filtered(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if self._left_out is None or not isinstance(item, SessionMessage):
            return item
        message = item.message
        if not isinstance(message, types.JSONRPCResponse):
            return item
        result = await asyncio.to_thread(without_bad_entries, message.result, self._version, self._left_out)
        return replace(item, message=message.model_copy(update={"result": result}))


class _FilteredStream:
    """A stream of messages of which each is looked at first."""

    def __init__(self, stream: Any, look: Callable[[Any], Awaitable[Any]]) -> None:
        self._stream = stream
        self._look = look

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._look(await self._stream.receive())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await self._look(await anext(self._stream))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _FilteredStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.__aexit__(*exc)


def without_bad_entries(answer: JsonObject, version: str, left_out: LeftOut) -> JsonObject:
    """An answer without the entries that this version of MCP does not allow. Other answers are unchanged."""
    key = next((one for one in _LISTS if isinstance(answer.get(one), list)), None)
    if key is None or "content" in answer:
        return answer
    good: list[JsonObject] = []
    for entry in answer[key]:
        try:
            good.append(_usable(answer, key, entry, version))
        except (ValueError, RecursionError) as error:
            name: Any = cast("JsonObject", entry).get("name") if isinstance(entry, dict) else ""
            _leave_out(left_out, _LISTS[key][2], name if isinstance(name, str) else "", error)
    return {**answer, key: good}


def _usable(answer: JsonObject, key: str, entry: Any, version: str) -> JsonObject:
    """The entry; where a member that is not needed is wrong, without all such members. Raises `ValueError`."""
    method = _LISTS[key][0]
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    given = cast("JsonObject", entry)
    schema = given.get("inputSchema")
    if isinstance(schema, dict) and "type" not in schema:  # Often written by tools that take nothing.
        given = {**given, "inputSchema": {"type": "object", **cast("JsonObject", schema)}}
    try:
        parse_server_result(method, version, {**answer, key: [given]})
    except ValidationError:
        given = {member: value for member, value in given.items() if member in _NEEDED}
        parse_server_result(method, version, {**answer, key: [given]})
    return given


def _written(item: BaseModel, called: str, left_out: LeftOut) -> JsonObject:
    """An entry as plain data; nothing when it cannot be sent on as JSON."""
    try:
        entry = plain(item)
        decode_own(encode(entry))
    except (ValueError, RecursionError, RpcError) as error:
        _leave_out(left_out, called, str(getattr(item, "name", "")), error)
        return {}
    return entry


def _leave_out(left_out: LeftOut, called: str, name: str, error: Exception) -> None:
    if len(left_out) < MAX_LEFT_OUT:
        shown = name[:_NAME] if called == "tool" else f"{called} {name[:_NAME]}"
        left_out[shown if name else f"a {called} without a name"] = words_of(error)


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


__all__ = [
    "MAX_LEFT_OUT",
    "FilteredConnection",
    "LeftOut",
    "Lists",
    "checked_tools",
    "read_lists",
    "result_problem",
    "without_bad_entries",
]
