"""Records the terminals of chats: how their commands ended, which are background work, and how long they stay readable.

A terminal that a tool call shows stays readable after its end, also after a restart, until its chat is gone. One that
still runs when the turn of its agent ends is background work of the chat. Data for a restart is kept as durable values,
so that no chat has to be read for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ahpkit.host.feature import Services, Values
from ahpkit.host.registration import AnyApplied, Registration
from ahpkit.host.terminals.output import plain
from ahpkit.host.terminals.terminal import Terminal
from ahpkit.protocol.chat.actions import (
    ChatToolCallCompleteAction,
    ChatToolCallContentChangedAction,
    chat_background_work_removed,
    chat_background_work_set,
)
from ahpkit.protocol.chat.state import BackgroundShellWork
from ahpkit.protocol.chat.tool_call_state import TerminalCommandResult, ToolResultContent
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.terminal import TerminalClaim, TerminalState, terminal_claimed, terminal_exited

MAX_PREVIEW = 4_000
"""Characters of a command's output in a tool call: only the end is kept. All of it is on the terminal's channel."""

_TURN_ENDS: Final = frozenset({"chat/turnComplete", "chat/error"})
"""Actions that end a turn. A cancelled turn is not among them: its agent ends the commands that it began."""

_ContentAction = ChatToolCallContentChangedAction | ChatToolCallCompleteAction
"""An action with the content of a tool call."""

_KEY: Final = "chat-terminal/"
"""Prefix of the durable value with a terminal's chat, and whether it is shown or background work."""


class TerminalRecords:
    """The terminals that chats show or that run beside their turns."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def uris(self) -> list[str]:
        return [key.removeprefix(_KEY) for key in self._values.keys(_KEY)]

    def of_chat(self, chat_uri: str) -> list[str]:
        return [uri for uri in self.uris() if self.chat(uri) == chat_uri]

    def chat(self, uri: str) -> str | None:
        """The chat that a terminal belongs to; None when nothing is noted about it."""
        chat = self._of(uri).get("chat")
        return chat if isinstance(chat, str) else None

    def is_shown(self, uri: str) -> bool:
        """Whether a tool call of its chat shows it."""
        return self._is(uri, "shown")

    def runs(self, uri: str) -> bool:
        return self._is(uri, "runs")

    def is_background(self, uri: str) -> bool:
        """Whether its chat lists it as background work."""
        return self._is(uri, "background")

    def note_shown(self, uri: str, chat_uri: str, *, runs: bool) -> None:
        if not self.is_shown(uri):
            self._note(uri, chat=chat_uri, shown=True, runs=runs)

    def note_background(self, uri: str, chat_uri: str) -> None:
        self._note(uri, chat=chat_uri, background=True, runs=True)

    def note_ended(self, uri: str) -> None:
        """The terminal's process is gone: keep the record only if a tool call shows the terminal."""
        if self.is_shown(uri):
            self._note(uri, runs=False, background=False)
        else:
            self.forget(uri)

    def forget(self, uri: str) -> None:
        if self._values.get(_KEY + uri) is not None:
            self._values.set(_KEY + uri, None)

    def _is(self, uri: str, fact: str) -> bool:
        return bool(self._of(uri).get(fact))

    def _of(self, uri: str) -> Mapping[str, str | bool]:
        return self._values.get(_KEY + uri) or {}

    def _note(self, uri: str, **facts: str | bool) -> None:
        known = self._of(uri)
        told = {key: value for key, value in {**known, **facts}.items() if value}
        if told != known:
            self._values.set(_KEY + uri, told)


