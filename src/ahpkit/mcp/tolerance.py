"""Repairs the messages of a server before the SDK reads them, because the SDK refuses a whole message if one part is
bad.

* A line that is almost a message becomes one; a bad answer becomes an error for the waiting call.
* A line may be a batch (MCP 2025-03-26): its messages are read one by one, in their order.
* Lists lose the entries that cannot be used (once a list was refused), and they are named.
* Lists that are very long are hidden from the SDK but for their beginning, because it checks a whole list in one step.
* Results of tools keep what can be read; content of an unknown kind, or with a part missing, is shown as text.
* Notifications that are not valid are dropped.
* A server that asks without end and reads no answer is given up: its questions would fill the memory.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
import msgspec
from httpx2 import HTTPStatusError
from mcp.shared.message import SessionMessage
from mcp_types.methods import parse_server_notification, parse_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ahpkit.host.limits import MAX_ESCAPES, MAX_PROGRAM_VALUES, MAX_VALUES
from ahpkit.mcp.results import with_structured_object
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import too_much

if TYPE_CHECKING:
    from ahpkit.mcp.connect import ServerConnection, Streams

Item = SessionMessage | Exception
"""One item that the SDK reads from a stream."""

_CONTENT: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "tool_use": (),
    "tool_result": (),
}
"""Kinds of content that the SDK accepts, with the string members that each needs. It also accepts embedded files
(`resource`)."""

_WORDS = 4000
"""Characters of an error that are shown."""

_SECRETS = re.compile(r"(?<=://)[^\s/@'\"]*@|(?<=\S)\?[^\s'\"]*=[^\s'\"]*")
"""The parts of an address that may hold a secret: its user, and its query."""

_OPEN = 1000
"""Requests of a server that may wait for an answer at the same time. The SDK has a task for each of them."""

_SHOWN = 2000
"""Characters that are shown of content that is not known."""

_MENDED = 1024 * 1024
"""Bytes of a line that is repaired. Repairing reads a line several times, and a longer line would block the host."""

_PARTS = 1000
"""Parts of a result. Each part costs time in everything that handles the result."""

_ENTRIES = 1000
"""Entries at the beginning of a list that the SDK checks. It takes about 15 µs for each."""

REST = f"ahpkit/rest/{secrets.token_hex(8)}"
"""The member of `_meta` with the other entries of a list. No server can guess its name."""

_BATCH = 1000
"""Messages of one batch. More are not read."""

_BEGINNING = 4096
"""Bytes at the beginning of an unusable line in which the id of a request is searched."""

_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,100}")')

_NAME = 100
"""Characters of the name of something that is left out."""

MAX_LEFT_OUT = 20
"""Left-out entries that are named. If a server has more, something else is wrong with it."""

LISTS: Mapping[str, tuple[str, str, str]] = {
    "tools": ("tools/list", "tools", "tool"),
    "prompts": ("prompts/list", "prompts", "prompt"),
    "resources": ("resources/list", "resources", "resource"),
    "resourceTemplates": ("resources/templates/list", "resource_templates", "resource template"),
}
"""Each list by its key in an answer: the method, the SDK's attribute, and what one entry is called."""

_NEEDED = ("name", "title", "description", "inputSchema", "arguments", "uri", "uriTemplate", "mimeType")
"""Members that an entry needs. If another member is wrong, the entry is used without its optional members."""

LeftOut = dict[str, str]
"""The entries of a list that cannot be used: their names, and why."""


# -- lines ---------------------------------------------------------------------------------------------------------


def messages_in(line: bytes) -> list[Item]:
    """The message of a line, or the messages of a batch. Each is repaired separately."""
    if (reason := _why_unread(line)) is not None:
        return [_error_for(line, reason) or ValueError(reason)]
    if line.lstrip()[:1] != b"[":
        return [message_in(line)]
    try:
        batch = batch_in(line)
    except BadBatch as error:
        return [error]
    except (ValueError, RecursionError) as error:
        return [_error_for(line, "it cannot be read as JSON") or ValueError(str(error))]
    return [message_in(to_json(member)) for member in batch]


