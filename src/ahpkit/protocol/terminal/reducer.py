"""The terminal channel's reducer: output in typed parts, size, claim, exit.

Output grows in a rope, in the last part only. A part that will not grow any more holds a plain string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ahpkit.protocol.common.reducing import Handler, amend, apply, assign, index_of, put, replaced, unchanged
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.rope import Rope

__all__ = ["HANDLERS", "settled", "terminal_reducer"]


def terminal_reducer(state: JsonObject, action: JsonObject) -> JsonObject:
    """The terminal after `action`; the same object when it does not apply."""
    return apply(HANDLERS, state, action)


def _data(state: JsonObject, action: JsonObject) -> JsonObject:
    """Output belongs to the command that runs, else to the unclassified part at the end, else to a new one."""
    data: str = action["data"]
    content: list[JsonObject] = state["content"]
    field = _growing_field(content[-1]) if content else None
    if not data:
        return state
    if field is None:
        return {**state, "content": [*content, {"type": "unclassified", "value": Rope.of(data)}]}
    last = content[-1]
    return {**state, "content": replaced(content, -1, {**last, field: Rope.of(last[field]).add(data)})}


def _growing_field(part: JsonObject) -> str | None:
    """The field of `part` that takes further output; None when the part is closed or of an unknown type."""
    if part["type"] == "unclassified":
        return "value"
    return "output" if part["type"] == "command" and not part["isComplete"] else None


def _command_executed(state: JsonObject, action: JsonObject) -> JsonObject:
    command = {
        "type": "command",
        "commandId": action["commandId"],
        "commandLine": action["commandLine"],
        "output": "",
        "timestamp": action["timestamp"],
        "isComplete": False,
    }
    return {**state, "content": [*settled(state["content"]), command], "supportsCommandDetection": True}


def _command_finished(state: JsonObject, action: JsonObject) -> JsonObject:
    content: list[JsonObject] = state["content"]
    index = index_of(content, "commandId", action["commandId"])
    if index < 0:
        return state
    ended = {"isComplete": True, "exitCode": action.get("exitCode"), "durationMs": action.get("durationMs")}
    return {**state, "content": replaced(content, index, amend(_settled_part(content[index]), ended))}


def _exited(state: JsonObject, action: JsonObject) -> JsonObject:
    lifecycle = put({"status": "exited"}, "exitCode", action.get("exitCode"))
    return {**state, "content": settled(state["content"]), "lifecycle": lifecycle}


def _cleared(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "content": []} if state["content"] else state


def _resized(state: JsonObject, action: JsonObject) -> JsonObject:
    return {**state, "cols": action["cols"], "rows": action["rows"]}


def settled(content: list[JsonObject]) -> list[JsonObject]:
    """`content` with its last part, the only one that grows, as a plain string."""
    return [*content[:-1], _settled_part(content[-1])] if content else content


def _settled_part(part: JsonObject) -> JsonObject:
    return {key: str(value) if isinstance(value, Rope) else value for key, value in part.items()}


HANDLERS: Final[Mapping[str, Handler]] = {
    "terminal/data": _data,
    "terminal/input": unchanged,  # goes to the process; what it prints comes back as terminal/data
    "terminal/resized": _resized,
    "terminal/claimed": assign("claim"),
    "terminal/titleChanged": assign("title"),
    "terminal/cwdChanged": assign("cwd"),
    "terminal/exited": _exited,
    "terminal/cleared": _cleared,
    "terminal/commandDetectionAvailable": lambda state, action: {**state, "supportsCommandDetection": True},
    "terminal/commandExecuted": _command_executed,
    "terminal/commandFinished": _command_finished,
}
