"""Opens the connection to one MCP server: a child process, or HTTP. Limits sizes; reports when and why it ends.

    async with StdioConnection(config) as streams: ...
    async with HttpConnection(config, token=…) as streams: ...

The SDK's client uses `streams`. The caller decides whether the end of a connection is a failure.

`UnbatchedEvents` splits batches in a stream of server-sent events (MCP 2025-03-26), because the SDK reads one message
from each event. It refuses messages with too many values.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeGuard, cast

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest
from pydantic_core import to_json

from ahpkit.host.limits import LONG_MESSAGE
from ahpkit.mcp.errors import McpConfigError
from ahpkit.mcp.tolerance import Item, batch_in, messages_in, readable
from ahpkit.protocol.errors import TransportClosed
from ahpkit.transports.process import BatchTransport, ChildProcess
from ahpkit.transports.stdio import TOO_BIG, LineTransport

MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message of a server. A longer message is a mistake or an attack: the connection ends with an error that
says so."""

_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables of the host's environment that a server gets. Others may hold secrets, so a server gets only those that its
declaration names."""

_SECRET = 8
"""Characters of a variable or header of a server that is hidden in texts. A shorter one may be any word."""
_SHORT_SECRET = 4
"""The same for a variable of the host that a declaration names."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

_BEFORE_REQUESTS = 8
"""Messages before the first request of a connection that are kept."""

_STDERR_LINES = 10
_LOGGED_LINES = 200
PLAIN = {"accept-encoding": "identity"}
"""Sent with every request: answers must not be compressed, because a few compressed bytes may become gigabytes."""

_HTTP_TIMEOUT = 30.0
_SILENCE = 15 * 60.0
"""Seconds without a byte before an open answer is given up. They are many, because a person may be deciding
meanwhile."""

Streams = tuple[Any, Any]
"""The two streams that the SDK reads from and writes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A declaration that can be started. `command` or `url`."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sse: bool = False
    """The server speaks only the older form of HTTP (SSE)."""
    oauth_client: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """An OAuth client that is already registered with the authorization server: `clientId`, `clientSecret?`."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Values that only the server may see, by the names of their variables."""

    def hide(self, text: str) -> str:
        """A text for clients and logs: each secret in it is replaced by the name of its variable."""
        for name, secret in sorted(self.secrets.items(), key=lambda item: -len(item[1])):
            text = text.replace(secret, f"${{{name}}}")
        return text


def server_config(name: str, launch: Mapping[str, Any], filled: Mapping[str, str] | None = None) -> ServerConfig:
    """A declaration with its placeholders filled in (`customizations.mcp_files`), checked. `filled` are the variables
    that were filled in. An error names no value, because clients see it."""
    url, command = launch.get("url"), launch.get("command")
    env, headers = _texts(launch.get("env")), _texts(launch.get("headers"))
    secrets = {key: value for key, value in (env | headers).items() if len(value) >= _SECRET}
    secrets |= {key: value.strip() for key, value in (filled or {}).items() if len(value.strip()) >= _SHORT_SECRET}
    if isinstance(command, str) and command.strip():
        args = tuple(str(word) for word in cast("list[Any]", launch.get("args") or []))
        cwd = launch.get("cwd")
        folder = Path(cwd) if isinstance(cwd, str) and cwd else None
        return ServerConfig(name=name, command=(command, *args), env=env, cwd=folder, secrets=secrets)
    if not _is_web_address(url):
        raise McpConfigError(f"server {name!r} has neither a command nor an http or https URL")
    oauth = launch.get("oauth")
    return ServerConfig(
        name=name,
        url=url,
        headers={key: _header(name, key, value) for key, value in headers.items()},
        sse=launch.get("type") == "sse",
        oauth_client=cast("dict[str, Any]", oauth) if isinstance(oauth, dict) else {},
        secrets=secrets,
    )


def _texts(value: Any) -> dict[str, str]:
    return {str(key): str(item) for key, item in cast("dict[Any, Any]", value or {}).items()}


def _is_web_address(url: Any) -> TypeGuard[str]:
    try:
        parts = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)


def _header(server: str, name: str, value: str) -> str:
    """The value of a header without the spaces around it, such as the end of the line of a file it was read from."""
    value = value.strip()
    if not _HEADER_NAME.fullmatch(name):
        raise McpConfigError(f"server {server!r}: {name!r} cannot be the name of a header")
    if not value.isascii() or not value.isprintable():
        raise McpConfigError(f"server {server!r}: the value of its header {name} has characters that cannot be sent")
    return value


