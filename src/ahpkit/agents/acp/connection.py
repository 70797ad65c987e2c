"""Starts an ACP agent's process, initializes the JSON-RPC connection to it, and asks what it can do and what it stores.

Whatever goes wrong here becomes an `AgentError` that a person can read: what happened, and the last lines the agent
wrote.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ahpkit import __version__
from ahpkit.agents.acp.config import AcpAgentConfig
from ahpkit.agents.acp.content import OUTPUT_KEYS
from ahpkit.agents.acp.limits import MAX_LISTED, MAX_NAME, MAX_WORDS, cut, short
from ahpkit.agents.acp.meta import upward, without_secrets, wrapped
from ahpkit.agents.acp.questions import ANSWER_META
from ahpkit.agents.acp.registry import KNOWN_AGENTS
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.host.agent import AgentError, AgentSession, LoginNeeded
from ahpkit.host.limits import MAX_ESCAPES, MAX_PROGRAM_VALUES
from ahpkit.platform.processes import MARK
from ahpkit.protocol.common.state import JsonObject
from ahpkit.transports.process import ChildProcess
from ahpkit.transports.stdio import TOO_BIG
from ahpkit.wire import rpc
from ahpkit.wire.errors import AhpError, RpcError, TransportClosed
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import NotificationHandler, RequestHandler, RpcConnection

PROTOCOL_VERSION = 1

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message. The largest one seen had 0.6 MB; an image or a file in a message fits."""

EXITED = "acp/agent-exited"
"""Error type of a turn or a start that ended because the process did."""

_log = logging.getLogger(__name__)

_SLOW = 3.0
"""Seconds after which a person who waits for an agent is told what it is doing."""

AUTH_REQUIRED = "acp/auth-required"
"""Error type of a start or a turn that needs a login first."""

REQUEST_CANCELLED = "acp/cancelled"
"""Error type of a request that the agent gave up because we cancelled it."""

_ERROR_TYPES = {-32000: AUTH_REQUIRED, rpc.REQUEST_CANCELLED: REQUEST_CANCELLED}

_EXIT_PATIENCE = 5.0
"""Seconds between the end of an agent's output and the end of its process. On a busy machine this takes a while."""

_LINES = 10
"""Lines of stderr in an error message."""
_DETAILS = 1000
"""Characters of the details of an agent's own error."""


