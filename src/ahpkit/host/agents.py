"""Holds the agents of a host by provider, and their logins. Only this module writes the agent list in root state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, cast

from ahpkit.host.agent import Agent, AgentError, Chat
from ahpkit.host.clients.clients import Clients
from ahpkit.host.registration import AgentHooks, Registration
from ahpkit.host.states import States
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.commands import AuthenticateParams, AuthRequiredParams, AuthRequiredReason
from ahpkit.protocol.common.state import JsonObject, ProtectedResourceMetadata
from ahpkit.protocol.errors import AuthRequired, InvalidParams, ProviderNotFound
from ahpkit.protocol.meta_keys import MODELS_LATER
from ahpkit.protocol.root import AgentCapabilities, AgentInfo, RootAction, root_agents_changed
from ahpkit.protocol.session.state import SessionState, ToolDefinition

AGENT_META = "ahpkit/agent"
"""Key in an agent's `_meta` in root state: its own description, with its extensions."""


class Agents:
    """All agents of a host; the first one is the default unless another is named."""

    def __init__(
        self,
        agents: Sequence[Agent],
        *,
        default: str | None,
        clients: Clients,
        hooks: AgentHooks,
        states: States,
        dispatch: Callable[[str, RootAction], None],
        spawn: Callable[[Coroutine[object, None, None]], object],
    ) -> None:
        self._agents = {agent.provider: agent for agent in agents}
        self._default = default or next(iter(self._agents), None)
        self._clients = clients
        self._hooks = hooks
        self._states = states
        self._dispatch = dispatch
        self._spawn = spawn
        self._authenticated: set[tuple[str, str]] = set()
        """Pairs of provider and resource for which a client gave a token since the start. The tokens themselves are not
        kept here."""
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        """Resource → when its token expires."""
        self._needed: dict[tuple[str, str], AuthRequiredParams] = {}
        """Channel and resource → the request for a token that no client has answered yet."""

    def register(self, host: Registration) -> None:
        host.clients.back.add(self._announce_again)
        host.sessions.disposed.add(self._forget_session)

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._agents.values())

    @property
    def default_provider(self) -> str | None:
        return self._default

    def find(self, provider: str | None) -> Agent:
        """The agent of a provider, or the default one; raises `ProviderNotFound`."""
        agent = self._agents.get(provider or self._default or "")
        if agent is None:
            known = ", ".join(self._agents) or "none"
            raise ProviderNotFound(f"there is no agent provider {provider!r}; known: {known}")
        return agent

    def has(self, provider: str) -> bool:
        return provider in self._agents

    def of_session(self, provider: str) -> Agent:
        """The agent of a session. If this host does not have that agent any more, this is a `MissingAgent`."""
        return self._agents.get(provider) or MissingAgent(provider)

    def tools_of(self, session: SessionState) -> tuple[str, Sequence[ToolDefinition]]:
        """The provider of a session and its agent's own tools."""
        provider = session["provider"]
        agent = self._agents.get(provider)
        return provider, () if agent is None else agent.tools

    # -- the list in root state ------------------------------------------------------------------------------------

    def listed(self) -> list[AgentInfo]:
        """All agents as root state shows them, with what features add."""
        return [self._listed(agent) for agent in self._agents.values()]

    def _listed(self, agent: Agent) -> AgentInfo:
        info = agent_info(agent)
        if agent.protected_resources:
            info["protectedResources"] = [self._shown(agent, resource) for resource in agent.protected_resources]
        for describe in self._hooks.describe:
            info = cast("AgentInfo", {**info, **describe(agent.provider)})
        return info

    def _shown(self, agent: Agent, resource: ProtectedResourceMetadata) -> ProtectedResourceMetadata:
        """A resource as clients see it: an agent that has a token for it requires no other one.

        Otherwise VS Code would ask for one of its own accounts, although somebody has logged in with another client.
        """
        if (agent.provider, resource["resource"]) not in self._authenticated:
            return resource
        given = resource.copy()
        given["required"] = False
        return given

    def publish(self) -> None:
        """Update the list of agents in root state. This is its only writer."""
        listed = self.listed()
        if self._states.root()["agents"] != listed:
            self._dispatch(ROOT_URI, root_agents_changed(agents=listed))

    @contextmanager
    def followed(self) -> Generator[None]:
        """While this context is entered, the list in root state is updated when an agent reports a change."""
        stops = [agent.follow(self.publish) for agent in self]
        try:
            yield
        finally:
            for stop in stops:
                stop()

    # -- logging in ------------------------------------------------------------------------------------------------

    async def authenticate(self, client_id: str, params: AuthenticateParams) -> None:
        """Give a token to all agents and features that asked for it. An empty token is a logout."""
        resource, token = params["resource"], params["token"]
        asking = [agent for agent in self if _protected(agent, resource) is not None]
        refusals = [refusal for agent in asking if (refusal := await self._hand(agent, resource, token)) is not None]
        taken = [await take(client_id, params) for take in self._hooks.authenticate]
        if len(refusals) < len(asking):
            self._token_given(resource, params.get("expiresIn"))
            self.publish()
        elif refusals:
            raise InvalidParams(_without(token, refusals[0].message)) from refusals[0]
        elif not any(taken):
            raise InvalidParams(f"resource: nothing here asked for a token for {resource!r}")

    async def _hand(self, agent: Agent, resource: str, token: str) -> AgentError | None:
        """Log one agent in or out. Returns the reason if it refuses."""
        if not token and agent.needs_token(resource):
            self._authenticated.discard((agent.provider, resource))
            await agent.revoke(resource)
            return None
        try:
            await agent.authenticate(resource, token)
        except AgentError as error:
            return error
        self._authenticated.add((agent.provider, resource))
        return None

    def check_authenticated(self, agent: Agent) -> None:
        """Raise `AuthRequired` if an agent still needs tokens, with the resources that need one."""
        wanted = [one for one in agent.protected_resources if one.get("required", True)]
        missing = [one for one in wanted if (agent.provider, one["resource"]) not in self._authenticated]
        if missing:
            raise AuthRequired([dict(one) for one in missing])

    def _token_given(self, resource: str, expires_in: float | None) -> None:
        """Note that a token was given or taken back. Clients are not asked again for a token until it expires."""
        self._needed = {key: params for key, params in self._needed.items() if key[1] != resource}
        if (timer := self._expiries.pop(resource, None)) is not None:
            timer.cancel()
        if expires_in is not None:
            loop = asyncio.get_running_loop()
            self._expiries[resource] = loop.call_later(expires_in, self._expired, resource)

    def _expired(self, resource: str) -> None:
        self._expiries.pop(resource, None)
        known: ProtectedResourceMetadata = {"resource": resource}
        for agent in self:
            self._authenticated.discard((agent.provider, resource))
            if (advertised := _protected(agent, resource)) is not None:
                known = advertised
                self._spawn(agent.revoke(resource))
        self.publish()
        self._ask_for(ROOT_URI, known, "expired")

    def login_needed(self, agent: Agent, session_uri: str) -> None:
        """Tell every client which resource needs a token before the agent of a session can continue."""
        for resource in agent.protected_resources:
            self._ask_for(session_uri, resource, "required")

    def _ask_for(self, channel: str, resource: ProtectedResourceMetadata, reason: AuthRequiredReason) -> None:
        params: AuthRequiredParams = {"channel": channel, "resource": resource, "reason": reason}
        self._needed[channel, resource["resource"]] = params
        self._clients.to_all("auth/required", params)

    def _announce_again(self, client_id: str, resumed: bool) -> None:
        """A client that reconnects has missed requests for tokens: notifications are not replayed."""
        client = self._clients.get(client_id)
        for params in list(self._needed.values()) if resumed and client is not None else ():
            if client is not None:
                client.notify("auth/required", params)

    def _forget_session(self, session_uri: str) -> None:
        self._needed = {key: params for key, params in self._needed.items() if key[0] != session_uri}

    def close(self) -> None:
        """The host stops."""
        for timer in self._expiries.values():
            timer.cancel()


