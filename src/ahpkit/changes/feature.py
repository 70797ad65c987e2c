"""The feature that offers changesets of sessions: announces them, follows them turn by turn, and counts changes.

A changeset channel exists while somebody is subscribed to it (`views`). The record of a session's changes is stored
beside the log, so it survives restarts. Git runs in separate processes, and never for a list of sessions.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

from ahpkit.changes import catalogue as wire
from ahpkit.changes.attribution import named_files
from ahpkit.changes.followed_directories import Followed, FollowedDirectories
from ahpkit.changes.git import GitError
from ahpkit.changes.operations import MESSAGE_KEY, Operations
from ahpkit.changes.own_tree import OwnTrees
from ahpkit.changes.sides import FileChange, paths_of
from ahpkit.changes.views import Views
from ahpkit.host.agent import Chat, TurnContext
from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.registration import AnyApplied, Command, Registration
from ahpkit.host.resources.safe_open import SafeOpener, anywhere
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.platform.files import local_path
from ahpkit.protocol.changeset import Changeset, ChangesetState
from ahpkit.protocol.chat.actions import chat_changesets_changed
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.chat.turns import find_tool_call
from ahpkit.protocol.common.state import ChangesSummary, JsonObject
from ahpkit.protocol.errors import ContentNotFound
from ahpkit.protocol.meta_keys import CHANGES
from ahpkit.protocol.session.actions import (
    session_changesets_changed,
    session_chat_updated,
    session_meta_changed,
)
from ahpkit.protocol.session.summary import only_chat

_log = logging.getLogger(__name__)

_ENDED = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})

_MOVED = frozenset(
    {
        "session/workingDirectorySet",
        "session/workingDirectoryRemoved",
        "session/workingDirectoryReplaced",
        "chat/workingDirectorySet",
        "chat/workingDirectoryRemoved",
        "session/chatAdded",
    }
)
"""After these actions a session or chat may work in other directories, so it has other views."""

_CALLS = frozenset({"chat/toolCallStart", "chat/toolCallReady", "chat/toolCallConfirmed", "chat/toolCallComplete"})
"""Actions that begin, pause or end the work of a tool call."""

_NOTHING = {"additions": 0, "deletions": 0, "files": 0}

_PATIENCE = 5.0
"""Seconds that a new session waits for git. On a very slow disk it starts without changesets."""

_SLOW = "git takes long"


class Changesets(Feature):
    """The feature. `directory` holds our objects and indexes, one folder for each work tree."""

    name = "changesets"

    def __init__(
        self,
        directory: Path,
        *,
        default_directory: Path,
        trusts: Callable[[Path], bool] = lambda _: False,
        shows: Callable[[Path], bool] = lambda _: True,
        reaches: Callable[[Path], bool] = lambda _: True,
        writing: Callable[[], SafeOpener] = anywhere,
    ) -> None:
        """`default_directory` is the working directory of sessions that name none.

        `trusts(directory)`: whether filters and hooks of a repository may run. `shows(path)`: whether clients may see a
        file; changes of other files are left out. `reaches(path)`: whether clients may use a place; a repository
        elsewhere must belong to the work tree. `writing`: the opener of files that undo and merge may write.
        """
        self._trusts = trusts
        self._follow = partial(
            FollowedDirectories,
            directory,
            default_directory=default_directory,
            trusts=trusts,
            shows=shows,
            reaches=reaches,
            writing=writing,
        )

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        self._directories = self._follow(services=services)
        self._views = Views(services, self._directories)
        self._own_trees = OwnTrees(services, self._directories)
        self._operations = Operations(services, self._views, self._own_trees, trusts=self._trusts, store=self._store)
        host.sessions.settings.add(self._own_trees.settings)
        host.sessions.choose_directory.add(self._own_trees.choose)
        host.sessions.make_directory.add(self._own_trees.make)
        host.sessions.prepare.add(self._prepare_session)
        host.turns.prepare.add(self._prepare_turn)
        host.turns.before_end.add(self._before_end)
        host.turns.before_call.add(self._before_call)
        host.turns.writing.add(self._writing)
        host.actions.listen(self._on_applied, "changeset/", "chat/", *_MOVED)
        host.actions.refuse(self._views.refuse, "changeset/")
        host.channels.unsubscribed.add(self._views.unsubscribed)
        host.sessions.disposed.add(self._disposed)
        host.sessions.rested.add(self._rested)
        host.sessions.is_busy.add(self._is_busy)
        host.recover.add(self._views.recover)
        host.commands.add(Command("invokeChangesetOperation", self._invoke, changes=True))
        host.channels.open.add(self._views.open)
        host.resource_readers[wire.BLOB_SCHEME] = self._read_blob

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def _prepare_session(self, session_uri: str) -> None:
        """Announce the changesets before the session is ready, so that clients see them at once. Git gets a few seconds
        for this."""
        if "changesets" not in (self.services.session(session_uri) or NO_SESSION):
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._announce(session_uri)

    async def _announce(self, session_uri: str) -> None:
        """Update the catalogues of a session and of its chats after a change of their directories."""
        followed = await self._followed(session_uri)
        state = self.services.session(session_uri)
        if state is None:
            return
        left = [one for one in self._directories.known(session_uri) if one not in followed]
        self._views.end(left)
        self._directories.forget_directories(session_uri, left)
        entries = _entries(followed)
        if entries != state.get("changesets", []):
            self.services.dispatch(session_uri, session_changesets_changed(changesets=entries))
        for chat in state["chats"]:
            self._announce_chat(chat["resource"], followed)

    async def _followed(self, session_uri: str) -> list[Followed]:
        followed = await self._directories.of_session(session_uri)
        own = self._own_trees.of(session_uri)
        for one in followed:
            one.own_tree = own is not None and one.directory.is_relative_to(own.path)
        return followed

    def _announce_chat(self, chat_uri: str, followed: Sequence[Followed]) -> None:
        """Update the catalogue of a chat. A chat that works in only some of the session's directories has its own
        catalogue."""
        chat = self.services.chat(chat_uri)
        if chat is None:
            return
        uris: Sequence[str] = chat.get("workingDirectories") or ()
        places = {local_path(uri) for uri in uris}
        entries = _entries([one for one in followed if one.directory in places]) if uris else []
        if entries != chat.get("changesets", []):
            self.services.dispatch(chat_uri, chat_changesets_changed(changesets=entries or None))

    def _disposed(self, session_uri: str) -> None:
        self._views.end(self._directories.known(session_uri))
        self._directories.forget(session_uri)
        self._own_trees.disposed(session_uri)

    def _is_busy(self, session_uri: str) -> bool:
        known = self._directories.known(session_uri)
        return any(one.running for one in known) or self._views.show_any(known)

    def _rested(self, session_uri: str) -> None:
        self._directories.rest(session_uri)

    # -- turns -------------------------------------------------------------------------------------------------------

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        """Take a checkpoint before the agent can change anything."""
        self._own_trees.check(chat.session_uri)
        active = (self.services.chat(chat.uri) or NO_CHAT).get("activeTurn")
        if active is not None:
            for followed in await self._followed(chat.session_uri):
                await self._begin(followed, active["id"], chat.uri)
        return prompt

    async def _begin(self, followed: Followed, turn_id: str, chat_uri: str) -> None:
        try:
            async with followed.lock:
                outside_calls = self.services.writes_outside_calls(followed.session)
                await followed.changes.begin(turn_id, chat_uri, outside_calls=outside_calls)
        except (GitError, OSError) as error:
            _log.warning("the changes of turn %s are not recorded: %s", turn_id, error)
            return
        followed.running.add(turn_id)
        for other in self._directories.sharing(followed):
            for other_turn in other.running:
                followed.beside.setdefault(turn_id, []).append((other, other_turn))
                other.beside.setdefault(other_turn, []).append((followed, turn_id))
        self._directories.remember(followed)

    def _on_applied(self, applied: AnyApplied) -> None:
        action = applied.action
        kind = action["type"]
        if action["type"] == "changeset/filesReviewChanged":
            if applied.client_id is not None:
                self._views.reviewed(applied.channel, action, cast("ChangesetState", applied.after)["files"])
        elif kind == "chat/truncated":
            self._forget_turns(applied)
        elif kind in _MOVED and applied.after is not applied.before:
            session_uri = self.services.session_of(applied.channel) or applied.channel
            if self._directories.known(session_uri):
                self.services.spawn(self._announce(session_uri), name="catalogue of changesets")
        elif kind in _ENDED:
            turn_id = action.get("turnId", "")
            for followed in self._directories.known(self.services.session_of(applied.channel) or ""):
                if turn_id in followed.running:
                    self.services.spawn(self._end_turn(followed, turn_id), name="changes of a turn")
        elif kind in _CALLS:
            self._call_went_on(applied)

    def _call_went_on(self, applied: AnyApplied) -> None:
        """A tool call changed its status: note when it runs, and look at the files before and after it."""
        kind, turn_id, id = (applied.action.get(key, "") for key in ("type", "turnId", "toolCallId"))
        call: JsonObject = find_tool_call(applied.after.get("activeTurn"), id) or {"status": "completed"}
        edits = wire.edited_files(applied.action.get("result") or {})
        for followed in self._directories.known(self.services.session_of(applied.channel) or ""):
            followed.changes.saw_call(f"{applied.channel}#{id}", call["status"])
            for turn in _turns_of_call(followed, turn_id):
                if kind == "chat/toolCallComplete":
                    self._look_after(followed, turn, edits)
                elif kind == "chat/toolCallReady" and call["status"] == "running":  # Its agent may run it at once.
                    named = named_files(call, followed.directory)
                    self.services.spawn(self._look_before(followed, turn, named), name="files before a tool call")

    async def _before_call(self, chat: Chat, turn_id: str, call_id: str) -> None:
        state = self.services.chat(chat.uri) or NO_CHAT
        if (call := find_tool_call(state.get("activeTurn"), call_id)) is not None:
            for followed in self._directories.known(chat.session_uri):
                for turn in _turns_of_call(followed, turn_id):
                    await self._look_before(followed, turn, named_files(call, followed.directory))

    async def _look_before(self, followed: Followed, turn_id: str, files: Sequence[str]) -> None:
        """Record the changes of somebody else in files that the agent is about to write."""
        paths = [path for uri in files if (path := wire.path_in(followed.root_uri, uri)) is not None]
        if not paths or turn_id not in followed.running:
            return
        if theirs := await followed.changes.written_by_others(turn_id, paths):
            try:
                async with asyncio.timeout(_PATIENCE), followed.lock:
                    await followed.changes.look_before(turn_id, theirs)
            except (GitError, OSError, TimeoutError) as error:
                _log.warning("the changes of %s could not be read: %s", followed.session, str(error) or _SLOW)

    @asynccontextmanager
    async def _writing(self, chat: Chat, turn_id: str, path: Path) -> AsyncGenerator[None]:
        """A context around a write of the agent to a file, by itself or through the host."""
        known = [one for one in self._directories.known(chat.session_uri) if turn_id in one.running]
        files = [path.as_uri()]
        for followed in known:
            await self._look_before(followed, turn_id, files)
            followed.changes.saw_call(files[0], "running")
        try:
            yield
        finally:
            for followed in known:
                followed.changes.saw_call(files[0], "completed")
                self._look_after(followed, turn_id, files)

    async def _before_end(self, chat: Chat, turn_id: str) -> None:
        """Take the checkpoint of a turn's end before clients get the end: changes of a person after the end do not
        belong to the turn. If the checkpoint takes too long, it is taken afterwards."""
        for followed in self._directories.known(chat.session_uri):
            if turn_id not in followed.running:
                continue
            try:
                async with asyncio.timeout(_PATIENCE), followed.lock:
                    await followed.changes.take_final_checkpoint(turn_id)
                    self._directories.remember(followed)
            except (GitError, OSError, TimeoutError) as error:
                _log.warning("the changes of %s could not be read: %s", followed.session, str(error) or _SLOW)

    def _look_after(self, followed: Followed, turn_id: str, edits: Sequence[str]) -> None:
        """Look at the files after a tool call: at the files that it reported, or at all files if it reported none. The
        reported files are noted at once, because the turn may be about to end, and its final checkpoint needs them."""
        paths = [path for uri in edits if (path := wire.path_in(followed.root_uri, uri)) is not None]
        if edits and not paths:
            return  # It reported only files outside of this directory.
        self._claim(followed, paths)
        if turn_id in followed.running:
            followed.changes.reported.update(paths)
            self.services.spawn(self._refresh(followed, turn_id, paths), name="changes of a tool call")

    async def _refresh(self, followed: Followed, turn_id: str, paths: Sequence[str]) -> None:
        try:
            async with followed.lock:
                if turn_id not in followed.running:
                    return
                await followed.changes.refresh(turn_id, paths or None)
        except (GitError, OSError) as error:
            _log.warning("the changes of %s could not be read: %s", followed.session, error)
            return
        await self._show(followed)

    def _claim(self, followed: Followed, paths: Collection[str]) -> None:
        """Files that one session is known to have written do not count for another session that works in the same
        directory at the same time."""
        for other in self._directories.sharing(followed):
            theirs = other.paths_of(followed, paths)
            for turn in other.running_turns():
                turn.foreign += sorted(theirs - other.changes.reported - set(turn.foreign))

    async def _doubt(self, followed: Followed, turn_id: str) -> None:
        """Remember which files of a turn may have been written by another session that worked in the same directory at
        the same time."""
        if turn_id not in followed.beside:
            return
        own = await asyncio.to_thread(paths_of, await followed.changes.turn(turn_id))
        for other, other_turn in followed.beside.pop(turn_id, ()):
            if other_turn in other.running:
                await other.changes.refresh(other_turn)
            record = other.changes.record.turns.get(other_turn)
            reported = {*other.changes.reported, *(() if record is None else record.reported)}
            changed = await asyncio.to_thread(paths_of, await other.changes.turn(other_turn))
            theirs = await asyncio.to_thread(followed.paths_of, other, changed)
            reported_here = await asyncio.to_thread(followed.paths_of, other, reported)
            await followed.changes.doubt(turn_id, own & theirs, own & reported_here)

    async def _end_turn(self, followed: Followed, turn_id: str) -> None:
        try:
            async with followed.lock:
                if turn_id in followed.running:
                    await followed.changes.end(turn_id)
                    await self._doubt(followed, turn_id)
        except (GitError, OSError) as error:
            _log.warning("the changes of %s could not be read: %s", followed.session, error)
        followed.running.discard(turn_id)
        self._directories.remember(followed)
        await self._show(followed)

    def _forget_turns(self, applied: AnyApplied) -> None:
        """Close the changesets of turns that were truncated away."""
        gone = {turn["id"] for turn in applied.before.get("turns", ())} - {
            turn["id"] for turn in applied.after.get("turns", ())
        }
        followed = self._directories.known(self.services.session_of(applied.channel) or "")
        self._views.end(followed, gone)
        for one in followed:
            if gone & one.changes.record.turns.keys():
                for turn_id in gone:
                    one.changes.record.turns.pop(turn_id, None)
                self._directories.remember(one)

    # -- what is shown -----------------------------------------------------------------------------------------------

    async def _show(self, followed: Followed) -> None:
        """Update all changesets that somebody follows, and the session's totals."""
        if self.services.state(followed.session) is None:
            return
        await self._views.show(followed)
        counted = _NOTHING
        for one in self._directories.known(followed.session):
            try:
                async with one.lock:
                    changes = await one.own(await one.changes.session(one.running))
            except (GitError, OSError):
                return
            counted = {key: counted[key] + number for key, number in wire.totals(changes).items()}
        self._publish_totals(followed.session, counted)
        for chat in (self.services.state(followed.session) or {}).get("chats", ()):
            await self._show_chat(followed.session, chat["resource"], counted)

    async def _show_chat(self, session_uri: str, chat_uri: str, of_session: JsonObject) -> None:
        """Update the totals in the entry of one chat. If a session has only one chat, these are the session's
        totals."""
        counted = of_session
        only = only_chat(self.services.state(session_uri) or {"chats": []})
        if only is None or only["resource"] != chat_uri:
            try:
                found = [await self._of_chat(one, chat_uri) for one in self._directories.known(session_uri)]
            except (GitError, OSError):
                return
            counted = wire.totals([change for changes in found for change in changes])
        state = self.services.state(session_uri) or {}
        entry = next((chat for chat in state.get("chats", ()) if chat["resource"] == chat_uri), None)
        if entry is not None and entry.get("changes", _NOTHING) != counted:
            totals = cast("ChangesSummary", counted)
            self.services.dispatch(session_uri, session_chat_updated(chat=chat_uri, changes={"changes": totals}))

    async def _of_chat(self, followed: Followed, chat_uri: str) -> list[FileChange]:
        async with followed.lock:
            return await followed.own(await followed.changes.chat(chat_uri))

    def _publish_totals(self, session_uri: str, totals: JsonObject) -> None:
        state = self.services.state(session_uri)
        meta: JsonObject = (state or {}).get("_meta") or {}
        if not totals["files"] and CHANGES not in meta:  # Most sessions never change a file.
            return
        if state is not None and meta.get(CHANGES) != totals:
            self.services.dispatch(session_uri, session_meta_changed(meta={**meta, CHANGES: totals}))

    async def _invoke(self, client: ConnectedClient, params: JsonObject) -> JsonObject:
        """Run an operation to its end, even if the client disconnects meanwhile, so that nothing is left half
        undone."""
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()

        async def answering() -> None:
            try:
                result = await self._operate(params)
            except Exception as error:  # The error is the answer, as with any other command.
                if not answer.done():
                    answer.set_exception(error)
            except asyncio.CancelledError:
                answer.cancel()
                raise
            else:
                if not answer.done():
                    answer.set_result(result)

        self.services.spawn(answering(), name="operation of a changeset")
        return await answer

    async def _operate(self, params: JsonObject) -> JsonObject:
        followed, message = await self._operations.invoke(params)
        if not await asyncio.to_thread(os.path.isdir, followed.directory):  # Its work tree was removed.
            self._views.end([followed])
            self._directories.forget_directories(followed.session, [followed])
            self.services.dispatch(followed.session, session_changesets_changed())
        else:
            self._directories.remember(followed)
            await self._show(followed)
        return {"message": message}

    async def _store(self, followed: Followed) -> None:
        self._directories.remember(followed)
        await self.services.durable()

    async def _read_blob(self, uri: str) -> tuple[bytes, str]:
        """The content of a changed file, before or after."""
        found = wire.read_blob_uri(uri)
        followed = None if found is None else await self._directories.by_key(found[0])
        if found is None or followed is None or not found[1].path.startswith(followed.prefix):
            raise ContentNotFound(f"there is no content {uri}")
        if found[1].oid == wire.NOT_KEPT:
            raise ContentNotFound("the content of this file is not kept; the note of its entry says why")
        try:
            return await followed.changes.tree.read(found[1]), wire.content_type(found[1].path)
        except GitError as error:
            raise ContentNotFound(f"the content is no longer there ({error})") from error


def _turns_of_call(followed: Followed, turn_id: str) -> list[str]:
    """The running turns that a tool call belongs to. A call in a sub-agent's chat belongs to all turns that run."""
    return [turn_id] if turn_id in followed.running else sorted(followed.running)


def _entries(followed: Sequence[Followed]) -> list[Changeset]:
    """The catalogue of some directories. If there are several, each entry names its directory."""
    return [
        entry
        for one in followed
        for entry in wire.catalogue(one.key, in_git=one.in_git, name=one.directory.name if len(followed) > 1 else "")
    ]


__all__ = ["MESSAGE_KEY", "Changesets"]