class AcpConnection:
    """`async with AcpConnection(config, cwd=…, …) as agent` starts and initialises the agent, and ends it after the
    block."""

    def __init__(
        self,
        config: AcpAgentConfig,
        *,
        cwd: Path,
        on_request: RequestHandler,
        on_notification: NotificationHandler,
        on_refused: Callable[[AhpError], None] = lambda error: None,
        terminals: bool = False,
        extensions: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
        max_line: int = MAX_LINE,
        exit_patience: float = _EXIT_PATIENCE,
        on_slow: Callable[[str | None], None] = lambda text: None,
    ) -> None:
        """`on_slow` is called with what the host waits for when the agent takes long, and with None when it has
        answered."""
        self._max_line = max_line
        self._exit_patience = exit_patience
        self.initialized: JsonObject = {}
        """The result of `initialize`."""
        self._config = config
        self._cwd = config.cwd or cwd
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_refused = on_refused
        self._terminals = terminals
        self._extensions = extensions or {}
        self._secrets = secrets or {}
        self._hides: set[str] = set()
        self._environ = environ
        self._on_slow = on_slow
        self._stack = AsyncExitStack()
        self._process: ChildProcess | None = None
        self.rpc: RpcConnection

    async def __aenter__(self) -> Self:
        async with self._stack:
            self._process = await self._start()
            self.rpc = await self._stack.enter_async_context(
                RpcConnection(
                    self._process.transport,
                    on_request=self._on_request,
                    on_notification=self._on_notification,
                    on_refused=self._on_refused,
                    peer=Peer(max_bytes=self._max_line, max_values=MAX_PROGRAM_VALUES, max_escapes=MAX_ESCAPES),
                )
            )
            self.initialized = obj(await self.request("initialize", self._hello(), timeout=self._config.start_timeout))
            self._check_version()
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # The agent's capabilities.

    @property
    def capabilities(self) -> JsonObject:
        return obj(self.initialized.get("agentCapabilities"))

    @property
    def prompt_capabilities(self) -> JsonObject:
        return obj(self.capabilities.get("promptCapabilities"))

    @property
    def mcp_capabilities(self) -> JsonObject:
        return obj(self.capabilities.get("mcpCapabilities"))

    @property
    def auth_methods(self) -> list[JsonObject]:
        methods = objects(self.initialized.get("authMethods"))[:MAX_LISTED]
        return [method for method in methods if len(text(method.get("id")) or "") in range(1, MAX_NAME)]

    @property
    def steers(self) -> bool:
        """Whether the agent takes messages while a turn runs (`_session/steering`)."""
        return obj(obj(self.initialized.get("_meta")).get("steering")).get("supported") is True

    def session_can(self, what: str) -> bool:
        """Whether the agent has `list`, `resume`, `close`, `fork` or `delete`. It announces them by an object, which
        may be empty."""
        return isinstance(obj(self.capabilities.get("sessionCapabilities")).get(what), dict)

    @property
    def loads(self) -> bool:
        return self.capabilities.get("loadSession") is True

    @property
    def restores(self) -> bool:
        """Whether the agent can resume an earlier session."""
        return self.loads or self.session_can("resume")

    def facts(self) -> JsonObject:
        """What clients may know about the agent."""
        keys = ("id", "name", "description")
        methods = [{key: short(str(method.get(key) or "")) for key in keys} for method in self.auth_methods]
        return {
            "protocol": "acp",
            "info": upward(self.initialized.get("agentInfo")),
            "capabilities": upward(self.capabilities),
            "authMethods": methods,
        }

    @property
    def mark(self) -> Mapping[str, str]:
        """Variables for processes that are started for the agent, so that they end with the agent."""
        return {} if self._process is None else {MARK: self._process.mark}

    # Talking to it.

    @property
    def closed(self) -> bool:
        return self.rpc.closed is not None

    async def request(self, method: str, params: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """Send a request and wait for the answer. An error of the agent, its end and its silence are all raised as
        `AgentError`."""
        watched = self._watch(method) if timeout is not None else nullcontext()
        try:
            with watched:
                return await self.rpc.request(method, params, timeout=timeout)
        except RpcError as error:
            raise self._refused(method, error) from error
        except TransportClosed as error:
            raise await self._ended(error) from error
        except TimeoutError:
            raise self._error(f"did not answer {method} within {timeout:g} seconds", "acp/timeout") from None

    @contextmanager
    def _watch(self, method: str) -> Generator[None]:
        """If a request takes long: report which one, and what the agent's process has printed so far."""
        notified = False

        def tell() -> None:
            nonlocal notified
            notified = True
            _log.warning("%s", self._error(f"has not answered {method} for {_SLOW:g} seconds", "acp/slow").message)
            self._on_slow(self._waiting_for(method))

        timer = asyncio.get_running_loop().call_later(_SLOW, tell)
        try:
            yield
        finally:
            timer.cancel()
            if notified:
                self._on_slow(None)

    def _waiting_for(self, method: str) -> str:
        lines = self._process.log.lines(1) if self._process is not None else []
        wrote = f"; it last wrote: {short(self._hidden(lines[0]))}" if lines else "; it has written nothing so far"
        return f"Waiting for {self._config.display_name} to answer {method}{wrote}"

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.rpc.notify(method, params)

    def kill(self) -> None:
        """End the process now; `async with` still has to be left."""
        assert self._process is not None
        self._process.kill()

    async def _start(self) -> ChildProcess:
        if not self._cwd.is_dir():
            raise self._error(f"cannot start: the working directory {self._cwd} does not exist", "acp/start")
        env = self._config.environment(self._environ) | dict(self._secrets)
        process = ChildProcess(
            [self._config.command, *self._config.args], env=env, cwd=self._cwd, max_line=self._max_line
        )
        try:
            return await self._stack.enter_async_context(process)
        except FileNotFoundError:
            known = KNOWN_AGENTS.get(self._config.name)
            advice = f"; install it with: {known.install}" if known else ""
            raise self._error(f"cannot start: {self._config.command} is not installed{advice}", "acp/start") from None
        except OSError as error:
            raise self._error(f"cannot start {self._config.command}: {error.strerror}", "acp/start") from None

    def _hello(self) -> JsonObject:
        files = self._config.files
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": {"name": "ahpkit", "title": "ahpkit", "version": __version__},
            "clientCapabilities": {
                "fs": {"readTextFile": files, "writeTextFile": files},
                "terminal": self._terminals,
                "session": {"configOptions": {"boolean": {}}},
                "elicitation": {"form": {}, "url": {}},
                "plan": {},
                "_meta": {**self._extensions, **dict.fromkeys(OUTPUT_KEYS, True), ANSWER_META: {"version": "1"}},
            },
        }

    def _check_version(self) -> None:
        # Some agents echo the number they were offered, so the shape decides: version 2 names its fields otherwise.
        if "agentCapabilities" not in self.initialized and "capabilities" in self.initialized:
            version = self.initialized.get("protocolVersion")
            raise self._error(f"speaks ACP version {version}; this host speaks {PROTOCOL_VERSION}", "acp/version")

    # What went wrong.

    def _error(self, what: str, kind: str, meta: JsonObject | None = None) -> AgentError:
        lines = self._process.log.lines(_LINES) if self._process is not None else []
        tail = "\nIts last output:\n" + "\n".join(short(self._hidden(line)) for line in lines) if lines else ""
        return AgentError(f"The agent {self._config.display_name} {what}.{tail}", error_type=kind, meta=meta)

    def hide(self, values: Collection[str]) -> None:
        """Leave these values out wherever errors and logs quote the agent."""
        self._hides.update(values)

    def _hidden(self, words: Any) -> Any:
        """A text of the agent without the values of variables that may be keys."""
        values = (self._config.named(self._environ) | dict(self._config.env) | dict(self._secrets)).values()
        known = sorted({*values, *self._hides}, key=len, reverse=True)
        return without_secrets(words, [value for value in known if len(value) >= 8])

    def _refused(self, method: str, error: RpcError) -> AgentError:
        kind = _ERROR_TYPES.get(error.code, f"acp/{error.code}")
        meta = wrapped({"code": error.code, "data": self._hidden(upward(error.data))})
        words = self._hidden(cut(error.message, MAX_WORDS) + _details(error))
        if kind == AUTH_REQUIRED:
            text = f"{self._config.display_name}: {words.rstrip('. ')}. Log in first{self._ways_in()}"
            return LoginNeeded(text, error_type=kind, meta=meta)
        message = f"{self._config.display_name} answered {method} with an error: {words}"
        return AgentError(message, error_type=kind, meta=meta)

    def _ways_in(self) -> str:
        """The ways to log in. An agent that names none takes a key, or was logged in by its own program."""
        if names := ", ".join(short(str(method.get("name") or method["id"])) for method in self.auth_methods):
            return f": {names}"
        return f" with its own program, or set {self._config.keys[0]}" if self._config.keys else ""

    async def _ended(self, closed: TransportClosed) -> AgentError:
        if closed.code == TOO_BIG:
            return self._error(f"sent a message of more than {self._max_line} bytes", "acp/message-too-long")
        if closed.code == rpc.UNREAD:
            return self._error("does not read its input", "acp/unread")
        assert self._process is not None
        await self._process.wait_over(self._exit_patience)
        code = self._process.exit_code
        if code is None:
            return self._error("closed its output", EXITED)
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        return self._error(how, EXITED, wrapped({"exitCode": code}))


