"""Brings customizations into the host's sessions: finds, reads, watches and toggles them, and uses them in turns.

Reading happens in threads or over a client's connection, never in the sequence of actions. The entries for clients are
computed from the read files, the switches and the present state. Only differences are dispatched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ahpkit.customizations.client_plugins import ClientPlugins, VirtualFiles
from ahpkit.customizations.details import Detail, Parsed
from ahpkit.customizations.discovery import Location, locate
from ahpkit.customizations.enablement_decisions import Decisions, key_of
from ahpkit.customizations.expand import invoked, read_invocation
from ahpkit.customizations.hook_process import HookedChat, HookEvents
from ahpkit.customizations.in_force import InForce, complete, fill_context, servers
from ahpkit.customizations.mcp_files import configured_server
from ahpkit.customizations.runnables import (
    OwnerTrust,
    Surrounding,
    judged,
    own_runnables,
    runnables_at,
    runnables_in,
    runs_something,
    shown_with,
    surrounding_of,
)
from ahpkit.customizations.session_tree import ClientPlugin, SessionTree, decided, is_ours
from ahpkit.customizations.watch import Watched
from ahpkit.customizations.watched_places import JudgedContent, WatchedPlaces
from ahpkit.host.agent import AgentError, Chat, McpServerOffer, TurnContext
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import AnyApplied, Registration
from ahpkit.host.states import NO_SESSION
from ahpkit.host.trust import Trust
from ahpkit.host.turns.chat import path_of
from ahpkit.platform.files import followed
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.chat.turns import find_tool_call
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import (
    SessionCustomizationToggledAction,
    session_customization_updated,
    session_customizations_changed,
)
from ahpkit.protocol.session.customizations import Customization
from ahpkit.protocol.session.enablement import SWITCH, find
from ahpkit.protocol.session.state import SessionState
from ahpkit.tools.gate import Objection

_log = logging.getLogger(__name__)

_TRUST = "trust"
"""Key of the watched file with the owner's decisions. It differs from the keys of all places."""

_AFTER_WORK = ("chat/turnComplete", "chat/toolCallComplete")
"""Actions after which hooks run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomizationSettings:
    """The settings of the host's owner."""

    default_directory: Path
    """Working directory of sessions that name none."""
    home: Path | None = None
    """The home folder with the user's own customizations; None: there are none."""
    plugins: Sequence[Path] = ()
    trusted: Sequence[Path] = ()
    """Directories that the owner trusts with everything below them, as they are when the owner first names them."""
    trust: Trust = field(default_factory=lambda: Trust(None))
    """The record of trusted contents."""
    allow_hooks: bool = False
    remember_toggles: bool = True
    off: Sequence[str] = ()
    """Names of customizations that are off until somebody switches them on."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that declarations of trusted servers may refer to."""
    servers: Sequence[JsonObject] = ()
    """MCP servers for every session, in the form of `.mcp.json`, each with its `name`."""
    client_timeout: float = 20.0
    """Seconds a client has to show a plugin it published."""
    start_timeout: float = 10.0
    """Seconds that a new session waits for its customizations. Slower ones appear later."""


