"""Finds the working directories of new sessions, and changes those of live ones.

A change is checked, then the agents take it over, then it is dispatched. A session has several directories only if its
agent can work in several (`Agent.directories`). All directories lie inside the allowed roots. When a session loses a
directory, so do its chats.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ahpkit.dialects.base import SentAction
from ahpkit.dialects.states_up import is_remote, local_directory
from ahpkit.host.agent import Agent, AgentError
from ahpkit.host.clients.client_actions import SlowAction
from ahpkit.host.limits import MAX_DIRECTORIES
from ahpkit.host.registration import Hooks, SessionHooks
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.spine.store import Origin, Store
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.host.turns.chat import directories_of, path_of
from ahpkit.host.turns.runner import ChatRunner
from ahpkit.platform.files import local_path
from ahpkit.protocol.chat.actions import (
    ChatWorkingDirectoryRemovedAction,
    ChatWorkingDirectorySetAction,
    chat_working_directory_removed,
    chat_working_directory_set,
)
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.errors import InvalidParams, RpcError
from ahpkit.protocol.session.actions import (
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
from ahpkit.protocol.session.commands import CreateSessionParams
from ahpkit.protocol.session.reducer import session_reducer
from ahpkit.protocol.session.state import SessionState

_DirectoryAction = (
    ChatWorkingDirectorySetAction
    | ChatWorkingDirectoryRemovedAction
    | SessionWorkingDirectorySetAction
    | SessionWorkingDirectoryRemovedAction
    | SessionWorkingDirectoryReplacedAction
)

_log = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds for an agent to accept other directories: the client that asked waits for it."""

OF_SESSION = ("session/workingDirectorySet", "session/workingDirectoryRemoved", "session/workingDirectoryReplaced")
OF_CHAT = ("chat/workingDirectorySet", "chat/workingDirectoryRemoved")


def directories_of_new(params: CreateSessionParams, agent: Agent) -> list[str]:
    """The directories of a new session. If its agent can work in only one, this is the first of those given."""
    given = list(dict.fromkeys(params.get("workingDirectories") or ()))
    if len(given) > MAX_DIRECTORIES:
        raise InvalidParams(f"workingDirectories: a session may have {MAX_DIRECTORIES}, not {len(given)}")
    return given if agent.directories is not None else given[:1]


class NewDirectories:
    """Finds the working directories of new sessions. `default` is for sessions that name none."""

    def __init__(self, hooks: SessionHooks, default: Path) -> None:
        self._hooks = hooks
        self._default = default

    async def find(self, uri: str | None) -> Path:
        """The directory that a URI names; raises if no session may have it. None: the default directory."""
        here = None if uri is None else (await self.here([uri]))[0]
        if here is not None:
            for check in self._hooks.check_directory:
                await check(here)
        return path_of(here, self._default)

    async def here(self, directories: Sequence[str]) -> list[str]:
        """Directories as paths of this machine. A folder of VS Code's server that does not exist here, because that
        server runs on another machine, is replaced by the default directory.
        """
        found: list[str] = []
        for uri in directories:
            here = local_directory(uri)
            path = local_path(here) if is_remote(uri) else None
            if is_remote(uri) and (path is None or not await asyncio.to_thread(os.path.isdir, path)):
                _log.warning("%.200r is not on this machine: the default directory is taken", uri)
                here = self._default.as_uri()
            found.append(here)
        return list(dict.fromkeys(found))

    async def choose(self, uri: str, path: Path, directories: list[str], settings: Mapping[str, object]) -> list[str]:
        """The directories of a new session. A feature may replace the first one."""
        chosen = path
        for choose in self._hooks.choose_directory:
            chosen = await choose(uri, chosen, settings)
        return directories if chosen == path else [chosen.as_uri(), *directories[1:]]


