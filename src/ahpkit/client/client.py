"""`Client`: connects to a host and offers every operation of the SDK. It puts the parts of the SDK together."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, TypeVar, cast, overload

from opentelemetry.trace import TracerProvider

from ahpkit.client.active_role import ActiveRoles, ToolsAndCanvases
from ahpkit.client.canvas import Canvas, canvas
from ahpkit.client.connection import GREETING_TIMEOUT, Backoff, Dial, Status
from ahpkit.client.core import Core, NotificationListener, RequestHandler, given
from ahpkit.client.dispatch import Dispatch
from ahpkit.client.handshake import HostInfo, check_announced
from ahpkit.client.logins import Logins, OnAuthRequired
from ahpkit.client.resources import OnUnsavedText
from ahpkit.client.responder import OnConfirmation, OnInput, Responders
from ahpkit.client.session import Session, check_settings
from ahpkit.client.session_list import SessionList
from ahpkit.client.subscription import LIMIT, Subscription
from ahpkit.client.telemetry import Level, Telemetry
from ahpkit.client.tools import Tool
from ahpkit.dialects.generations import FORK, SELECTION
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.errors import MethodNotFound
from ahpkit.protocol.extensions import announced, check_method
from ahpkit.protocol.meta_keys import ASK_AGENTS, CANVASES, UNSAVED_TEXT
from ahpkit.protocol.root import ProgressParams, ResolveSessionConfigResult, RootState, SessionConfigValueItem
from ahpkit.protocol.session.state import SessionSummary, ToolAnnotations
from ahpkit.wire.errors import AhpError

F = TypeVar("F", bound=Callable[..., Any])

REQUEST_TIMEOUT = 60.0
"""Seconds for an answer, time to reconnect included."""

_FORGETTING = 2.0
"""Seconds to wait until the host has disposed of a session whose creation was cancelled."""


class Client:
    """A connection to a host, which is opened again whenever it is lost, and every operation of the SDK.

    Use `ahpkit.client.connect`; this class works with any transport: `dial` opens one.
    """

    def __init__(
        self,
        dial: Dial,
        *,
        client_id: str | None = None,
        locale: str | None = None,
        extensions: Mapping[str, Any] | None = None,
        backoff: Backoff | None = None,
        request_timeout: float | None = REQUEST_TIMEOUT,
        handshake_timeout: float = GREETING_TIMEOUT,
        on_confirmation: OnConfirmation | None = None,
        on_input: OnInput | None = None,
        unsaved_text: OnUnsavedText | None = None,
        mcp_apps: bool = False,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        """`extensions` are announced to the host: namespace → any JSON. Pass the same `client_id` to stay known.

        `unsaved_text` is for editors: agents read what it returns for a file instead of what is on disk. With
        `mcp_apps` the client gets what it needs to talk to MCP servers and to render their apps. Spans go to
        `tracer_provider`, or to the provider of the process.
        """
        announced: dict[str, Any] = {CANVASES: True, **(extensions or {})}
        if unsaved_text:
            announced[UNSAVED_TEXT] = {"version": "1"}
        self._core = Core(
            dial,
            client_id=client_id,
            backoff=backoff or Backoff(),
            locale=locale,
            capabilities={"_meta": announced} | ({"mcpApps": {}} if mcp_apps else {}),
            request_timeout=request_timeout,
            handshake_timeout=handshake_timeout,
            unsaved_text=unsaved_text,
            tracer_provider=tracer_provider,
        )
        self._logins = Logins()
        self._offers = ToolsAndCanvases()
        self._roles = ActiveRoles(self._core, self._offers)
        self._responders = Responders(self._core.channels, self._core.tasks, on_confirmation, on_input)

    async def __aenter__(self) -> Self:
        await self._core.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._roles.release()
        await self._core.__aexit__()

    # The connection.

    @property
    def client_id(self) -> str:
        """The id of this client at the host."""
        return self._core.client_id

    @property
    def status(self) -> Status:
        """`connecting`, `connected`, `reconnecting` or `closed`."""
        return self._core.connection.status

    @property
    def host(self) -> HostInfo:
        """What the host said about itself in the handshake."""
        assert self._core.handshake.host is not None, "the client is not connected yet"
        return self._core.handshake.host

    @property
    def root(self) -> RootState:
        """The host's root state: agents, models, configuration."""
        return cast("RootState", self._core.root.plain_optimistic())

    def on_status(self, callback: Callable[[Status], Awaitable[None] | None]) -> Callable[[], None]:
        """Call `callback` with every new status. Call the result to stop this."""
        return _listen(self._core.connection.listeners, callback)

    async def wait_connected(self) -> None:
        """Wait for the connection; raises when it will not come back."""
        await self._core.connection.wait_connected()

    async def ping(self) -> float:
        """Seconds for a message to the host and back."""
        before = time.perf_counter()
        await self.request("ping")
        return time.perf_counter() - before

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        channel: str = ROOT_URI,
        timeout: float | None = None,
    ) -> Any:
        """Send any request of the protocol; raises the host's `RpcError`, `TransportClosed`, or `TimeoutError`."""
        return await self._core.request(method, params, channel=channel, timeout=timeout)

    def dispatch(self, channel: str, action: Mapping[str, Any]) -> Dispatch:
        """Dispatch any action. Works offline: it is sent after the reconnect."""
        return self._core.channels.dispatch(channel, dict(action))

    def subscribe(self, uri: str, *, limit: int = LIMIT) -> Subscription:
        """Follow a channel: `async with client.subscribe(uri) as subscription`."""
        return Subscription(self._core.channels, uri, limit=limit)

    def telemetry(self, *, logs: Level | None = None, traces: bool = False, metrics: bool = False) -> Telemetry:
        """Follow the host's telemetry: `async with client.telemetry(logs="warn") as telemetry`.

        Iterate over it: a `LogRecord` of the level `logs` and above, a `Span` for `traces`, a `MetricPoint` for
        `metrics`. Raises `ClientError` on entering when the host does not report it.
        """
        return Telemetry(self._core, logs=logs, traces=traces, metrics=metrics)

    # Sessions.

    async def sessions(self, *, ask_agents: bool = False) -> list[SessionSummary]:
        """All sessions of the moment, and conversations that agents keep themselves. Both can be opened as sessions.

        Running agents are always asked for theirs; with `ask_agents` the others are started to ask them.
        """
        return (await self.request("listSessions", {"_meta": {ASK_AGENTS: True}} if ask_agents else None))["items"]

    def session_list(self, on_change: Callable[[], Awaitable[None] | None] | None = None) -> SessionList:
        """All sessions, kept up to date inside an `async with`."""
        return SessionList(self._core, on_change)

    async def session(self, uri: str) -> Session:
        """Open a session; raises `ChannelGone` when there is none."""
        channel = await self._core.channels.open(uri, "session")
        return Session(self._core, channel, self._roles, self._responders)

    async def create_session(
        self,
        *,
        provider: str | None = None,
        model: str | ModelSelection | None = None,
        agent: AgentSelection | None = None,
        working_directory: str | None = None,
        more_directories: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        fork: tuple[str, str] | None = None,
        active_client: bool = False,
        uri: str | None = None,
        on_progress: Callable[[ProgressParams], Awaitable[None] | None] | None = None,
    ) -> Session:
        """Create a session and wait until it is ready; raises `SessionFailed`, or `UnknownSetting` for its `config`.

        The host inside VS Code creates a session when the first message comes, so with it this does not wait.

        `more_directories` are for agents that can work in several (`capabilities.multipleWorkingDirectories`).
        If the call is cancelled, the session is disposed of. `fork` is the URI of a session and the id of the turn to
        continue from. With `active_client` this client becomes the session's active client. `uri` is the URI of the new
        session; by default `new_session_uri` makes one. `on_progress` gets `progress`, `total` and a `message`, if the
        host reports them.
        """
        uri = uri or self.new_session_uri(provider)
        if config:
            await self._check_config(provider, working_directory, config)
        chosen = given(model={"id": model} if isinstance(model, str) else model, agent=agent)
        forked = None if fork is None else {"session": fork[0], "turnId": fork[1]}
        notes = given(**{SELECTION: chosen or None, FORK: forked})
        params = given(
            provider=provider,
            workingDirectories=None if working_directory is None else [working_directory, *more_directories],
            config=config,
            progressToken=None if on_progress is None else uri,
            _meta=notes or None,
        )
        self._core.selections.begin(uri, chosen)
        stop = self.on_notification(_only_progress(uri, on_progress)) if on_progress is not None else None
        try:
            await self.request("createSession", params, channel=uri)
            session = await self.session(uri)
            if not self.host.is_vscode:
                await session.wait_ready()
        except asyncio.CancelledError:
            await self._forget(uri)
            raise
        finally:
            if stop is not None:
                stop()
        if active_client:
            await session.claim().accepted()
        return session

    def new_session_uri(self, provider: str | None = None) -> str:
        """A URI for a new session of an agent. The host inside VS Code reads the agent from it."""
        if self.host.is_vscode and provider is None:
            provider = next((agent["provider"] for agent in self.root["agents"]), None)
        scheme = provider if self.host.is_vscode and provider is not None else "ahp-session"
        return f"{scheme}:/{uuid.uuid4()}"

    async def _check_config(self, provider: str | None, directory: str | None, config: Mapping[str, Any]) -> None:
        """Raise `UnknownSetting` for unknown names. If the host cannot list its settings, nothing is checked here."""
        with suppress(MethodNotFound):
            resolved = await self.resolve_config(provider=provider, working_directory=directory, config=config)
            check_settings(config, resolved["schema"]["properties"])

    async def _forget(self, uri: str) -> None:
        """Dispose of a session whose creator stopped waiting for it."""
        with suppress(AhpError, TimeoutError):
            await self.request("disposeSession", channel=uri, timeout=_FORGETTING)

    async def resolve_config(
        self,
        *,
        provider: str | None = None,
        working_directory: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> ResolveSessionConfigResult:
        """What can be configured for a new session, given the values chosen so far."""
        params = given(provider=provider, workingDirectory=working_directory, config=config)
        return await self.request("resolveSessionConfig", params)

    async def config_completions(
        self,
        property: str,
        query: str,
        *,
        provider: str | None = None,
        working_directory: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> list[SessionConfigValueItem]:
        """The values of a setting that match what the user typed so far, for settings with too many values to list."""
        params = given(provider=provider, workingDirectory=working_directory, config=config)
        asked = {**params, "property": property, "query": query}
        return (await self.request("sessionConfigCompletions", asked))["items"]

    async def authenticate(
        self, resource: str, token: str, *, expires_in: int | None = None, scopes: Sequence[str] | None = None
    ) -> None:
        """Hand the host a token for a protected resource that an agent or an MCP server asked for.

        `expires_in` is its lifetime in seconds; `scopes` is what it grants.
        """
        more = given(expiresIn=expires_in, scopes=None if scopes is None else list(scopes))
        await self.request("authenticate", {"resource": resource, "token": token, **more})
        self._logins.sent(resource, token)

    def on_auth_required(self, callback: OnAuthRequired) -> Callable[[], None]:
        """Give the host a token when it asks for one.

        `callback(params)` gets `resource`, `reason` and `channel`; it returns a text, a `Token`, or None. A token that
        the host called expired is not sent again. Call the result to stop.
        """
        return self.on_notification(self._logins.listener(callback, self.authenticate))

    # Approvals.

    async def rules(self) -> list[JsonObject]:
        """The host's approval rules: what is allowed or denied without a question. `says` is a rule in words."""
        return (await self.request("x-ahpkit/rules/list"))["rules"]

    async def add_rule(
        self,
        decision: str,
        *,
        owner: str,
        tool: str | None = None,
        command: str | None = None,
        path: str | None = None,
        chat: str | None = None,
        session: str | None = None,
        workspace: str | None = None,
    ) -> JsonObject:
        """Add a rule that allows or denies calls (`decision`); returns the rule.

        `owner` is `agent:NAME`, `mcp:SERVER`, `client:NAME` or `host`. Without `tool` the rule covers all tools of a
        server; with `command` (a prefix) or `path` (a pattern), only matching calls. It holds in one chat, session or
        workspace (a URI each), or everywhere. Raises `ValueError` for arguments that do not make a rule, such as an
        empty one.
        """
        if "" in (owner, tool, command, path, chat, session, workspace):
            raise ValueError("an argument is empty; leave it out instead")
        kind = "command" if command else "path" if path else "tool" if tool else "server"
        places = given(chat=chat, session=session, workspace=workspace)
        if len(places) > 1 or (command and path):
            raise ValueError("give a command or a path, not both, and at most one of chat, session and workspace")
        scope, place = next(iter(places.items()), ("everywhere", None))
        asked = given(owner=owner, tool=tool, pattern=command or path, place=place)
        return await self.request("x-ahpkit/rules/add", {"decision": decision, "kind": kind, "scope": scope, **asked})

    async def remove_rule(self, id: str) -> None:
        """Take a rule back; raises `NotFound` when there is none."""
        await self.request("x-ahpkit/rules/remove", {"id": id})

    async def approvals(self, *, session: str | None = None, limit: int | None = None) -> list[JsonObject]:
        """Decisions about tool calls, the newest last: who or which rule decided, when, and what the person saw."""
        return (await self.request("x-ahpkit/approvals/list", given(session=session, limit=limit)))["approvals"]

    # What this client offers.

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self, /, *, name: str | None = None, title: str | None = None, annotations: ToolAnnotations | None = None
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> Any:
        """Offer a typed function as a tool to the sessions in which this client is active.

        Used as a decorator, with or without options.
        """

        def register(function: F) -> F:
            self._offers.add_tool(Tool(function, name=name, title=title, annotations=annotations))
            return function

        return register if function is None else register(function)

    def remove_tool(self, name: str) -> None:
        """Stop offering a tool, also in the sessions in which this client is active."""
        self._offers.remove_tool(name)

    def canvas(
        self, canvas_id: str, *, display_name: str, description: str, input_schema: Any | None = None
    ) -> Callable[[Any], Canvas]:
        """Offer a canvas made of a class, an object or a function, as `ahpkit.authoring.canvas.canvas` makes it."""
        make = canvas(canvas_id, display_name=display_name, description=description, input_schema=input_schema)
        return lambda handlers: self.add_canvas(make(handlers))

    def add_canvas(self, canvas: Canvas) -> Canvas:
        """Offer a canvas to the sessions this client is active in."""
        self._offers.add_canvas(canvas)
        return canvas

    # What the host says and asks.

    def on_notification(self, callback: NotificationListener) -> Callable[[], None]:
        """Call `callback(method, params)` for every notification except actions. Call the result to stop this."""
        return _listen(self._core.host_requests.listeners, callback)

    def serve(self, method: str, handler: RequestHandler) -> None:
        """Answer a request of the host: one of the resource family, `createResourceWatch`, or an extension."""
        self._core.host_requests.serve(method, handler)

    # Extensions.

    def on_extension(self, method: str, handler: RequestHandler) -> None:
        """Handle an extension's requests and notifications: `_example.com/analytics/event`."""
        check_method(method)
        self._core.host_requests.serve(method, handler)

    async def extension_request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        channel: str = ROOT_URI,
        timeout: float | None = None,
    ) -> Any:
        """Call an extension of the host. For one of a session's agent, `channel` is the session or chat.

        Raises `ExtensionNotSupported` when neither the host nor an agent announced it.
        """
        self._check_extension(method, channel)
        return await self.request(method, params, channel=channel, timeout=timeout)

    def extension_notify(
        self, method: str, params: Mapping[str, Any] | None = None, *, channel: str = ROOT_URI
    ) -> None:
        """Send a notification to an extension of the host or of an agent; it is dropped while the client is offline."""
        self._check_extension(method, channel)
        self._core.connection.notify(method, {"channel": channel, **(params or {})})

    def announced(self) -> JsonObject:
        """What the host announced, extensions included: namespace → any JSON."""
        return {**self.host.meta, **self.root.get("_meta", {})}

    def announced_by_agents(self) -> JsonObject:
        """The extensions that the host's agents announced. Only agents that were started have announced any."""
        facts = [agent.get("_meta", {}).get("ahpkit/agent", {}) for agent in self.root["agents"]]
        return {name: value for one in facts for name, value in announced(one.get("capabilities")).items()}

    def _check_extension(self, method: str, channel: str) -> None:
        check_method(method)
        check_announced(method, self.announced() | (self.announced_by_agents() if channel != ROOT_URI else {}))


def _only_progress(token: str, callback: Callable[[ProgressParams], Awaitable[None] | None]) -> NotificationListener:
    def hear(method: str, params: JsonObject) -> Awaitable[None] | None:
        if method == "root/progress" and params.get("progressToken") == token:
            return callback(cast("ProgressParams", params))
        return None

    return hear


T = TypeVar("T")


def _listen(listeners: list[T], listener: T) -> Callable[[], None]:
    listeners.append(listener)
    return lambda: listeners.remove(listener)


__all__ = ["REQUEST_TIMEOUT", "Client"]
