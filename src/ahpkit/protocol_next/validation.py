"""Does a message have the shape of its kind? Knows no state: whether an action makes sense is for others to say."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from ahpkit.protocol.validation import check
from ahpkit.protocol.whole_numbers import whole_numbers
from ahpkit.protocol_next.common.state import JsonObject
from ahpkit.protocol_next.registry import ACTIONS, COMMANDS, NOTIFICATIONS, CommandSpec


class _AnyAction(TypedDict):
    type: str


class _AnyParams(TypedDict):
    channel: NotRequired[str]


def check_action(action: JsonObject) -> None:
    """Raise `InvalidParams` when an action is malformed, naming the path; an action of unknown type passes."""
    kind = action.get("type")
    spec = ACTIONS.get(kind) if isinstance(kind, str) else None
    check(_AnyAction if spec is None else spec.shape, action, at="action")


def check_params(method: str, params: JsonObject) -> None:
    """Raise `InvalidParams` when the params of a known method, in either direction, are malformed."""
    spec = COMMANDS.get(method) or NOTIFICATIONS.get(method)
    check(_AnyParams if spec is None else spec.params, params)


def make_whole(method: str, params: JsonObject, *, result: Any = None) -> None:
    """Integers that a peer wrote with a point become integers, in place, without a check of anything else."""
    spec = COMMANDS.get(method) or NOTIFICATIONS.get(method)
    if spec is not None and (fix := whole_numbers(spec.params)) is not None:
        fix(params)
    if isinstance(spec, CommandSpec) and (fix := whole_numbers(spec.result)) is not None:
        fix(result)


__all__ = ["check", "check_action", "check_params", "make_whole"]
