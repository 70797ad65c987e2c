"""The `resource*` methods of the host. `access` decides what may be touched."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from ahpkit.host.agent import AgentError, Chat, TurnContext
from ahpkit.host.feature import ConnectedClient, Feature, Services
from ahpkit.host.registration import Command, Registration, SessionApplied
from ahpkit.host.resources import files, reading
from ahpkit.host.resources.access import Access
from ahpkit.host.resources.agent_files import AgentFiles, UnsavedText
from ahpkit.host.resources.claims import Claim, Claims
from ahpkit.host.resources.fence import Fence
from ahpkit.host.resources.mentions import Mentions
from ahpkit.host.resources.reading import OpenFile, ResourceContent
from ahpkit.host.resources.safe_open import READ, Entry, SafeOpener, file_path, reach, real_path
from ahpkit.host.resources.sealed import leads_to_sealed
from ahpkit.host.resources.session_directories import (
    NamedDirectory,
    OpenedDirectories,
    SessionDirectories,
    opened_by,
    real_places,
)
from ahpkit.host.resources.watches import Watches
from ahpkit.host.states import NO_SESSION
from ahpkit.host.workers import Workers
from ahpkit.platform.files import CLOSE_ON_EXEC, DIRECTORY, NO_FOLLOW
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.commands import (
    ResourceCopyParams,
    ResourceCopyResult,
    ResourceDeleteParams,
    ResourceDeleteResult,
    ResourceListParams,
    ResourceListResult,
    ResourceMkdirParams,
    ResourceMkdirResult,
    ResourceMoveParams,
    ResourceMoveResult,
    ResourceReadParams,
    ResourceRequestParams,
    ResourceRequestResult,
    ResourceResolveParams,
    ResourceResolveResult,
    ResourceWriteParams,
    ResourceWriteResult,
)
from ahpkit.protocol.errors import ContentNotFound, NotFound, PermissionDenied
from ahpkit.protocol.resource_watch import CreateResourceWatchParams, CreateResourceWatchResult
from ahpkit.protocol.session.state import SessionState

_SCHEME = "ahp-content:/"

_NAME = re.compile(r"[0-9a-f]{64}")

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW | CLOSE_ON_EXEC


class ContentStore:
    """One directory of blobs, each with its type beside it; without a directory everything stays in memory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._memory: dict[str, tuple[bytes, str]] = {}

    @staticmethod
    def owns(uri: str) -> bool:
        return uri.startswith(_SCHEME)

    def put(self, data: bytes, content_type: str) -> str:
        """Store data and return its URI. The same data is stored only once."""
        name = hashlib.sha256(content_type.encode() + b"\0" + data).hexdigest()
        if self._directory is None:
            self._memory[name] = (data, content_type)
        else:
            self._keep(self._directory, name, data, content_type)
        return _SCHEME + name

    @staticmethod
    def _keep(directory: Path, name: str, data: bytes, content_type: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(directory, os.O_RDONLY | DIRECTORY | CLOSE_ON_EXEC)
        try:
            if os.path.lexists(directory / name):
                return
            _write(folder, f"{name}.json", json.dumps({"contentType": content_type}).encode())
            _write(folder, f"{name}.tmp", data)
            os.replace(f"{name}.tmp", name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)

    def open(self, uri: str) -> tuple[bytes | OpenFile, str]:
        """The bytes or the file that contains them, and their type. The URI ends with a name for people, which is
        ignored."""
        name = uri.removeprefix(_SCHEME).partition("/")[0]
        missing = ContentNotFound(f"there is no content {uri}")
        if not _NAME.fullmatch(name):
            raise missing
        if self._directory is None:
            if name not in self._memory:
                raise missing
            return self._memory[name]
        try:
            about = json.loads(_read(self._directory / f"{name}.json"))
            return OpenFile(os.open(self._directory / name, READ)), about["contentType"]
        except FileNotFoundError:
            raise missing from None


def _write(folder: int, name: str, data: bytes) -> None:
    with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)


def _read(path: Path) -> bytes:
    with open(os.open(path, READ), "rb") as file:
        return file.read()


T = TypeVar("T")


