"""Serves the commands about sessions, chats and agents.

Commands that only read use committed states, so nothing that they show can be lost. The row of a command says whether
it changes something.
"""

from __future__ import annotations

import asyncio
import itertools
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import itemgetter
from typing import NotRequired, TypedDict, cast

from ahpkit.host.agents import Agents
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.clients.turn_windows import TurnWindows
from ahpkit.host.feature import ConnectedClient
from ahpkit.host.limits import MAX_COMPLETIONS, MAX_TOKEN, MAX_TYPED, is_sendable
from ahpkit.host.policy import check_active_client
from ahpkit.host.registration import Command, CompletionSource, Hooks, SettingsSource
from ahpkit.host.sessions.agent_conversations import AgentConversations
from ahpkit.host.sessions.catalogue import SessionCatalogue
from ahpkit.host.sessions.creation import Report, Step, resolve_config
from ahpkit.host.sessions.sessions import Sessions
from ahpkit.host.spine.channel_kinds import ChannelKinds
from ahpkit.host.spine.store import Store
from ahpkit.host.turns.attached_chats import attached_chats
from ahpkit.host.turns.completions import best_first, utf16_length
from ahpkit.host.turns.turns import Turns
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.chat.commands import (
    CompletionItem,
    CompletionsParams,
    CompletionsResult,
    CreateChatParams,
    DisposeChatParams,
    FetchTurnsParams,
    FetchTurnsResult,
    MoveChatParams,
    MoveChatResult,
)
from ahpkit.protocol.chat.state import ChatState, Turn
from ahpkit.protocol.common.commands import AuthenticateParams, AuthenticateResult
from ahpkit.protocol.errors import InvalidParams, NotFound
from ahpkit.protocol.meta_keys import ASK_AGENTS, MORE
from ahpkit.protocol.root import (
    ListSessionsParams,
    ListSessionsResult,
    ResolveSessionConfigParams,
    SessionConfigCompletionsParams,
    SessionConfigCompletionsResult,
    SessionConfigValueItem,
)
from ahpkit.protocol.session.commands import CreateSessionParams, DisposeSessionParams
from ahpkit.protocol.session.state import SessionConfigState, SessionSummary
from ahpkit.protocol.validation import MAX_URI_LENGTH
from ahpkit.wire.codec import decode_json, encode


class _FetchTurnsParams(FetchTurnsParams):
    """The params with the members that 0.4 clients send: the number of turns, and the turn before which they are."""

    limit: NotRequired[int]
    before: NotRequired[str]


class _OldTurns(TypedDict):
    """The answer that 0.4 clients get."""

    turns: list[Turn]
    hasMore: bool


class _Completions(CompletionsResult):
    """The items, and in `_meta` how many more there are."""

    _meta: NotRequired[dict[str, int]]


_MAX_TURNS = 200
"""Turns in one page of fetchTurns: many screens full, and still a message of moderate size."""

_MAX_SESSIONS = 500
"""Sessions in one page when a client names only a cursor."""

_MAX_WALKS = 32
"""How many orders of the list of sessions are kept, for clients that read the list page by page."""

_LONGEST_LOGIN = 10**9
"""Seconds: thirty years. A token that is valid for longer is treated like one that expires then."""

_COMPLETIONS_PATIENCE = 1.0
"""Seconds for each source of completions: late completions are useless while somebody types."""


