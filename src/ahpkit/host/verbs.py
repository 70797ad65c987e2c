"""The commands of the spine: what each request and notification of AHP does. Knows no transport.

Reads answer from committed states, so nothing shown can be lost. Changes answer once they are durable.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Raw

from ahpkit.host.agent import Agent
from ahpkit.host.completions import utf16_length
from ahpkit.host.limits import MAX_REASON, MAX_TYPED, check_subscriptions
from ahpkit.host.policy import check_active_client
from ahpkit.host.session_config import resolve_config
from ahpkit.host.store import Origin, envelope
from ahpkit.log.errors import LogError
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.codec import decode_json
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import (
    InternalError,
    InvalidParams,
    InvalidRequest,
    NotFound,
    ProviderNotFound,
    SessionNotFound,
)
from ahpkit.protocol.errors import UnsupportedProtocolVersion as UnsupportedVersion
from ahpkit.protocol.meta_keys import ASK_AGENTS, CAPABILITIES
from ahpkit.protocol.validation import check_params
from ahpkit.protocol.version import negotiate

if TYPE_CHECKING:
    from ahpkit.host.connection import Connection
    from ahpkit.host.host import Host

_log = logging.getLogger(__name__)

Verb = Callable[["Connection", JsonObject], Awaitable[Any]]

_MAX_REPLAY = 32 * 1024 * 1024
"""Bytes of actions in one replay. Beyond it snapshots are the shorter answer, and not every client takes a message that
large: it would reconnect for ever."""

_REPLAY_PAGE = 1000
"""Entries read from the log at a time, so that a replay that gets too large is noticed early."""

_MAX_TURNS = 200
"""Turns in one page of fetchTurns: a screenful many times over, and still a frame of moderate size."""

_COMPLETIONS_PATIENCE = 1.0
"""Seconds for each source of completions: a list that comes late is of no use to somebody who types."""

ORDERED = frozenset(
    {
        "initialize",
        "reconnect",
        "subscribe",
        "createSession",
        "disposeSession",
        "createChat",
        "disposeChat",
        "createTerminal",
    }
)
"""Finished before the connection's next message is taken."""


