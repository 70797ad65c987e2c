"""What clients may do to a terminal: the holder types, resizes, clears and hands it on. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.host.limits import MAX_TITLE
from ahpkit.host.policy.proposed_action import ProposedAction, Rule
from ahpkit.protocol.terminal import (
    TerminalClaimedAction,
    TerminalResizedAction,
    TerminalState,
    TerminalTitleChangedAction,
)


def _by_holder(proposed: ProposedAction[Any, TerminalState]) -> str | None:
    claim = proposed.state["claim"]
    if claim["kind"] == "client" and claim["clientId"] == proposed.client_id:
        return None
    return f"this terminal is held by {'another client' if claim['kind'] == 'client' else 'a session'}"


def _by_holder_while_running(proposed: ProposedAction[Any, TerminalState]) -> str | None:
    return _by_holder(proposed) or _exited(proposed)


def _exited(proposed: ProposedAction[Any, TerminalState]) -> str | None:
    return "this terminal's process has exited" if proposed.state["lifecycle"]["status"] == "exited" else None


def _resized(proposed: ProposedAction[TerminalResizedAction, TerminalState]) -> str | None:
    small = min(proposed.action["cols"], proposed.action["rows"]) < 1
    return _by_holder(proposed) or ("a terminal has at least one column and one row" if small else None)


def _claimed(proposed: ProposedAction[TerminalClaimedAction, TerminalState]) -> str | None:
    kind = proposed.action["claim"]["kind"]
    odd = None if kind in ("client", "session") else f"a terminal is held by a client or a session, not by a {kind!r}"
    return _by_holder(proposed) or odd


def _titled(proposed: ProposedAction[TerminalTitleChangedAction, TerminalState]) -> str | None:
    length = len(proposed.action["title"])
    return None if length <= MAX_TITLE else f"a title may have {MAX_TITLE} characters, this one has {length}"


RULES: Mapping[str, Rule] = {
    "terminal/input": _by_holder_while_running,
    "terminal/resized": _resized,
    "terminal/claimed": _claimed,
    "terminal/cleared": _by_holder,
    "terminal/titleChanged": _titled,
}

__all__ = ["RULES"]
