"""One MCP server of one session: starts it, calls it, restarts it after a crash, stops it.

    server = McpServer("id", config, port, cwd=…)
    task = asyncio.create_task(server.run())        # its life; cancel it to stop the server
    result = await server.call_tool("add", {"a": 1}, caller)

`state` follows `starting → ready | authRequired | error`, and is `stopped` outside of `run`.

It is long because life, lists and calls of a server depend on the same connection, which may end at any moment.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import advertise
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import event_to_notification
from pydantic import ValidationError

from ahpkit import __version__
from ahpkit.mcp.calls import Call, Caller, Calls, Limits, ServerPort, TokenNeeded, current_call
from ahpkit.mcp.connect import HttpConnection, ServerConfig, ServerConnection, StdioConnection
from ahpkit.mcp.errors import McpConfigError, McpError, McpRefused, McpUnavailable
from ahpkit.mcp.lists import Lists, read_lists, result_problem, whole_list
from ahpkit.mcp.tokens import Challenge, auth_required, resource_of
from ahpkit.mcp.tolerance import TolerantConnection, plain, unwrapped, words_of
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)

APPS = "io.modelcontextprotocol/ui"
"""The extension that says: this host's clients can show a server's apps."""
_APP_TYPE = "text/html;profile=mcp-app"

_WORDS = 4000
_LAST_LINES = 10
"""Lines of the server's error output that an error message shows."""

_JOURNAL = 200
"""Lines of the log of one server that are kept."""


Relist = Callable[[], Awaitable[None]]
"""Reads the lists of a server again."""