def _why_unread(data: bytes) -> str | None:
    """Why a message is not read, because it would take too long; None: it is read. Answers with lists of tools, prompts
    or resources may be longer than others."""
    reason = too_much(data, max_values=MAX_VALUES, max_escapes=MAX_ESCAPES)
    if reason is None:
        return None
    much = too_much(data, max_values=MAX_PROGRAM_VALUES, max_escapes=MAX_ESCAPES)
    return much if much is not None or _is_list(data) else reason


def _is_list(data: bytes) -> bool:
    """Whether a message answers with a list of what the server offers. Looks only at the names of its members."""
    try:
        result = _MEMBERS.decode(_MEMBERS.decode(data)["result"])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return False
    return "content" not in result and any(key in result for key in LISTS)


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANSWERS = frozenset({"result", "error"})
"""Members of answers, one of which each has."""


def readable(data: bytes) -> bytes:
    """A message, unchanged. A message that would take too long to read becomes an error for the request that it
    answers, or None."""
    if (reason := _why_unread(data)) is None:
        return data
    error = _error_for(data, reason)
    return b"" if error is None else error.message.model_dump_json(by_alias=True, exclude_unset=True).encode()


class BadBatch(ValueError):
    """A batch without messages, or with too many."""


def batch_in(line: bytes) -> list[Any]:
    """The messages of a batch, not checked yet. Raises `BadBatch`, or `ValueError` if the line is not JSON."""
    batch = _members(line)
    if not 1 <= len(batch) <= _BATCH:
        raise BadBatch(f"a batch has 1 to {_BATCH} messages; this one has {len(batch)}")
    return batch


def _members(line: bytes) -> list[Any]:
    try:
        return from_json(line)
    except ValueError:
        if len(line) > _MENDED:
            raise
        return from_json(_without_surrogates(line))


def message_in(line: bytes) -> Item:
    """The message of a line, repaired if possible. For a line that is not a message it is an exception, which the SDK
    skips."""
    try:
        return _message(line)
    except ValueError as error:
        return _almost(line, error)


def _message(line: bytes) -> SessionMessage:
    kind = _kind(line)
    if kind is not None:
        with suppress(ValidationError):
            return SessionMessage(kind.model_validate_json(line, by_name=False))
    return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))


def _kind(line: bytes) -> type[types.JSONRPCRequest | types.JSONRPCResponse] | None:
    """The only type that a message with these members can have. None: the SDK tries one type after another, which takes
    three times as long."""
    try:
        members = _MEMBERS.decode(line).keys()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if "method" in members:
        return types.JSONRPCRequest if "id" in members and members.isdisjoint(_ANSWERS) else None
    return types.JSONRPCResponse if "result" in members and "error" not in members else None


def _almost(line: bytes, error: ValueError) -> Item:
    if len(line) > _MENDED:
        return _error_for(line, "it is not a message") or error
    try:
        return _message(_without_surrogates(line))
    except ValidationError:
        return _error_for(line, "it has no result that is an object") or error
    except (ValueError, RecursionError):
        return _error_for(line, "it cannot be read as JSON") or error


def _without_surrogates(line: bytes) -> bytes:
    """The same JSON without lone surrogates: JSON can express them, UTF-8 cannot."""
    return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")


def _error_for(line: bytes, why: str) -> SessionMessage | None:
    """An error for the request that an unusable message answers. None when no request can be found for it."""
    beginning = line[:_BEGINNING]
    found = None if b'"method"' in beginning else _ID.search(beginning)
    if found is None:
        return None
    about = types.ErrorData(code=types.PARSE_ERROR, message=f"its answer is not valid: {why}")
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=about))


# -- streams -------------------------------------------------------------------------------------------------------


