"""The chat as its agent sees it: facts from the states, and what the agent may say outside a turn."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ahpkit.dialects.generations import selection_of, unmarked
from ahpkit.host.agent import Command, McpServerOffer
from ahpkit.host.clients.agent_extensions import AgentExtensions
from ahpkit.host.feature import Values
from ahpkit.host.policy import check_agent
from ahpkit.host.states import NO_CHAT, NO_SESSION, States
from ahpkit.host.turns.attached_chats import written_out
from ahpkit.host.turns.completions import AgentCommands
from ahpkit.host.turns.new_state import (
    DEFAULT_TITLE,
    NO_CONFIG,
    OPENING_PREFIX,
    agent_title,
    entry_of,
    is_named,
    opening,
    title_from,
)
from ahpkit.platform.files import local_path
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.json_schema import check_schema
from ahpkit.protocol.meta_keys import CONFIG_META, OUR_PREFIXES
from ahpkit.protocol.session.actions import (
    SessionAction,
    session_chat_updated,
    session_config_changed,
    session_meta_changed,
    session_title_changed,
)
from ahpkit.protocol.session.state import SessionConfigSchema, SessionState
from ahpkit.protocol.session.summary import only_chat

_log = logging.getLogger(__name__)

MEMORY_PREFIX = "agent-memory/"
"""Prefix of the durable value with what the agent of a chat remembers."""


BACKGROUND_PREFIX = "side-chat/"
"""Prefix of the durable value with the turns of another chat that the agent of a side chat gets."""


def path_of(uri: str | None, default: Path) -> Path:
    """The path a `file:` URI names."""
    if uri is None:
        return default
    return local_path(uri) or default


def directories_of(chat: ChatState, session: SessionState) -> Sequence[str]:
    """The directories a chat works in: its own list, even if that is empty, or else those of its session."""
    own = chat.get("workingDirectories")
    return own if own is not None else session.get("workingDirectories") or ()


class LiveChat:
    """Implements `ahpkit.host.agent.Chat`."""

    def __init__(
        self,
        uri: str,
        session_uri: str,
        *,
        states: States,
        values: Values,
        dispatch: Callable[[str, SessionAction], None],
        subscribers: Callable[[str], Sequence[object]],
        default_directory: Path,
        extensions: AgentExtensions,
        commands: AgentCommands,
        servers: Callable[[LiveChat], Awaitable[Sequence[McpServerOffer]]],
        activity: Callable[[LiveChat, str | None], None],
    ) -> None:
        self.uri = uri
        self.session_uri = session_uri
        self._states = states
        self._values = values
        self._dispatch = dispatch
        self._subscribers = subscribers
        self._default_directory = default_directory
        self._directories: tuple[Sequence[str], Sequence[Path]] = ((), ())
        """Working directories as URIs and as paths."""
        self._workspace: tuple[Path | None, str] = None, ""
        self._extensions = extensions
        self._commands = commands
        self._servers = servers
        self._activity = activity

    async def mcp_servers(self) -> Sequence[McpServerOffer]:
        return await self._servers(self)

    @property
    def state(self) -> ChatState:
        return self._states.chat(self.uri) or NO_CHAT

    @property
    def session(self) -> SessionState:
        return self._states.session(self.session_uri) or NO_SESSION

    @property
    def _exists(self) -> bool:
        """Whether the session was not disposed of meanwhile."""
        return self._states.session(self.session_uri) is not None

    @property
    def working_directory(self) -> Path:
        return next(iter(self.working_directories), self._default_directory)

    @property
    def workspace(self) -> str:
        """The URI of the working directory. It is asked for several times in each tool call."""
        folder = self.working_directory
        if folder is not self._workspace[0]:
            self._workspace = folder, folder.as_uri()
        return self._workspace[1]

    @property
    def working_directories(self) -> Sequence[Path]:
        uris = directories_of(self.state, self.session)
        if uris != self._directories[0]:
            self._directories = uris, [path_of(uri, self._default_directory) for uri in uris]
        return self._directories[1]

    @property
    def model(self) -> ModelSelection | None:
        return selection_of(self.state).get("model") or selection_of(self.session).get("model")

    @property
    def agent(self) -> AgentSelection | None:
        """The chosen custom agent, as long as it exists and is switched on."""
        chosen = selection_of(self.state).get("agent") or selection_of(self.session).get("agent")
        return (
            None
            if chosen is None or check_agent(self._states.session(self.session_uri), chosen["uri"]) is not None
            else chosen
        )

    @property
    def config(self) -> Mapping[str, Any]:
        return self.session.get("config", NO_CONFIG)["values"]

    @property
    def session_meta(self) -> JsonObject:
        meta = self.session.get("_meta") or {}
        return {key: value for key, value in meta.items() if not key.startswith(OUR_PREFIXES)}

    @property
    def history(self) -> Sequence[TurnRecord]:
        turns = self.state["turns"]
        known = [*self.background, *turns] if self.background else turns
        return [self._read_by_agent(turn) for turn in known] if any(_has_chats(turn) for turn in known) else known

    def _read_by_agent(self, turn: TurnRecord) -> TurnRecord:
        return {**turn, "message": written_out(turn["message"], self._states)}

    @property
    def background(self) -> Sequence[TurnRecord]:
        return self._values.get(BACKGROUND_PREFIX + self.uri) or ()

    def keep_background(self, turns: Sequence[TurnRecord]) -> None:
        """Store the turns of another chat for the agent of a new side chat."""
        self._values.set(BACKGROUND_PREFIX + self.uri, list(turns) or None)

    @property
    def watched(self) -> bool:
        return any(self._subscribers(uri) for uri in (self.uri, self.session_uri))

    @property
    def memory(self) -> JsonObject:
        return self._values.get(self._memory_key) or {}

    def remember(self, memory: JsonObject) -> None:
        self._values.set(self._memory_key, memory)

    @property
    def forked_memory(self) -> JsonObject:
        origin = self.state.get("origin")
        if origin is None or origin["kind"] != "fork":
            return {}
        source = self._states.chat(origin["chat"]) or NO_CHAT
        turns = source["turns"]
        if source.get("activeTurn") or not turns or turns[-1]["id"] != origin["turnId"]:
            return {}
        return self._values.get(MEMORY_PREFIX + origin["chat"]) or {}

    def forget(self) -> None:
        """The chat is disposed: drop what its agent stored."""
        self._values.set(self._memory_key, None)
        self._values.set(self._title_key, None)
        self._values.set(OPENING_PREFIX + self.uri, None)
        self._values.set(BACKGROUND_PREFIX + self.uri, None)

    def title(self, title: str) -> None:
        """Name the session after this chat. Only the default chat may do this, and never if a person has chosen a
        title."""
        current = self.session.get("title")
        title = agent_title(title)
        ours = current in (DEFAULT_TITLE, self._values.get(self._title_key))
        if title and title != current and ours and self.session.get("defaultChat") == self.uri:
            self._values.set(self._title_key, title)
            self._dispatch(self.session_uri, session_title_changed(title=title))

    def activity(self, text: str | None) -> None:
        self._activity(self, text)

    def name_after(self, message: str) -> None:
        """Give the session (or a further chat) a title made of a message, unless it has one. A slash command gives no
        title."""
        title = title_from(message)
        if self.session.get("defaultChat") != self.uri:
            if title and self._is_unnamed:
                self._dispatch(self.session_uri, session_chat_updated(chat=self.uri, changes={"title": title}))
        elif self.session["title"] != DEFAULT_TITLE:
            return
        elif title:
            self.title(title)
        elif self._values.get(OPENING_PREFIX + self.uri) is None:
            self._values.set(OPENING_PREFIX + self.uri, opening(message) or None)

    @property
    def _is_unnamed(self) -> bool:
        """Whether a further chat still has the title that it got from its source."""
        entry = entry_of(self.uri, self.session) if only_chat(self.session) is None else None
        return entry is not None and not is_named(self.state) and entry["title"] == self.state["title"]

    def commands(self, commands: Sequence[Command]) -> None:
        if self._exists:  # An agent may still send messages while its session is disposed of.
            self._commands.set_commands(self.session_uri, commands)

    def config_options(self, schema: SessionConfigSchema, values: Mapping[str, Any]) -> None:
        if (reason := check_schema(schema)) is not None:
            _log.warning("the options of the agent in %s are not shown: %s", self.uri, reason)
            return
        config = self.session.get("config", NO_CONFIG)
        known = config["schema"]["properties"]
        same = all(known.get(name) == one for name, one in schema["properties"].items())
        self._session_meta({CONFIG_META: None if same else {"schema": schema}})
        changed = {key: value for key, value in values.items() if config["values"].get(key) != value}
        if changed and "config" in self.session:
            self._dispatch(self.session_uri, session_config_changed(config=changed))

    def meta(self, key: str, value: object) -> None:
        self._session_meta({key: self._beside_others(key, value)})

    def clear_meta(self) -> None:
        """The chat is gone: remove its values from the session's `_meta`."""
        said = self.session.get("_meta") or {}
        ours = [key for key, about in said.items() if isinstance(about, dict) and self.uri in about]
        self._session_meta({key: self._beside_others(key, None) for key in ours})

    def moved(self, session_uri: str) -> None:
        """The chat moved to another session: move its values in `_meta` along."""
        meta = self.session.get("_meta") or {}
        told = {key: cast("JsonObject", about) for key, about in meta.items() if isinstance(about, dict)}
        said = {key: about[self.uri] for key, about in told.items() if self.uri in about}
        self.clear_meta()
        self.session_uri = session_uri
        for key, value in said.items():
            self.meta(key, value)

    def _beside_others(self, key: str, value: object) -> JsonObject | None:
        """The value of a key of the session's `_meta`, with the value of this chat added to those of the other
        chats."""
        meta = self.session.get("_meta") or {}
        others = meta.get(key)
        values: JsonObject = {**(others if isinstance(others, dict) else {}), self.uri: value}
        return {uri: value for uri, value in values.items() if value is not None} or None

    def _session_meta(self, changes: JsonObject) -> None:
        before = self.session.get("_meta") or {}
        meta = {key: value for key, value in {**before, **changes}.items() if value is not None}
        if meta != before and self._exists:  # An agent may still send messages while its session is disposed of.
            self._dispatch(self.session_uri, session_meta_changed(meta=unmarked(meta) or None))

    @property
    def extensions(self) -> JsonObject:
        return self._extensions.offered(self)

    async def extension_request(self, method: str, params: JsonObject) -> object:
        return await self._extensions.forward_request(self, method, params)

    def extension_notification(self, method: str, params: JsonObject) -> None:
        self._extensions.forward_notification(self, method, params)

    @property
    def _title_key(self) -> str:
        return f"agent-title/{self.session_uri}"

    @property
    def _memory_key(self) -> str:
        return MEMORY_PREFIX + self.uri


def _has_chats(turn: TurnRecord) -> bool:
    return any(item.get("type") == "chat" for item in turn["message"].get("attachments", ()))


__all__ = ["MEMORY_PREFIX", "LiveChat", "directories_of", "path_of"]
