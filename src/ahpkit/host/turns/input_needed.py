"""Updates a session's list of things that wait for somebody (`inputNeeded`) from its chats.

After each action of a chat, the entries of that chat are compared with what waits in its state: questions, calls that
need an approval or a token, calls that a client runs. Entries of a chat are removed with the chat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ahpkit.host.feature import Applied
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.host.states import NO_CHAT, NO_SESSION, States
from ahpkit.protocol.chat.state import ChatState, ToolCallState
from ahpkit.protocol.chat.turns import STREAMED_TEXT, find_tool_call, waits_for_person
from ahpkit.protocol.session.actions import SessionAction, session_input_needed_removed, session_input_needed_set
from ahpkit.protocol.session.state import SessionInputRequest

_NEVER = STREAMED_TEXT | {"chat/usage", "chat/draftChanged"}
"""The most frequent actions, which change nothing that waits."""


class InputNeeded:
    """Listens to what is applied."""

    def __init__(
        self,
        index: SessionIndex,
        unsettled: Callable[[], Sequence[str]],
        states: States,
        dispatch: Callable[[str, SessionAction], None],
    ) -> None:
        self._index = index
        self._unsettled = unsettled
        self._states = states
        self._dispatch = dispatch

    def heard(self, applied: Applied) -> None:
        kind = applied.action["type"]
        if kind == "session/chatRemoved":
            self._bring_in_step(applied.channel, applied.action["chat"], NO_CHAT)
        elif applied.before is not applied.after and kind not in _NEVER:
            session = self._index.session_of(applied.channel)
            if session is not None:
                call_id = applied.action.get("toolCallId") if kind.startswith("chat/toolCall") else None
                self._bring_in_step(session, applied.channel, applied.after, call_id)

    def recover(self) -> None:
        """After a restart nothing runs, so nothing waits."""
        for session in self._unsettled():
            for entry in self._listed(session):
                self._dispatch(session, session_input_needed_removed(id=entry["id"]))

    def _bring_in_step(self, session: str, chat_uri: str, chat: ChatState, call_id: str | None = None) -> None:
        """Update the entries of a chat; with `call_id` only those of that call."""
        before = {entry["id"]: entry for entry in self._listed(session) if entry["chat"] == chat_uri}
        if call_id is None:
            now = {entry["id"]: entry for entry in _waiting(chat_uri, chat)}
        else:
            id = f"{chat_uri}#{call_id}"
            before = {id: before[id]} if id in before else {}
            now = {entry["id"]: entry for entry in _waiting_in_call(chat_uri, chat, call_id)}
        for id in before.keys() - now.keys():
            self._dispatch(session, session_input_needed_removed(id=id))
        for id, entry in now.items():
            if before.get(id) != entry:
                self._dispatch(session, session_input_needed_set(request=entry))

    def _listed(self, session: str) -> list[SessionInputRequest]:
        return list((self._states.session(session) or NO_SESSION).get("inputNeeded") or ())


def _waiting(chat_uri: str, chat: ChatState) -> Iterator[SessionInputRequest]:
    """What waits in a chat: entries for the session's queue."""
    turn = chat.get("activeTurn")
    for part in turn["responseParts"] if turn else ():
        if part["kind"] == "inputRequest" and part.get("response") is None:
            request = part["request"]
            yield {"id": f"{chat_uri}#{request['id']}", "chat": chat_uri, "kind": "chatInput", "request": request}
        elif part["kind"] == "toolCall" and turn:
            yield from _waiting_call(chat_uri, turn["id"], part["toolCall"])


def _waiting_in_call(chat_uri: str, chat: ChatState, call_id: str) -> Iterator[SessionInputRequest]:
    turn = chat.get("activeTurn")
    call = find_tool_call(turn, call_id)
    if turn is not None and call is not None:
        yield from _waiting_call(chat_uri, turn["id"], call)


def _waiting_call(chat_uri: str, turn_id: str, call: ToolCallState) -> Iterator[SessionInputRequest]:
    id = f"{chat_uri}#{call['toolCallId']}"
    contributor = call.get("contributor")
    if call["status"] == "pending-confirmation" or call["status"] == "pending-result-confirmation":
        if waits_for_person(call):
            yield {"id": id, "chat": chat_uri, "kind": "toolConfirmation", "turnId": turn_id, "toolCall": call}
    elif call["status"] == "auth-required":
        yield {"id": id, "chat": chat_uri, "kind": "toolAuthentication", "turnId": turn_id, "toolCall": call}
    elif call["status"] == "running" and contributor is not None and contributor["kind"] == "client":
        client_id = contributor["clientId"]
        yield {
            "id": id,
            "chat": chat_uri,
            "kind": "toolClientExecution",
            "turnId": turn_id,
            "clientId": client_id,
            "toolCall": call,
        }


__all__ = ["InputNeeded"]