def agent_info(agent: Agent) -> AgentInfo:
    """The entry of an agent in root state, from its own description."""
    info: AgentInfo = {
        "provider": agent.provider,
        "displayName": agent.display_name,
        "description": agent.description,
        "models": list(agent.models),
    }
    capabilities: AgentCapabilities = {}
    if agent.further_chats is not None:
        capabilities["multipleChats"] = agent.further_chats
    if agent.directories is not None:
        capabilities["multipleWorkingDirectories"] = agent.directories
    if capabilities:
        info["capabilities"] = capabilities
    meta: JsonObject = {AGENT_META: agent.meta} if agent.meta else {}
    meta |= {MODELS_LATER: True} if agent.models_later and not agent.models else {}
    if meta:
        info["_meta"] = meta
    return info


class MissingAgent(Agent):
    """Replaces an agent that this host no longer has. Its sessions can be read, but not continued."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.display_name = provider

    async def open(self, chat: Chat) -> NoReturn:
        raise AgentError(f"This host has no agent {self.provider!r} any more.", error_type="host/provider-missing")


def _protected(agent: Agent, resource: str) -> ProtectedResourceMetadata | None:
    return next((one for one in agent.protected_resources if one["resource"] == resource), None)


def _without(token: str, text: str) -> str:
    """The text with the token removed, because an agent that refuses a token may repeat it in its message."""
    return text.replace(token, "…") if token else text


__all__ = ["Agents", "MissingAgent", "agent_info"]
