"""Makes this client the active client of a session, again after reconnects, and serves its tools and canvases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal

from ahpkit.authoring.canvas import call_context
from ahpkit.client.canvas import Canvas, CanvasRunner
from ahpkit.client.channels import Channel
from ahpkit.client.core import Core
from ahpkit.client.dispatch import Dispatch, Outcome, Rejected
from ahpkit.client.tools import Tool, ToolRunner
from ahpkit.dialects.generations import Generation
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ClientPluginCustomization, SessionActiveClient
from ahpkit.wire.errors import AhpError

_log = logging.getLogger(__name__)

Offered = Literal["tools", "canvases"]


class ToolsAndCanvases:
    """The tools and canvases that this client offers. Listeners are called with the kind that changed."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.canvases: dict[str, Canvas] = {}
        self.listeners: list[Callable[[Offered], None]] = []
        self.pushes: list[Callable[[str, str, JsonObject], None]] = []
        """Called when a canvas changes its title, status or URL: session, instance, changes."""

    def add_tool(self, tool: Tool) -> None:
        self.tools[tool.name] = tool
        self._tell("tools")

    def remove_tool(self, name: str) -> None:
        del self.tools[name]
        self._tell("tools")

    def add_canvas(self, canvas: Canvas) -> None:
        canvas.attach(self)
        self.canvases[canvas.canvas_id] = canvas
        self._tell("canvases")

    def canvas_declared(self, canvas: Canvas) -> None:
        self._tell("canvases")

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: JsonObject) -> None:
        for push in tuple(self.pushes):
            push(session_id, instance_id, changes)

    def _tell(self, changed: Offered) -> None:
        for listener in tuple(self.listeners):
            listener(changed)


