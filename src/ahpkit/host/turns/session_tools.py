"""Keeps the tools of every session: who offers them, their names for models, and the list that clients see.

Sources register with `Registration.tools`. The tools of agents and of clients are added here. After any change,
`refresh` updates the registry and `serverTools`, and calls the followers of a session's tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from ahpkit.host.agent import ToolCall, ToolOutcome, Turn
from ahpkit.host.registration import SessionApplied, ToolSource
from ahpkit.host.states import States
from ahpkit.protocol.chat.state import ToolCallContributor
from ahpkit.protocol.session.actions import SessionAction, session_server_tools_changed
from ahpkit.protocol.session.state import SessionState, ToolDefinition
from ahpkit.tools.registry import FINDERS, MAX_LISTED, Owner, Tool, ToolRegistry, listed
from ahpkit.wire.codec import encode

MAX_SHOWN = 500
"""At most this many tools are in `serverTools`. A model finds the others with `find_tool`."""
MAX_SHOWN_BYTES = 512 * 1024

_ACTIVE = frozenset({"session/activeClientSet", "session/activeClientRemoved"})


class SessionTools:
    """The registries of all sessions."""

    def __init__(
        self,
        sources: Iterable[ToolSource],
        *,
        states: States,
        dispatch: Callable[[str, SessionAction], None],
        agent_tools: Callable[[str], tuple[str, Sequence[ToolDefinition]]],
    ) -> None:
        """`agent_tools(session_uri)`: the provider and the tools of a session's agent."""
        self._sources = sources
        self._states = states
        self._dispatch = dispatch
        self._agent_tools = agent_tools
        self._registries: dict[str, ToolRegistry] = {}
        self._runs: dict[str, dict[tuple[str, str], ToolSource]] = {}
        self._followers: dict[str, list[Callable[[], None]]] = {}
        self._busy: set[str] = set()

    def registry(self, session_uri: str) -> ToolRegistry:
        if session_uri not in self._registries:
            self._registries[session_uri] = ToolRegistry()
            self.refresh(session_uri)
        return self._registries[session_uri]

    async def prepare(self, session_uri: str) -> None:
        """A session begins, or wakes. From now on its list of tools is kept up to date."""
        self.registry(session_uri)
        self.refresh(session_uri)

    def for_model(self, session_uri: str) -> list[ToolDefinition]:
        """The tools for a model, except the agent's own."""
        return [tool.definition for tool in self._besides_agent(session_uri)]

    def listed(self, session_uri: str) -> list[ToolDefinition]:
        """Definitions of the tools for a model, except the agent's own."""
        tools = self._besides_agent(session_uri)
        return listed(tools) + ([*FINDERS] if len(tools) > MAX_LISTED else [])

    def _besides_agent(self, session_uri: str) -> list[Tool]:
        return [tool for tool in self.registry(session_uri) if tool.owner.kind != "agent"]

    def source(self, session_uri: str, tool: Tool) -> ToolSource | None:
        """Who runs a tool; None for the agent's own."""
        if tool.owner.kind == "client":
            return CLIENT_TOOLS
        return self._runs.get(session_uri, {}).get(tool.owner.key)

    def follow(self, session_uri: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the tools of a session change; call the result to stop."""
        followers = self._followers.setdefault(session_uri, [])
        followers.append(changed)
        return lambda: followers.remove(changed) if changed in followers else None

    def forget(self, session_uri: str) -> None:
        self._registries.pop(session_uri, None)
        self._followers.pop(session_uri, None)
        self._runs.pop(session_uri, None)

    def on_applied(self, applied: SessionApplied) -> None:
        if applied.action["type"] in _ACTIVE and applied.channel in self._registries:
            self.refresh(applied.channel)

    def refresh(self, session_uri: str) -> None:
        """Tools may have changed: ask all sources again."""
        registry, state = self._registries.get(session_uri), self._states.session(session_uri)
        if registry is None or state is None or session_uri in self._busy:
            return
        offers = self._offers(session_uri, state)
        changed = [registry.offer(owner, definitions) for owner, definitions in offers.items()]
        gone = [owner for kind in ("agent", "host", "mcp", "client") for owner in registry.owners(kind)]
        changed += [registry.withdraw(owner) for owner in gone if owner.key not in {one.key for one in offers}]
        if not any(changed):
            return
        self._busy.add(session_uri)
        try:
            self._show(session_uri, state, registry)
        finally:
            self._busy.discard(session_uri)
        for follower in list(self._followers.get(session_uri, ())):
            follower()

    def _offers(self, session_uri: str, state: SessionState) -> Mapping[Owner, Sequence[ToolDefinition]]:
        provider, own = self._agent_tools(session_uri)
        offers: dict[Owner, Sequence[ToolDefinition]] = {Owner("agent", provider): own} if own else {}
        for source in self._sources:
            for owner, definitions in source.offers(session_uri):
                offers[owner] = definitions
                self._runs.setdefault(session_uri, {})[owner.key] = source
        for client in state.get("activeClients") or ():
            owner = Owner("client", client["clientId"], client.get("displayName", ""))
            offers[owner] = client.get("tools") or []
        return offers

    def _show(self, session_uri: str, state: SessionState, registry: ToolRegistry) -> None:
        shown = _bounded([tool.definition for tool in registry if tool.owner.kind != "client"])
        if shown != (state.get("serverTools") or []):
            self._dispatch(session_uri, session_server_tools_changed(tools=shown))


def _bounded(definitions: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    shown: list[ToolDefinition] = []
    size = 0
    for definition in definitions[:MAX_SHOWN]:
        size += len(encode(definition))
        if size > MAX_SHOWN_BYTES:
            break
        shown.append(definition)
    return shown


def contributor_of(tool: Tool, client_id: str | None) -> ToolCallContributor | None:
    """The contributor that a call of this tool shows."""
    if tool.owner.kind == "client":
        return {"kind": "client", "clientId": tool.by(client_id).id}
    return {"kind": "mcp", "customizationId": tool.owner.id} if tool.owner.kind == "mcp" else None


def owner_key(tool: Tool, client_id: str | None) -> str | None:
    """The name, in approval rules, of the one who runs a tool; None: the agent itself."""
    match tool.owner.kind:
        case "client":
            owner = tool.by(client_id)
            return f"client:{owner.title or owner.id}"
        case "mcp":
            return f"mcp:{tool.owner.origin or tool.owner.title}"
        case "host":
            return "host"
        case "agent":
            return None


class _ClientTools:
    """Tools of connected clients. A client asks its own user if a call needs approval."""

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        return ()

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        """Wait until the client ends the call by an action."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError


CLIENT_TOOLS: ToolSource = _ClientTools()


__all__ = ["SessionTools", "contributor_of", "owner_key"]