@dataclass(frozen=True, slots=True)
class _ChatMove:
    """A chat whose directories change."""

    chat: str
    before: Sequence[str]
    after: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """Changes the working directories of sessions and chats as clients wish."""

    store: Store
    index: SessionIndex
    dispatcher: Dispatcher
    checks: Hooks[Callable[[str], Awaitable[None]]]
    """`SessionHooks.check_directory`."""
    runner_of: Callable[[str], ChatRunner | None]

    def slow_actions(self) -> Mapping[str, SlowAction]:
        return dict.fromkeys((*OF_SESSION, *OF_CHAT), self.change)

    async def change(self, uri: str, action: _DirectoryAction, origin: Origin, sent: SentAction) -> str | None:
        """Carry out a change that a client dispatched; returns the reason if it is refused."""
        if (reason := self.dispatcher.check(uri, action, origin.client_id)) is not None:
            return reason
        moves = [move for move in self._moves(uri, action) if move.before != move.after]
        reason = await self._check_new(action) or self._check_idle(action, moves) or await self._move(moves)
        if reason is None and (reason := self.dispatcher.check(uri, action, origin.client_id)) is not None:
            await self._move_back(moves)
        if reason is not None:
            return reason
        self._tell(uri, action, origin, sent)
        return None

    # -- checks ----------------------------------------------------------------------------------------------------

    async def _check_new(self, action: _DirectoryAction) -> str | None:
        """Check a new directory as at the creation of a session."""
        if action["type"] not in ("session/workingDirectorySet", "session/workingDirectoryReplaced"):
            return None
        uri = action["replacement"] if action["type"] == "session/workingDirectoryReplaced" else action["directory"]
        path = local_path(uri)
        if path is None:
            return f"a working directory is named by a file: URI of this machine, not by {uri[:200]!r}"
        try:
            for check in self.checks:
                await check(uri)
        except RpcError as error:
            return error.message
        return None if await asyncio.to_thread(os.path.isdir, path) else f"the directory {uri} does not exist"

    def _check_idle(self, action: _DirectoryAction, moves: Sequence[_ChatMove]) -> str | None:
        """Refuse to take a directory from a running turn. Adding one is allowed."""
        if action["type"] == "session/workingDirectorySet":
            return None
        busy = any((self.store.chat(move.chat) or NO_CHAT).get("activeTurn") for move in moves)
        return "a turn is running in this directory; cancel it or wait for its end" if busy else None

    # -- the agents ------------------------------------------------------------------------------------------------

    def _moves(self, uri: str, action: _DirectoryAction) -> Iterator[_ChatMove]:
        """The change for each chat that an action concerns."""
        if action["type"] in OF_CHAT:
            chat = self.store.chat(uri) or NO_CHAT
            session = self.store.session(self.index.session_of(uri)) or NO_SESSION
            changed = cast("ChatState", chat_reducer({**chat}, {**action}))
            yield _ChatMove(uri, directories_of(chat, session), directories_of(changed, session))
            return
        session = self.store.session(uri) or NO_SESSION
        after = cast("SessionState", session_reducer({**session}, {**action}))
        for chat_uri in self.index.chats(uri):
            chat = self.store.chat(chat_uri) or NO_CHAT
            kept = _kept(chat, action) if "workingDirectories" in chat else after.get("workingDirectories", ())
            yield _ChatMove(chat_uri, directories_of(chat, session), kept)

    async def _move(self, moves: Sequence[_ChatMove]) -> str | None:
        """Let the agents work in the new directories. If one agent cannot, all keep their old directories."""
        for number, move in enumerate(moves):
            try:
                await self._work_in(move.chat, move.after)
            except AgentError as error:
                await self._move_back(moves[:number])
                return error.message
            except Exception:  # An agent is anybody's code.
                _log.exception("the agent of %s did not take other directories", move.chat)
                await self._move_back(moves[:number])
                return "the agent could not work there; the host's log has the details"
        return None

    async def _move_back(self, moves: Sequence[_ChatMove]) -> None:
        for move in moves:
            try:
                await self._work_in(move.chat, move.before)
            except Exception:  # The other agents still have to move back.
                _log.exception("the agent of %s did not take its directories back", move.chat)

    async def _work_in(self, chat: str, directories: Sequence[str]) -> None:
        runner = self.runner_of(chat)
        if runner is not None:
            async with asyncio.timeout(_PATIENCE):
                await runner.work_in([path for uri in directories if (path := local_path(uri)) is not None])

    # -- dispatching -----------------------------------------------------------------------------------------------

    def _tell(self, uri: str, action: _DirectoryAction, origin: Origin, sent: SentAction) -> None:
        """Dispatch the change. A directory that a session loses is first removed from its chats."""
        holding = self._holding(uri, action) if action["type"] in OF_SESSION[1:] else []
        for chat in holding:
            self.dispatcher.apply(chat, chat_working_directory_removed(directory=action["directory"]))
        self.dispatcher.dispatch(uri, action, origin, sent=sent)
        if action["type"] == "session/workingDirectoryReplaced":
            for chat in holding:
                self.dispatcher.apply(chat, chat_working_directory_set(directory=action["replacement"]))

    def _holding(self, session: str, action: _DirectoryAction) -> list[str]:
        """The chats that have this directory in their own list, if their session has it."""
        known = (self.store.session(session) or NO_SESSION).get("workingDirectories", ())
        if action["directory"] not in known:
            return []
        states = ((chat, self.store.chat(chat) or NO_CHAT) for chat in self.index.chats(session))
        return [chat for chat, state in states if action["directory"] in state.get("workingDirectories", ())]


def _kept(chat: ChatState, action: _DirectoryAction) -> list[str]:
    """The directories in a chat's own list after an action of its session."""
    own = chat.get("workingDirectories", [])
    if action["type"] == "session/workingDirectorySet" or action["directory"] not in own:
        return own
    left = [each for each in own if each != action["directory"]]
    if action["type"] != "session/workingDirectoryReplaced" or action["replacement"] in left:
        return left
    return [*left, action["replacement"]]


__all__ = ["Directories", "NewDirectories", "directories_of_new"]
