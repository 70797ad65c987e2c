"""An ACP agent as a provider of the host: what it offers, its logins, its chats."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opentelemetry.trace import TracerProvider

from ahpkit.agents.acp.access import FileAccess, TerminalAccess
from ahpkit.agents.acp.chat import AcpChat, pause_after
from ahpkit.agents.acp.config import AcpAgentConfig
from ahpkit.agents.acp.connection import SESSION_ID, AcpConnection, kept_sessions
from ahpkit.agents.acp.options import SessionOptions
from ahpkit.agents.acp.session import AcpSession, SessionSetup
from ahpkit.agents.untrusted_json import objects, text
from ahpkit.host.agent import Agent, AgentError, AgentSession, Chat, History
from ahpkit.protocol.common.state import JsonObject, ProtectedResourceMetadata
from ahpkit.protocol.session.state import SessionConfigSchema
from ahpkit.wire.errors import MethodNotFound


class AcpAgent(Agent):
    """Any program that speaks the Agent Client Protocol on its standard streams.

    `files` and `terminals` make what serves an agent's requests for files and terminals, for each chat. The host's
    features offer them. Without `terminals` the agent gets no terminals.
    """

    resumes = True

    writes_outside_calls = None

    def __init__(
        self,
        config: AcpAgentConfig,
        *,
        files: Callable[[Chat], FileAccess] | None = None,
        terminals: Callable[[Chat], TerminalAccess] | None = None,
        environ: Callable[[str], Mapping[str, str]] = lambda session: os.environ,
        pause: Callable[[int], float] = pause_after,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        """`pause(failures)` returns the seconds to wait before a process is started again that died that many times in
        a row."""
        self.provider = config.name
        self.display_name = config.display_name
        self.description = config.description or f"{config.display_name}, over the Agent Client Protocol"
        self.permissions = config.permissions
        self.loads_servers = config.loads_servers
        self.models_later = True
        self._config = config
        self._files = files
        self._terminals = terminals
        self._environ = environ
        self._pause = pause
        self._tracer_provider = tracer_provider
        self._chats: list[AcpChat] = []
        self._methods: dict[str, JsonObject] = {}
        self._secrets: dict[str, str] = {}
        self._auth_method: str | None = None
        self._announced_modes: set[str] = set()
        self._schema: SessionConfigSchema | None = None

    @property
    def default_model(self) -> str | None:
        return self._config.default_model or None

    async def open(self, chat: Chat) -> AcpChat:
        opened = AcpChat(
            chat,
            self._setup,
            on_started=self._started,
            on_closed=self._closed,
            announced_modes=self._announced_modes,
            pause=self._pause,
        )
        self._chats.append(opened)
        try:
            await opened.open()
        except BaseException:
            await opened.aclose()
            raise
        return opened

    async def aclose(self) -> None:
        await asyncio.gather(*(chat.aclose() for chat in list(self._chats)))

    async def sessions(self, directory: Path, *, start: bool) -> Sequence[AgentSession] | None:
        running = next((found for chat in self._chats if (found := chat.connection) is not None), None)
        if running is not None:
            return await kept_sessions(running)
        if not start:
            return None
        async with self._bare_connection(directory) as connection:
            return await kept_sessions(connection)

    def _bare_connection(self, directory: Path) -> AcpConnection:
        """The connection to a process that is asked about itself and gets no session."""

        async def refuse(method: str, params: JsonObject) -> Any:
            raise MethodNotFound(f"there is no session yet that could serve {method}")

        def ignore(method: str, params: JsonObject) -> None:
            """Ignore a notification, because there is no session yet that could use it."""

        return AcpConnection(
            self._config, cwd=directory, on_request=refuse, on_notification=ignore, secrets=self._secrets
        )

    async def recall(self, chat: Chat, memory: JsonObject, history: History) -> None:
        """Ask a process that is started only for this question. The process of the chat starts with its first turn."""
        session = AcpSession(chat, self._setup())
        try:
            await session.start()
            self._started(session)
            await session.recall(memory[SESSION_ID], history)
        finally:
            await session.aclose()

    async def session_config(
        self, working_directory: Path | None, values: Mapping[str, Any]
    ) -> SessionConfigSchema | None:
        """The options that the agent offered last. Agents offer options only in an open session."""
        return self._schema

    async def authenticate(self, resource: str, token: str) -> None:
        """Put a key into the variable that the agent names, for the next start; ask the agent for any other login."""
        method = self._methods.get(resource)
        if method is None:
            raise AgentError(f"{self.display_name} has no login {resource}", error_type="acp/unknown-login")
        variable = _key_variable(method)
        if variable is None:
            self._auth_method = method["id"]
            await asyncio.gather(*(chat.authenticate(method["id"]) for chat in list(self._chats)))
        else:
            self._secrets[variable] = token
            self._auth_method = None  # The way that was chosen last counts, because an earlier one may not have worked.
            await asyncio.gather(*(chat.restart() for chat in list(self._chats)))

    async def revoke(self, resource: str) -> None:
        variable = _key_variable(self._methods.get(resource, {}))
        if variable is not None and self._secrets.pop(variable, None) is not None:
            await asyncio.gather(*(chat.restart() for chat in list(self._chats)))

    def needs_token(self, resource: str) -> bool:
        """A login without a key is left to the agent: it opens a page, for example."""
        return _key_variable(self._methods.get(resource, {})) is not None

    def _setup(self) -> SessionSetup:
        return SessionSetup(
            config=self._config,
            files=self._files,
            terminals=self._terminals,
            secrets=dict(self._secrets),
            environ=self._environ,
            auth_method=self._auth_method,
            on_options=self._options_changed,
            tracer_provider=self._tracer_provider,
        )

    def _started(self, session: AcpSession) -> None:
        connection = session.connection
        self._methods = {f"acp://{self.provider}/{quote(method['id'])}": method for method in connection.auth_methods}
        resources = [_protected_resource(uri, method) for uri, method in self._methods.items()]
        if connection.facts() != self.meta or resources != list(self.protected_resources):
            self.meta, self.protected_resources = connection.facts(), resources
            self.changed()

    def _closed(self, chat: AcpChat) -> None:
        if chat in self._chats:  # The host closes it; we do so too when the host stops.
            self._chats.remove(chat)

    def _options_changed(self, options: SessionOptions) -> None:
        self._schema = options.schema if options.schema["properties"] else None
        models = options.models(self.provider)
        if self.models_later or (models and models != list(self.models)):
            self.models_later, self.models = False, models
            self.changed()


def _key_variable(method: JsonObject) -> str | None:
    variables = objects(method.get("vars"))
    secret = [variable for variable in variables if variable.get("secret", True)]
    return next((text(variable.get("name")) for variable in secret), None)


def _protected_resource(uri: str, method: JsonObject) -> ProtectedResourceMetadata:
    # Agents list their logins also when nobody has to log in: whether one is needed shows when a session is opened.
    name = str(method.get("name") or method["id"])
    shown: ProtectedResourceMetadata = {"resource": uri, "resource_name": name, "required": False}
    if link := text(method.get("link")):
        shown["resource_documentation"] = link
    return shown


__all__ = ["AcpAgent"]
