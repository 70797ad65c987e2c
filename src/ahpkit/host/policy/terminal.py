"""What clients may do to a terminal: who holds it types, resizes, clears and hands it on. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.limits import MAX_TITLE
from ahpkit.host.policy.attempt import Attempt, Rule


def _by_holder(attempt: Attempt) -> str | None:
    claim = attempt.state["claim"]
    if claim["kind"] == "client" and claim["clientId"] == attempt.client_id:
        return None
    return f"this terminal is held by {'another client' if claim['kind'] == 'client' else 'a session'}"


def _by_holder_while_running(attempt: Attempt) -> str | None:
    return _by_holder(attempt) or _exited(attempt)


def _exited(attempt: Attempt) -> str | None:
    return "this terminal's process has exited" if attempt.state["lifecycle"]["status"] == "exited" else None


def _resized(attempt: Attempt) -> str | None:
    small = min(attempt.action["cols"], attempt.action["rows"]) < 1
    return _by_holder(attempt) or ("a terminal has at least one column and one row" if small else None)


def _claimed(attempt: Attempt) -> str | None:
    kind = attempt.action["claim"]["kind"]
    odd = None if kind in ("client", "session") else f"a terminal is held by a client or a session, not by a {kind!r}"
    return _by_holder(attempt) or odd


def _titled(attempt: Attempt) -> str | None:
    length = len(attempt.action["title"])
    return None if length <= MAX_TITLE else f"a title may have {MAX_TITLE} characters, this one has {length}"


RULES: Mapping[str, Rule] = {
    "terminal/input": _by_holder_while_running,
    "terminal/resized": _resized,
    "terminal/claimed": _claimed,
    "terminal/cleared": _by_holder,
    "terminal/titleChanged": _titled,
}

__all__ = ["RULES"]