class TolerantConnection:
    """A connection whose messages are repaired, as a transport for the SDK's client."""

    def __init__(self, connection: ServerConnection) -> None:
        self.version: str | None = None
        """The negotiated version of MCP; None while it is not known yet."""
        self._connection = connection
        self._open = 0
        self.filters_lists = False
        """Entries of lists that cannot be used are dropped."""
        self.left_out: LeftOut = {}
        """The dropped entries: their names, with the reasons."""

    async def __aenter__(self) -> Streams:
        incoming, outgoing = await self._connection.__aenter__()
        ended = self._connection.ended.set
        return _MendedStream(incoming, self._mended, ended), _CountedStream(outgoing, self._answered)

    async def __aexit__(self, *exc: object) -> None:
        await self._connection.__aexit__(*exc)

    def _answered(self, item: SessionMessage) -> None:
        self._open -= isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError)

    async def _mended(self, item: Item) -> Item | None:
        """The repaired item; None: it is dropped. Raises `EndOfStream` if nothing more must be read."""
        message = None if isinstance(item, Exception) else item.message
        self._open += isinstance(message, types.JSONRPCRequest)
        if self._open > _OPEN:
            self._connection.give_up(f"it sent {_OPEN} requests and read no answer")
            raise anyio.EndOfStream
        if isinstance(message, types.JSONRPCNotification) and self.version is not None:
            return item if _is_valid(message, self.version) else None
        if not isinstance(item, SessionMessage) or not isinstance(message, types.JSONRPCResponse):
            return item
        result = with_known_content(message.result)
        if self.version is not None and self.version not in MODERN_PROTOCOL_VERSIONS:
            result = with_structured_object(result)
        if self.filters_lists and self.version is not None:
            result = await asyncio.to_thread(without_bad_entries, result, self.version, self.left_out)
        result = await self._without_rest(result)
        if result is message.result:
            return item
        return replace(item, message=message.model_copy(update={"result": result}))

    async def _without_rest(self, answer: JsonObject) -> JsonObject:
        """A long list with its first entries only, and the others that can be used in `_meta`."""
        key = _list_in(answer)
        if key is None or self.version is None or len(answer[key]) <= _ENTRIES:
            return answer
        rest = {**answer, key: answer[key][_ENTRIES:]}
        checked = await asyncio.to_thread(without_bad_entries, rest, self.version, self.left_out)
        meta: Any = answer.get("_meta")
        more = {**(cast("JsonObject", meta) if isinstance(meta, dict) else {}), REST: checked[key]}
        return {**answer, key: answer[key][:_ENTRIES], "_meta": more}


class _MendedStream:
    """A stream of messages that repairs each one first. `ended` is called at the end of the stream."""

    def __init__(self, stream: Any, mend: Callable[[Item], Awaitable[Item | None]], ended: Callable[[], None]) -> None:
        self._stream = stream
        self._mend = mend
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        try:
            while (item := await self._mend(await self._stream.receive())) is None:
                pass
            return item
        except anyio.EndOfStream:
            self._ended()
            raise

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _MendedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.__aexit__(*exc)