class ChatTerminals:
    """Updates chats when their terminals change. `running` gives the terminals whose process runs."""

    def __init__(self, services: Services, records: TerminalRecords, running: Callable[[], Iterable[Terminal]]) -> None:
        self._services = services
        self._records = records
        self._running = running

    def register(self, host: Registration) -> None:
        host.actions.amend("chat/toolCallContentChanged", self._with_results)
        host.actions.amend("chat/toolCallComplete", self._with_results)
        host.actions.listen(self._on_applied, *_TURN_ENDS, "terminal/exited")
        host.sessions.is_busy.add(self._is_needed)
        host.sessions.chat_moved.add(self._moved)
        host.sessions.chat_disposed.add(self._disposed)

    def recover(self) -> None:
        """The processes of an earlier run are gone. It is not known how they ended."""
        for uri in self._records.uris():
            chat = self._records.chat(uri) or ""
            if self._services.session_of(chat) is None:
                self._records.forget(uri)
            elif self._records.runs(uri):
                self._ended(uri)
                if self._records.is_shown(uri) and self._services.state(uri) is not None:
                    self._services.dispatch(uri, terminal_exited())

    def _with_results(self, chat_uri: str, action: _ContentAction) -> _ContentAction:
        """The content of a tool call, with the results of commands that have ended. From now on its terminals are
        kept."""
        is_over = action["type"] == "chat/toolCallComplete"
        content = action["result"].get("content", []) if is_over else action["content"]
        if not any(item["type"] == "terminal" for item in content):
            return action
        content = [self._with_result(chat_uri, item) for item in content]
        if action["type"] == "chat/toolCallComplete":
            return {**action, "result": {**action["result"], "content": content}}
        return {**action, "content": content}

    def _with_result(self, chat_uri: str, item: ToolResultContent) -> ToolResultContent:
        if item["type"] != "terminal" or (state := self._services.terminal(item["resource"])) is None:
            return item
        runs = state["lifecycle"]["status"] == "running"
        self._records.note_shown(item["resource"], chat_uri, runs=runs)
        result = command_result(state)
        return item if result is None or "result" in item else {**item, "result": result}

    def _on_applied(self, applied: AnyApplied) -> None:
        if applied.action["type"] in _TURN_ENDS:
            self._turn_ended(applied.channel)
        elif applied.action["type"] == "terminal/exited":
            self._ended(applied.channel)

    def _turn_ended(self, chat_uri: str) -> None:
        for terminal in self._of_agent(lambda claim: claim.get("chat") == chat_uri):
            if not self._records.is_background(terminal.uri):
                self._records.note_background(terminal.uri, chat_uri)
                self._services.dispatch(chat_uri, chat_background_work_set(work=_work(terminal)))

    def _of_agent(self, wanted: Callable[[TerminalClaim], bool]) -> list[Terminal]:
        """The commands of agents that run now."""
        running = (one for one in self._running() if one.command_line is not None and one.exit_status is None)
        return [terminal for terminal in running if wanted(terminal.state["claim"])]

    def _ended(self, uri: str) -> None:
        chat, background = self._records.chat(uri) or "", self._records.is_background(uri)
        self._records.note_ended(uri)
        if background and self._services.state(chat) is not None:
            self._services.dispatch(chat, chat_background_work_removed(id=uri))

    def _is_needed(self, session_uri: str) -> bool:
        """Whether commands of the chat's agent still run. If the session rested, they would end."""
        return bool(self._of_agent(lambda claim: claim.get("session") == session_uri))

    def _moved(self, chat_uri: str, session_uri: str) -> None:
        known = {terminal.uri for terminal in self._running()} | set(self._records.of_chat(chat_uri))
        for uri in sorted(known):
            terminal = self._services.terminal(uri)
            claim = None if terminal is None else terminal["claim"]
            if claim is None or claim["kind"] != "session" or claim["chat"] != chat_uri:
                continue
            if claim["session"] != session_uri:
                self._services.dispatch(uri, terminal_claimed(claim={**claim, "session": session_uri}))

    def _disposed(self, chat_uri: str) -> None:
        """Remove terminals that nobody can see any more. Commands that still run are ended by their owner."""
        running = {terminal.uri for terminal in self._running()}
        for uri in self._records.of_chat(chat_uri):
            self._records.forget(uri)
            if uri not in running:
                self._services.close_channel(uri)


def command_result(state: TerminalState) -> TerminalCommandResult | None:
    """How the last command of a terminal ended, and the end of its output; None while it runs."""
    content = state["content"]
    last = content[-1] if content else None
    if last is not None and last["type"] == "command" and last["isComplete"]:
        return _result(str(last["output"]), last.get("exitCode"))
    if state["lifecycle"]["status"] != "exited":
        return None
    return _result("".join(str(part.get("value", part.get("output"))) for part in content), _exit_code(state))


def _exit_code(state: TerminalState) -> int | None:
    return state["lifecycle"].get("exitCode")


def _result(printed: str, exit_code: int | None) -> TerminalCommandResult:
    text = plain(printed)
    result: TerminalCommandResult = {"preview": text[-MAX_PREVIEW:]}
    if len(text) > MAX_PREVIEW:
        result["truncated"] = True
    if exit_code is not None:
        result["exitCode"] = exit_code
    return result


def _work(terminal: Terminal) -> BackgroundShellWork:
    return {
        "kind": "shell",
        "id": terminal.uri,
        "label": terminal.state["title"],
        "command": terminal.command_line or "",
        "terminal": terminal.uri,
        "startedAt": iso_time(terminal.started_at),
    }


__all__ = ["MAX_PREVIEW", "ChatTerminals", "TerminalRecords", "command_result"]