class LineStream:
    """Makes both streams of the SDK from a transport of lines.

    It reads a message when the SDK asks for one. The caller closes the transport.
    """

    def __init__(self, transport: LineTransport, ended: asyncio.Event | None = None) -> None:
        """`ended` is set when the other side has closed its output."""
        self._ended = ended or asyncio.Event()
        self.too_long = False
        self._transport = transport
        self._batch: deque[Item] = deque()
        """Messages of the last line that the SDK has not got yet."""

    async def receive(self) -> Item:
        if self._batch or self._transport.has_line:  # Many messages came at once: others are served in between.
            await asyncio.sleep(0)
        try:
            while not self._batch:
                line = await self._transport.receive()
                long = len(line) > LONG_MESSAGE
                self._batch.extend(await asyncio.to_thread(messages_in, line) if long else messages_in(line))
            return self._batch.popleft()
        except TransportClosed as error:
            self.too_long = error.code == TOO_BIG
            self._ended.set()
            raise anyio.EndOfStream from None

    async def first_request(self) -> JSONRPCRequest | None:
        """The first request that comes; None when the other side ends before. `receive` returns it again, and a few
        messages that came before it."""
        before: list[Item] = []
        async for item in self:
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                self._batch.extendleft((item, *reversed(before)))
                return item.message
            before = [*before, item][:_BEFORE_REQUESTS]
        return None

    async def send(self, item: SessionMessage) -> None:
        if self._transport.buffered:
            await self._transport.drain()
        if self._transport.is_over:
            raise anyio.BrokenResourceError
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._transport.write(self._transport.frame(data.encode()))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...


class StdioConnection:
    """A server as a child process. Leaving the context ends the server and all processes that it started."""

    def __init__(self, config: ServerConfig, *, default_cwd: Path, max_message: int = MAX_MESSAGE) -> None:
        self.ended = asyncio.Event()
        """Set when its output has ended, so that no answer can come any more."""
        self.ended_by_itself = False
        """Whether its output had ended before the context was left."""
        self._problem: str | None = None
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._directory = config.cwd or default_cwd
        self._process = ChildProcess(
            config.command,
            env={**environment, **config.env},
            cwd=self._directory,
            max_line=max_message,
            transport=BatchTransport,
        )
        self._lines: LineStream | None = None

    async def __aenter__(self) -> Streams:
        try:
            await self._process.__aenter__()
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise McpConfigError(self._explain(error)) from None
        self._lines = LineStream(self._process.transport, self.ended)
        return self._lines, self._lines

    def _explain(self, error: OSError) -> str:
        """Why the server cannot be started, in words. The text does not name the program, because clients see this text
        but must not see a server's command."""
        part = "working directory" if str(error.filename) == str(self._directory) else "program"
        why = (error.strerror or type(error).__name__).lower()
        return f"it cannot be started: {why}. Look at the {part} in its declaration"

    async def __aexit__(self, *exc: Any) -> None:
        self.ended_by_itself = self.ended.is_set()
        await self._process.__aexit__(*exc)

    def give_up(self, why: str) -> None:
        """End the connection, because of something that the server does."""
        self._problem = why
        self.ended.set()

    def written(self) -> list[str]:
        """The last lines that the server wrote to stderr."""
        return self._process.log.lines(_LOGGED_LINES)

    async def why(self) -> str:
        """Why the connection ended, with the last lines that the server wrote."""
        await self._process.wait_over(1.0)
        code = self._process.exit_code
        if self._problem is not None:
            ended = self._problem
        elif self._lines is not None and self._lines.too_long:
            ended = "it sent a message that is longer than this host takes"
        elif code is None:
            ended = "it closed its output"
        else:
            ended = f"signal {-code} ended it" if code < 0 else f"it ended with exit code {code}"
        return "\n".join([ended, *self._process.log.lines(_STDERR_LINES)])


Challenged = Callable[[int, str, str | None], None]
"""Called for a 401 or 403: with the status, `WWW-Authenticate`, and the token that was sent."""