class Resources(Feature):
    """Serves files below the sessions' working directories, and content that agents stored."""

    name = "resources"

    def __init__(
        self,
        *,
        content_directory: Path | None = None,
        default_directory: Path | None = None,
        grantable: Iterable[Path] = (),
        fence: Fence | None = None,
        sealed: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """Without a `fence`, sessions may live everywhere except in places that are excluded from every root.

        Sessions that name no directory work in `default_directory`. `sealed` returns real paths of files and
        directories that nobody may write without an approval.
        """
        self._content = ContentStore(content_directory)
        self._opened = OpenedDirectories()
        self._default_directory = default_directory
        self._access = Access(self._opened, fence=fence, grantable=grantable, sealed=sealed)
        self._sealed = sealed
        self._workers = Workers("ahpkit-files")
        self._mentions = Mentions(lambda path: self._access.fence.refusal(path) is None)
        self._claims = Claims()

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        self._readers = host.resource_readers
        self._watches = Watches(services)
        self._directories = SessionDirectories(self._opened, services, self._workers.run, self._default_directory)
        for command in self._commands():
            host.commands.add(command)
        host.turns.content.provide(self._store_content)
        host.sessions.check_directory.add(self._check_directory)
        host.completions.add(self._mentioned)
        host.sessions.prepare.add(self._directories.prepare)
        host.turns.prepare.add(self._prepare_turn)
        host.actions.listen(self._on_applied, "session/customization", "session/workingDirectory")
        host.sessions.disposed.add(self._directories.changed)
        host.clients.gone.add(self._access.forget)
        host.channels.unsubscribed.add(self._watches.release)
        host.channels.guard.add(self._check_observer)
        host.recover.add(self._watches.recover)

    async def aclose(self) -> None:
        await self._watches.aclose()
        self._workers.close()

    @property
    def access(self) -> Access:
        """The files that clients may reach, for features that read files for clients."""
        return self._access

    def _commands(self) -> Iterable[Command]:
        """The rows of the commands. Only creating a watch changes something in the log, because files are not in the
        log."""
        return (
            Command("resourceRead", self._read, large=True),
            Command("resourceWrite", self._write),
            Command("resourceList", self._list, large=True),
            Command("resourceCopy", self._copy),
            Command("resourceMove", self._move),
            Command("resourceDelete", self._delete),
            Command("resourceResolve", self._resolve),
            Command("resourceMkdir", self._mkdir),
            Command("resourceRequest", self._request),
            Command("createResourceWatch", self._create_watch, changes=True),
        )

    def _store_content(self, session_uri: str, data: bytes, content_type: str) -> str:
        return self._content.put(data, content_type)

    async def _mentioned(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        """Completions: files of the chat's directories for a word that begins with a mark."""
        session = self.services.session_of(chat_uri)
        chat, state = self.services.state(chat_uri) or {}, self.services.state(session or "") or {}
        uris: Sequence[str] = chat.get("workingDirectories") or state.get("workingDirectories") or ()
        now = self.services.now()
        return await self._workers.run(
            lambda: self._mentions.items([real_path(file_path(uri)) for uri in uris], text, offset, now=now)
        )

    # -- where sessions may live -----------------------------------------------------------------------------------

    async def _check_directory(self, uri: str) -> None:
        """Raise when no session may live in a directory."""
        path = file_path(uri)
        await self._workers.run(lambda: self._access.fence.check(real_path(path)))

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        """Refuse a turn in a session outside of the present roots. Such a session can still be read."""
        fence = self._access.fence
        for directory in chat.working_directories or [chat.working_directory]:
            refusal = await self._workers.run(lambda directory=directory: fence.refusal(real_path(directory)))
            if refusal is not None:
                raise AgentError(refusal, error_type="host/outside-roots")
        return prompt

    # -- what sessions open ----------------------------------------------------------------------------------------

    def _on_applied(self, applied: SessionApplied) -> None:
        if applied.after is not applied.before:
            self._directories.changed(applied.channel)

    # -- clients ---------------------------------------------------------------------------------------------------

    def agent_files(self, chat: Chat) -> AgentFiles:
        """Files for the agent of a chat: in its working directory and in the directories of its session, but not in
        those of other sessions."""
        opened = OpenedDirectories()

        async def learn() -> None:
            own = [directory.as_uri() for directory in chat.working_directories]
            state = self.services.session(chat.session_uri) or NO_SESSION
            session: SessionState = {**state, "workingDirectories": own}
            named = [NamedDirectory("work", chat.working_directory), *opened_by(session, self._default_directory)]
            opened.set(chat.session_uri, await self._workers.run(lambda: real_places(named)))

        unsaved = UnsavedText(self.services)
        return AgentFiles(
            chat.working_directory,
            Access(opened, fence=self._access.fence, sealed=self._sealed),
            learn=learn,
            unsaved=lambda uri: unsaved.of(chat.session_uri, uri),
            run=self._workers.run,
            claims=self._claims,
        )

    async def _read(self, client: ConnectedClient, params: ResourceReadParams) -> ResourceContent:
        uri, encoding = params["uri"], params.get("encoding")
        if self._content.owns(uri):
            return await self._workers.run(lambda: self._stored(uri, encoding))
        if (read := self._readers.get(uri.partition(":")[0])) is not None:
            data, content_type = await read(uri)
            return {**reading.encode_content(data, encoding), "contentType": content_type}
        return await self._look(client, uri, lambda entry: reading.read_later(entry, encoding, self._workers.run))

    def _stored(self, uri: str, encoding: str | None) -> ResourceContent:
        found, content_type = self._content.open(uri)
        if isinstance(found, bytes):
            return {**reading.encode_content(found, encoding), "contentType": content_type}
        return {**found.content(encoding, self._workers.run), "contentType": content_type}

    async def _list(self, client: ConnectedClient, params: ResourceListParams) -> ResourceListResult:
        return await self._look(client, params["uri"], files.list_directory)

    async def _resolve(self, client: ConnectedClient, params: ResourceResolveParams) -> ResourceResolveResult:
        return await self._look(
            client, params["uri"], files.resolve_resource, follow=params.get("followSymlinks", True)
        )

    async def _look(self, client: ConnectedClient, uri: str, use: Callable[[Entry], T], *, follow: bool = True) -> T:
        """Use a path that may be read."""
        path = file_path(uri)

        def work() -> T:
            opener = self._access.to_read(client.client_id, uri)
            with files.errors(path):
                return reach(path, opener, use, follow=follow)

        return await self._learnt(work)

    async def _write(self, client: ConnectedClient, params: ResourceWriteParams) -> ResourceWriteResult:
        uri, path = params["uri"], file_path(params["uri"])
        decode = reading.decode_content
        data = await self._workers.run(lambda: decode(params["data"], params["encoding"]))

        def write(entry: Entry) -> None:
            files.write(
                entry,
                data,
                mode=params.get("mode", "truncate"),
                position=params.get("position", 0),
                create_only=params.get("createOnly", False),
                if_match=params.get("ifMatch"),
            )

        def work(claim: Claim) -> None:
            opener = claim.limit(self._access.to_write(client.client_id, uri))
            with files.errors(path):
                reach(path, opener, write, make=self._access.may_grow(real_path(path)))

        await self._change(client, [path], work)
        return {}

    async def _copy(self, client: ConnectedClient, params: ResourceCopyParams) -> ResourceCopyResult:
        source, destination = file_path(params["source"]), file_path(params["destination"])
        fail_if_exists = params.get("failIfExists", False)

        def work(claim: Claim) -> None:
            to_read = claim.limit(self._access.to_read(client.client_id, params["source"]))
            to_write = claim.limit(self._access.to_write(client.client_id, params["destination"]))

            def both(old: Entry, new: Entry) -> None:
                _check_below(old, old.path, to_read)
                _check_below(old, new.path, to_write)
                files.copy(old, new, fail_if_exists=fail_if_exists)

            _reach_both(source, to_read, destination, to_write, both, follow=True)

        await self._change(client, [source, destination], work)
        return {}

    async def _move(self, client: ConnectedClient, params: ResourceMoveParams) -> ResourceMoveResult:
        source, destination = file_path(params["source"]), file_path(params["destination"])
        fail_if_exists = params.get("failIfExists", False)

        def work(claim: Claim) -> None:
            from_here = claim.limit(self._access.to_write(client.client_id, params["source"]))
            to_write = claim.limit(self._access.to_write(client.client_id, params["destination"]))

            def both(old: Entry, new: Entry) -> None:
                _check_below(old, old.path, from_here)
                _check_below(old, new.path, to_write)
                _check_below(new, new.path, to_write)
                files.move(old, new, fail_if_exists=fail_if_exists)

            _reach_both(source, from_here, destination, to_write, both, follow=False)

        await self._change(client, [source, destination], work)
        return {}

    async def _delete(self, client: ConnectedClient, params: ResourceDeleteParams) -> ResourceDeleteResult:
        path, recursive = file_path(params["uri"]), params.get("recursive", False)

        def work(claim: Claim) -> None:
            opener = claim.limit(self._access.to_write(client.client_id, params["uri"]))

            def remove(entry: Entry) -> None:
                _check_below(entry, entry.path, opener)
                files.delete(entry, recursive=recursive)

            with files.errors(path):
                reach(path, opener, remove, follow=False)

        await self._change(client, [path], work)
        return {}

    async def _mkdir(self, client: ConnectedClient, params: ResourceMkdirParams) -> ResourceMkdirResult:
        path = file_path(params["uri"])

        def work(claim: Claim) -> None:
            opener = claim.limit(self._access.to_write(client.client_id, params["uri"]))
            with files.errors(path):
                reach(path, opener, files.mkdir, make=True)

        await self._change(client, [path], work)
        return {}

    async def _request(self, client: ConnectedClient, params: ResourceRequestParams) -> ResourceRequestResult:
        read, write = params.get("read", False), params.get("write", False)
        grant = self._access.grant
        await self._workers.run(lambda: grant(client.client_id, params["uri"], read=read, write=write))
        return {}

    async def _create_watch(
        self, client: ConnectedClient, params: CreateResourceWatchParams
    ) -> CreateResourceWatchResult:
        def found(entry: Entry) -> Path:
            files.exists(entry)
            return entry.path

        path = await self._look(client, params["uri"], found)
        return {"channel": await self._watches.create(client.client_id, path, params)}

    async def _check_observer(self, client_id: str, uri: str) -> None:
        """A client may follow a watch only if it may read the directory, whoever created the watch."""
        root = self._watches.root(uri)
        if root is not None:
            await self.reading(client_id, root)

    async def reading(self, client_id: str, uri: str) -> Path:
        """The real path of a file that a client may read, for code that opens it itself; otherwise raises
        `PermissionDenied`."""
        return await self._learnt(lambda: self._access.reading(client_id, uri))

    async def _change(self, client: ConnectedClient, paths: Sequence[Path], work: Callable[[Claim], None]) -> None:
        """Run a change. No other change of the same places can come between its check and its effect."""
        await self._claims.run(client.client_id, paths, lambda claim: self._learnt(lambda: work(claim)))

    async def _learnt(self, work: Callable[[], T]) -> T:
        """Run work that depends on the directories that sessions open. If it is refused and sessions have opened more
        directories since, it is run again."""
        learnt = await self._directories.learn()
        try:
            return await self._workers.run(work)
        except PermissionDenied:
            if not await self._directories.learn_all(learnt):
                raise
            return await self._workers.run(work)


def _reach_both(
    source: Path,
    from_here: SafeOpener,
    destination: Path,
    to_there: SafeOpener,
    use: Callable[[Entry, Entry], None],
    *,
    follow: bool,
) -> None:
    def inner(old: Entry) -> None:
        with files.errors(destination):
            reach(destination, to_there, lambda new: use(old, new), follow=follow)

    with files.errors(source):
        reach(source, from_here, inner, follow=follow)


def _check_below(entry: Entry, place: Path, opener: SafeOpener) -> None:
    """Check everything below an entry as if it were at `place`. A link must not take the place of a sealed file."""
    opener.check(place)
    try:
        for inner, is_link in files.walk(entry):
            opener.check(place / inner)
            if is_link and leads_to_sealed(place / inner):
                raise PermissionDenied(f"{place / inner} is a link where files that can cause execution belong")
        is_link = entry.is_link()
    except NotFound:
        return
    if is_link and place != entry.path and leads_to_sealed(place):
        raise PermissionDenied(f"{place} must not be a link: files that can cause execution belong there")


__all__ = ["ContentStore", "Resources"]
