"""Keeps a session's queue of things that wait for somebody in step with its chats.

The state of the chats decides. After each of their actions the entries of that chat are compared with what waits in it
now: questions, calls that want approval or a token, calls that a client runs. Entries of a chat that is gone go with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from ahpkit.host.feature import Applied
from ahpkit.host.spine.session_index import SessionIndex
from ahpkit.protocol.chat.turns import STREAMED_TEXT
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import SessionAction, session_input_needed_removed, session_input_needed_set
from ahpkit.protocol.session.state import SessionInputRequest

_NEVER = STREAMED_TEXT | {"chat/usage", "chat/draftChanged"}
"""The most frequent actions, which change nothing that waits."""

_KINDS: Mapping[str, str] = {
    "pending-confirmation": "toolConfirmation",
    "pending-result-confirmation": "toolConfirmation",
    "auth-required": "toolAuthentication",
}
"""Status of a tool call → the kind of entry it has."""


class InputNeeded:
    """Listens to what is applied."""

    def __init__(
        self,
        index: SessionIndex,
        unsettled: Callable[[], Sequence[str]],
        state_of: Callable[[str], JsonObject | None],
        dispatch: Callable[[str, SessionAction], None],
    ) -> None:
        self._index = index
        self._unsettled = unsettled
        self._state_of = state_of
        self._dispatch = dispatch

    def heard(self, applied: Applied) -> None:
        kind = applied.action["type"]
        if kind == "session/chatRemoved":
            self._bring_in_step(applied.channel, applied.action["chat"], {})
        elif applied.before is not applied.after and kind not in _NEVER:
            session = self._index.session_of(applied.channel)
            if session is not None:
                self._bring_in_step(session, applied.channel, applied.after)

    def recover(self) -> None:
        """After a restart nothing runs, so nothing waits."""
        for session in self._unsettled():
            for entry in self._listed(session):
                self._dispatch(session, session_input_needed_removed(id=entry["id"]))

    def _bring_in_step(self, session: str, chat_uri: str, chat: JsonObject) -> None:
        before = {entry["id"]: entry for entry in self._listed(session) if entry["chat"] == chat_uri}
        now = {entry["id"]: entry for entry in _waiting(chat_uri, chat)}
        for id in before.keys() - now.keys():
            self._dispatch(session, session_input_needed_removed(id=id))
        for id, entry in now.items():
            if before.get(id) != entry:
                self._dispatch(session, session_input_needed_set(request=cast("SessionInputRequest", entry)))

    def _listed(self, session: str) -> list[JsonObject]:
        return list((self._state_of(session) or {}).get("inputNeeded") or ())


def _waiting(chat_uri: str, chat: JsonObject) -> Iterator[JsonObject]:
    """What waits in a chat: entries for the session's queue."""
    turn: JsonObject = chat.get("activeTurn") or {}
    for part in turn.get("responseParts", ()):
        if part.get("kind") == "inputRequest" and part.get("response") is None:
            request: JsonObject = part["request"]
            yield {"id": f"{chat_uri}#{request['id']}", "chat": chat_uri, "kind": "chatInput", "request": request}
        elif part.get("kind") == "toolCall":
            yield from _waiting_call(chat_uri, turn["id"], part["toolCall"])


def _waiting_call(chat_uri: str, turn_id: str, call: JsonObject) -> Iterator[JsonObject]:
    entry: JsonObject = {
        "id": f"{chat_uri}#{call['toolCallId']}",
        "chat": chat_uri,
        "turnId": turn_id,
        "toolCall": call,
    }
    contributor: JsonObject = call.get("contributor") or {}
    if (kind := _KINDS.get(call["status"])) is not None:
        yield {**entry, "kind": kind}
    elif call["status"] == "running" and contributor.get("kind") == "client":
        yield {**entry, "kind": "toolClientExecution", "clientId": contributor["clientId"]}


__all__ = ["InputNeeded"]