class _Walks:
    """Pages of the list of sessions, the newest first.

    All pages that a client reads have the order of its first page, so a session that changes meanwhile is not missed
    and does not come twice. Only the latest orders are kept. If the order of a cursor is not kept any more, the list
    continues after the time and URI that the cursor names.
    """

    def __init__(self) -> None:
        self._orders: dict[str, list[str]] = {}

    def page(self, items: list[SessionSummary], params: ListSessionsParams) -> ListSessionsResult:
        """One page of `items`. Without `limit` and `cursor` everything is one page."""
        limit, cursor = params.get("limit"), params.get("cursor")
        if limit is not None and limit < 1:
            raise InvalidParams("limit: must be at least 1")
        items, walk = sorted(items, key=_place, reverse=True), None
        if limit is None and cursor is None:
            return {"items": items}
        if cursor is not None:
            time, uri, walk = _read_cursor(cursor)
            rest = self._after(walk, uri, items)
            items = [item for item in items if _place(item) < (time, uri)] if rest is None else rest
        page = items[: limit or _MAX_SESSIONS]
        if len(page) == len(items):
            return {"items": page}
        return {"items": page, "nextCursor": _cursor(page[-1], walk or self._keep(items))}

    def _keep(self, items: list[SessionSummary]) -> str:
        """Remember an order, under a name that is computed from it."""
        order = [item["resource"] for item in items]
        name = sha256("\n".join(order).encode()).hexdigest()[:16]
        self._orders.pop(name, None)
        self._orders[name] = order
        if len(self._orders) > _MAX_WALKS:
            del self._orders[next(iter(self._orders))]
        return name

    def _after(self, walk: str, uri: str, items: list[SessionSummary]) -> list[SessionSummary] | None:
        """The sessions that still exist after a session in a kept order; None if the order is not kept any more."""
        order = self._orders.get(walk)
        if order is None or uri not in order:
            return None
        found = {item["resource"]: item for item in items}
        return [found[one] for one in order[order.index(uri) + 1 :] if one in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommands:
    """Serves the commands, with the parts of the host that they use."""

    sessions: Sessions
    clients: Clients
    turns: Turns
    agents: Agents
    catalogue: SessionCatalogue
    conversations: AgentConversations
    windows: TurnWindows
    store: Store
    kinds: ChannelKinds
    completions: Hooks[CompletionSource]
    settings: Hooks[SettingsSource]
    _walks: _Walks = field(default_factory=_Walks)

    def commands(self) -> Sequence[Command]:
        return (
            Command("listSessions", self._list_sessions, large=True),
            Command("createSession", self._create_session, ordered=True, changes=True),
            Command("disposeSession", self._dispose_session, ordered=True, changes=True),
            Command("createChat", self._create_chat, ordered=True, changes=True),
            Command("disposeChat", self._dispose_chat, ordered=True, changes=True),
            Command("moveChat", self._move_chat, ordered=True, changes=True),
            Command("fetchTurns", self._fetch_turns, large=True),
            Command("completions", self._completions, large=True),
            Command("resolveSessionConfig", self._resolve_session_config),
            Command("sessionConfigCompletions", self._session_config_completions),
            Command("authenticate", self._authenticate),
        )

    # -- sessions and chats ------------------------------------------------------------------------------------------

    async def _list_sessions(self, client: ConnectedClient, params: ListSessionsParams) -> ListSessionsResult:
        await self.conversations.look(start=params.get("_meta", {}).get(ASK_AGENTS) is True)
        await self.catalogue.read()
        return self._walks.page([*self.catalogue.summaries(), *self.conversations.summaries()], params)

    async def _create_session(self, client: ConnectedClient, params: CreateSessionParams) -> None:
        if "activeClient" in params:
            reason = check_active_client(None, client.client_id, params["activeClient"])
            if reason is not None:
                raise InvalidParams(f"activeClient: {reason}")
        await self.sessions.create(params, self._report(client, params.get("progressToken")))

    def _report(self, client: ConnectedClient, token: str | None) -> Report | None:
        """Reports progress to the connection that gave a progress token, and to no other."""
        if token is None:
            return None

        def report(step: Step) -> None:
            if self.clients.get(client.client_id) is client:
                client.notify("root/progress", {"channel": ROOT_URI, "progressToken": token, **step})

        return report

    async def _dispose_session(self, client: ConnectedClient, params: DisposeSessionParams) -> None:
        await self.sessions.dispose(params["channel"])

    async def _create_chat(self, client: ConnectedClient, params: CreateChatParams) -> None:
        message = params.get("initialMessage")
        async with self.store.reading(*(attached_chats(message) if message is not None else ())):
            await self.sessions.chats.create(params)

    async def _dispose_chat(self, client: ConnectedClient, params: DisposeChatParams) -> None:
        await self.sessions.chats.dispose(params["channel"])

    async def _move_chat(self, client: ConnectedClient, params: MoveChatParams) -> MoveChatResult:
        return await self.sessions.move_chat(params)

    async def _fetch_turns(self, client: Connection, params: _FetchTurnsParams) -> FetchTurnsResult | _OldTurns:
        async with self.store.reading(params["channel"]):
            return await self._fetch(client, params, self._chat(params["channel"]))

    async def _fetch(
        self, client: Connection, params: _FetchTurnsParams, chat: ChatState
    ) -> FetchTurnsResult | _OldTurns:
        if client.outlet.dialect.takes_windows:
            await self.windows.fetch(client, params["channel"], params.get("cursor"))
            return {}
        limit = params.get("limit", _MAX_TURNS)
        if limit < 1:
            raise InvalidParams("limit: must be at least 1")
        turns = chat["turns"]
        end = len(turns)
        if (before := params.get("before")) is not None:
            end = next((at for at, turn in enumerate(turns) if turn["id"] == before), -1)
            if end < 0:
                raise NotFound(f"before: the chat has no finished turn {before!r}")
        start = max(0, end - min(limit, _MAX_TURNS))
        return {"turns": turns[start:end], "hasMore": start > 0}

    async def _completions(self, client: ConnectedClient, params: CompletionsParams) -> _Completions:
        chat_uri, text, offset = params["channel"], params["text"], params["offset"]
        self._chat(chat_uri)
        if len(text) > MAX_TYPED:
            raise InvalidParams(f"text: has {len(text)} characters, completions are for at most {MAX_TYPED}")
        length = utf16_length(text)
        if not 0 <= offset <= length:
            raise InvalidParams(f"offset: {offset} is outside 0 to {length}, the text's length in UTF-16 code units")
        sources = (*self.completions, self._agent_completions)
        asked = (_patiently(source, chat_uri, text, offset) for source in sources)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        good = (answer for answer in answers if not isinstance(answer, BaseException))
        items = best_first(itertools.chain.from_iterable(good), text, offset)
        more = len(items) - MAX_COMPLETIONS
        found: _Completions = {"items": items[:MAX_COMPLETIONS]}
        return {**found, "_meta": {MORE: more}} if more > 0 else found

    async def _agent_completions(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        runner = self.turns.runner(chat_uri)
        return await runner.agent.completions(runner.chat, text, offset) if runner else ()

    def _chat(self, uri: str) -> ChatState:
        chat = cast("ChatState | None", self.store.committed(uri))
        if self.kinds.name_of(uri) != "chat" or chat is None:
            raise NotFound(f"there is no chat {uri}")
        return chat

    # -- agents ------------------------------------------------------------------------------------------------------

    async def _resolve_session_config(
        self, client: ConnectedClient, params: ResolveSessionConfigParams
    ) -> SessionConfigState:
        agent = self.agents.find(params.get("provider"))
        directory = await self.sessions.directories.find(_directory(params))
        return await resolve_config(agent, directory, params.get("config", {}), self.settings)

    async def _session_config_completions(
        self, client: ConnectedClient, params: SessionConfigCompletionsParams
    ) -> SessionConfigCompletionsResult:
        agent = self.agents.find(params.get("provider"))
        directory = await self.sessions.directories.find(_directory(params))
        items = await agent.config_completions(directory, params["property"], params.get("query", ""))
        return {"items": cast("list[SessionConfigValueItem]", list(items))}

    async def _authenticate(self, client: ConnectedClient, params: AuthenticateParams) -> AuthenticateResult:
        token = params["token"]
        if len(token) > MAX_TOKEN or not is_sendable(token):
            raise InvalidParams(f"token: at most {MAX_TOKEN} characters, all of them visible ones of ASCII")
        if "expiresIn" in params:
            seconds = params["expiresIn"]
            if seconds < 1 or seconds != int(seconds):
                raise InvalidParams("expiresIn: a whole number of seconds, 1 or more")
            params = {**params, "expiresIn": min(seconds, _LONGEST_LOGIN)}
        await self.agents.authenticate(client.client_id, params)
        return {}


async def _patiently(source: CompletionSource, chat: str, text: str, offset: int) -> Sequence[CompletionItem]:
    """Ask a source of completions, but not for long. The source is called only when this task runs, so nothing is left
    to cancel if the client disconnects before."""
    return await asyncio.wait_for(source(chat, text, offset), _COMPLETIONS_PATIENCE)


_place: Callable[[SessionSummary], tuple[str, str]] = itemgetter("modifiedAt", "resource")
"""The position of a session in the list, as a cursor names it."""


def _cursor(summary: SessionSummary, walk: str) -> str:
    return urlsafe_b64encode(encode([*_place(summary), walk])).decode()


def _read_cursor(cursor: str) -> tuple[str, str, str]:
    try:
        time, uri, walk = decode_json(urlsafe_b64decode(cursor[:MAX_URI_LENGTH].encode()))
        return str(time), str(uri), str(walk)
    except Exception:  # A client may send anything as a cursor.
        raise InvalidParams(f"cursor: {cursor[:200]!r} is not one that this host gave out") from None


def _directory(params: ResolveSessionConfigParams | SessionConfigCompletionsParams) -> str | None:
    """The directory of a new session, which clients give in one of two forms."""
    several: object = params.get("workingDirectories") or []  # Not in the protocol, so it was not validated.
    if not isinstance(several, list):
        raise InvalidParams("workingDirectories: expected a list of URIs")
    first: object = next(iter(cast("list[object]", several)), None)
    if not isinstance(first, str | None):
        raise InvalidParams("workingDirectories[0]: expected a URI")
    return params.get("workingDirectory") or first


__all__ = ["SessionCommands"]
