"""Converts every variant of ACP's `session/update` to calls of the chat and its turn. No I/O.

A variant belongs to the session (commands, options, title, plan, usage) or to the turn that runs (text, thoughts, tool
calls, notices). AHP has no place for what an agent says between turns, so it is shown when the next turn begins. While
a session is being restored the agent repeats its history, which the host already has: this history is dropped, unless
the host takes over a conversation that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ahpkit.agents.acp.content import Contents, shown_as_text
from ahpkit.agents.acp.limits import MAX_KINDS, MAX_LISTED, short
from ahpkit.agents.acp.meta import upward
from ahpkit.agents.acp.options import SessionOptions
from ahpkit.agents.acp.turn import TURN_UPDATES, TurnMapper, Usage, notice_text
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.host.agent import Chat, Command, History, StopReason, Turn
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import ACP
from ahpkit.wire.errors import AhpError

MAX_UPDATES = 100_000
"""Updates of one history that are taken. Later ones are only counted."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


class Replay:
    """Takes the updates of a history in order. Call `end` after the last one."""

    def __init__(self, history: History, contents: Callable[[Turn], Contents], *, most: int = MAX_UPDATES) -> None:
        self._most = most
        self._history = history
        self._contents = contents
        self._turn: TurnMapper | None = None
        self._words: list[str] = []
        self._message_id: object = None
        self._updates = 0

    def update(self, kind: str, update: JsonObject) -> None:
        """Take an update of a variant that belongs to a turn."""
        self._updates += 1
        if self._updates > self._most:
            return
        if kind == "user_message_chunk":
            self._user_words(update)
        else:
            TURN_UPDATES[kind](self._answering(), update)

    def end(self) -> None:
        if self._words:
            self._answering()
        if self._turn is not None and self._updates > self._most:
            self._turn.notice(f"The history is longer: {self._updates - self._most} updates are not shown.")
        self._finish()

    def _user_words(self, update: JsonObject) -> None:
        """The user's words. Some agents send them in pieces; some put their own blocks before them."""
        self._finish()
        words, id = shown_as_text(obj(update.get("content"))) or "", update.get("messageId")
        if self._words and id == self._message_id:
            self._words[-1] += words
        elif words:
            self._words.append(words)
        self._message_id = id

    def _answering(self) -> TurnMapper:
        if self._turn is None:
            words, self._words = "\n\n".join(self._words), []
            turn = self._history.turn(without_reminders(words))
            self._turn = TurnMapper(turn, self._contents(turn))
        return self._turn

    def _finish(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close(ended_well=True)


def without_reminders(words: str) -> str:
    """What a person said, without the text that agents add for the model and repeat as if the person had said it."""
    first, *others = words.split(_REMINDER)
    kept = [first]
    for piece in others:
        _, closing, after = piece.partition(_REMINDER_END)
        kept.append(after if closing else _REMINDER + piece)
    return "".join(kept).strip()


PLAN_KEY = "ahpkit/plan"
"""Session `_meta`, by chat: `[{id?, entries | content | uri}]`, the agent's present plans."""

USAGE_KEY = "ahpkit/context-usage"
"""Session `_meta`, by chat: `{used, size, cost}`, how full the model's context is and what the session cost."""

MAX_LATE = 4 * 1024
"""Characters that are kept of what an agent says between turns."""


class SessionMapper:
    """Follows one ACP session as long as its process runs."""

    def __init__(
        self,
        chat: Chat,
        *,
        terminal_uri: Callable[[str], str | None] = lambda id: None,
        on_options: Callable[[SessionOptions], None] = lambda options: None,
    ) -> None:
        self.options = SessionOptions()
        self.turn: TurnMapper | None = None
        self.restoring = False
        """Whether the agent is repeating its history."""
        self.selecting = False
        """Whether an option is being changed. Some agents confirm the change with a text."""
        self._chat = chat
        self._terminal_uri = terminal_uri
        self._on_options = on_options
        self._usage = Usage()
        self._plans: dict[str, JsonObject] = {}
        self._facts: JsonObject = {}
        self._late = ""
        self._holding = False
        self._replay: Replay | None = None
        self._past_tool_calls: frozenset[str] = frozenset()

    # The life of the session.

    def take_options(self, result: JsonObject) -> None:
        """Take the options from a result of `session/new|load|resume|set_config_option` or from an update."""
        self.options.take(result)
        self._session_meta(result)
        self._report_options()

    @contextmanager
    def holding_options(self) -> Generator[None]:
        """Report options only once, at the end of the block. In between, the agent still has some of the old
        options."""
        outermost, self._holding = not self._holding, True
        try:
            yield
        finally:
            self._holding = not outermost
            self._report_options()

    def begin(self, turn: Turn) -> TurnMapper:
        """A prompt is about to be sent."""
        self.turn = TurnMapper(turn, self._contents(turn), past_tool_calls=self._past_tool_calls)
        late, self._late = self._late.strip(), ""
        if late:
            turn.notice(f"The agent said between turns: {late}")
        return self.turn

    def finish(self, result: JsonObject) -> StopReason:
        """The prompt was answered."""
        assert self.turn is not None
        reason = self.turn.finish(result, self._usage)
        self.end()
        self._report_usage()
        return reason

    def end(self) -> None:
        """The turn is over, however it ended. Later updates for it are dropped."""
        if self.turn is not None:
            self._past_tool_calls = self.turn.tool_calls.ids
            self.turn = None

    @contextmanager
    def replaying(self, history: History, *, most: int = MAX_UPDATES) -> Generator[None]:
        """The agent repeats a history that the host does not have; pass it on."""
        self._replay = Replay(history, self._contents, most=most)
        try:
            yield
            self._replay.end()
        finally:
            self._replay = None

    def _contents(self, turn: Turn) -> Contents:
        return Contents(turn.store, root=self._chat.working_directory, terminal_uri=self._terminal_uri)

    # Updates from the agent.

    def update(self, update: JsonObject) -> None:
        """Take the `update` of one `session/update`."""
        kind = str(update.get("sessionUpdate"))
        for_turn = TURN_UPDATES.get(kind)
        if for_turn is None:
            self._session_update(kind, update)
        elif self.turn is not None:
            for_turn(self.turn, update)
        elif self._replay is not None:
            self._replay.update(kind, update)
        elif not self.restoring and not self.selecting:
            self._between_turns(kind, update)

    def refused(self, error: AhpError) -> None:
        """A message of the agent was refused. Say so once in a turn, because something may be missing in the turn."""
        if self.turn is not None:
            self.turn.tell_refused(str(error))

    def _session_update(self, kind: str, update: JsonObject) -> None:
        self._session_meta(update)
        match kind:
            case "available_commands_update":
                self._commands(update)
            case "current_mode_update":
                self._mode(update)
            case "config_option_update":
                self.take_options(update)
            case "session_info_update":
                self._session_info(update)
            case "usage_update":
                self._usage_update(update)
            case "plan":
                self._plan(update)
            case "plan_update":
                self._plan_update(update)
            case "plan_removed":
                self._plan_removed(update)
            case _:
                self._unknown_variant(kind, update)

    def _between_turns(self, kind: str, update: JsonObject) -> None:
        if kind == "agent_message_chunk":
            self._late += shown_as_text(obj(update.get("content"))) or ""
        elif kind == "notice":
            self._late += f"\n{notice_text(update)}"
        self._late = self._late[:MAX_LATE]

    def _unknown_variant(self, kind: str, update: JsonObject) -> None:
        known: JsonObject = self._facts.get("unknownUpdates", {})
        kind = short(kind)
        if kind in known or len(known) >= MAX_KINDS:
            return
        self._tell_fact("unknownUpdates", {**known, kind: upward(update)})
        if self.turn is not None:
            self.turn.notice(f"The agent sent an update of a kind this host does not know: {kind}", update)

    def _session_meta(self, message: JsonObject) -> None:
        """Collect the `_meta` of messages about the session under one key."""
        if meta_fields := obj(message.get("_meta")):
            self._tell_fact("session", upward({**self._facts.get("session", {}), **meta_fields}))

    def _tell_fact(self, name: str, fact: JsonObject) -> None:
        if fact != self._facts.get(name, {}):
            self._facts = {**self._facts, name: fact}
            self._chat.meta(ACP, self._facts)

    def _commands(self, update: JsonObject) -> None:
        offered = [entry for entry in objects(update.get("availableCommands")) if text(entry.get("name"))]
        self._chat.commands([_command(entry) for entry in offered[:MAX_LISTED]])
        self._tell_fact("commands", upward({entry["name"]: entry["_meta"] for entry in offered if entry.get("_meta")}))

    def _mode(self, update: JsonObject) -> None:
        self.options.mode_changed(update.get("currentModeId"))
        self._report_options()

    def _session_info(self, update: JsonObject) -> None:
        title = text(update.get("title"))
        if title is not None:
            self._chat.title(title)

    def _usage_update(self, update: JsonObject) -> None:
        self._usage.update(update)
        if self.turn is None:
            self._report_usage()

    def _plan(self, update: JsonObject) -> None:
        self._plans[""] = _entries(update)
        self._report_plan()

    def _plan_update(self, update: JsonObject) -> None:
        plan = obj(update.get("plan"))
        id = str(plan.get("planId", ""))
        if id in self._plans or len(self._plans) < MAX_KINDS:
            shown = upward({key: value for key, value in plan.items() if key not in ("planId", "entries")})
            self._plans[id] = {"id": short(id), **shown} | (_entries(plan) if "entries" in plan else {})
            self._report_plan()

    def _plan_removed(self, update: JsonObject) -> None:
        self._plans.pop(str(update.get("planId", "")), None)
        self._report_plan()

    # Reports to the chat.

    def _report_plan(self) -> None:
        plans = [plan for plan in self._plans.values() if plan.get("entries") != []]
        self._chat.meta(PLAN_KEY, plans or None)

    def _report_usage(self) -> None:
        if self._usage.context:
            self._chat.meta(USAGE_KEY, dict(self._usage.context))

    def _report_options(self) -> None:
        if self._holding or self.restoring:
            return
        schema = self.options.schema
        if schema["properties"]:
            self._chat.config_options(schema, self.options.values)
        self._on_options(self.options)


def _command(entry: JsonObject) -> Command:
    hint = short(text(obj(entry.get("input")).get("hint")) or "")
    name, description = short(entry["name"]), short(str(entry.get("description") or ""))
    return Command(name=name, description=description, hint=hint or None, **_reported(obj(entry.get("_meta"))))


def _reported(meta: JsonObject) -> dict[str, Any]:
    """What an agent says about a command in `_meta`, at the root or in its own object there: what the command is,
    whether it is on, and whether a person may invoke it."""
    fields: dict[str, Any] = {}
    for place in (meta, *map(obj, meta.values())):
        for key, name in (("enabled", "enabled"), ("userInvocable", "user_invocable")):
            if isinstance(place.get(key), bool):
                fields.setdefault(name, place[key])
        kinds = [place.get(key) for key in ("kind", "type") if place.get(key) in ("skill", "agent", "prompt")]
        if kinds:
            fields.setdefault("kind", kinds[0])
    return fields


def _entries(plan: JsonObject) -> JsonObject:
    """The entries of a plan. All of them are sent again with each step, so a long plan is cut to a length that people
    read."""
    entries = objects(plan.get("entries"))
    left_out = len(entries) - MAX_LISTED
    shown = [_entry(entry) for entry in entries[:MAX_LISTED]]
    return {"entries": shown} | ({"ahpkit/left-out": left_out} if left_out > 0 else {})


def _entry(entry: JsonObject) -> JsonObject:
    content = {"content": short(entry["content"])} if isinstance(entry.get("content"), str) else {}
    return upward({key: value for key, value in entry.items() if key not in content}) | content


__all__ = ["MAX_LATE", "MAX_UPDATES", "PLAN_KEY", "USAGE_KEY", "Replay", "SessionMapper", "without_reminders"]