class _CountedStream:
    """A stream to a server that reports everything it has written."""

    def __init__(self, stream: Any, written: Callable[[SessionMessage], None]) -> None:
        self._stream = stream
        self._written = written

    async def send(self, item: SessionMessage) -> None:
        await self._stream.send(item)
        self._written(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _CountedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.__aexit__(*exc)


def _is_valid(message: types.JSONRPCNotification, version: str) -> bool:
    """Notifications of unknown methods are left to the SDK."""
    try:
        parse_server_notification(message.method, version, message.params)
    except ValidationError:
        return False
    except (KeyError, ValueError, RuntimeError):
        return True
    return True


# -- answers -------------------------------------------------------------------------------------------------------


def with_known_content(result: JsonObject) -> JsonObject:
    """The result of a tool, with only content that the SDK accepts, and with a limited number of parts. Other messages
    are not changed."""
    content: Any = result.get("content")
    if isinstance(content, list) and len(cast("list[Any]", content)) > _PARTS:
        parts = cast("list[Any]", content)
        more: JsonObject = {"type": "text", "text": f"({len(parts) - _PARTS + 1} more parts are left out)"}
        return with_known_content({**result, "content": [*parts[: _PARTS - 1], more]})
    if content is None and ("structuredContent" in result or "isError" in result):
        return {**result, "content": []}
    if not isinstance(content, list) or all(map(_is_known, cast("list[Any]", content))):
        return result
    return {**result, "content": [part if _is_known(part) else _as_text(part) for part in cast("list[Any]", content)]}


def _is_known(part: Any) -> bool:
    """Whether the SDK accepts a part of a result. If it does not, it would refuse the whole result."""
    given: JsonObject = cast("JsonObject", part) if isinstance(part, dict) else {}
    kind: Any = given.get("type")
    if kind == "resource":
        file = given.get("resource")
        return _has_texts(file, "uri", "text") or _has_texts(file, "uri", "blob")
    return isinstance(kind, str) and kind in _CONTENT and _has_texts(given, *_CONTENT[kind])


def _has_texts(given: Any, *names: str) -> bool:
    members = cast("JsonObject", given) if isinstance(given, dict) else {}
    return all(isinstance(members.get(name), str) for name in names)


def _as_text(part: Any) -> JsonObject:
    return {"type": "text", "text": json.dumps(part)[:_SHOWN]}


def without_bad_entries(answer: JsonObject, version: str, left_out: LeftOut) -> JsonObject:
    """An answer without the entries that this version of MCP does not allow. Other answers are unchanged."""
    key = _list_in(answer)
    if key is None:
        return answer
    good: list[JsonObject] = []
    for entry in answer[key]:
        try:
            good.append(_usable(answer, key, entry, version))
        except (ValueError, RecursionError) as error:
            name: Any = cast("JsonObject", entry).get("name") if isinstance(entry, dict) else ""
            leave_out(left_out, LISTS[key][2], name if isinstance(name, str) else "", error)
    return {**answer, key: good}


def _list_in(answer: JsonObject) -> str | None:
    """The member of an answer that has a list of what the server offers."""
    key = next((one for one in LISTS if isinstance(answer.get(one), list)), None)
    return None if "content" in answer else key


def _usable(answer: JsonObject, key: str, entry: Any, version: str) -> JsonObject:
    """The entry, without its optional members if one of them is wrong. Raises `ValueError` if it is still wrong."""
    method = LISTS[key][0]
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    given = cast("JsonObject", entry)
    schema = given.get("inputSchema")
    if isinstance(schema, dict) and "type" not in schema:  # Tools without parameters often leave it out.
        given = {**given, "inputSchema": {"type": "object", **cast("JsonObject", schema)}}
    try:
        parse_server_result(method, version, {**answer, key: [given]})
    except ValidationError:
        given = {member: value for member, value in given.items() if member in _NEEDED}
        parse_server_result(method, version, {**answer, key: [given]})
    return given


def leave_out(left_out: LeftOut, called: str, name: str, error: Exception) -> None:
    """Note that an entry is left out, and why."""
    if len(left_out) < MAX_LEFT_OUT:
        shown = name[:_NAME] if called == "tool" else f"{called} {name[:_NAME]}"
        left_out[shown if name else f"a {called} without a name"] = words_of(error)


# -- words ---------------------------------------------------------------------------------------------------------


def plain(value: BaseModel) -> JsonObject:
    """An object of the SDK as plain data, as on the wire."""
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def unwrapped(error: BaseException) -> BaseException:
    """The first failure inside groups of failures."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[Exception]", error).exceptions[0]
    return error


def words_of(error: BaseException) -> str:
    """A failure in words for a person. Parts of an address that may hold a secret are removed, because clients see the
    text."""
    if isinstance(error, HTTPStatusError):
        return f"it answered {error.response.status_code} {error.response.reason_phrase}".strip()
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:_WORDS]
    text = str(cast("object", error))
    if " validation error" in text:  # The SDK's message quotes a library at length.
        text = text.partition(":")[0]
    return (_SECRETS.sub("", text) or type(error).__name__)[:_WORDS]


__all__ = [
    "LISTS",
    "MAX_LEFT_OUT",
    "REST",
    "BadBatch",
    "Item",
    "LeftOut",
    "TolerantConnection",
    "batch_in",
    "leave_out",
    "message_in",
    "messages_in",
    "plain",
    "readable",
    "unwrapped",
    "with_known_content",
    "without_bad_entries",
    "words_of",
]
