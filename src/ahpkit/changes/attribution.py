"""Tells who wrote a file while a turn ran: its agent, or somebody else. Pure.

Where the agent says which files it wrote, nothing has to be guessed. Other files changed too. An agent that works
through tool calls writes only while one of them runs, so a file that was last written when none ran is somebody else's.
The rest may be the agent's: that is a guess, and whoever takes it back says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ahpkit.changes.sides import Pair, Side, same

COARSE = 20_000_000
"""Nanoseconds by which the time of a file may be older than the clock."""

_MAX_LOOKS = 30
"""Looks at the files of one turn that are told apart. The oldest are put together."""

_OVER = frozenset({"completed", "cancelled", "pending-result-confirmation"})
_WAITING = frozenset({"pending-confirmation", "auth-required"})


@dataclass
class Look:
    """The files at one moment of a turn."""

    tree: str
    told: set[str] = field(default_factory=set[str])
    """Files that the agent said it wrote since the look before."""
    theirs: set[str] = field(default_factory=set[str])
    """Files that somebody else wrote since the look before."""
    instead: dict[str, Side | None] = field(default_factory=dict[str, "Side | None"])
    """Files that an undo put back later, as if they had been so then."""


@dataclass
class _Call:
    """A tool call that is not over."""

    since: int
    ran_at: int | None = None
    waits: bool = False
    """A person decides about it: nothing runs."""
    asked: bool = False


class Activity:
    """One running turn: when its agent could write files, and what was seen of them. Times are in nanoseconds."""

    def __init__(self, began: int, tree: str, *, outside_calls: bool | None) -> None:
        """`outside_calls`: the agent may write also while none of its tool calls runs. None: it does not, once it was
        seen to report a call."""
        self.began = began
        self.looks = [Look(tree)]
        self.times: dict[str, int | None] = {}
        """Changed file → when it was last written, at the last look at it; None: it was gone."""
        self._outside_calls = outside_calls
        self._open: dict[str, _Call] = {}
        self._spans: list[tuple[int, int]] = []
        """When calls ran that are over."""

    def saw_call(self, id: str, status: str, now: int) -> None:
        """A tool call has this status now."""
        self._outside_calls = bool(self._outside_calls)
        call = self._open.get(id)
        if status in _OVER:
            if call is not None and not call.waits:
                self._spans.append((self._began_to_run(call, now), now))
            self._open.pop(id, None)
        elif status in _WAITING:
            if call is not None and call.ran_at is not None:
                self._spans.append((call.ran_at, now))
            self._open[id] = _Call(now, waits=True, asked=True)
        elif call is None or call.waits:
            self._open[id] = _Call(now, now if status == "running" else None, asked=call is not None and call.asked)
        elif status == "running" and call.ran_at is None:
            call.ran_at = now

    def _began_to_run(self, call: _Call, now: int) -> int:
        """Some agents say that a call runs, or even that there is one, only when it is over."""
        since = call.since if call.ran_at is None or now - call.ran_at < COARSE else call.ran_at
        if now - since < COARSE and not call.asked:
            return max([self.began, *(end for _, end in self._spans)])
        return since

    def add_look(self, look: Look) -> None:
        """Remember the files as they are after what was told."""
        last = self.looks[-1]
        if last.tree == look.tree:
            last.told |= look.told
            last.theirs |= look.theirs
        else:
            self.looks.append(look)
        if len(self.looks) > _MAX_LOOKS:
            gone = self.looks.pop(1)
            self.looks[1].told |= gone.told
            self.looks[1].theirs |= gone.theirs

    def begin_with(self, sides: Mapping[str, Side | None]) -> None:
        """Files were put back: the turn seems to have begun with them as they are now."""
        for look in self.looks:
            look.instead |= sides
            look.theirs -= sides.keys()

    def is_of_others(self, written_at: int | None) -> bool:
        """Whether somebody else must have written a file that was last written at a time; None: it was removed."""
        if self._outside_calls is not False:
            return False
        running = [call.since if call.ran_at is None else call.ran_at for call in self._open.values() if not call.waits]
        if written_at is None:
            return not running and not self._spans
        spans = [*self._spans, *((since, written_at) for since in running)]
        return not any(since - COARSE <= written_at <= end + COARSE for since, end in spans)

    def doubted(self, paths: Collection[str]) -> set[str]:
        """Of changed files those that somebody else wrote, perhaps besides the agent."""
        theirs = {path for look in self.looks for path in look.theirs}
        return {path for path in paths if path in theirs or self.is_of_others(self.times.get(path))}

    def pieces_of_others(self, path: str, sides: Sequence[Mapping[str, Side]]) -> tuple[Pair, list[Pair] | None]:
        """A file before and after, and what somebody else changed in it. `sides`: what each of the looks saw.

        The time of a file says only who wrote it last. What was changed in it before counts as the agent's. None: the
        agent wrote it, and somebody else did before anybody looked, so that the two cannot be told apart.
        """
        seen = [
            look.instead[path] if path in look.instead else one.get(path)
            for look, one in zip(self.looks, sides, strict=True)
        ]
        changed = [number for number in range(1, len(seen)) if not same(seen[number - 1], seen[number])]
        last_is_theirs = self.is_of_others(self.times.get(path))
        if last_is_theirs and changed and path in self.looks[changed[-1]].told:
            return (seen[0], seen[-1]), None
        pieces = [
            (seen[number - 1], seen[number])
            for number in changed
            if path in self.looks[number].theirs or (last_is_theirs and number == changed[-1])
        ]
        return (seen[0], seen[-1]), pieces


__all__ = ["COARSE", "Activity", "Look"]
