"""The gate: the steps of one tool call, from the model's request to its result, as a table. Pure.

    guarding ─► judging ─► asking ─► running ─► reviewing ─► done
        │ └─► doubted ─────►  │         │           │
        └──────────┴──────────┴─────────┴───────────┴──────► denied | withdrawn

Guards come first (hooks, switched-off customizations): if they deny a call, nobody is asked, and no rule can allow it.
If they want a person to decide, the call is `doubted`: rules and settings can still deny it, but not allow it. Then the
rules decide, then a person; then the tool runs, and its result may have to be confirmed. There is no other way: `run`
is possible only in `running`, and only an allow leads there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ahpkit.protocol.errors import LocalProtocolError

Step = Literal["guarding", "judging", "doubted", "asking", "running", "reviewing", "done", "denied", "withdrawn"]
Event = Literal[
    "passed",  # no guard objects
    "doubt",  # a guard wants a person to decide
    "ask",  # no rule decides
    "allow",  # a rule, a setting, a default or a person says yes
    "deny",  # a guard, a rule, a person or, while it runs, its owner says no
    "finish",  # the tool ended
    "review",  # the tool ended, and a person looks at the result first
    "withdraw",  # the caller gave up, or the turn ended
]

WAY: Final[Mapping[Step, Mapping[Event, Step]]] = {
    "guarding": {"passed": "judging", "doubt": "doubted", "deny": "denied", "withdraw": "withdrawn"},
    "judging": {"ask": "asking", "allow": "running", "deny": "denied", "withdraw": "withdrawn"},
    "doubted": {"ask": "asking", "deny": "denied", "withdraw": "withdrawn"},
    "asking": {"allow": "running", "deny": "denied", "withdraw": "withdrawn"},
    "running": {"finish": "done", "review": "reviewing", "deny": "denied", "withdraw": "withdrawn"},
    "reviewing": {"allow": "done", "deny": "denied", "withdraw": "withdrawn"},
    "done": {},
    "denied": {},
    "withdrawn": {},
}
"""Step → event → next step. All other events are errors."""

OVER: Final = frozenset(step for step, events in WAY.items() if not events)


@dataclass(frozen=True, slots=True)
class Objection:
    """A guard's reason against a call. With `asks` a person has to decide; without it the call is denied."""

    reason: str
    asks: bool = False


class CallPassage:
    """One call on its way through the gate."""

    def __init__(self) -> None:
        self.step: Step = "guarding"

    def take(self, event: Event) -> Step:
        """Take the next step. Raises if the table has no such step."""
        following = WAY[self.step].get(event)
        if following is None:
            raise LocalProtocolError(f"a call that is {self.step} cannot {event}")
        self.step = following
        return following

    @property
    def over(self) -> bool:
        return self.step in OVER

    @property
    def may_run(self) -> bool:
        return self.step == "running"


__all__ = ["OVER", "WAY", "CallPassage", "Event", "Objection", "Step"]