class HttpConnection:
    """A server behind a URL. `token` is called before every request, `challenged` for each 401 and 403.

    If the server does not know the session any more (404), the connection ends, so that another one can be made.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        token: Callable[[], str | None],
        challenged: Challenged,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self.ended = asyncio.Event()
        self._config = config
        self._max_message = max_message
        self._problem: str | None = None
        self.is_forgotten = False
        """The server has forgotten this session. The last request was not carried out."""
        self._auth = _TokenAuth(token, challenged, self._answered)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Streams:
        config = self._config
        async with AsyncExitStack() as stack:
            if config.sse:
                way = sse_client(config.url, httpx_client_factory=self._client)
            else:
                client = await stack.enter_async_context(self._client())
                way = streamable_http_client(config.url, http_client=client, max_sse_event_size=self._max_message)
            streams = await stack.enter_async_context(way)
            self._stack = stack.pop_all()
            return streams

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def give_up(self, why: str) -> None:
        """End the connection, because of something that the server does."""
        self._problem = why
        self.ended.set()

    def _answered(self, request: httpx2.Request, status: int) -> None:
        """Check an answer's status: the session may be unknown, or the message refused. Over SSE this would not be
        noticed otherwise."""
        if status == 404 and "mcp-session-id" in request.headers:
            self.is_forgotten = True
            self.give_up("it does not know this session any more")
        elif status >= 400 and self._config.sse and request.method == "POST":
            self.give_up(f"it refused a message with HTTP {status}")

    def written(self) -> list[str]:
        """The error output of a remote server cannot be read."""
        return []

    async def why(self) -> str:
        return self._problem or "the connection to it ended"

    def _client(self, *ignored: object, **also_ignored: object) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={**PLAIN, **self._config.headers},
            auth=self._auth,
            timeout=httpx2.Timeout(_HTTP_TIMEOUT, read=_SILENCE),
            transport=_BoundedTransport(self._max_message),
            follow_redirects=False,
        )


class _TokenAuth(httpx2.Auth):
    """Adds the present token to requests, and reports challenges and the status of each answer. Never reads the
    body."""

    def __init__(
        self,
        token: Callable[[], str | None],
        challenged: Challenged,
        answered: Callable[[httpx2.Request, int], None],
    ) -> None:
        self._token = token
        self._challenged = challenged
        self._answered = answered

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = self._token()
        if token is not None:
            request.headers["authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code in (401, 403):
            self._challenged(response.status_code, response.headers.get("www-authenticate", ""), token)
        self._answered(request, response.status_code)


def is_encoded(response: httpx2.Response) -> bool:
    """Whether an answer is compressed."""
    return response.headers.get("content-encoding", "identity").lower() not in ("", "identity")


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """An answer with one message is cut off if it is too long, and refused if it has too many values. In a stream of
    messages the limits hold for each event, and batches are split."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if is_encoded(response):
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, though the host asked for a plain one")
        stream = cast("httpx2.AsyncByteStream", response.stream)
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = (UnbatchedEvents if events else _BoundedStream)(stream, self._limit)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = bytearray()
        async for chunk in self._stream:
            whole += chunk
            if len(whole) > self._limit:
                raise httpx2.StreamError(f"the answer is longer than {self._limit} bytes")
        answer = bytes(whole)
        yield await asyncio.to_thread(readable, answer) if len(answer) > LONG_MESSAGE else answer

    async def aclose(self) -> None:
        await self._stream.aclose()


ServerConnection = StdioConnection | HttpConnection


_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""The bytes that end an event."""


class UnbatchedEvents(httpx2.AsyncByteStream):
    """A stream of events in which each batch has become one event for each of its messages.

    An event of more than `limit` bytes is passed on unchanged, and refused by its reader.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        waiting = bytearray()
        searched, too_long = 0, False
        async for chunk in self._stream:
            waiting += chunk
            begin = 0
            while (end := _END.search(waiting, max(searched - 3, begin))) is not None:
                event = bytes(waiting[begin : end.end()])
                yield event if too_long else await _taken(event)
                begin, too_long = end.end(), False
            del waiting[:begin]
            searched = len(waiting)
            if too_long or searched > self._limit:
                yield bytes(waiting[:-3])  # The bytes that end the event may arrive in two pieces.
                del waiting[:-3]
                searched, too_long = len(waiting), True
        if waiting:
            yield bytes(waiting)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _taken(event: bytes) -> bytes:
    """The bytes that replace an event. A long event is read in a thread, so that it does not block the event loop."""
    return await asyncio.to_thread(unbatched, event) if len(event) > LONG_MESSAGE else unbatched(event)


def unbatched(event: bytes) -> bytes:
    """The events that replace one event: one for each message of a batch, or the event itself. The last one keeps its
    id. A message with too many values becomes an error for the request that it answers; other such messages are
    dropped."""
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    if (taken := readable(data)) is not data:
        messages = [taken] if taken else []
    elif data.lstrip()[:1] != b"[":
        return event
    else:
        try:
            messages = [to_json(message) for message in batch_in(data)]
        except (ValueError, RecursionError):
            return event
    if not messages:
        return b""
    fields = [line for line in lines if line and not line.startswith((b"data:", b"id:"))]
    events = [[*fields, b"data: " + message] for message in messages]
    events[-1] += [line for line in lines if line.startswith(b"id:")]
    return b"".join(b"\n".join(lines) + b"\n\n" for lines in events)


__all__ = [
    "MAX_MESSAGE",
    "PLAIN",
    "HttpConnection",
    "LineStream",
    "ServerConfig",
    "ServerConnection",
    "StdioConnection",
    "Streams",
    "UnbatchedEvents",
    "is_encoded",
    "server_config",
    "unbatched",
]
