"""Sessions and their chats: creating, forking, restoring, disposing, and who runs their turns. Knows no connection.

A session is created in the background: its channel exists at once with lifecycle `creating`; features prepare it and
the agent opens its default chat; then it is `ready`, or `creationFailed` with a reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ahpkit.host.agent import Agent, AgentError, AgentSession, LoginNeeded, SubChat
from ahpkit.host.history import ToldHistory
from ahpkit.host.live_chat import LiveChat, path_of
from ahpkit.host.missing_agent import MissingAgent
from ahpkit.host.new_state import NO_CONFIG, kept_session, new_chat, new_session, turns_until
from ahpkit.host.policy import check_agent, check_model
from ahpkit.host.runner import ChatRunner
from ahpkit.host.session_config import initial_config
from ahpkit.host.store import Origin
from ahpkit.host.titles import DEFAULT_TITLE
from ahpkit.host.turn import LiveTurn
from ahpkit.protocol.channels import ROOT_URI, channel_of
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import (
    AlreadyExists,
    AuthRequired,
    InvalidParams,
    NotFound,
    ProviderNotFound,
    SessionAlreadyExists,
    SessionNotFound,
)
from ahpkit.protocol.session.summary import chat_summary

if TYPE_CHECKING:
    from ahpkit.host.host import Host

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Session:
    agent: Agent
    ready: asyncio.Future[None]
    chats: dict[str, ChatRunner] = field(default_factory=dict[str, ChatRunner])
    deferred: list[tuple[JsonObject, Origin]] = field(default_factory=list[tuple[JsonObject, Origin]])


class Sessions:
    """All sessions of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sessions: dict[str, _Session] = {}
        self._session_of: dict[str, str] = {}

    def uris(self) -> list[str]:
        return list(self._sessions)

    def session_of(self, chat_uri: str) -> str | None:
        return self._session_of.get(chat_uri)

    def runner(self, chat_uri: str) -> ChatRunner | None:
        session = self._sessions.get(self._session_of.get(chat_uri, ""))
        return session.chats.get(chat_uri) if session else None

    def runners(self, session_uri: str) -> Iterable[ChatRunner]:
        session = self._sessions.get(session_uri)
        return list(session.chats.values()) if session else []

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(self, params: Mapping[str, Any]) -> None:
        """`createSession`: the channel exists when this returns; the rest happens in the background."""
        uri: str = params["channel"]
        self._check_new(uri)
        source = self._fork_source(params["fork"]) if "fork" in params else None
        agent = self._agent_for(params, source)
        self._check_model(agent, params.get("model"))
        self._check_authenticated(agent)
        directory = params.get("workingDirectory")
        path = await self._host.checked_directory(directory)
        config = await initial_config(agent, path, dict(params.get("config") or {}))
        self._check_new(uri)  # Again: somebody else may have been faster while we waited.
        project = {"uri": directory, "displayName": path.name} if directory else None
        state = new_session(params, provider=agent.provider, project=project, config=config, now=self._host.now())
        if source is not None:
            state["summary"]["title"] = source[0]["summary"]["title"]
        self._open_session(uri, agent, state)
        self._add_default_chat(uri, params, source)
        self._count_changed()
        self._host.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"create {uri}")

    def _check_new(self, uri: str) -> None:
        channel = channel_of(uri)
        if channel is None or channel.name != "session":
            raise InvalidParams(f"channel: {uri[:200]!r} is not a session URI; use ahp-session:/<id>")
        if self._host.store.taken(uri):
            raise SessionAlreadyExists(f"the session {uri} exists already")

    def _agent_for(self, params: Mapping[str, Any], source: tuple[JsonObject, JsonObject, Any] | None) -> Agent:
        default = source[0]["summary"]["provider"] if source else self._host.default_provider
        provider = params.get("provider") or default
        agent = self._host.agents.get(provider or "")
        if agent is None:
            known = ", ".join(self._host.agents) or "none"
            raise ProviderNotFound(f"there is no agent provider {provider!r}; known: {known}")
        return agent

    def _check_model(self, agent: Agent, model: JsonObject | None) -> None:
        if model is not None and (reason := check_model(self._host.state(ROOT_URI), agent.provider, model["id"])):
            raise InvalidParams(f"model: {reason}")

    def _check_authenticated(self, agent: Agent) -> None:
        wanted = [one for one in agent.protected_resources if one.get("required", True)]
        missing = [one for one in wanted if one["resource"] not in self._host.authenticated]
        if missing:
            raise AuthRequired([dict(one) for one in missing])

    def _fork_source(self, fork: JsonObject) -> tuple[JsonObject, JsonObject, list[JsonObject]]:
        session = self._host.state(fork["session"])
        if session is None:
            raise SessionNotFound(f"there is no session {fork['session']} to fork")
        for summary in session["chats"]:
            chat = self._host.state(summary["resource"])
            turns = turns_until(chat, fork["turnId"]) if chat else None
            if chat is not None and turns is not None:
                return session, chat, turns
        raise NotFound(f"fork.turnId: the session has no finished turn {fork['turnId']!r}")

    def _open_session(self, uri: str, agent: Agent, state: JsonObject) -> None:
        self._host.open_channel(uri, state)
        self._host.open_channel(f"{uri}/annotations", {"annotations": []})
        self._sessions[uri] = _Session(agent, asyncio.get_running_loop().create_future())

    def _add_default_chat(self, uri: str, params: Mapping[str, Any], source: Any) -> None:
        chat_uri = f"ahp-chat:/{self._host.new_id()}"
        title, origin, turns = DEFAULT_TITLE, None, None
        if source is not None:
            title, turns = source[1]["title"], source[2]
            origin = {"kind": "fork", "chat": source[1]["resource"], "turnId": params["fork"]["turnId"]}
        state = new_chat(chat_uri, title=title, now=self._host.now(), origin=origin, turns=turns)
        self._open_chat(uri, state)
        self._host.dispatch(uri, {"type": "session/defaultChatChanged", "defaultChat": chat_uri})
        if "activeClient" in params:
            action = {"type": "session/activeClientChanged", "activeClient": params["activeClient"]}
            self._host.dispatch(uri, action)

    async def _finish_creating(self, uri: str, session: _Session) -> None:
        failure: Exception | None = None
        try:
            await self._prepare(uri, session)
        except Exception as error:
            failure = error
        if self._sessions.get(uri) is not session:
            await self._close_runners(session)  # Disposed of meanwhile; an agent may have opened since.
        elif failure is not None:
            self._creation_failed(uri, session, failure)
        else:
            self._host.dispatch(uri, {"type": "session/ready"})
            session.ready.set_result(None)

    async def _prepare(self, uri: str, session: _Session) -> None:
        directory = (self._host.state(uri) or {})["summary"].get("workingDirectory")
        if directory is not None and not await asyncio.to_thread(path_of(directory, Path()).is_dir):
            raise AgentError(f"the working directory {directory} does not exist", error_type="host/working-directory")
        for feature in self._host.features:
            await feature.prepare_session(uri)
        if not session.chats:
            await self._recall(uri, session)
        self._check_agent(uri)
        for runner in list(session.chats.values()):
            await runner.open()

    def _check_agent(self, uri: str) -> None:
        """The custom agent chosen at creation: known only now that the customizations are."""
        state = self._host.state(uri) or {}
        chosen: JsonObject | None = state["summary"].get("agent")
        if chosen is not None and (reason := check_agent(state, chosen["uri"])) is not None:
            raise AgentError(reason, error_type="host/agent")

    def _creation_failed(self, uri: str, session: _Session, error: Exception) -> None:
        if not isinstance(error, AgentError):
            _log.error("creating %s failed", uri, exc_info=error)
            error = AgentError("The session could not be created. The host's log has the details.", error_type="host")
        self._host.dispatch(uri, {"type": "session/creationFailed", "error": error.info()})
        if isinstance(error, LoginNeeded):
            self._host.login_needed(session.agent, uri)
        session.ready.set_exception(AgentError(f"The session was not created: {error.message}", error_type="host"))
        session.ready.exception()

    def import_session(self, document: JsonObject) -> str:
        """A new session with the content of an exported one; its URI."""
        uri = f"ahp-session:/{self._host.new_id()}"
        provider = document["provider"] if document["provider"] in self._host.agents else None
        agent = self._agent_for({"provider": provider} if provider else {}, None)
        state = new_session(
            {"channel": uri}, provider=agent.provider, project=None, config=NO_CONFIG, now=self._host.now()
        )
        state["summary"]["title"] = document["title"]
        self._open_session(uri, agent, state)
        for chat in document["chats"]:
            chat_uri = f"ahp-chat:/{self._host.new_id()}"
            self._open_chat(uri, new_chat(chat_uri, title=chat["title"], now=self._host.now(), turns=chat["turns"]))
        if not document["chats"]:
            self._add_default_chat(uri, {}, None)
        self._count_changed()
        self._host.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"import {uri}")
        return uri

    def adopt(self, uri: str, agent: Agent, kept: AgentSession) -> None:
        """Make a conversation that an agent keeps a session: its chat comes when the agent has told the history."""
        self._open_session(uri, agent, kept_session(uri, agent.provider, kept))
        self._count_changed()
        self._host.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"adopt {uri}")

    async def _recall(self, uri: str, session: _Session) -> None:
        memory = self._host.agent_sessions.to_recall(uri)
        chat = self.live_chat(f"ahp-chat:/{self._host.new_id()}", uri)
        history = ToldHistory(chat, self._host)
        await session.agent.recall(chat, memory, history)
        if self._sessions.get(uri) is not session:
            return  # Disposed of meanwhile.
        chat.remember(memory)
        self._host.agent_sessions.recalled(uri)
        title = chat.session["summary"]["title"]
        self._open_chat(uri, new_chat(chat.uri, title=title, now=self._host.now(), turns=history.turns()))
        self._host.dispatch(uri, {"type": "session/defaultChatChanged", "defaultChat": chat.uri})

    # -- chats ---------------------------------------------------------------------------------------------------

    def create_chat(self, params: Mapping[str, Any]) -> None:
        """`createChat`: a further chat of a session, empty or forked, with its first message if there is one."""
        uri, session_uri = params["chat"], params["channel"]
        channel = channel_of(uri)
        if channel is None or channel.name != "chat":
            raise InvalidParams(f"chat: {uri[:200]!r} is not a chat URI; use ahp-chat:/<id>")
        if session_uri not in self._sessions:
            raise SessionNotFound(f"there is no session {session_uri}")
        if self._host.store.taken(uri):
            raise AlreadyExists(f"the chat {uri} exists already")
        self._check_model(self._sessions[session_uri].agent, params.get("model"))
        chosen: JsonObject | None = params.get("agent")
        if chosen is not None and (reason := check_agent(self._host.state(session_uri) or {}, chosen["uri"])):
            raise InvalidParams(f"agent: {reason}")
        origin, turns, title = self._chat_source(params.get("source"))
        state = new_chat(
            uri,
            title=title,
            now=self._host.now(),
            origin=origin,
            turns=turns,
            model=params.get("model"),
            agent=params.get("agent"),
        )
        self._open_chat(session_uri, state)
        if "initialMessage" in params:
            action = {"type": "chat/turnStarted", "turnId": self._host.new_id(), "message": params["initialMessage"]}
            self._host.dispatch(uri, action)

    def _chat_source(self, source: JsonObject | None) -> tuple[JsonObject | None, list[JsonObject] | None, str]:
        if source is None:
            return None, None, "New chat"
        chat = self._host.state(source["chat"])
        turns = turns_until(chat, source["turnId"]) if chat else None
        if chat is None or turns is None:
            raise NotFound(f"source: there is no finished turn {source['turnId']!r} in {source['chat']}")
        return {"kind": "fork", "chat": source["chat"], "turnId": source["turnId"]}, turns, chat["title"]

    def _open_chat(self, session_uri: str, state: JsonObject) -> ChatRunner:
        uri = state["resource"]
        self._host.open_channel(uri, state)
        runner = self._add_runner(session_uri, uri)
        self._host.dispatch(session_uri, {"type": "session/chatAdded", "summary": chat_summary(state)})
        return runner

    def _add_runner(self, session_uri: str, uri: str) -> ChatRunner:
        session = self._sessions[session_uri]
        chat = self.live_chat(uri, session_uri)
        runner = ChatRunner(chat, session.agent, self._host, lambda: asyncio.shield(session.ready))
        session.chats[uri] = runner
        self._session_of[uri] = session_uri
        return runner

    def live_chat(self, uri: str, session_uri: str) -> LiveChat:
        return LiveChat(
            uri,
            session_uri,
            self._host,
            default_directory=self._host.default_directory,
            extensions=self._host.extensions,
            commands=self._host.commands_board,
        )

    async def dispose_chat(self, uri: str) -> None:
        """`disposeChat`: a session keeps at least one chat."""
        session_uri = self._session_of.get(uri)
        if session_uri is None:
            raise NotFound(f"there is no chat {uri}")
        session = self._sessions[session_uri]
        if len(session.chats) == 1:
            raise InvalidParams("channel: the last chat of a session cannot be disposed; dispose the session instead")
        if (self._host.state(session_uri) or {}).get("defaultChat") == uri:
            self._host.dispatch(session_uri, {"type": "session/defaultChatChanged"})
        self._host.dispatch(session_uri, {"type": "session/chatRemoved", "chat": uri})
        runner = session.chats.pop(uri)
        runner.chat.clear_meta()
        self._close_chat(uri, runner)
        await runner.dispose()

    def _close_chat(self, uri: str, runner: ChatRunner | None) -> None:
        del self._session_of[uri]
        if runner is not None:
            if runner.turn is not None:
                runner.turn.end()
            if runner.chat.memory:
                self._host.agent_sessions.hide(runner.agent.provider, runner.chat.memory)
            runner.chat.forget()
        self._host.close_channel(uri)

    async def subchat(self, parent: LiveTurn, title: str, prompt: str, tool_call_id: str | None) -> SubChat:
        """A read-only chat of the same session for a sub-agent, with its turn begun."""
        uri = f"ahp-chat:/{self._host.new_id()}"
        origin = {"kind": "tool", "chat": parent.chat.uri, "toolCallId": tool_call_id or parent.id}
        state = new_chat(uri, title=title, now=self._host.now(), origin=origin, interactivity="read-only")
        session_uri = parent.chat.session_uri
        self._host.open_channel(uri, state)
        self._session_of[uri] = session_uri
        self._host.dispatch(session_uri, {"type": "session/chatAdded", "summary": chat_summary(state)})
        return await self._host.begin_subchat(parent, uri, session_uri, prompt)

    # -- ending --------------------------------------------------------------------------------------------------

    async def dispose(self, uri: str) -> None:
        """`disposeSession`: the session, its chats and what agents and features hold for it are gone."""
        session = self._sessions.pop(uri, None)
        if session is None and self._host.agent_sessions.dismiss(uri):
            return
        if session is None:
            raise SessionNotFound(f"there is no session {uri}")
        self._host.agent_sessions.disposed(uri, session.agent.provider)
        self._host.tell_features(lambda feature: feature.on_session_disposed(uri))
        for chat in [chat for chat, owner in self._session_of.items() if owner == uri]:
            self._close_chat(chat, session.chats.get(chat))
        self._host.close_channel(f"{uri}/annotations")
        self._host.close_channel(uri)
        self._count_changed()
        for action, origin in session.deferred:
            self._host.reject(uri, action, origin, f"the session {uri} was disposed of before this could be applied")
        await self._close_runners(session)

    @staticmethod
    async def _close_runners(session: _Session) -> None:
        for runner in session.chats.values():
            await runner.dispose()

    async def aclose(self) -> None:
        """The host stops: running turns end with an error that says so."""
        reason = "The host was stopped while this turn was running."
        runners = [runner for session in self._sessions.values() for runner in session.chats.values()]
        await asyncio.gather(*(runner.aclose(reason) for runner in runners), return_exceptions=True)

    def _count_changed(self) -> None:
        action = {"type": "root/activeSessionsChanged", "activeSessions": len(self._sessions)}
        self._host.dispatch(ROOT_URI, action)

    # -- restoring -----------------------------------------------------------------------------------------------

    def restore(self, uri: str) -> None:
        """Take a session of an earlier run back into service."""
        state = self._host.state(uri) or {}
        provider = state["summary"]["provider"]
        agent = self._host.agents.get(provider) or MissingAgent(provider)
        session = _Session(agent, asyncio.get_running_loop().create_future())
        self._sessions[uri] = session
        for summary in state["chats"]:
            if self._host.state(summary["resource"]) is not None:
                self._session_of[summary["resource"]] = uri
                if summary.get("origin", {}).get("kind") != "tool":
                    self._add_runner(uri, summary["resource"])
        self._host.catalogue.restore(uri)

    def resume(self, uri: str) -> None:
        """Finish what the crash interrupted: a half-created session is created again, others are prepared anew."""
        session = self._sessions[uri]
        state = self._host.state(uri) or {}
        if state["lifecycle"] == "creating":
            self._host.spawn(self._finish_creating(uri, self._sessions[uri]), name=f"create {uri}")
        elif state["lifecycle"] == "creationFailed":
            session.ready.set_exception(AgentError("The session was not created.", error_type="host"))
            session.ready.exception()
        else:
            self._host.spawn(self._prepare_again(uri, session), name=f"prepare {uri}")

    async def _prepare_again(self, uri: str, session: _Session) -> None:
        for feature in self._host.features:
            try:
                await feature.prepare_session(uri)
            except Exception:
                _log.exception("the feature %s could not prepare %s again", feature.name, uri)
        if not session.ready.done():
            session.ready.set_result(None)
        for runner in list(session.chats.values()):
            runner.take_next()

    # -- selections that wait for the turn to end ------------------------------------------------------------------

    def defer(self, uri: str, action: JsonObject, origin: Origin) -> bool:
        """Keep a model or agent change back while a turn of the session runs."""
        session = self._sessions.get(uri)
        if session is None or action["type"] not in ("session/modelChanged", "session/agentChanged"):
            return False
        if not self._busy(session):
            return False
        if all(waiting != origin for _, waiting in session.deferred):  # A client that reconnected sends it again.
            session.deferred.append((action, origin))
        return True

    def turn_over(self, session_uri: str) -> None:
        """A turn ended: apply what was kept back, unless another still runs."""
        session = self._sessions.get(session_uri)
        if session is not None and session.deferred and not self._busy(session):
            deferred, session.deferred = session.deferred, []
            for action, origin in deferred:
                self._host.apply_deferred(session_uri, action, origin)

    @staticmethod
    def _busy(session: _Session) -> bool:
        return any(runner.chat.state.get("activeTurn") for runner in session.chats.values())


__all__ = ["Sessions"]