class Verbs:
    """Request methods of the spine, bound to a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def requests(self) -> Mapping[str, Verb]:
        return {
            "initialize": self.initialize,
            "ping": self.ping,
            "reconnect": self.reconnect,
            "subscribe": self.subscribe,
            "listSessions": self.list_sessions,
            "createSession": self.create_session,
            "disposeSession": self.dispose_session,
            "createChat": self.create_chat,
            "disposeChat": self.dispose_chat,
            "fetchTurns": self.fetch_turns,
            "resolveSessionConfig": self.resolve_session_config,
            "sessionConfigCompletions": self.session_config_completions,
            "completions": self.completions,
            "authenticate": self.authenticate,
            "invokeChangesetOperation": self.invoke_changeset_operation,
        }

    def notifications(self) -> Mapping[str, Callable[[Connection, JsonObject], None]]:
        return {"unsubscribe": self.unsubscribe, "dispatchAction": self.dispatch_action}

    # -- connection ----------------------------------------------------------------------------------------------

    async def ping(self, client: Connection, params: JsonObject) -> None:
        """The answer itself is the signal."""

    async def initialize(self, client: Connection, params: JsonObject) -> JsonObject:
        try:
            version = negotiate(params["protocolVersions"])
        except UnsupportedVersion as error:
            client.close(error.message)
            raise
        wanted = dict.fromkeys(params.get("initialSubscriptions", ()))
        _check_subscriptions(len(wanted))
        self._host.admit(client, params["clientId"], params.get("capabilities", {}))
        self._host.dispatcher.ledger.begin(client.client_id, self._host.store.head)
        return {
            "protocolVersion": version,
            "serverSeq": self._host.store.committed_head,
            "snapshots": [self._subscribe(client, uri) for uri in wanted if self._exists(uri)],
            "defaultDirectory": self._host.default_directory.as_uri(),
            "completionTriggerCharacters": ["/", "@", "#"],
            "_meta": self._host.advertised(),
        }

    async def reconnect(self, client: Connection, params: JsonObject) -> JsonObject:
        wanted = dict.fromkeys(params["subscriptions"])
        _check_subscriptions(len(wanted))
        capabilities: object = params.get("_meta", {}).get(CAPABILITIES)
        repeated = cast("JsonObject", capabilities) if isinstance(capabilities, dict) else None
        self._host.admit(client, params["clientId"], repeated)
        present = [uri for uri in wanted if self._exists(uri)]
        missing = [uri for uri in wanted if not self._exists(uri)]
        snapshots = [self._subscribe(client, uri) for uri in present]
        client.outbox.hold()  # Whatever happens from here on comes after the answer.
        actions = await self._missed(params["lastSeenServerSeq"], present)
        if actions is None:
            return {"type": "snapshot", "snapshots": snapshots}
        return {"type": "replay", "actions": actions, "missing": missing}

    async def _missed(self, after: int, channels: Sequence[str]) -> list[Raw] | None:
        """What happened in these channels after a number and until now; None when only snapshots can tell."""
        if not self._host.can_replay(after, channels):
            return None
        until, missed, size = self._host.store.committed_head, list[Raw](), 0
        while size <= _MAX_REPLAY:
            try:
                page = await self._host.log.read(after, channels=channels, limit=_REPLAY_PAGE)
            except LogError as error:  # Trimmed at this very moment, or the disk cannot be read.
                _log.warning("a client gets snapshots instead of a replay: %s", error)
                return None
            missed += [Raw(entry.payload) for entry in page if entry.seq <= until]
            if len(page) < _REPLAY_PAGE or page[-1].seq >= until:
                return missed
            after, size = page[-1].seq, size + sum(len(entry.payload) for entry in page)
        return None

    async def subscribe(self, client: Connection, params: JsonObject) -> JsonObject:
        uri, held = params["channel"], client.outbox.channels
        _check_subscriptions(len(held) + (uri not in held))
        channel = channel_of(uri)
        if channel is not None and channel.reducer is None and self._host.serves_stateless(uri):
            self._host.fanout.subscribe(uri, client.outbox)
            return {}
        if not self._exists(uri) and self._host.agent_sessions.adopt(uri):
            await self._host.durable()
        if not self._exists(uri):
            raise _no_channel(uri)
        return {"snapshot": self._subscribe(client, uri)}

    def unsubscribe(self, client: Connection, params: JsonObject) -> None:
        if isinstance(uri := params.get("channel"), str):
            self._host.unsubscribe(uri, client)

    def dispatch_action(self, client: Connection, params: JsonObject) -> None:
        """Apply a client's action, or send it back with the reason."""
        try:
            check_params("dispatchAction", params)
        except InvalidParams as error:
            self._refuse_dispatch(client, params, error.message)
            return
        uri, seq, action = params["channel"], params["clientSeq"], params["action"]
        origin = Origin(client.client_id, seq)
        if (done := self._host.dispatcher.ledger.find(origin)) is not None:
            self._host.spawn(self._repeated(client, uri, action, origin, done), name="repeated dispatch")
        else:
            self._dispatch(client, uri, action, origin)

    def _refuse_dispatch(self, client: Connection, params: JsonObject, reason: str) -> None:
        """Say why under the number that the client gave, where there is one: a notification has no other answer."""
        uri, seq, action = params.get("channel"), params.get("clientSeq"), params.get("action")
        if isinstance(uri, str) and isinstance(seq, int | float) and isinstance(action, dict):
            origin, sent = Origin(client.client_id, cast("int", seq)), cast("JsonObject", action)
            refused = envelope(uri, sent, self._host.store.committed_head, origin, reason[:MAX_REASON])
            client.notify("action", refused)
        else:
            _log.debug("%s dispatched something nobody can answer: %s", client.client_id, reason)

    async def _repeated(self, client: Connection, uri: str, action: JsonObject, origin: Origin, done: int) -> None:
        """The number was used before: for this very action, then it is echoed again; or for another, then it is new."""
        await self._host.log.flush()
        logged = await self._host.log.read(done - 1, channels=None, limit=1) if done else []
        before = decode_json(logged[0].payload) if logged and logged[0].seq == done else None
        if before is None or (before["channel"], before["action"]) == (uri, action):
            client.notify("action", before or envelope(uri, action, done, origin))
        else:
            self._dispatch(client, uri, action, origin)

    def _dispatch(self, client: Connection, uri: str, action: JsonObject, origin: Origin) -> None:
        reason = self._host.dispatcher.dispatch(uri, action, origin)
        if reason is not None:
            self._host.reject(uri, action, origin, reason)

    def _exists(self, uri: str) -> bool:
        return self._host.store.committed(uri) is not None

    def _subscribe(self, client: Connection, uri: str) -> JsonObject:
        """Atomic with the log: the committed state, and from here on every later action."""
        state = self._host.store.committed(uri)
        self._host.fanout.subscribe(uri, client.outbox)
        return {"resource": uri, "state": state, "fromSeq": self._host.store.committed_head}

    # -- sessions and chats --------------------------------------------------------------------------------------

    async def list_sessions(self, client: Connection, params: JsonObject) -> JsonObject:
        kept = self._host.agent_sessions
        await kept.look(start=params.get("_meta", {}).get(ASK_AGENTS) is True)
        return {"items": [*self._host.catalogue.summaries(), *kept.summaries()]}

    async def create_session(self, client: Connection, params: JsonObject) -> None:
        self._check_writable()
        if "activeClient" in params:
            reason = check_active_client(None, client.client_id, params["activeClient"])
            if reason is not None:
                raise InvalidParams(f"activeClient: {reason}")
        await self._host.sessions.create(params)
        await self._host.durable()

    async def dispose_session(self, client: Connection, params: JsonObject) -> None:
        self._check_writable()
        await self._host.sessions.dispose(params["channel"])
        await self._host.durable()

    async def create_chat(self, client: Connection, params: JsonObject) -> None:
        self._check_writable()
        self._host.sessions.create_chat(params)
        await self._host.durable()

    async def dispose_chat(self, client: Connection, params: JsonObject) -> None:
        self._check_writable()
        await self._host.sessions.dispose_chat(params["channel"])
        await self._host.durable()

    async def fetch_turns(self, client: Connection, params: JsonObject) -> JsonObject:
        chat = self._chat(params["channel"])
        limit: int = params.get("limit", _MAX_TURNS)
        if limit < 1:
            raise InvalidParams("limit: must be at least 1")
        turns: list[JsonObject] = chat["turns"]
        end = len(turns)
        if (before := params.get("before")) is not None:
            end = next((at for at, turn in enumerate(turns) if turn["id"] == before), -1)
            if end < 0:
                raise NotFound(f"before: the chat has no finished turn {before!r}")
        start = max(0, end - min(limit, _MAX_TURNS))
        return {"turns": turns[start:end], "hasMore": start > 0}

    async def completions(self, client: Connection, params: JsonObject) -> JsonObject:
        chat_uri, text, offset = params["channel"], params["text"], params["offset"]
        self._chat(chat_uri)
        if len(text) > MAX_TYPED:
            raise InvalidParams(f"text: has {len(text)} characters, completions are for at most {MAX_TYPED}")
        length = utf16_length(text)
        if not 0 <= offset <= length:
            raise InvalidParams(f"offset: {offset} is outside 0 to {length}, the text's length in UTF-16 code units")
        asked = [feature.completions(chat_uri, text, offset) for feature in self._host.features]
        asked.append(self._agent_completions(chat_uri, text, offset))
        prompt = (asyncio.wait_for(offer, _COMPLETIONS_PATIENCE) for offer in asked)
        offers = await asyncio.gather(*prompt, return_exceptions=True)
        kept = (offer for offer in offers if not isinstance(offer, BaseException))
        return {"items": list(itertools.chain.from_iterable(kept))}

    async def _agent_completions(self, chat_uri: str, text: str, offset: int) -> Any:
        runner = self._host.sessions.runner(chat_uri)
        return await runner.agent.completions(runner.chat, text, offset) if runner else ()

    def _chat(self, uri: str) -> JsonObject:
        channel = channel_of(uri)
        chat = self._host.store.committed(uri)
        if channel is None or channel.name != "chat" or chat is None:
            raise NotFound(f"there is no chat {uri}")
        return chat

    # -- root ----------------------------------------------------------------------------------------------------

    async def resolve_session_config(self, client: Connection, params: JsonObject) -> JsonObject:
        agent = self._agent(params.get("provider"))
        directory = await self._host.checked_directory(params.get("workingDirectory"))
        schema, values = await resolve_config(agent, directory, params.get("config", {}))
        return {"schema": schema, "values": values}

    async def session_config_completions(self, client: Connection, params: JsonObject) -> JsonObject:
        agent = self._agent(params.get("provider"))
        directory = await self._host.checked_directory(params.get("workingDirectory"))
        items = await agent.config_completions(directory, params["property"], params.get("query", ""))
        return {"items": list(items)}

    async def authenticate(self, client: Connection, params: JsonObject) -> JsonObject:
        await self._host.authenticate(params["resource"], params["token"])
        return {}

    async def invoke_changeset_operation(self, client: Connection, params: JsonObject) -> JsonObject:
        raise NotFound(f"there is no changeset {params['channel']}")

    def _agent(self, provider: str | None) -> Agent:
        agent = self._host.agents.get(provider or self._host.default_provider or "")
        if agent is None:
            raise ProviderNotFound(f"there is no agent provider {provider!r}; known: {', '.join(self._host.agents)}")
        return agent

    def _check_writable(self) -> None:
        if (reason := self._host.dispatcher.refusing()) is not None:
            raise InternalError(reason)


def _check_subscriptions(count: int) -> None:
    if (reason := check_subscriptions(count)) is not None:
        raise InvalidRequest(reason)


def _no_channel(uri: str) -> NotFound | SessionNotFound:
    channel = channel_of(uri)
    if channel is not None and channel.name == "session":
        return SessionNotFound(f"there is no session {uri}")
    return NotFound(f"there is no channel {uri}")


__all__ = ["ORDERED", "ROOT_URI", "Verb", "Verbs"]
