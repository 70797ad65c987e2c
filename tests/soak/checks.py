"""What must be true after each fault: nothing echoed lost or doubled, everybody agrees, nothing is left hanging."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, cast

from ahpkit.client import Accepted
from ahpkit.log.entry import Entry
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.wire.codec import decode_json, encode
from soak.stage import Stage

MIB = 1024 * 1024
MEMORY = 120 * MIB
"""What a host may have grown by since the first round, once it is idle."""


_ASKS = ("calculate", "test_add")
"""Tools that always ask. Any other call that is shown as allowed by a person was allowed by one, too."""


class Broken(Exception):
    """An invariant does not hold."""


def everyone_agrees(stage: Stage) -> None:
    for uri in (*stage.sessions, *stage.chats):
        states = [_timeless(person.held[uri].confirmed) for person in stage.people]
        if uri in stage.chats:  # The session has a chat's title: a chat says the one it had when it was subscribed to.
            states = [{key: value for key, value in state.items() if key != "title"} for state in states]
        if any(state != states[0] for state in states):
            raise Broken(f"clients see different states of {uri}: {_differences(states)}")
        for person in stage.people:
            if _timeless(person.held[uri].optimistic) != _timeless(person.held[uri].confirmed):
                raise Broken(f"{person.client.client_id} shows what nobody confirmed in {uri}")


def _differences(states: list[Any]) -> list[str]:
    """The members that are not the same for all."""
    members = {key for state in states for key in state}
    shown = {key: [state.get(key) for state in states] for key in members}
    return [f"{key}: {values}" for key, values in shown.items() if any(value != values[0] for value in values)]


def nothing_hangs(stage: Stage) -> None:
    """No orphan turn, call or request, and nothing shown as run that nobody allowed."""
    first = stage.people[0]
    for uri in stage.sessions:
        session: Any = first.held[uri].confirmed
        for member in ("inputNeeded", "canvasRequests"):
            if session.get(member):
                raise Broken(f"{uri} still has {member}: {session[member]}")
    for uri in stage.chats:
        chat: Any = first.held[uri].confirmed
        if chat.get("activeTurn"):
            raise Broken(f"{uri} has a turn that nobody runs: {chat['activeTurn']['id']}")
        for turn in chat["turns"]:
            for part in turn["responseParts"]:
                if part["kind"] == "toolCall":
                    _check_call(stage, turn["id"], part["toolCall"])


def _check_call(stage: Stage, turn_id: str, call: Any) -> None:
    if call["status"] not in ("completed", "cancelled"):
        raise Broken(f"call {call['toolCallId']} of the finished turn {turn_id} is {call['status']}")
    ran = call["status"] == "completed" and call.get("success")
    asked = call["toolName"] in _ASKS or call.get("confirmed") == "user-action"
    if ran and asked and call["toolCallId"] not in stage.approved:
        raise Broken(f"call {call['toolCallId']} of {call['toolName']} ran and nobody allowed it")


def turns_are_there_once(stage: Stage) -> None:
    """Every turn that was echoed is in its chat, exactly once."""
    first = stage.people[0]
    for uri in stage.chats:
        found = Counter(turn["id"] for turn in first.held[uri].confirmed["turns"])
        doubled = [id for id, count in found.items() if count > 1]
        if doubled:
            raise Broken(f"turns are there twice: {doubled}")
        for said in stage.said:
            action: Any = said.dispatch.action
            echoed = isinstance(said.dispatch.outcome, Accepted) and action["type"] == "chat/turnStarted"
            if echoed and said.channel == uri and action["turnId"] not in found:
                raise Broken(f"the turn {action['turnId']} was echoed and is gone")


def log_has_everything(stage: Stage) -> None:
    """Read the log as the next host will: each echoed action is there under its number, and no action twice."""
    entries = {entry.seq: entry for entry in _read_log(stage.home / "data")}
    used = Counter((entry.client_id, entry.client_seq) for entry in entries.values() if entry.client_id is not None)
    doubled = [key for key, count in used.items() if count > 1]
    if doubled:
        raise Broken(f"actions are logged twice: {doubled}")
    oldest = min(entries, default=0)
    for said in stage.said:
        outcome = said.dispatch.outcome
        if isinstance(outcome, Accepted) and outcome.server_seq >= oldest:
            entry = entries.get(outcome.server_seq)
            if entry is None or entry.client_seq != said.dispatch.client_seq:
                raise Broken(f"{said.dispatch.action} was echoed as {outcome.server_seq}; the log has {entry}")


def _read_log(data: Path) -> list[Entry]:
    """On a copy: reading repairs, and the host shall find what it left."""
    with tempfile.TemporaryDirectory() as folder:
        for part in data.glob("log.db*"):
            shutil.copy(part, folder)
        storage = SqliteStorage(Path(folder) / "log.db")
        recovery = storage.load()
        try:
            if recovery.problems:
                raise Broken(f"the log is damaged: {recovery.problems}")
            return storage.read(recovery.oldest_seq - 1)
        finally:
            storage.close()


def memory_is_back(stage: Stage, before: int) -> None:
    if stage.host.memory > before + MEMORY:
        raise Broken(f"the host has {stage.host.memory // MIB} MiB, {before // MIB} MiB in the first round")


def said_no_traceback(stage: Stage) -> None:
    if "Traceback" in stage.host.errors:
        raise Broken(f"the host wrote a traceback:\n{stage.host.errors[-4000:]}")


def _timeless(state: object) -> Any:
    return _without(decode_json(encode(state)))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: _without(one) for key, one in members if key != "modifiedAt"}
    return [_without(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


__all__ = [
    "Broken",
    "everyone_agrees",
    "log_has_everything",
    "memory_is_back",
    "nothing_hangs",
    "said_no_traceback",
    "turns_are_there_once",
]
