"""Rules for new and moved chats: what a fork or side chat begins with, and where a chat may move. Pure.

A fork shows a copy of the turns that it continues. A side chat shows none of them. Only its agent gets the turns, up to
the one that the side chat is about, with their content at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ahpkit.host.agent import Agent
from ahpkit.host.policy import check_model
from ahpkit.host.states import NO_CHAT, States
from ahpkit.host.turns.new_state import NEW_CHAT, SIDE_CHAT, entry_of, title_from, turns_until
from ahpkit.protocol.chat.actions import chat_turn_cancelled
from ahpkit.protocol.chat.commands import ChatSource
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import ChatOrigin, ChatSideChatOrigin, ChatState, ChatSummary, SideChatSelection, Turn
from ahpkit.protocol.common.state import ModelSelection
from ahpkit.protocol.errors import InvalidParams, NotFound, TurnInProgress
from ahpkit.protocol.root import RootState
from ahpkit.protocol.session.state import SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBeginning:
    """The turns that a new chat begins with."""

    title: str
    origin: ChatOrigin | None = None
    turns: list[Turn] | None = None
    """Turns that the chat shows."""
    background: list[Turn] | None = None
    """Turns that only the agent gets."""
    directories: list[str] | None = None


def beginning(
    source: ChatSource | None, *, chat: str, session: SessionState, agent: Agent, states: States
) -> ChatBeginning:
    """The turns that the new chat `chat` begins with; raises if it cannot begin with that source."""
    if agent.further_chats is None:
        raise InvalidParams(f"sessions of {agent.provider} have one chat")
    if source is None:
        return ChatBeginning(title=NEW_CHAT)
    kind = source.get("kind")
    if kind not in ("fork", "sideChat"):
        raise InvalidParams(f"source.kind: {str(kind)[:100]!r} is neither fork nor sideChat")
    if not agent.further_chats.get(kind):
        raise InvalidParams(f"source.kind: sessions of {agent.provider} have no {kind}")
    found = _source_chat(source["chat"], chat, session, states)
    return _fork(source, found, session) if kind == "fork" else _side_chat(source, found)


def _source_chat(uri: str, chat: str, session: SessionState, states: States) -> ChatState:
    found = states.chat(uri)
    if uri == chat:
        raise InvalidParams("source.chat: a chat cannot begin with itself")
    if found is None:
        raise NotFound(f"source.chat: there is no chat {uri}")
    if all(entry["resource"] != uri for entry in session["chats"]):
        raise InvalidParams(f"source.chat: {uri} belongs to another session")
    return found


def _fork(source: ChatSource, found: ChatState, session: SessionState) -> ChatBeginning:
    turn_id = source["turnId"]
    turns = turns_until(found, turn_id)
    if turns is None and _runs(found, turn_id):
        raise InvalidParams(f"source.turnId: turn {turn_id!r} is still running")
    if turns is None:
        raise _no_turn(source)
    origin: ChatOrigin = {"kind": "fork", "chat": source["chat"], "turnId": turn_id}
    title = (entry_of(source["chat"], session) or found)["title"]
    return ChatBeginning(title=title, origin=origin, turns=turns, directories=found.get("workingDirectories"))


def _runs(chat: ChatState, turn_id: str) -> bool:
    turn = chat.get("activeTurn")
    return turn is not None and turn["id"] == turn_id


def _side_chat(source: ChatSource, found: ChatState) -> ChatBeginning:
    selection: SideChatSelection | None = source.get("selection")
    if selection is not None and not selection["text"]:
        raise InvalidParams("source.selection.text: must not be empty")
    turn_id = source["turnId"]
    turns = _with_active(found, turn_id) if _runs(found, turn_id) else turns_until(found, turn_id)
    if turns is None:
        raise _no_turn(source)
    origin: ChatSideChatOrigin = {"kind": "sideChat", "chat": source["chat"], "turnId": turn_id}
    if selection is not None:
        origin["selection"] = selection
    title = SIDE_CHAT if selection is None else title_from(selection["text"]) or SIDE_CHAT
    return ChatBeginning(title=title, origin=origin, background=turns, directories=found.get("workingDirectories"))


def _with_active(chat: ChatState, turn_id: str) -> list[Turn]:
    """All turns; the running turn is included as a copy of its present state."""
    return chat_reducer({**chat}, {**chat_turn_cancelled(turn_id=turn_id, duration=0)})["turns"]


def _no_turn(source: ChatSource) -> NotFound:
    return NotFound(f"source.turnId: there is no turn {source['turnId']!r} in {source['chat']}")


# -- moving --------------------------------------------------------------------------------------------------------


def is_movable(chat: ChatState, session: SessionState) -> bool:
    """Whether a chat may move. The default chat and the chats of sub-agents may not."""
    return session.get("defaultChat") != chat["resource"] and not is_worker(chat)


def with_workers(chat: str, session: SessionState) -> list[str]:
    """A chat with the chats of its sub-agents, and with those of their sub-agents."""
    found = [chat]
    for uri in found:
        workers = [entry["resource"] for entry in session["chats"] if _is_worker_of(entry.get("origin"), uri)]
        found += [one for one in workers if one not in found]
    return found


def is_worker(chat: ChatSummary) -> bool:
    """Whether a chat belongs to a sub-agent."""
    origin = chat.get("origin")
    return origin is not None and origin["kind"] == "tool"


def _is_worker_of(origin: ChatOrigin | None, chat: str) -> bool:
    return origin is not None and origin["kind"] == "tool" and origin["chat"] == chat


def placed(order: Sequence[str], moving: Sequence[str], after: str | None) -> list[str]:
    """The order of chats after a move: the moved chats come right after the chat `after`, or first if that is None."""
    rest = [uri for uri in order if uri not in moving]
    at = 0 if after is None else rest.index(after) + 1
    return [*rest[:at], *moving, *rest[at:]]


def check_anchor(after: str | None, chat: str, session: SessionState) -> None:
    """Raise unless a chat can be put after another one of a session."""
    if after == chat:
        raise InvalidParams("destination.after: a chat cannot come after itself")
    if after is not None and all(entry["resource"] != after for entry in session["chats"]):
        raise InvalidParams(f"destination.after: {after} is not a chat of the session")


def check_idle(chats: Iterable[str], states: States) -> None:
    """Raise if a turn runs in one of these chats."""
    for uri in chats:
        if (states.chat(uri) or NO_CHAT).get("activeTurn"):
            raise TurnInProgress(f"a turn runs in {uri}; cancel it, or wait for its end")


def check_directories(chat: ChatState, session: SessionState) -> None:
    """Raise when a chat works in directories that another session does not have."""
    known = session.get("workingDirectories") or ()
    own = chat.get("workingDirectories") or ()
    if outside := next((each for each in own if each not in known), None):
        raise InvalidParams(f"the chat works in {outside}, which is not a directory of that session")


def check_chosen_model(model: ModelSelection | None, provider: str, root: RootState) -> None:
    """Raise `InvalidParams` when an agent has no such model."""
    if model is not None and (reason := check_model(root, provider, model["id"])):
        raise InvalidParams(f"model: {reason}")


__all__ = [
    "ChatBeginning",
    "beginning",
    "check_anchor",
    "check_chosen_model",
    "check_directories",
    "check_idle",
    "is_movable",
    "is_worker",
    "placed",
    "with_workers",
]
