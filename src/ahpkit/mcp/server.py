"""One MCP server of one session: starts, lists, calls, restarts after a crash, stops.

    server = McpServer("id", config, port, cwd=…)
    task = asyncio.create_task(server.run())        # its life; cancel it to stop the server
    result = await server.call_tool("add", {"a": 1}, caller)

`state` follows `starting → ready | authRequired | error`, and is `stopped` outside of `run`. What a server asks for
while one of its tools runs (elicitation, sampling) goes to whoever called that tool, and to nobody else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import advertise
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import event_to_notification
from pydantic import BaseModel, ValidationError

from ahpkit import __version__
from ahpkit.mcp.auth import Challenge, auth_required, resource_of
from ahpkit.mcp.connect import HttpConnection, ServerConfig, ServerConnection, StdioConnection
from ahpkit.mcp.errors import McpError, McpRefused, McpUnavailable
from ahpkit.mcp.lists import LeftOut, checked_tools, list_good_tools, read_all, result_problem
from ahpkit.mcp.server_port import Call, Caller, Limits, ServerPort
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)

T = TypeVar("T")

APPS = "io.modelcontextprotocol/ui"
"""The extension that says: this host's clients can show a server's apps."""
_APP_TYPE = "text/html;profile=mcp-app"

_WORDS = 4000
_JOURNAL = 200
"""Lines that are kept of what a server said and of what happened to it."""


_current: ContextVar[Call | None] = ContextVar("call", default=None)


class McpServer:
    """See the module. All methods belong to one event loop."""

    def __init__(
        self, id: str, config: ServerConfig, port: ServerPort, *, cwd: Path, limits: Limits | None = None
    ) -> None:
        self.id = id
        self.config = config
        self.state: JsonObject = {"kind": "stopped"}
        self.tools: Sequence[JsonObject] = ()
        self.prompts: Sequence[JsonObject] = ()
        self.resources: Sequence[JsonObject] = ()
        self.templates: Sequence[JsonObject] = ()
        self.left_out: LeftOut = {}
        """Tools that cannot be used, and why."""
        self.capabilities: JsonObject = {}
        self.instructions: str | None = None
        self.resource = resource_of(config.url) if config.url else ""
        """What a token for this server is for."""
        self._port = port
        self._cwd = cwd
        self._limits = limits or Limits()
        self._client: Client | None = None
        self._way: ServerConnection | None = None
        self._calls: list[Call] = []
        self._stale = asyncio.Event()
        self._wake = asyncio.Event()
        self._challenge: Challenge | None = None
        self._authorized: asyncio.Future[None] | None = None
        self._challenging = asyncio.Lock()
        self._token_worked = False
        self._halted = False
        self._journal: deque[str] = deque(maxlen=_JOURNAL)

    def log(self) -> list[str]:
        """What happened to it and what it logged, then the last lines that its program wrote."""
        return [*self._journal, *([] if self._way is None else self._way.written())]

    # -- life ------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return self.state["kind"] == "ready"

    async def run(self) -> None:
        """Start it, keep it running, stop it when cancelled."""
        failures = 0
        clock = asyncio.get_running_loop().time
        try:
            while True:
                self._set({"kind": "starting"})
                began = clock()
                problem = await self._serve()
                if self._challenge is not None:
                    await self._wait_for_token()
                    continue
                failures = 1 if clock() - began > self._limits.steady else failures + 1
                if failures > len(self._limits.delays):
                    await self._wait_in_error(problem)
                    failures = 0
                else:
                    self._set({"kind": "starting"})
                    _log.info("MCP server %s: %s; starting it again", self.config.name, problem.splitlines()[0])
                    await asyncio.sleep(self._limits.delays[failures - 1])
        finally:
            self.halt()

    def halt(self) -> None:
        """Prepare to stop: it is not called any more, and what it sends is ignored."""
        self._halted = True
        self._forget()
        waiting, self._authorized = self._authorized, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)  # Whoever waits finds that nothing runs.
        self._set({"kind": "stopped"})

    def start_again(self) -> None:
        """Somebody acted on an error: try once more."""
        self._wake.set()

    def token_given(self) -> None:
        """There is a new token for this server."""
        self._challenge = None
        waiting, self._authorized = self._authorized, None
        if waiting is not None and not waiting.done():
            self._set({"kind": "ready" if self._client is not None else "starting"})
            waiting.set_result(None)

    async def _wait_in_error(self, problem: str) -> None:
        error = {"errorType": "mcp/failed", "message": f"{self.config.name}: {problem[:_WORDS]}"}
        self._set({"kind": "error", "error": error})
        self._wake.clear()
        await self._wake.wait()

    async def _wait_for_token(self, caller: Caller | None = None) -> None:
        """Say what is needed, and wait for it. All who wait are woken together."""
        async with self._challenging:
            if self._authorized is None and not self._halted:
                self._authorized = asyncio.get_running_loop().create_future()
                await self._show_challenge()
        waiting = self._authorized
        if waiting is None:
            return
        if caller is None:
            await asyncio.shield(waiting)
            return
        caller.auth_required(self.state)
        try:
            await asyncio.shield(waiting)
        finally:
            caller.auth_resolved()

    async def _show_challenge(self) -> None:
        challenge = self._challenge or Challenge(401, {})
        state = await auth_required(self.config.url, challenge, had_token=self._token_worked)
        self.resource = state["resource"]["resource"]
        if client_id := self.config.oauth_client.get("clientId"):
            state["oauthClient"] = {"clientId": client_id}
        self._token_worked = False
        if self._waits:
            self._set(dict(state))

    @property
    def _waits(self) -> bool:
        """No token came yet."""
        return self._authorized is not None

    def _set(self, state: JsonObject) -> None:
        if state != self.state and (not self._halted or state["kind"] == "stopped"):
            self.state = state
            self._journal.append(_entry(state))
            self._port.changed(self)

    def _forget(self) -> None:
        """Whatever it offered is gone with it."""
        self._client = None
        self.tools = self.prompts = self.resources = self.templates = ()

    async def _serve(self) -> str:
        """Connect and stay until the connection ends; returns why it did."""
        link = self._way = self._link()
        try:
            async with self._connected(link) as client:
                if self._halted:
                    return "it was stopped"
                self._client = client
                self._token_worked = self._port.token(self.resource) is not None
                self._set({"kind": "ready"})
                await self._follow(client, link)
                return await link.why()
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            return f"it did not answer within {self._limits.start:g} seconds"
        except Exception as error:  # A server may fail in any way: it is shown as failed.
            ended = isinstance(link, StdioConnection) and link.ended.is_set()
            return await link.why() if ended else _words(error)
        finally:
            self._forget()

    @asynccontextmanager
    async def _connected(self, link: ServerConnection) -> AsyncGenerator[Client]:
        """A client that has said hello and knows what there is."""
        client = Client(
            link,  # type: ignore[arg-type]  # An async context manager that gives the two streams.
            client_info=types.Implementation(name="ahpkit", version=__version__),
            message_handler=self._on_message,
            elicitation_callback=self._elicit,
            sampling_callback=self._sample if self._port.samples else None,
            list_roots_callback=self._list_roots,
            extensions=[advertise(APPS, {"mimeTypes": [_APP_TYPE]})],
            input_required_max_rounds=self._limits.asks,
            cache=None,
        )
        clock = asyncio.timeout(self._limits.start)
        async with clock:
            await client.__aenter__()
            try:
                client.session.validate_tool_result = _unchecked  # By `_checked`, with limits.
                self.capabilities = _plain(client.server_capabilities)
                self.instructions = client.instructions
                await self._list(client)
            except BaseException as error:
                await client.__aexit__(type(error), error, error.__traceback__)
                raise
        async with _entered(client):
            yield client

    def _link(self) -> ServerConnection:
        limit = self._limits.message
        if self.config.command:
            return StdioConnection(self.config, default_cwd=self._cwd, max_message=limit)
        return HttpConnection(self.config, token=self._token, challenged=self._challenged, max_message=limit)

    def _token(self) -> str | None:
        return self._port.token(self.resource)

    def _challenged(self, status: int, header: str) -> None:
        self._challenge = Challenge.read(status, header)
        token = self._token()
        if self._challenge is not None and token is not None:
            self._port.token_refused(self.resource, token)

    # -- what it offers --------------------------------------------------------------------------------------------

    async def _follow(self, client: Client, link: ServerConnection) -> None:
        """Keep the lists true until the connection ends."""
        tasks = [
            asyncio.create_task(self._relist(client), name=f"lists of {self.config.name}"),
            asyncio.create_task(self._listen(client), name=f"changes of {self.config.name}"),
        ]
        try:
            await link.ended.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _relist(self, client: Client) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                async with asyncio.timeout(self._limits.start):
                    await self._list(client)
            except (MCPError, ValidationError, TimeoutError, McpError) as error:
                _log.warning("MCP server %s: its lists cannot be read: %s", self.config.name, _words(error))
            else:
                self._port.changed(self)
            await asyncio.sleep(self._limits.relist)

    async def _listen(self, client: Client) -> None:
        """Servers of the newer era tell of changes only to those who listen."""
        with suppress(Exception):
            if client.session.discover_result is None:
                return
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as changes:
                    self._stale.set()  # What changed before it listened was not announced.
                    async for change in changes:
                        self._stale.set()
                        said = _plain(event_to_notification(change, {}))
                        self._port.notified(self, said["method"], {})
            except SubscriptionLost:
                self._stale.set()
            except (MCPError, RuntimeError, TimeoutError):
                return
            await asyncio.sleep(max(self._limits.relist, 1.0))

    async def _list(self, client: Client) -> None:
        has, limits = self.capabilities, self._limits
        left_out: LeftOut = {}
        good = partial(list_good_tools, client, left_out)
        listed = await read_all(good, "tools", limits.listed, limits.pages, left_out) if "tools" in has else []
        self.tools = await asyncio.to_thread(checked_tools, listed)
        self._note_left_out(left_out)
        if "prompts" in has:
            self.prompts = await read_all(client.list_prompts, "prompts", limits.listed, limits.pages)
        if "resources" in has:
            self.resources = await read_all(client.list_resources, "resources", limits.listed, limits.pages)
            templates = client.list_resource_templates
            self.templates = await read_all(templates, "resource_templates", limits.listed, limits.pages)

    def _note_left_out(self, left_out: LeftOut) -> None:
        """A tool that cannot be used costs itself alone; its log and its entry say which, and why."""
        news = {name: why for name, why in left_out.items() if self.left_out.get(name) != why}
        self.left_out = left_out
        for name, why in news.items():
            self._journal.append(f"the tool {name} is left out: {why}")
            _log.warning("MCP server %s: the tool %s is left out: %s", self.config.name, name, why)

    # -- what is asked of it ---------------------------------------------------------------------------------------

    async def call_tool(self, name: str, arguments: JsonObject, caller: Caller) -> JsonObject:
        """Run a tool: its `CallToolResult`. Raises `McpUnavailable` or `McpRefused`; cancelling it tells the server."""

        result = await self._asked(lambda client: self._call(client, name, arguments, caller), caller)
        return await self._checked(name, result)

    async def _call(self, client: Client, name: str, arguments: JsonObject | None, caller: Caller) -> Any:
        async def told(progress: float, total: float | None, message: str | None) -> None:
            if (call := _current.get()) is not None:
                call.alive()
            caller.progress(progress, total, message)

        return await client.call_tool(name, arguments, progress_callback=told)

    async def _checked(self, name: str, result: JsonObject) -> JsonObject:
        """A result that fits what its tool promises."""
        empty: JsonObject = {}
        tool = next((tool for tool in self.tools if tool["name"] == name), empty)
        if "outputSchema" in tool and not result.get("isError"):
            problem = await asyncio.to_thread(result_problem, tool["outputSchema"], result.get("structuredContent"))
            if problem is not None:
                raise McpRefused(
                    types.INTERNAL_ERROR,
                    f"{name} of {self.config.name} returned a result that does not match its own schema: {problem}",
                )
        return result

    async def read_resource(self, uri: str, caller: Caller) -> JsonObject:
        return await self._asked(lambda client: client.read_resource(uri), caller)

    async def get_prompt(self, name: str, arguments: dict[str, str], caller: Caller) -> JsonObject:
        return await self._asked(lambda client: client.get_prompt(name, arguments), caller)

    async def request(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        """One of the methods of the side channel, as it is on the wire."""

        try:
            page = types.PaginatedRequestParams.model_validate(params)
            match method:
                case "tools/list":
                    return await self._asked(lambda client: client.session.list_tools(params=page), caller)
                case "tools/call":
                    call = types.CallToolRequestParams.model_validate(params)
                    return await self.call_tool(call.name, call.arguments or {}, caller)
                case "resources/list":
                    return await self._asked(lambda client: client.session.list_resources(params=page), caller)
                case "resources/templates/list":
                    return await self._asked(lambda client: client.session.list_resource_templates(params=page), caller)
                case "resources/read":
                    read = types.ReadResourceRequestParams.model_validate(params)
                    return await self.read_resource(str(read.uri), caller)
                case "logging/setLevel":
                    level = types.SetLevelRequest(params=types.SetLevelRequestParams.model_validate(params))
                    return await self._asked(
                        lambda client: client.session.send_request(level, types.EmptyResult), caller
                    )
                case _:
                    raise McpRefused(types.METHOD_NOT_FOUND, f"{method} is not served on this channel")
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise McpRefused(types.INVALID_PARAMS, f"{place}: {first['msg']}") from None

    async def _asked(self, send: Callable[[Client], Awaitable[Any]], caller: Caller) -> JsonObject:
        """Send a request; when it needs a token, wait for one and send it again."""
        while True:
            client = self._client
            if client is None:
                raise McpUnavailable(f"the MCP server {self.config.name} is not running ({self.state['kind']})")
            self._challenge = None
            try:
                return _plain(await self._timed(client, send, caller))
            except MCPError as error:
                if self._challenge is None:
                    raise await self._failure(error) from error
            except (ValidationError, RuntimeError, httpx2.HTTPError) as error:
                raise McpRefused(
                    types.INTERNAL_ERROR, f"{self.config.name} gave an answer that is not valid: {_words(error)}"
                ) from error
            await self._wait_for_token(caller)

    async def _timed(self, client: Client, send: Callable[[Client], Awaitable[T]], caller: Caller) -> T:
        clock = asyncio.timeout(self._limits.call)
        try:
            async with clock:
                call = Call(caller, clock, self._limits)
                self._calls.append(call)
                known = _current.set(call)
                try:
                    return await send(client)
                finally:
                    call.over = True
                    _current.reset(known)
                    self._calls.remove(call)
        except TimeoutError:
            if not clock.expired():
                raise
            raise McpUnavailable(f"{self.config.name} did not answer within {self._limits.call:g} seconds") from None

    async def _failure(self, error: MCPError) -> McpError:
        if error.code == types.CONNECTION_CLOSED:
            why = await self._way.why() if self._way is not None else error.message
            return McpUnavailable(f"the MCP server {self.config.name} ended during the call: {why[:_WORDS]}")
        return McpRefused(error.code, error.message, error.data)

    # -- what it asks ----------------------------------------------------------------------------------------------

    def _asking(self) -> Call | None:
        """The call a question belongs to: the one it came with, else the latest."""
        return _current.get() or (self._calls[-1] if self._calls else None)

    async def _elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        call = self._asking()
        if call is None:
            return _refusal("a server may ask questions only while a tool runs, and none does")
        try:
            answer = await call.ask(lambda: call.caller.elicit(_plain(params)))
            return types.ElicitResult.model_validate(answer)
        except McpError as error:
            return _refusal(str(error))

    async def _sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        call = self._asking()
        if call is None:
            return _refusal("a server may ask the model only while a tool runs, and none does")
        try:
            answer = await call.ask(lambda: call.caller.sample(_plain(params)))
            if isinstance(answer.get("content"), list):
                return types.CreateMessageResultWithTools.model_validate(answer)
            return types.CreateMessageResult.model_validate(answer)
        except McpError as error:
            return _refusal(str(error))

    async def _list_roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in self._port.roots()]})

    async def tell_roots(self) -> None:
        """Its roots are others now. Servers of the newer era ask for them with each call."""
        if (client := self._client) is not None:
            with suppress(MCPError, RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await client.session.send_notification(types.RootsListChangedNotification())

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            _log.info("MCP server %s sent something that is not a message", self.config.name)
            return
        said = _plain(message)
        method = str(said.get("method"))
        if method.endswith("/list_changed"):
            self._stale.set()
        elif method == "notifications/message":
            self._journal.append(_logged(said.get("params") or {}))
        self._port.notified(self, method, said.get("params") or {})


def _entry(state: JsonObject) -> str:
    """A change of state as a line of the log."""
    why: str | None = state["error"]["message"] if state["kind"] == "error" else state.get("reason")
    return state["kind"] if why is None else f"{state['kind']}: {why[:_WORDS]}"


def _logged(params: JsonObject) -> str:
    data: Any = params.get("data")
    words = data if isinstance(data, str) else json.dumps(data)
    return f"[{params.get('level', 'info')}] {words[:_WORDS]}"


@asynccontextmanager
async def _entered(client: Client) -> AsyncGenerator[None]:
    """Leave a client that was entered before."""
    try:
        yield
    except BaseException as error:
        await client.__aexit__(type(error), error, error.__traceback__)
        raise
    await client.__aexit__(None, None, None)


async def _unchecked(name: str, result: types.CallToolResult) -> None:
    """Instead of the SDK's own check, which a hostile schema can keep busy for ever."""


def _plain(value: BaseModel) -> JsonObject:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _refusal(message: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=message)


def _words(error: BaseException) -> str:
    """What a person should read of a failure, however it was wrapped."""
    if isinstance(error, BaseExceptionGroup):
        return _words(cast("BaseExceptionGroup[Exception]", error).exceptions[0])
    text = str(cast("object", error))
    return (text or type(error).__name__)[:_WORDS]


__all__ = ["APPS", "McpServer"]