def _details(error: RpcError) -> str:
    """The details of an agent's error. Its message is often no more than "Internal error"."""
    data = obj(error.data)
    found = [error.data, *(data.get(key) for key in ("message", "details", "detail", "error", "reason"))]
    details = next((words for value in found if (words := text(value))), "")
    return f": {details[:_DETAILS]}" if details and details not in error.message else ""


SESSION_ID = "sessionId"
"""Key of a chat's memory: the ACP session to take up after a restart."""

MAX_SESSIONS = 1000
"""The number of conversations that are taken from one agent. People look through the list."""
_MAX_PAGES = 20
_TIMEOUT = 30.0
"""Seconds for one page."""


async def kept_sessions(connection: AcpConnection) -> list[AgentSession]:
    """All conversations that the agent lists and can resume, read page by page."""
    if not connection.session_can("list") or not connection.restores:
        return []
    found: list[AgentSession] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        params = {"cursor": cursor} if cursor else {}
        page = obj(await connection.request("session/list", params, timeout=_TIMEOUT))
        found += filter(None, map(_kept, objects(page.get("sessions"))))
        cursor = text(page.get("nextCursor"))
        if cursor is None or len(found) >= MAX_SESSIONS:
            break
    return found[:MAX_SESSIONS]


def _kept(entry: JsonObject) -> AgentSession | None:
    id, directory = text(entry.get("sessionId")), text(entry.get("cwd"))
    if id is None or directory is None or not directory.startswith("/") or "\0" in directory:
        return None
    return AgentSession(
        memory={SESSION_ID: id},
        working_directory=Path(directory),
        title=text(entry.get("title")),
        modified_at=_milliseconds(text(entry.get("updatedAt"))),
    )


def _milliseconds(time: str | None) -> int | None:
    """An ISO 8601 time in milliseconds. A time without a zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(time or "")
        return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


__all__ = [
    "AUTH_REQUIRED",
    "EXITED",
    "MAX_SESSIONS",
    "PROTOCOL_VERSION",
    "REQUEST_CANCELLED",
    "SESSION_ID",
    "AcpConnection",
    "kept_sessions",
]