class McpServer:
    """See the module. All methods belong to one event loop."""

    def __init__(
        self, id: str, config: ServerConfig, port: ServerPort, *, cwd: Path, limits: Limits | None = None
    ) -> None:
        self.id = id
        self.config = config
        self.state: JsonObject = {"kind": "starting"}
        self.failures = 0
        """How often in a row the server ended by itself."""
        self._ready_since: float | None = None
        """When the server became ready; None: it has not become ready since its last start."""
        self.lists = Lists()
        self.capabilities: JsonObject = {}
        self.instructions: str | None = None
        self.resource = resource_of(config.url) if config.url else ""
        """The resource for which this server's token is valid."""
        self._port = port
        self._cwd = cwd
        self._limits = limits or Limits()
        self._client: Client | None = None
        self._way: ServerConnection | None = None
        self._calls = Calls(config.name, self._limits)
        self._stale = asyncio.Event()
        self._connected_anew = asyncio.Event()
        self._wake = asyncio.Event()
        self._challenge: Challenge | None = None
        """The challenge to a request outside of calls: at the start, or while the lists are read."""
        self._authorized: asyncio.Future[None] | None = None
        self._challenging = asyncio.Lock()
        self._token_worked = False
        self._just_renewed = False
        """Whether the token was renewed and the server has not accepted the new one yet."""
        self._halted = False
        self._journal: deque[str] = deque([_entry(self.state)], maxlen=_JOURNAL)

    def log(self) -> list[str]:
        """The log of this server: changes of its state and its log messages, then the last lines of its error
        output."""
        lines = [*self._journal, *([] if self._way is None else self._way.written())]
        return [self.config.hide(line) for line in lines]

    # -- life ------------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return self.state["kind"] == "ready"

    @property
    def takes_calls(self) -> bool:
        """Whether calls are accepted: the server is connected. If it waits for a token, a call is sent anyway or waits,
        too."""
        return self.ready or (self._waits and self._client is not None)

    async def run(self) -> None:
        """Start the server and keep it running, until this is cancelled."""
        clock = asyncio.get_running_loop().time
        self._port.changed(self)
        try:
            while True:
                self._set({"kind": "starting"})
                self._ready_since = None
                problem = self.config.hide(await _in_own_task(self._serve()))
                if self._challenge is not None:
                    await self._wait_for_token(self._challenge)
                    continue
                since = self._ready_since
                was_steady = since is not None and clock() - since > self._limits.steady
                self.failures = 1 if was_steady else self.failures + 1
                if self.failures > len(self._limits.delays):
                    await self._wait_in_error(problem)
                    self.failures = 0
                else:
                    self._set({"kind": "starting"})
                    self._port.changed(self)
                    _log.info("MCP server %s: %s; starting it again", self.config.name, problem.splitlines()[0])
                    await asyncio.sleep(self._limits.delays[self.failures - 1])
        finally:
            self.halt()

    def halt(self) -> None:
        """Prepare to stop: the server is not called any more, and its messages are ignored."""
        self._halted = True
        self._forget()
        self._connected_anew.set()  # Waiting calls find that nothing runs.
        waiting, self._authorized = self._authorized, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)  # Waiting calls find that nothing runs.
        self._set({"kind": "stopped"})

    def start_again(self) -> None:
        """Try once more, because a person asked for it after an error."""
        self._wake.set()

    def token_given(self) -> None:
        """There is a new token for this server: continue."""
        self._challenge, self._just_renewed = None, False
        waiting, self._authorized = self._authorized, None
        if waiting is not None and not waiting.done():
            self._set({"kind": "ready" if self._client is not None else "starting"})
            waiting.set_result(None)

    def token_expired(self) -> None:
        """Send a request without the token. The answer names the resource that needs a login, so that people can log in
        before a call needs it."""
        self._token_worked = self._token_worked or not self._waits
        self._stale.set()

    async def _wait_in_error(self, problem: str) -> None:
        error = {"errorType": "mcp/failed", "message": f"{self.config.name}: {problem[:_WORDS]}"}
        self._set({"kind": "error", "error": error})
        self._connected_anew.set()  # Waiting calls find that nothing runs.
        self._wake.clear()
        await self._wake.wait()

    async def _wait_for_token(self, challenge: Challenge, caller: Caller | None = None) -> None:
        """Renew the token. If that is not possible, report which token is needed and wait for it. All waiting calls
        continue together."""
        async with self._challenging:
            if self._authorized is None and challenge.status == 401 and await self._renewed():
                return
            if self._authorized is None and not self._halted:
                self._authorized = asyncio.get_running_loop().create_future()
                await self._show_challenge(challenge)
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

    async def _renewed(self) -> bool:
        """Whether there is a newer token than the refused one. If a token was just renewed and is refused again, it is
        not renewed any more: a person has to log in."""
        if self._token() is None and not self._just_renewed:
            self._just_renewed = await self._port.renew_token(self.resource)
        return self._token() is not None

    def _was_accepted(self) -> None:
        """The server accepted a request, and with it the token, if there is one."""
        self._token_worked = self._token_worked or self._token() is not None
        self._just_renewed = False

    async def _show_challenge(self, challenge: Challenge) -> None:
        hide = self.config.hide
        state = await auth_required(self.config.url, challenge, had_token=self._token_worked, hide=hide)
        self.resource = state["resource"]["resource"]
        if client_id := self.config.oauth_client.get("clientId"):
            state["oauthClient"] = {"clientId": client_id}
        self._token_worked = False
        if self._waits:
            self._set(dict(state))

    @property
    def _waits(self) -> bool:
        """Whether the server still waits for a token."""
        return self._authorized is not None

    def _set(self, state: JsonObject) -> None:
        if state != self.state and (not self._halted or state["kind"] == "stopped"):
            self.state = state
            self._journal.append(_entry(state))
            self._port.changed(self)

    def _note(self, what: str) -> None:
        """Add a line to the log, but only once, because a server may cause the same line without end."""
        if what not in self._journal:
            self._journal.append(what)
            _log.info("MCP server %s: %s", self.config.name, self.config.hide(what))

    def _forget(self) -> None:
        """Clear the lists, because the server does not run any more."""
        self._client = None
        self._connected_anew.clear()
        self.lists = Lists(left_out=self.lists.left_out)

    async def _serve(self) -> str:
        """Connect and stay until the connection ends; returns why it did."""
        link = self._way = self._link()
        try:
            async with self._connected(link) as (client, relist):
                if self._halted:
                    return "it was stopped"
                self._client = client
                self._connected_anew.set()
                self._was_accepted()
                self._ready_since = asyncio.get_running_loop().time()
                self._set({"kind": "ready"})
                await self._follow(client, relist, link.ended)
                self._forget()  # At once: nobody would get results of further calls.
                if not self._waits:
                    self._challenge = None  # It ended for another reason.
                    self._set({"kind": "starting"})
                return await link.why()
        except Exception as error:  # A server may fail in any way: it is shown as failed.
            if isinstance(link, StdioConnection) and link.ended_by_itself:
                return await link.why()
            cause = unwrapped(error)
            if isinstance(cause, McpConfigError):
                self.failures = len(self._limits.delays)  # A restart would fail in the same way, so there is none.
            late = isinstance(cause, TimeoutError)
            if late:  # It may have been installed during the first start. Then a second start is fast enough.
                self.failures = max(self.failures, len(self._limits.delays) - 1)
            problem = f"it did not answer within {self._limits.start:g} seconds" if late else words_of(cause)
            return "\n".join([problem, *link.written()[-_LAST_LINES:]])
        finally:
            self._forget()

    @asynccontextmanager
    async def _connected(self, link: ServerConnection) -> AsyncGenerator[tuple[Client, Relist]]:
        """A client that has initialized the connection and read the lists, and the function that reads the lists
        again."""
        connection = TolerantConnection(link)
        client = Client(
            connection,
            client_info=types.Implementation(name="ahpkit", version=__version__),
            message_handler=self._on_message,
            elicitation_callback=self._calls.elicit,
            sampling_callback=self._calls.sample if self._port.samples else None,
            list_roots_callback=self._list_roots,
            extensions=[advertise(APPS, {"mimeTypes": [_APP_TYPE]})],
            input_required_max_rounds=self._limits.asks,
            cache=None,
        )
        relist = partial(self._list, client, connection)
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._limits.start):
                await stack.enter_async_context(client)
                connection.version = client.protocol_version
                client.session.validate_tool_result = _unchecked  # By `_checked`, with limits.
                self.capabilities = plain(client.server_capabilities)
                self.instructions = client.instructions
                await relist()
            yield client, relist

    def _link(self) -> ServerConnection:
        limit = self._limits.message
        if self.config.command:
            return StdioConnection(self.config, default_cwd=self._cwd, max_message=limit)
        return HttpConnection(self.config, token=self._token, challenged=self._challenged, max_message=limit)

    def _token(self) -> str | None:
        return self._port.token(self.resource)

    def _challenged(self, status: int, header: str, token: str | None) -> None:
        challenge = Challenge.read(status, header)
        if (call := current_call()) is not None:
            call.challenge = challenge  # Later failures have other reasons.
        else:
            self._challenge = challenge
        if status == 401 and token is not None:  # A token that lacks a scope (403) is still valid for other requests.
            self._port.token_refused(self.resource, token)

    # -- what it offers --------------------------------------------------------------------------------------------

    async def _follow(self, client: Client, relist: Relist, ended: asyncio.Event) -> None:
        """Keep the lists up to date until the connection ends."""
        tasks = [
            asyncio.create_task(self._relist(relist), name=f"lists of {self.config.name}"),
            asyncio.create_task(self._listen(client), name=f"changes of {self.config.name}"),
        ]
        try:
            await ended.wait()
        finally:
            await _end(tasks)

    async def _relist(self, relist: Relist) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            self._challenge = None
            try:
                async with asyncio.timeout(self._limits.start):
                    await relist()
            except Exception as error:  # The lists stay as they were, and are read again at the next change.
                why = self.config.hide(words_of(error))
                _log.warning("MCP server %s: its lists cannot be read: %s", self.config.name, why)
                if (refused := self._challenge) is not None and refused.status == 401:
                    await self._wait_for_token(refused)
                    self._stale.set()
            else:
                self._challenge = None
                self._was_accepted()
                self._port.changed(self)
            await asyncio.sleep(self._limits.relist)

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes: servers of the newer era announce them only to subscribers."""
        with suppress(Exception):
            if client.session.discover_result is None:
                return
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as changes:
                    self._stale.set()  # Changes before the subscription were not announced.
                    async for change in changes:
                        self._stale.set()
                        said = plain(event_to_notification(change, {}))
                        self._port.notified(self, said["method"], {})
            except SubscriptionLost:
                self._stale.set()
            except (MCPError, RuntimeError, TimeoutError):
                return
            await asyncio.sleep(max(self._limits.relist, 1.0))

    async def _list(self, client: Client, connection: TolerantConnection) -> None:
        known = self.lists.left_out
        self.lists = await read_lists(client, connection, self.capabilities, self._limits)
        for name, why in self.lists.left_out.items():
            if known.get(name) != why:
                self._journal.append(f"{name} is left out: {why}")
                _log.warning("MCP server %s: %s is left out: %s", self.config.name, name, why)

    # -- what is asked of it ---------------------------------------------------------------------------------------

    async def call_tool(self, name: str, arguments: JsonObject, caller: Caller) -> JsonObject:
        """Run a tool: its `CallToolResult`. Raises `McpUnavailable` or `McpRefused`; cancelling it tells the server."""

        result = await self._asked(
            lambda client, call: client.call_tool(name, arguments, progress_callback=call.progress), caller
        )
        return await self._checked(name, result)

    async def _checked(self, name: str, result: JsonObject) -> JsonObject:
        """The result of a call, checked against the tool's output schema."""
        empty: JsonObject = {}
        tool = next((tool for tool in self.lists.tools if tool["name"] == name), empty)
        if "outputSchema" in tool and not result.get("isError"):
            problem = await asyncio.to_thread(result_problem, tool["outputSchema"], result.get("structuredContent"))
            if problem is not None:
                raise McpRefused(
                    types.INTERNAL_ERROR,
                    f"{name} of {self.config.name} returned a result that does not match its own schema: {problem}",
                )
        return result

    async def read_resource(self, uri: str, caller: Caller) -> JsonObject:
        return await self._asked(lambda client, call: client.read_resource(uri), caller)

    async def get_prompt(self, name: str, arguments: dict[str, str], caller: Caller) -> JsonObject:
        return await self._asked(lambda client, call: client.get_prompt(name, arguments), caller)

    async def request(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        """Send a request of the side channel; params and result are as on the wire."""

        try:
            page = types.PaginatedRequestParams.model_validate(params)
            match method:
                case "tools/list":
                    return await self._asked(lambda client, call: client.session.list_tools(params=page), caller)
                case "tools/call":
                    call = types.CallToolRequestParams.model_validate(params)
                    return await self.call_tool(call.name, call.arguments or {}, caller)
                case "resources/list":
                    return await self._asked(lambda client, call: client.session.list_resources(params=page), caller)
                case "resources/templates/list":
                    return await self._asked(
                        lambda client, call: client.session.list_resource_templates(params=page), caller
                    )
                case "resources/read":
                    read = types.ReadResourceRequestParams.model_validate(params)
                    return await self.read_resource(str(read.uri), caller)
                case "logging/setLevel":
                    level = types.SetLevelRequest(params=types.SetLevelRequestParams.model_validate(params))
                    return await self._asked(
                        lambda client, call: client.session.send_request(level, types.EmptyResult), caller
                    )
                case _:
                    raise McpRefused(types.METHOD_NOT_FOUND, f"{method} is not served on this channel")
        except ValidationError as error:
            raise McpRefused(types.INVALID_PARAMS, words_of(error)) from None

    async def _asked(self, send: Callable[[Client, Call], Awaitable[Any]], caller: Caller) -> JsonObject:
        """Send a request. If it needs a token, or a page that a person opens, wait for that and send it again."""
        pages, was_forgotten = 0, False
        while True:
            client, way = self._client, self._way
            if client is None:
                raise McpUnavailable(f"the MCP server {self.config.name} is not running ({self.state['kind']})")
            try:
                answer = whole_list(plain(await self._calls.run(partial(send, client), caller)))
                self._was_accepted()
                return answer
            except TokenNeeded as refused:
                await self._wait_for_token(refused.challenge, caller)
            except MCPError as error:
                if isinstance(way, HttpConnection) and way.is_forgotten and not was_forgotten:
                    was_forgotten = True
                    await self._connect_anew(way)
                    continue
                pages += 1
                if pages > self._limits.asks or not await self._calls.opened(error, caller):
                    raise await self._failure(error) from error
            except (ValidationError, RuntimeError, httpx2.HTTPError) as error:
                raise McpRefused(
                    types.INTERNAL_ERROR, f"{self.config.name} gave an answer that is not valid: {words_of(error)}"
                ) from error

    async def _connect_anew(self, lost: ServerConnection) -> None:
        """Wait for a new connection in place of a lost one."""
        if self._way is lost:
            self._connected_anew.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.start):
                await self._connected_anew.wait()

    async def _failure(self, error: MCPError) -> McpError:
        if self._halted:
            return McpUnavailable(f"the MCP server {self.config.name} was stopped during the call")
        if error.code == types.CONNECTION_CLOSED:
            why = await self._way.why() if self._way is not None else error.message
            return McpUnavailable(
                f"the MCP server {self.config.name} ended during the call: {self.config.hide(why)[:_WORDS]}"
            )
        return McpRefused(error.code, self.config.hide(words_of(error)), error.data)

    # -- what it asks and tells ----------------------------------------------------------------------------------------

    async def _list_roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in self._port.roots()]})

    async def tell_roots(self) -> None:
        """Tell the server that its roots changed. Servers of the newer era ask for them with each call."""
        if (client := self._client) is not None:
            with suppress(MCPError, RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await client.session.send_notification(types.RootsListChangedNotification())

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, Exception):
            self._note("it sent something that is not a message")
            return
        said = plain(message)
        method, params = str(said.get("method")), cast("JsonObject", said.get("params") or {})
        if method.endswith("/list_changed"):
            self._stale.set()
        elif method == "notifications/elicitation/complete":
            self._calls.page_done(str(params.get("elicitationId")))
        elif method == "notifications/message":
            self._journal.append(_logged(params))
        self._port.notified(self, method, params)


def _entry(state: JsonObject) -> str:
    """A line of the log for a change of state."""
    why: str | None = state["error"]["message"] if state["kind"] == "error" else state.get("reason")
    return state["kind"] if why is None else f"{state['kind']}: {why[:_WORDS]}"


def _logged(params: JsonObject) -> str:
    data: Any = params.get("data")
    words = data if isinstance(data, str) else json.dumps(data)
    return f"[{params.get('level', 'info')}] {words[:_WORDS]}"


async def _in_own_task(work: Coroutine[Any, Any, str]) -> str:
    """Run work in its own task, which ends before this returns.

    The SDK may mistake a cancellation for its own and ignore it, so the work is cancelled in that task.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
        return task.result()
    finally:
        if not task.done():
            task.cancel()  # Only once, because ending a process takes time.
            await asyncio.wait({task})


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they are over: a subscription of the SDK may take the first cancellation for its own."""
    while waiting := [task for task in tasks if not task.done()]:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting, timeout=0.5)
    await asyncio.gather(*tasks, return_exceptions=True)


async def _unchecked(name: str, result: types.CallToolResult) -> None:
    """Replaces the SDK's own validation, which a hostile schema can keep busy for ever."""


__all__ = ["APPS", "McpServer"]