class Customizations(Feature):
    """The feature. One watcher and one library serve all sessions."""

    name = "customizations"

    def __init__(self, settings: CustomizationSettings) -> None:
        self._settings = settings
        trust = settings.trust.path
        self._places = WatchedPlaces(
            self._judge,
            home=settings.home,
            plugins=settings.plugins,
            besides=[] if trust is None else [Watched(_TRUST, trust.parent, (trust.name,))],
        )
        self._trees: dict[str, SessionTree] = {}
        self._configured = [configured_server(server) for server in settings.servers]
        self._started = False

    async def servers(self, session_uri: str) -> list[McpServerOffer]:
        """The MCP servers of a session that are switched on and may run, ready to be started."""
        if not self._started or self.services.state(session_uri) is None:
            return []
        in_force = await self._judged(session_uri, self._tree(session_uri).workspace)
        return servers(in_force, self._settings.environment)

    def details(self, session_uri: str) -> Mapping[str, Detail]:
        """The details of a session's customizations, by id. They stay on the host."""
        tree = self._trees.get(session_uri)
        return {} if tree is None else tree.discovery.details

    # -- life ------------------------------------------------------------------------------------------------------

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        found = locate(None, home=None, plugins=self._settings.plugins)
        loading = ({key: value for key, value in one.loading.items() if key != "load"} for one in found)
        self._declared = [decided(one) for one in loading]
        self._decisions = Decisions(
            services.values,
            remember=self._settings.remember_toggles,
            now=services.now,
            off=frozenset(self._settings.off),
        )
        host.actions.listen(self._on_applied, "session/", *_AFTER_WORK)
        host.sessions.prepare.add(self._prepare_session)
        host.sessions.disposed.add(self._session_disposed)
        host.sessions.rested.add(self._session_rested)
        host.clients.back.add(self._client_back)
        host.turns.prepare.add(self._prepare_turn)
        host.turns.guard_tool.add(self._guard_tool)
        host.completions.add(self._complete)
        host.agents.describe.add(self._describe_agent)
        self.virtual_files = VirtualFiles(services, self._shown, timeout=self._settings.client_timeout)
        host.tools.add(self.virtual_files)

    async def start(self) -> None:
        self._trust = await asyncio.to_thread(self._read_owner_trust)
        self._clients = ClientPlugins(
            self.services, self._publish, judge=self._judge_client, timeout=self._settings.client_timeout
        )
        self._hooks = HookEvents(
            self.services, allowed=self._settings.allow_hooks, trust=self._trust, home=self._settings.home
        )
        self._started = True
        self.services.spawn(self._follow_changes(), name="watch customizations")

    def _read_owner_trust(self) -> OwnerTrust:
        """Trust the user's own configuration with its present content, and each named directory with the content that
        it had when it was first named."""
        home, trust, own = self._settings.home, self._settings.trust, Trust(None)
        if trust.path is not None:
            trust.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # The folder must exist to be watched.
        found, now = own_runnables(home, self._settings.plugins), self.services.now()
        own.add(found, now=now)
        trust.remember_own(found, self._settings.plugins, now=now)
        for folder in self._settings.trusted:
            real = Path(followed(folder))
            if str(real) not in trust.directories():
                trust.add(runnables_at(real, home=home), now=self.services.now(), directory=real)
        return OwnerTrust(trust, own)

    async def aclose(self) -> None:
        await self._places.aclose()

    async def _prepare_session(self, session_uri: str) -> None:
        """Show every container as loading and read them. The session does not wait for slow ones."""
        tree = self._tree(session_uri)
        tree.locations = await self._places.look(session_uri, tree.workspace, tree.locations)
        known = {entry["id"] for entry in self._shown(session_uri)}  # For a session that wakes.
        tree.expected = await asyncio.to_thread(_expected, tree.locations) | known
        tree.read = {}
        state = self.services.session(session_uri) or NO_SESSION
        if state["activeClients"] and not tree.plugins:  # Clients that are expected back after a restart.
            self._clients.active_clients_changed(tree, state)
        tree.is_located = tree.is_reading = True
        self._announce(tree)
        over = asyncio.Event()

        async def read() -> None:
            try:
                await self._read(tree.locations, again=not self._places.watching, new=tree)
                await self._places.watch_named()
            finally:
                tree.is_reading = False
                over.set()

        self.services.spawn(read(), name=f"read customizations of {session_uri}")
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                await over.wait()
        except TimeoutError:
            _log.warning("reading the customizations of %s takes long; it starts without the rest", session_uri)

    def _session_disposed(self, session_uri: str) -> None:
        self._decisions.forget_session(session_uri)
        self._hooks.forget(session_uri)
        self._session_rested(session_uri)

    def _session_rested(self, session_uri: str) -> None:
        if (tree := self._trees.pop(session_uri, None)) is not None:
            self._leave(tree)

    def _leave(self, tree: SessionTree) -> None:
        """Drop the customizations of a session that rests or is gone."""
        if self._places.leave(tree.uri, tree.locations):
            self.services.spawn(self._places.watch(), name="watch customizations")
        tree.locations, tree.is_located = [], False

    # -- what changes ----------------------------------------------------------------------------------------------

    def _on_applied(self, applied: AnyApplied) -> None:
        if not self._started:  # A restart freed these roles. `_prepare_session` shows the plugins that remain.
            return
        action = applied.action
        match action["type"]:
            case "session/customizationToggled":
                self._toggled(applied, action)
            case "session/customizationUpdated" | "session/customizationRemoved" if self._tree(applied.channel).plugins:
                self.services.tools_changed(applied.channel)
            case "session/workingDirectorySet" | "session/workingDirectoryRemoved" | "session/workingDirectoryReplaced":
                self._directories_changed(applied.channel)
            case "session/activeClientSet" | "session/activeClientRemoved":
                self._clients.active_clients_changed(self._tree(applied.channel), cast("SessionState", applied.after))
            case "session/mcpServerStateChanged" | "session/mcpServerStartRequested" | "session/mcpServerStopRequested":
                self._server_changed(applied, action["id"])
            case kind if kind in _AFTER_WORK and self._hooks.allowed:
                self._run_hooks_after(applied)
            case _:
                pass

    def _client_back(self, client_id: str, resumed: bool) -> None:
        if self._started:
            self._clients.client_back(self._trees.values(), client_id)

    def _server_changed(self, applied: AnyApplied, id: str) -> None:
        """The load state of a container follows its servers."""
        tree = self._trees.get(applied.channel)
        if tree is None or applied.before is applied.after:
            return
        was, now = (_server_state(cast("SessionState", one), id) for one in (applied.before, applied.after))
        crashes = was == "ready" and now == "starting"
        if "error" in (was, now) or crashes or id in tree.crashed:
            if crashes:
                tree.crashed.add(id)
            elif now != "starting":
                tree.crashed.discard(id)
            self._publish(tree)

    def _describe_agent(self, provider: str) -> JsonObject:
        """The configured plugins in an agent's entry in root state, so that clients see them before a session
        exists."""
        return {"customizations": self._declared} if self._declared else {}

    def _toggled(self, applied: AnyApplied, action: SessionCustomizationToggledAction) -> None:
        if applied.after is applied.before:
            return
        tree, placed = self._tree(applied.channel), find(applied.after, action["id"])
        if placed is None:
            return
        changed = self._decisions.decide(
            tree.uri,
            tree.workspace.as_uri(),
            key_of(placed.entry, placed.container),
            action["enablement"],
            switch=SWITCH in (action.get("_meta") or {}),
        )
        self._publish(tree)
        now = find(self.services.state(tree.uri), placed.entry["id"])
        if now is not None and now.container is not None and now.container == placed.container:
            # Older reducers find only containers: a child that is off is sent to them inside its container.
            container = cast("Customization", now.container)
            self.services.dispatch(tree.uri, session_customization_updated(customization=container))
        if wide := changed - {"session"}:
            everywhere = bool(wide - {"workspace"})
            self.services.spawn(self._decided_elsewhere(tree, everywhere=everywhere), name="decisions of others")

    async def _decided_elsewhere(self, origin: SessionTree, *, everywhere: bool) -> None:
        """Update the other sessions for which a decision counts as well."""
        for tree in list(self._trees.values()):
            if tree is not origin and (everywhere or tree.workspace == origin.workspace):
                self._publish(tree)
                await asyncio.sleep(0)

    def _directories_changed(self, session_uri: str) -> None:
        """A session has the customizations of its first directory, so they change with it."""
        tree, workspace = self._trees.get(session_uri), self._workspace(session_uri)
        if tree is None or tree.workspace == workspace:
            return
        self._leave(tree)
        tree.workspace = workspace
        self._decisions.begin(session_uri, workspace.as_uri())
        self.services.spawn(self._root_again(tree), name=f"read customizations of {session_uri}")

    async def _root_again(self, tree: SessionTree) -> None:
        await self._prepare_session(tree.uri)
        await self._clients.judge_again([tree])
        self.services.tools_changed(tree.uri)

    def _workspace(self, session_uri: str) -> Path:
        """The first of a session's directories."""
        directories: Sequence[str] = (self.services.state(session_uri) or {}).get("workingDirectories") or ()
        return path_of(directories[0] if directories else None, self._settings.default_directory).absolute()

    def _tree(self, session_uri: str) -> SessionTree:
        if session_uri not in self._trees:
            state = self.services.state(session_uri) or {}
            workspace = self._workspace(session_uri)
            tree = SessionTree(session_uri, workspace, self._decisions.here, configured=self._configured)
            if state.get("lifecycle") == "creating":  # A session that wakes has decisions already.
                self._decisions.begin(session_uri, tree.workspace.as_uri())
            self._trees[session_uri] = tree
        return self._trees[session_uri]

    # -- reading and watching --------------------------------------------------------------------------------------

    def _announce(self, tree: SessionTree) -> None:
        """Replace the whole set with one action. Entries of other features stay, and all that were there keep their
        order."""
        state = self._shown(tree.uri)
        others = [entry for entry in state if not is_ours(entry)]
        places = {entry["id"]: place for place, entry in enumerate(state)}
        entries = sorted([*tree.entries(state), *others], key=lambda entry: places.get(entry["id"], len(places)))
        shown = cast("list[Customization]", entries)
        self.services.dispatch(tree.uri, session_customizations_changed(customizations=shown))

    async def _read(self, locations: Iterable[Location], *, again: bool, new: SessionTree | None = None) -> None:
        """Read containers one after the other. Sessions that show them already get the changes; a new session gets all
        at the end."""
        async for location, read in self._places.read(locations, again=again):
            if read.is_news:
                self._tell(location, read.parsed, new)
            if new is not None:
                new.read[location.id] = read.parsed
        if new is not None:
            self._convert(new)
            self._publish(new)

    def _convert(self, tree: SessionTree) -> None:
        """Convert switches of an earlier version, which are stored by id, once everything is read and the ids are
        known."""
        entries = ((one, None) for one in tree.entries(self._shown(tree.uri)))
        placed = ((child, entry) for entry, _ in entries for child in (entry, *entry.get("children", ())))
        keys = {one["id"]: key_of(one, None if one is entry else entry) for one, entry in placed}
        self._decisions.convert(tree.uri, tree.workspace.as_uri(), keys)

    def _tell(self, location: Location, latest: Parsed | None, new: SessionTree | None) -> None:
        """Show a place's content in the sessions that use the place, except those that are just being read."""
        for uri in self._places.users(location):
            tree = self._trees.get(uri)
            if tree is not None:
                matters = latest is not None or tree.shows(location)  # Most places are empty and not listed.
                tree.read[location.id] = latest
                if matters and (tree is new or not tree.is_reading):
                    self._publish(tree)

    def _judge(self, location: Location, parsed: Parsed) -> JudgedContent:
        """Which parts of a container may run, and the files that it names; called in a worker."""
        if not runs_something(location):
            return JudgedContent(parsed, ())
        found = runnables_in(parsed, surrounding_of(location, self._settings.home))
        names = tuple(sorted({path for one in found.values() for path in (*one.files, *one.data)}))
        return JudgedContent(shown_with(parsed, {id: self._trust.standing(one) for id, one in found.items()}), names)

    def _judge_client(self, tree: SessionTree, plugin: ClientPlugin) -> Parsed | None:
        """Judge which parts of a client's plugin may run. Parts that wait for the owner's consent are stored as
        requests."""
        if plugin.read is None:
            return None
        home = self._settings.home
        around = Surrounding(str(tree.workspace), None, None if home is None else str(home))
        found = runnables_in(plugin.read, around, container=plugin.entry)
        self._settings.trust.ask(found.values(), now=self.services.now())
        return shown_with(plugin.read, {id: self._trust.standing(runnable) for id, runnable in found.items()})

    def _publish(self, tree: SessionTree) -> None:
        if tree.is_located and self._trees.get(tree.uri) is tree:
            for action in tree.actions(self._shown(tree.uri)):
                self.services.dispatch(tree.uri, action)

    def _shown(self, session_uri: str) -> list[JsonObject]:
        shown = (self.services.session(session_uri) or NO_SESSION).get("customizations")
        return cast("list[JsonObject]", shown or [])

    async def _follow_changes(self) -> None:
        async for changed in self._places.changed():
            locations = self._places.known
            if _TRUST in changed:
                changed |= {key for key, location in locations.items() if runs_something(location)}
                await self._clients.judge_again(self._trees.values())
            await self._read((locations[key] for key in changed if key in locations), again=True)
            await self._places.watch_named()

    # -- turns -----------------------------------------------------------------------------------------------------

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        in_force = await self._judged(chat.session_uri, chat.working_directory)
        chosen = message.get("agent") or chat.agent
        agent_uri = None if chosen is None else chosen["uri"]
        # In a thread: a workspace may have thousands of rules, and a message hundreds of paths.
        await asyncio.to_thread(
            fill_context, context, in_force, message, agent_uri=agent_uri, environment=self._settings.environment
        )
        invocation = read_invocation(prompt)
        called = None if invocation is None else in_force.called(invocation.token, "skill", "prompt")
        if invocation is not None and called is not None:
            prompt = invoked(called.detail, invocation, in_force.variables(called))
        elif invocation is not None and (reason := in_force.why_not(invocation.token, "skill", "prompt")):
            raise AgentError(reason, error_type="host/off")
        return await self._hooks.before_prompt(in_force, HookedChat(chat.uri, chat.session_uri), prompt)

    async def _guard_tool(self, chat: Chat, name: str, tool_input: str, owner: str | None) -> Objection | None:
        if not self._hooks.allowed:
            return None
        in_force = self._in_force(chat.session_uri, chat.working_directory)
        server = (
            owner.removeprefix("mcp:").partition("@")[0] if owner is not None and owner.startswith("mcp:") else None
        )
        return await self._hooks.before_tool(
            in_force, HookedChat(chat.uri, chat.session_uri), name, tool_input, server=server
        )

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        session_uri = self.services.session_of(chat_uri)
        if session_uri is None:
            return []
        # In a thread: a workspace may have thousands of skills.
        return await asyncio.to_thread(complete, self._in_force(session_uri), text, offset)

    def _in_force(self, session_uri: str, workspace: Path | None = None) -> InForce:
        tree = self._tree(session_uri)
        workspace = workspace or tree.workspace
        return tree.in_force(self._shown(session_uri), workspace)

    async def _judged(self, session_uri: str, workspace: Path) -> InForce:
        in_force = self._in_force(session_uri, workspace)
        return await asyncio.to_thread(judged, in_force, self._trust, self._settings.home)

    def _run_hooks_after(self, applied: AnyApplied) -> None:
        session_uri = self.services.session_of(applied.channel)
        if session_uri is None or not self._hooks.allowed:
            return
        in_force, action, chat = self._in_force(session_uri), applied.action, HookedChat(applied.channel, session_uri)
        if action["type"] == "chat/toolCallComplete":
            call: JsonObject = find_tool_call(applied.before.get("activeTurn"), action["toolCallId"]) or {}
            contributor: JsonObject = call.get("contributor") or {}
            placed = find(self.services.state(session_uri) or {}, contributor.get("customizationId", ""))
            server = None if placed is None else placed.entry["name"]
            work = self._hooks.after_tool(in_force, chat, {**call, **action["result"]}, server=server)
        else:
            work = self._hooks.after_turn(in_force, chat)
        self.services.spawn(work, name="hooks")


def _expected(locations: Iterable[Location]) -> frozenset[str]:
    return frozenset(location.id for location in locations if location.expected)


def _server_state(state: SessionState, id: str) -> str | None:
    placed = find(state, id)
    return None if placed is None else placed.entry.get("state", {}).get("kind")


__all__ = ["CustomizationSettings", "Customizations"]
