"""A session of the client SDK: its chats, its settings, and its active role.

Methods that change something return a `Dispatch`: the effect shows at once, `await` gives the outcome.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from ahpkit.client.active_role import ActiveRoles
from ahpkit.client.changesets import ChangesetView, expand, offered
from ahpkit.client.channels import Channel, Handle
from ahpkit.client.chat import Chat
from ahpkit.client.core import Core, given
from ahpkit.client.dispatch import Dispatch
from ahpkit.client.errors import SessionFailed, UnknownSetting
from ahpkit.client.mcp import McpServer, servers_of
from ahpkit.client.resources import InMemoryPlugin, publish
from ahpkit.client.responder import Responders
from ahpkit.client.subscription import Subscription, wait_for
from ahpkit.dialects.generations import SELECTION, Generation
from ahpkit.protocol.chat.state import ChatSummary
from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.session.enablement import SWITCH, PlacedCustomization, find, sorted_decisions, walk
from ahpkit.protocol.session.state import CustomizationType, SessionState
from ahpkit.protocol.session.summary import settings_of
from ahpkit.wire.errors import LocalProtocolError

Scope = Literal["session", "workspace", "global"]
"""Where a decision about a customization applies: this session, all sessions in its first directory, all sessions."""


class Session(Handle[SessionState]):
    """One session. It is followed until `aclose`, or until the client ends."""

    def __init__(self, core: Core, channel: Channel, roles: ActiveRoles, responders: Responders) -> None:
        super().__init__(core.channels, channel, on_close=roles.leave)
        self._core = core
        self._responders = responders
        self._role = roles.share(channel)

    async def wait(self, condition: Callable[[SessionState], bool]) -> SessionState:
        """Wait until the confirmed state fulfils `condition`; returns that state."""
        return await wait_for(self._channel, condition)

    async def wait_ready(self) -> None:
        """Wait until the host has created the session; raises `SessionFailed` when that failed."""
        state: SessionState = await wait_for(self._channel, lambda state: state["lifecycle"] != "creating")
        if state["lifecycle"] == "failed":
            raise SessionFailed(self.uri, dict(state.get("creationError", {})))

    # Chats.

    @property
    def chats(self) -> Sequence[ChatSummary]:
        """The session's chats, as summaries."""
        return self.state["chats"]

    async def chat(
        self, uri: str | None = None, *, turns: int | None = None, max_latency_ms: int | None = None
    ) -> Chat:
        """Open a chat: the one with that URI, or the session's default chat.

        `turns`: only this many of its newest turns are needed; the host may send more. `chat.fetch_turns` gets older
        ones. `max_latency_ms`: the host may delay streamed text by this much, to send it in fewer messages.
        """
        if uri is None and (uri := _default_chat(self.state)) is None:
            await self.wait_ready()
            uri = _default_chat(await wait_for(self._channel, lambda state: _default_chat(state) is not None))
        channel = await self._core.channels.open(cast("str", uri), "chat", turns=turns, max_latency_ms=max_latency_ms)
        return Chat(self._core, channel, self._responders)

    async def create_chat(
        self,
        *,
        model: ModelSelection | None = None,
        agent: AgentSelection | None = None,
        fork: tuple[str, str] | None = None,
        beside: tuple[str, str] | None = None,
        selection: str | None = None,
    ) -> Chat:
        """Create another chat; `fork` is the URI of a chat and the id of the turn to continue from.

        `beside` makes it a side chat of a chat at a turn: it shows nothing of that chat, but its agent knows that chat
        up to the turn. `selection` is the text that the side chat is about. Raises `LocalProtocolError` when the agent
        does not offer such chats.
        """
        uri = f"ahp-chat:/{uuid.uuid4()}"
        source = _source(fork, beside, selection)
        self._check_offered(source)
        chosen = given(model=model, agent=agent)
        params = {"chat": uri, **given(source=source, _meta={SELECTION: chosen} if chosen else None)}
        await self._core.request("createChat", params, channel=self.uri)
        return await self.chat(uri)

    def _check_offered(self, source: Mapping[str, Any] | None) -> None:
        if self._core.dialect.generation < Generation.V0_5_1:
            return  # Before 0.5.1 agents do not say what they offer: the host decides.
        provider = self.state["provider"]
        agents = (self._core.root.confirmed or {}).get("agents", ())
        known: Any = next((one for one in agents if one["provider"] == provider), cast("Any", {}))
        offered: Any = known.get("capabilities", {}).get("multipleChats")
        if offered is None:
            raise LocalProtocolError(f"sessions of {provider} have one chat")
        if source is not None and not offered.get(source["kind"]):
            raise LocalProtocolError(f"sessions of {provider} have no {source['kind']}")

    # Settings.

    def rename(self, title: str) -> Dispatch:
        """Give the session another title."""
        return self._dispatch("titleChanged", title=title)

    def archive(self, archived: bool = True) -> Dispatch:
        """Put the session into the archive, or take it out."""
        return self._dispatch("isArchivedChanged", isArchived=archived)

    def mark_read(self, read: bool = True) -> Dispatch:
        """Mark the session as read, or as unread."""
        return self._dispatch("isReadChanged", isRead=read)

    def set_model(self, model: str | ModelSelection) -> Dispatch:
        """Choose the model for this client's next messages, by id or with its configuration."""
        chosen = {"id": model} if isinstance(model, str) else model
        return self._core.selections.choose(self.uri, "model", chosen)

    def set_agent(self, uri: str | None) -> Dispatch:
        """Choose a custom agent by its URI; None goes back to the provider's own behaviour."""
        return self._core.selections.choose(self.uri, "agent", None if uri is None else {"uri": uri})

    @property
    def selection(self) -> Mapping[str, Any]:
        """The `model` and the `agent` of this client's next messages, where one was chosen."""
        return self._core.selections.of(self.uri)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings for `set_config`: name → schema."""
        return settings_of(cast("JsonObject", self.state))

    def set_config(self, values: Mapping[str, Any], *, replace: bool = False) -> Dispatch:
        """Change configuration values. With `replace`, all other values are removed.

        Raises `UnknownSetting` for a name that the session does not have.
        """
        if "config" in self.state:  # Otherwise the host rejects the action.
            check_settings(values, self.settings)
        return self._dispatch("configChanged", config=dict(values), **given(replace=replace or None))

    def add_directory(self, uri: str) -> Dispatch:
        """Work in one more directory, where the session's agent can (`capabilities.multipleWorkingDirectories`)."""
        return self._dispatch("workingDirectorySet", directory=uri)

    def remove_directory(self, uri: str) -> Dispatch:
        """Stop working in a directory."""
        return self._dispatch("workingDirectoryRemoved", directory=uri)

    def replace_directory(self, uri: str, replacement: str) -> Dispatch:
        """Work in `replacement` instead of the directory `uri`."""
        return self._dispatch("workingDirectoryReplaced", directory=uri, replacement=replacement)

    async def dispose(self) -> None:
        """Delete the session with all its chats."""
        await self._core.request("disposeSession", channel=self.uri)
        await self.aclose()

    # Customizations.

    def changesets(self) -> list[Mapping[str, Any]]:
        """The changesets that this session offers."""
        return offered(self.confirmed)

    def changeset(self, kind: str = "session", **turns: str) -> ChangesetView:
        """A changeset by its kind, to be used in an `async with`. A changeset of one turn needs `turnId=`.

        Raises `LookupError` when the session does not offer it.
        """
        entry = next((one for one in self.changesets() if one["changeKind"] == kind), None)
        if entry is None:
            raise LookupError(f"this session offers no changeset {kind!r}")
        uri = expand(entry["uriTemplate"], **turns)
        return ChangesetView(self._core, Subscription(self._core.channels, uri), entry, uri)

    def customizations(self, type: CustomizationType | None = None) -> list[PlacedCustomization]:
        """The session's customizations, all or of one type, each with its container and its effective settings."""
        found = walk(cast("Mapping[str, Any]", self.state))
        return [placed for placed in found if type is None or placed.entry.get("type") == type]

    def toggle_customization(self, id: str, enabled: bool, *, scope: Scope | None = None) -> Dispatch:
        """Switch a container or a child on or off. Decisions in other scopes stay.

        Without a scope the decision applies to this session, and later sessions in the same directory start with it.
        """
        kind = scope or "session"
        made: JsonObject = {"kind": kind, "enabled": enabled}
        if kind == "workspace":
            made["uri"] = next(iter(self.state.get("workingDirectories", ())), "")
        placed = find(cast("Mapping[str, Any]", self.state), id)
        known: Sequence[JsonObject] = (placed.entry.get("enablement") or ()) if placed else ()
        others = [one for one in known if one["kind"] != kind]
        notes = {"_meta": {SWITCH: True}} if scope is None else {}
        return self._dispatch("customizationToggled", id=id, enablement=sorted_decisions([*others, made]), **notes)

    def forget_decisions(self, id: str) -> Dispatch:
        """Remove the decisions about a container or a child in all scopes. It is switched on again."""
        return self._dispatch("customizationToggled", id=id, enablement=[], _meta={SWITCH: True})

    # MCP servers.

    def mcp_servers(self) -> list[McpServer]:
        """The session's MCP servers, wherever they are declared."""
        return servers_of(self._core, self._channel)

    def mcp_server(self, name: str) -> McpServer:
        """The server with that id or name; raises `LookupError`."""
        servers = self.mcp_servers()
        found = next((one for one in servers if name in (one.id, one.name)), None)
        if found is None:
            known = ", ".join(one.name for one in servers) or "none"
            raise LookupError(f"this session has no MCP server {name!r}; it has: {known}")
        return found

    # Being the active client.

    @property
    def is_active(self) -> bool:
        """Whether the host sees this client as the session's active one."""
        return self._role.held

    def claim(self, *, display_name: str | None = None, can_render: bool = False) -> Dispatch:
        """Become the active client, with this client's tools and canvases and the plugins published to this session.

        After a reconnect the role is claimed again. Tools and canvases registered later are published automatically.
        """
        self._role.display_name, self._role.can_render = display_name, can_render
        return self._role.claim()

    def release(self) -> Dispatch | None:
        """Stop being the active client; None when this client is not the active one."""
        return self._role.release()

    def publish_plugin(self, plugin: InMemoryPlugin | Path | str) -> Dispatch:
        """Give the session a plugin from memory or a folder, and become its active client. Call it again to update
        it."""
        published = publish(self._core.resources, plugin, session=self.uri)
        self._role.plugins[published["id"]] = published
        return self._role.claim()

    def unpublish_plugin(self, id: str) -> Dispatch:
        """Remove a published plugin from the session."""
        del self._role.plugins[id]
        self._core.resources.unmount(id, user=self.uri)
        return self._role.claim()

    def _dispatch(self, kind: str, /, **fields: Any) -> Dispatch:
        return self._core.channels.dispatch(self.uri, {"type": f"session/{kind}", **fields})


def _source(
    fork: tuple[str, str] | None, beside: tuple[str, str] | None, selection: str | None
) -> dict[str, Any] | None:
    if fork is not None:
        return {"kind": "fork", "chat": fork[0], "turnId": fork[1]}
    if beside is None:
        return None
    words = None if selection is None else {"text": selection}
    return {"kind": "sideChat", "chat": beside[0], "turnId": beside[1], **given(selection=words)}


def _default_chat(state: Mapping[str, Any]) -> str | None:
    chats = state["chats"]
    return state.get("defaultChat") or (chats[0]["resource"] if chats else None)


def check_settings(values: Collection[str], known: Collection[str]) -> None:
    """Raise `UnknownSetting` for unknown names, because the host would ignore them silently."""
    if unknown := set(values) - set(known):
        raise UnknownSetting(unknown, known)


__all__ = ["Session", "check_settings"]
