"""Makes and prepares the turns of all chats, passes applied actions to them, and opens chats for sub-agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ahpkit.dialects.base import SentAction
from ahpkit.dialects.generations import selected, selection_of
from ahpkit.host.agent import Agent, AgentChat, AgentError, Chat, McpServerOffer, SubChat, Turn
from ahpkit.host.agents import Agents
from ahpkit.host.clients.agent_extensions import AgentExtensions
from ahpkit.host.clients.clients import Clients
from ahpkit.host.feature import Values
from ahpkit.host.policy import check_agent
from ahpkit.host.registration import AnyApplied, ChatApplied, Registration, ToolSource, TurnHooks
from ahpkit.host.spine.delivery import Delivery
from ahpkit.host.spine.dispatcher import Dispatcher
from ahpkit.host.spine.session_index import SessionIndex, Unsettled, WaitingSelections
from ahpkit.host.spine.store import Origin, Store
from ahpkit.host.states import NO_CHAT, NO_SESSION
from ahpkit.host.tracing import Tracing
from ahpkit.host.turns.approvals import Approvals, CallGate
from ahpkit.host.turns.attached_chats import attached_chats, check_attached, pinned, written_out
from ahpkit.host.turns.chat import LiveChat
from ahpkit.host.turns.chat_summaries import ChatSummaries, InputNeeded
from ahpkit.host.turns.completions import AgentCommands
from ahpkit.host.turns.new_state import chat_entry, new_chat
from ahpkit.host.turns.runner import ChatRunner, RunnerPorts
from ahpkit.host.turns.session_tools import SessionTools, owner_key
from ahpkit.host.turns.turn import LiveTurn, TurnPorts, error_part
from ahpkit.protocol.chat.actions import (
    ChatPendingMessageSetAction,
    ChatTurnCancelledAction,
    ChatTurnStartedAction,
    chat_error,
    chat_turn_started,
)
from ahpkit.protocol.chat.state import ChatOrigin, ChatState, Message
from ahpkit.protocol.chat.turns import elapsed
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.common.state import ErrorInfo, JsonObject, ModelSelection
from ahpkit.protocol.errors import NotFound
from ahpkit.protocol.meta_keys import ELSEWHERE
from ahpkit.protocol.session.actions import session_chat_added, session_meta_changed
from ahpkit.protocol.session.state import SessionState
from ahpkit.tools.gate import Objection
from ahpkit.tools.registry import Tool
from ahpkit.tools.rules import Place
from ahpkit.wire.tasks import Tasks

_CUSTOMIZED = frozenset(
    {
        *("session/customizationsChanged", "session/customizationUpdated", "session/customizationToggled"),
        *("session/customizationRemoved", "session/ready"),
    }
)
"""Actions that may remove the selected custom agent."""

_MessageAction = ChatTurnStartedAction | ChatPendingMessageSetAction

SENDING = ("chat/turnStarted", "chat/pendingMessageSet")  # The actions that carry messages.

INTERRUPTED = "The host stopped while this turn was running. Unfinished work was not done."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPorts:
    """What turns need from the host."""

    store: Store
    values: Values
    dispatcher: Dispatcher
    index: SessionIndex
    unsettled: Unsettled
    waiting: WaitingSelections
    clients: Clients
    delivery: Delivery
    hooks: TurnHooks
    tasks: Tasks
    tracing: Tracing
    agents: Agents
    extensions: AgentExtensions
    commands: AgentCommands
    approvals: Approvals
    tools: SessionTools
    default_directory: Path
    new_id: Callable[[], str]
    now: Callable[[], int]


class Turns:
    """Runs the turns of all chats."""

    def __init__(self, ports: TurnsPorts) -> None:
        self._ports = ports
        self._dispatch = ports.dispatcher.apply
        self._summaries = ChatSummaries(
            ports.index, ports.store, ports.dispatcher.apply, ports.dispatcher.before_storing
        )
        self._input_needed = InputNeeded(ports.index, ports.unsettled.uris, ports.store, ports.dispatcher.apply)
        self._runners: dict[str, ChatRunner] = {}
        self._subturns: dict[str, LiveTurn] = {}

    def register(self, host: Registration) -> None:
        host.actions.refuse(self._refuse, *SENDING)
        for action_type in SENDING:
            host.actions.amend(action_type, self._with_pinned_chats)
        host.actions.amend("chat/turnStarted", self._with_model)
        host.actions.amend("chat/turnStarted", self._with_start)
        host.actions.amend("chat/turnCancelled", self._with_duration)
        host.actions.listen(self._deselect, *_CUSTOMIZED)
        host.actions.listen(self._chat_changed, "chat/")
        host.actions.listen(self._configured, "session/metaChanged", "session/configChanged")
        host.actions.listen(self._summaries.chat_added, "session/chatAdded")
        host.actions.listen(self._summaries.named, "session/chatRemoved", "session/titleChanged")
        host.actions.listen(self._summaries.chat_changed, "chat/")
        host.actions.listen(
            self._summaries.chats_changed,
            *("session/chatAdded", "session/chatUpdated", "session/chatRemoved", "session/defaultChatChanged"),
        )
        host.actions.not_stored.add(self._not_stored)
        host.actions.not_stored.add(self._summaries.not_stored)
        host.actions.listen(self._input_needed.on_applied, "session/chatRemoved", "chat/")
        host.actions.listen(self._ports.tools.on_applied, "session/activeClient")
        host.sessions.disposed.add(self._ports.tools.forget)
        host.sessions.disposed.add(self._refuse_waiting)
        host.sessions.rested.add(self._ports.tools.forget)
        host.recover.add(self._end_interrupted)
        host.recover.add(self._input_needed.recover)

    # -- chats -----------------------------------------------------------------------------------------------------

    def live_chat(self, uri: str, session_uri: str) -> LiveChat:
        ports = self._ports
        return LiveChat(
            uri,
            session_uri,
            states=ports.store,
            values=ports.values,
            dispatch=self._dispatch,
            subscribers=ports.clients.subscribers,
            default_directory=ports.default_directory,
            extensions=ports.extensions,
            commands=ports.commands,
            servers=self._agent_servers,
            activity=self._summaries.activity,
        )

    async def _agent_servers(self, chat: Chat) -> list[McpServerOffer]:
        offered = [await servers(chat) for servers in self._ports.hooks.servers]
        return [server for servers in offered for server in servers]

    def add_chat(
        self, uri: str, session_uri: str, agent: Agent, session_ready: Callable[[], Awaitable[None]]
    ) -> ChatRunner:
        """Begin to run the turns of a chat."""
        ports = RunnerPorts(
            tasks=self._ports.tasks,
            tracing=self._ports.tracing,
            new_id=self._ports.new_id,
            dispatch=self._dispatch,
            now=self._ports.now,
            make_turn=self._make_turn,
            prepare_turn=self._prepare_turn,
            before_end=self._before_end,
            turn_over=self._turn_over,
            login_needed=self._ports.agents.login_needed,
        )
        runner = ChatRunner(self.live_chat(uri, session_uri), agent, ports, session_ready)
        self._runners[uri] = runner
        self._ports.index.add_chat(uri, session_uri)
        return runner

    def remove_chat(self, uri: str) -> None:
        self._runners.pop(uri, None)
        self._ports.index.remove_chat(uri)

    def rest_chat(self, uri: str) -> None:
        """Forget a chat whose session goes to rest. `add_chat` makes its turns run again."""
        self._runners.pop(uri, None)

    def runner(self, chat_uri: str) -> ChatRunner | None:
        return self._runners.get(chat_uri)

    async def open_agent(self, channel: str) -> AgentChat | None:
        """The agent's side of a chat, or of a session's default chat."""
        default = (self._ports.store.session(channel) or NO_SESSION).get("defaultChat", "")
        runner = self._runners.get(channel) or self._runners.get(default)
        return None if runner is None else await runner.open()

    def running_turn(self, chat_uri: str) -> LiveTurn | None:
        """The turn that runs in a chat."""
        runner = self._runners.get(chat_uri)
        return runner.turn if runner is not None else self._subturns.get(chat_uri)

    def sampling(self, session_uri: str) -> JsonObject | None:
        runner = self._main_runner(session_uri)
        return None if runner is None else runner.agent.sampling

    async def sample(self, session_uri: str, request: JsonObject) -> JsonObject:
        runner = self._main_runner(session_uri)
        if runner is None or runner.agent.sampling is None:
            raise AgentError("the agent of this session does not answer sampling requests")
        return await runner.agent.sample(runner.chat, request)

    async def check_call(self, session_uri: str, tool: Tool, tool_input: str, client_id: str) -> str | None:
        runner = self._main_runner(session_uri)
        if runner is None:
            return "the session has no chat"
        gate, owner = self._gate(runner.chat), owner_key(tool, None)
        return await gate.refusal(tool.own_name, tool_input, owner, title=tool.name, client_id=client_id)

    def _main_runner(self, session_uri: str) -> ChatRunner | None:
        """The runner of a session's default chat; if it has none, that of the first chat with a runner."""
        state = self._ports.store.session(session_uri) or NO_SESSION
        chats = [state.get("defaultChat"), *self._ports.index.chats(session_uri)]
        return next((self._runners[uri] for uri in chats if uri in self._runners), None)

    async def send(self, uri: str, action: _MessageAction, origin: Origin, sent: SentAction) -> str | None:
        """Dispatch a client's message. Attached chats of sessions that rest are read first, piece by piece."""
        async with self._ports.store.reading(*attached_chats(action["message"])):
            return self._ports.dispatcher.dispatch(uri, action, origin, sent=sent)

    def _refuse(self, client_id: str, uri: str, action: _MessageAction, state: ChatState) -> str | None:
        return check_attached(action["message"], self._ports.store)

    def _with_pinned_chats(self, uri: str, action: _MessageAction) -> _MessageAction:
        message = pinned(action["message"], self._ports.store)
        return action if message is action["message"] else cast("_MessageAction", {**action, "message": message})

    def _with_model(self, uri: str, action: ChatTurnStartedAction) -> ChatTurnStartedAction:
        """Add the model and the agent to a message that does not name them: those that will answer it."""
        runner = self._runners.get(uri)
        if runner is None:
            return action
        message, agent = action["message"].copy(), runner.chat.agent
        model: ModelSelection | None = runner.chat.model
        if model is None and runner.default_model is not None:
            model = {"id": runner.default_model}
        if model is not None:
            message.setdefault("model", model)
        if agent is not None:
            message.setdefault("agent", agent)
        return {**action, "message": message}

    def _with_start(self, uri: str, action: ChatTurnStartedAction) -> ChatTurnStartedAction:
        """Set the start of a turn to the host's present time. Clocks of clients may be wrong, and reducers compute with
        this time."""
        return {**action, "startedAt": iso_time(self._ports.now())}

    def _with_duration(self, uri: str, action: ChatTurnCancelledAction) -> ChatTurnCancelledAction:
        """Set the duration of a turn that a client cancels by the host's clock, because this clock also gave the
        start."""
        return {**action, "duration": elapsed(self._ports.store.chat(uri), self._ports.now())}

    # -- making turns ----------------------------------------------------------------------------------------------

    def _make_turn(self, chat: LiveChat, turn_id: str, message: Message, resumed: bool = False) -> LiveTurn:
        ports = TurnPorts(
            tracing=self._ports.tracing,
            dispatch=lambda action: self._dispatch(chat.uri, action),
            chat_state=lambda: self._ports.store.chat(chat.uri),
            activity=lambda text: self._summaries.activity(chat, text),
            store_content=lambda data, kind: self.store_content(chat.session_uri, data, kind),
            tool=lambda name: self._tool(chat.session_uri, name),
            gone=lambda: self._ports.tools.registry(chat.session_uri).gone(),
            gate=self._gate(chat),
            subchat=self._open_subchat,
            before_call=lambda turn_id, call_id: self._before_call(chat, turn_id, call_id),
            writing=lambda turn_id, path: [enter(chat, turn_id, path) for enter in self._ports.hooks.writing],
            room=lambda: self._room(chat.uri),
            now=self._ports.now,
        )
        return LiveTurn(chat, ports, id=turn_id, message=message, resumed=resumed)

    async def _room(self, uri: str) -> None:
        await self._ports.delivery.flush()
        await self._ports.clients.drained(uri)

    def _tool(self, session_uri: str, name: str) -> tuple[Tool, ToolSource] | None:
        tool = self._ports.tools.registry(session_uri).find(name)
        source = None if tool is None else self._ports.tools.source(session_uri, tool)
        return None if tool is None or source is None else (tool, source)

    def _gate(self, chat: LiveChat) -> CallGate:
        def place() -> Place:
            return Place(chat=chat.uri, session=chat.session_uri, workspace=chat.workspace)

        provider = chat.session.get("provider", "")
        policy = self._ports.agents.of_session(provider).permissions
        return CallGate(
            self._ports.approvals,
            lambda name, given, owner: self._guard(chat, name, given, owner),
            place=place,
            provider=provider,
            new_id=self._ports.new_id,
            now=self._ports.now,
            setting=None if policy == "ask" else policy == "allow",
        )

    async def _guard(self, chat: LiveChat, name: str, tool_input: str, owner: str | None) -> Objection | None:
        """The first denial of a guard, or else the first objection that leaves the decision to a person."""
        doubt: Objection | None = None
        for guard in self._ports.hooks.guard_tool:
            objection = await guard(chat, name, tool_input, owner)
            if objection is not None and not objection.asks:
                return objection
            doubt = doubt or objection
        return doubt

    def store_content(self, session_uri: str, data: bytes, content_type: str) -> str:
        """Store content that an agent produced; returns its URI."""
        store = self._ports.hooks.content.provided
        if store is None:
            raise NotFound("this host does not store content")
        return store(session_uri, data, content_type)

    async def _prepare_turn(self, turn: LiveTurn) -> None:
        hooks = self._ports.hooks
        async with self._ports.store.reading(*attached_chats(turn.message)):
            turn.message = written_out(turn.message, self._ports.store)
        for prepare in hooks.prepare:
            turn.prompt = await prepare(turn.chat, turn.message, turn.prompt, turn.context)
        turn.prompt = _about_selection(turn) + turn.prompt
        canvases = hooks.canvases.provided
        turn.canvas = canvases(turn.chat) if canvases is not None else None
        self._follow_tools(turn)
        if (about := _about_folder(turn, self._ports.store.session(turn.chat.session_uri) or NO_SESSION)) is not None:
            turn.notice(about)

    async def _before_end(self, turn: LiveTurn) -> None:
        for before_end in self._ports.hooks.before_end:
            await before_end(turn.chat, turn.id)

    async def _before_call(self, chat: LiveChat, turn_id: str, call_id: str) -> None:
        for before_call in self._ports.hooks.before_call:
            await before_call(chat, turn_id, call_id)

    def _follow_tools(self, turn: LiveTurn) -> None:
        """Keep the tools of a running turn up to date."""
        tools, session_uri = self._ports.tools, turn.chat.session_uri

        def take() -> None:
            turn.context.tools[:] = tools.for_model(session_uri)
            turn.context.listed[:] = tools.listed(session_uri)
            turn.context.gone[:] = [tool.definition for tool in tools.registry(session_uri).gone()]

        take()
        turn.on_end(tools.follow(session_uri, take))

    def _turn_over(self, chat: LiveChat) -> None:
        self._summaries.activity(chat, None)
        self._apply_waiting(chat.session_uri)

    def _apply_waiting(self, session_uri: str) -> None:
        """Apply selections that waited for a turn, unless they have become invalid."""
        for selection in self._ports.waiting.take_due(session_uri):
            action, origin, sent = selection.again(self._ports.store.session(session_uri) or NO_SESSION)
            reason = self._ports.dispatcher.check(session_uri, action, origin.client_id)
            if reason is None:
                self._ports.dispatcher.apply_checked(session_uri, action, origin)
            else:
                self._ports.clients.reject(session_uri, sent, origin, reason)

    def _refuse_waiting(self, session_uri: str) -> None:
        """A session is gone: refuse the selections that waited in it."""
        for _, origin, sent in self._ports.waiting.take_all(session_uri):
            reason = f"the session {session_uri} was disposed of before this could be applied"
            self._ports.clients.reject(session_uri, sent, origin, reason)

    # -- applied actions -------------------------------------------------------------------------------------------

    def _chat_changed(self, applied: ChatApplied) -> None:
        if (runner := self._runners.get(applied.channel)) is not None:
            runner.on_applied(applied)
        elif (turn := self._subturns.get(applied.channel)) is not None:
            turn.on_applied(applied.action, applied.before, applied.client_id)
            turn.over = not applied.after.get("activeTurn")

    def _not_stored(self, channel: str) -> None:
        if (runner := self._runners.get(channel)) is not None:
            runner.not_stored()

    def _configured(self, applied: AnyApplied) -> None:
        """The selection or configuration of a session changed: configure its agents again."""
        is_selection = applied.action["type"] == "session/metaChanged"
        if is_selection and selection_of(applied.before) == selection_of(applied.after):
            return
        for chat in self._ports.index.chats(applied.channel):
            if (runner := self._runners.get(chat)) is not None:
                self._ports.tasks.spawn(runner.configure(), name="configure")

    def _deselect(self, applied: AnyApplied) -> None:
        """Deselect a custom agent that is gone or switched off. While customizations are still being read it stays
        selected, because one of them may contain it."""
        session_uri = applied.channel
        state = self._ports.store.session(session_uri)
        chosen = selection_of(state).get("agent")
        if state is None or chosen is None or state["lifecycle"] != "ready":
            return
        if any(one.get("load", {}).get("kind") == "loading" for one in state.get("customizations", ())):
            return
        if check_agent(state, chosen["uri"]) is not None:
            self._dispatch(session_uri, session_meta_changed(meta=selected(state, "agent", None)))

    def _end_interrupted(self) -> None:
        """End each turn that ran when the host stopped, with an error that says so.

        That cancels its open tool calls: a call that waited for approval is shown as not run.
        """
        for uri in self._ports.unsettled.uris():
            turn = (self._ports.store.chat(uri) or NO_CHAT).get("activeTurn")
            if turn is not None:
                error: ErrorInfo = {"errorType": "host/interrupted", "message": INTERRUPTED}
                duration = elapsed(self._ports.store.chat(uri), self._ports.now())
                part = error_part(error, resumable=self._resumes(uri))
                self._dispatch(uri, chat_error(turn_id=turn["id"], duration=duration, part=part))
        for uri in self._ports.unsettled.uris():
            self._summaries.nothing_runs(uri)

    def _resumes(self, chat_uri: str) -> bool:
        """Whether the agent of a chat can continue an interrupted turn. A sub-agent cannot."""
        origin = (self._ports.store.chat(chat_uri) or NO_CHAT).get("origin")
        session = self._ports.store.session(self._ports.index.session_of(chat_uri))
        if session is None or (origin is not None and origin["kind"] == "tool"):
            return False
        return self._ports.agents.of_session(session["provider"]).resumes

    # -- sub-agents ------------------------------------------------------------------------------------------------

    async def _open_subchat(self, parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
        """Open a read-only chat of the same session for a sub-agent, and begin its only turn."""
        session_uri, uri = parent.chat.session_uri, f"ahp-chat:/{self._ports.new_id()}"
        if session_uri not in self._ports.index:
            raise AgentError(f"The session {session_uri} is gone.", error_type="host")
        origin: ChatOrigin = {"kind": "tool", "chat": parent.chat.uri, "toolCallId": tool_call_id or parent.id}
        state = new_chat(uri, title=title, now=self._ports.now(), origin=origin, interactivity="read-only")
        self._ports.store.open(uri, state, kind="chat")
        self._ports.index.add_chat(uri, session_uri)
        self._dispatch(session_uri, session_chat_added(summary=chat_entry(state)))
        message: Message = {"text": prompt, "origin": {"kind": "agent"}}
        turn = self._make_turn(self.live_chat(uri, session_uri), self._ports.new_id(), message)
        turn.context, turn.trace = parent.context, parent.trace
        self._subturns[uri] = turn
        started_at = iso_time(self._ports.now())
        self._dispatch(uri, chat_turn_started(turn_id=turn.id, started_at=started_at, message=message))
        return LiveSubChat(turn, on_closed=lambda: self._subturns.pop(uri, None))


def _about_selection(turn: LiveTurn) -> str:
    """The words that a side chat is about, quoted for its first message; empty for other chats and messages."""
    chat = turn.chat_state or NO_CHAT
    origin = chat.get("origin")
    if origin is None or origin["kind"] != "sideChat" or chat["turns"]:
        return ""
    selection = origin.get("selection")
    if selection is None:
        return ""
    quoted = "\n".join(f"> {line}" for line in str(selection["text"]).splitlines())
    return f"About these words:\n\n{quoted}\n\n"


def _about_folder(turn: LiveTurn, session: SessionState) -> str | None:
    """A note for the first turn of a session that does not work in the folder that its client shows; otherwise None."""
    meta = session.get("_meta") or {}
    asked: str | None = meta.get(ELSEWHERE)
    if asked is None or (turn.chat_state or NO_CHAT)["turns"]:
        return None
    return f"{asked} is not on the host's machine. This session works in {turn.chat.working_directory} there."


class LiveSubChat:
    """A sub-agent's chat. Implements `ahpkit.host.agent.SubChat`."""

    def __init__(self, turn: LiveTurn, *, on_closed: Callable[[], object]) -> None:
        self.turn: Turn = turn
        self._live = turn
        self.uri = turn.chat.uri
        self._on_closed = on_closed

    async def __aenter__(self) -> Turn:
        return self.turn

    async def __aexit__(self, *exc: object) -> None:
        error = exc[1]
        if error is None:
            self._live.complete()
        elif isinstance(error, Exception):
            message = error.message if isinstance(error, AgentError) else "The sub-agent failed."
            self._live.fail({"errorType": "agent", "message": message})
        else:
            self._live.cancel()
        self._live.end()
        self._on_closed()


__all__ = ["SENDING", "LiveSubChat", "Turns", "TurnsPorts"]