class ActiveRole:
    """Keeps this client the active client of one session, until it is released."""

    def __init__(self, core: Core, session: Channel, offers: ToolsAndCanvases) -> None:
        self._core = core
        self._session = session
        self._offers = offers
        self.display_name: str | None = None
        self.can_render = False
        self.plugins: dict[str, ClientPluginCustomization] = {}
        self._runners: dict[str, tuple[Channel, ToolRunner]] = {}
        self._canvas_runner = CanvasRunner(
            core.channels, core.tasks, session, client_id=core.client_id, canvases=offers.canvases
        )
        self._wanted = False

    def description(self) -> SessionActiveClient:
        """This client's entry in the session's active clients: everything that it offers, in full."""
        active: SessionActiveClient = {
            "clientId": self._core.client_id,
            "tools": [tool.definition for tool in self._offers.tools.values()],
        }
        if self.display_name is not None:
            active["displayName"] = self.display_name
        if self.plugins:
            active["customizations"] = list(self.plugins.values())
        if self._offers.canvases:
            active["canvasProviders"] = [canvas.declaration for canvas in self._offers.canvases.values()]
        if self.can_render:
            active["canRenderCanvases"] = True
        return active

    @property
    def held(self) -> bool:
        """Whether the host confirmed that this client is the active one."""
        return self._is_in(self._session.confirmed)

    def begin(self) -> None:
        """Start serving the role, and claim it again whenever it is lost."""
        if not self._wanted:
            self._wanted = True
            self._session.listeners.append(self)
            self._core.connection.listeners.append(self._on_status)
            self._offers.listeners.append(self._on_offers)
            self._offers.pushes.append(self._push)
            self._session_changed()

    def claim(self) -> Dispatch:
        """Become the active client, or publish anew what this client offers."""
        self.begin()
        return self._publish({"type": "session/activeClientSet", "activeClient": self.description()})

    def release(self) -> Dispatch | None:
        """Stop being the active client; None when this client is not the active one."""
        self.end()
        if not self.held:
            return None
        return self._publish({"type": "session/activeClientRemoved", "clientId": self._core.client_id})

    def _push(self, session_id: str, instance_id: str, changes: JsonObject) -> None:
        """Tell the host the new title, status or URL of a canvas of this client."""
        told = {key: value for key, value in changes.items() if key in ("title", "status", "url")}
        if told and session_id == call_context(self._session.uri, {})["sessionId"]:
            action: JsonObject = {"type": "session/canvasInstanceUpdated", "instanceId": instance_id, "changes": told}
            self._core.channels.dispatch(self._session.uri, action)

    def end(self) -> None:
        """Stop serving tools and canvases in this session."""
        if self._wanted:
            self._wanted = False
            self._session.listeners.remove(self)
            self._core.connection.listeners.remove(self._on_status)
            self._offers.listeners.remove(self._on_offers)
            self._offers.pushes.remove(self._push)
            for uri in tuple(self._runners):
                self._leave(uri)

    # Calls from the session's channel.

    def on_action(self, envelope: JsonObject) -> None:
        action = envelope["action"]
        self._session_changed()
        if action["type"] == "session/activeClientRemoved" and action["clientId"] == self._core.client_id:
            self._reclaim_unless_taken()

    def on_reset(self) -> None:
        self._session_changed()

    def on_gone(self, error: AhpError) -> None:
        self.end()

    def _on_status(self, status: str) -> None:
        if status == "connected":
            self._reclaim()

    def _on_offers(self, changed: Offered) -> None:
        """Publish everything again, because a claim always lists all that a client offers."""
        self.claim()

    def _reclaim(self) -> None:
        """Claim the role again after a reconnect, because the host takes it from clients that disconnect."""
        if self._core.connection.connected and not self._is_in(self._session.optimistic):
            self.claim().then(self._log_refusal)

    def _is_in(self, state: JsonObject | None) -> bool:
        clients: Sequence[JsonObject] = (state or {}).get("activeClients") or ()
        return any(client["clientId"] == self._core.client_id for client in clients)

    def _reclaim_unless_taken(self) -> None:
        """A session of a 0.4 host has one active client: claim the role only if no other client has it."""
        taken = (self._session.confirmed or {}).get("activeClients")
        if not (taken and self._core.dialect.generation == Generation.V0_4):
            self._reclaim()

    def _log_refusal(self, outcome: Outcome | None) -> None:
        if isinstance(outcome, Rejected):
            _log.warning("%s: the active role was not given back: %s", self._session.uri, outcome.reason)

    def _session_changed(self) -> None:
        self._canvas_runner.answer_new_requests()
        chats = {chat["resource"] for chat in (self._session.confirmed or {}).get("chats", ())}
        for uri in chats - self._runners.keys():
            self._follow(uri)
        for uri in self._runners.keys() - chats:
            self._leave(uri)

    def _follow(self, uri: str) -> None:
        chat = self._core.channels.hold(uri, "chat")
        runner = ToolRunner(
            self._core.channels,
            self._core.tasks,
            chat,
            session=self._session.uri,
            client_id=self._core.client_id,
            tools=self._offers.tools,
            read=self._core.read_text,
        )
        self._runners[uri] = chat, runner

    def _leave(self, uri: str) -> None:
        chat, runner = self._runners.pop(uri)
        runner.close()
        self._core.channels.release(chat)

    def _publish(self, action: JsonObject) -> Dispatch:
        return self._core.channels.dispatch(self._session.uri, action)


class ActiveRoles:
    """The client's roles: one for each session, shared by all its handles."""

    def __init__(self, core: Core, offers: ToolsAndCanvases) -> None:
        self._core = core
        self._offers = offers
        self._roles: dict[Channel, tuple[ActiveRole, int]] = {}

    def share(self, session: Channel) -> ActiveRole:
        """The role in a session. Every call needs a `leave`."""
        role, handles = self._roles.get(session) or (ActiveRole(self._core, session, self._offers), 0)
        self._roles[session] = role, handles + 1
        return role

    def leave(self, session: Channel) -> None:
        role, handles = self._roles.pop(session)
        if handles > 1:
            self._roles[session] = role, handles - 1
        else:
            role.end()

    def release(self) -> None:
        """Give up every role when the client is closed, so that the host does not wait for a reconnect."""
        for role, _ in tuple(self._roles.values()):
            if self._core.connection.connected:
                role.release()


__all__ = ["ActiveRole", "ActiveRoles"]
