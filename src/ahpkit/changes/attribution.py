"""Tells who wrote a file while a turn ran: its agent, or somebody else. Pure.

If the agent reports which files it wrote, nothing has to be guessed. Other files may have changed as well. An agent
that works through tool calls writes only while one of them runs. So a file that was last written while no call ran was
written by somebody else. All other files count as the agent's. That is a guess, and an undo of such a file says so.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from ahpkit.changes.sides import Pair, Side, own_steps, same
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import ACP
from ahpkit.tools.subject import subject_of

COARSE = 20_000_000
"""Nanoseconds by which the time of a file may be older than the clock."""

_LATE = 1_000_000_000
"""Nanoseconds between the start of a call and the agent's report that it runs, for agents that run their calls
themselves. The report comes through a pipe, and a busy host reads it late."""

_MAX_LOOKS = 30
"""Looks at the files of one turn that are kept separately. Older ones are merged."""

_MAX_INPUT = 256 * 1024
"""Characters of a call's input in which paths are searched. Searching a longer input would block the event loop; most
of it is the text of a file."""

_OVER = frozenset({"completed", "cancelled", "pending-result-confirmation"})
_WAITING = frozenset({"pending-confirmation", "auth-required"})


@dataclass
class Observation:
    """The result of one look at the files: the changes at that moment of a turn."""

    tree: str
    reported: set[str] = field(default_factory=set[str])
    """Files that the agent has reported as written since the previous look."""
    theirs: set[str] = field(default_factory=set[str])
    """Files that somebody else wrote since the previous look."""
    instead: dict[str, Side | None] = field(default_factory=dict[str, "Side | None"])
    """Files that an undo restored later. They count as if they had this content already at this look."""


@dataclass
class _Call:
    """A tool call that is not over."""

    since: int
    ran_at: int | None = None
    waits: bool = False
    """Whether a person is deciding about it, so that it does not run."""
    asked: bool = False


class _Spans:
    """The periods in which the agent could write, for checking very many files."""

    def __init__(self, over: Collection[tuple[int, int]], running: Collection[int]) -> None:
        """`over`: start and end of each period in which calls ran; `running`: the starts of calls that still run."""
        self._any = bool(over or running)
        self._starts = sorted(since for since, _ in over)
        self._latest_ends = list(accumulate((end for _, end in sorted(over)), max))
        """For each span: the latest end among it and all spans before it."""
        self._running_since = min(running, default=None)

    def hold(self, written_at: int | None) -> bool:
        """Whether the agent can have written a file at this time. None: the file was removed, at an unknown time."""
        if written_at is None:
            return self._any
        if self._running_since is not None and self._running_since - COARSE <= written_at:
            return True
        begun = bisect_right(self._starts, written_at + COARSE)
        return begun > 0 and written_at <= self._latest_ends[begun - 1] + COARSE


class Activity:
    """One running turn: the periods in which its agent could write files, and the looks at these files. Times are in
    nanoseconds."""

    def __init__(self, began: int, tree: str, *, outside_calls: bool | None, tells_late: bool = False) -> None:
        """`outside_calls`: whether the agent may write also while none of its tool calls runs. None: it does not, once
        it has reported a call. `tells_late`: the agent runs its calls itself, and may report a call when it is over."""
        self.began = began
        self.looks = [Observation(tree)]
        self.times: dict[str, int | None] = {}
        """Changed file → the time at which it was last written, as the last look saw it; None: the file was gone."""
        self._outside_calls = outside_calls
        self._tells_late = tells_late
        self._open: dict[str, _Call] = {}
        self._spans: list[tuple[int, int]] = []
        """The periods of the calls that are over."""

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
        """A call began to run. Agents that run calls themselves may report the call only when it is over. The calls of
        other agents are started by the host."""
        if not self._tells_late:
            return call.since if call.ran_at is None else call.ran_at
        since = call.since if call.ran_at is None or now - call.ran_at < COARSE else call.ran_at
        if now - since < COARSE and not call.asked:
            return self._free_since()
        return self._started(call, since)

    def _free_since(self) -> int:
        """The end of the last call that is over, or the beginning of the turn."""
        return max([self.began, *(end for _, end in self._spans)])

    def _started(self, call: _Call, reported_at: int) -> int:
        """The earliest time at which a call can have started that was reported at this time. A call about which a
        person was asked did not run before the answer."""
        if call.asked or not self._tells_late:
            return reported_at
        return min(reported_at, max(reported_at - _LATE, self._free_since()))

    def add_look(self, look: Observation) -> None:
        """Remember a look at the files, after the changes that were reported so far."""
        last = self.looks[-1]
        if last.tree == look.tree:
            last.reported |= look.reported
            last.theirs |= look.theirs
        else:
            self.looks.append(look)
        if len(self.looks) > _MAX_LOOKS:
            gone = self.looks.pop(1)
            self.looks[1].reported |= gone.reported
            self.looks[1].theirs |= gone.theirs

    def begin_with(self, sides: Mapping[str, Side | None]) -> None:
        """Files were restored by an undo. From now on the turn counts as if it had begun with their present content."""
        for look in self.looks:
            look.instead |= sides
            look.theirs -= sides.keys()

    def is_of_others(self, written_at: int | None) -> bool:
        """Whether somebody else must have written a file that was last written at this time. None: the file was
        removed."""
        return self._outside_calls is False and not self._when_it_ran().hold(written_at)

    def _when_it_ran(self) -> _Spans:
        calls = [call for call in self._open.values() if not call.waits]
        running = [self._started(call, call.since if call.ran_at is None else call.ran_at) for call in calls]
        return _Spans(self._spans, running)

    def seen(self) -> TurnCopy:
        """A copy of the present knowledge. A thread uses it to find out who wrote very many files, while the turn goes
        on."""
        looks = [Observation(look.tree, {*look.reported}, {*look.theirs}, {**look.instead}) for look in self.looks]
        return TurnCopy(looks, {**self.times}, None if self._outside_calls is not False else self._when_it_ran())


@dataclass
class ForeignChanges:
    """The changes of somebody else in a turn."""

    theirs: list[str] = field(default_factory=list[str])
    """Files that only somebody else wrote."""
    pieces: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    """Path → what somebody else changed in a file that the agent changed as well."""
    mixed: list[str] = field(default_factory=list[str])
    """Files in which the changes of the agent and of others cannot be separated."""


@dataclass(frozen=True)
class TurnCopy:
    """A copy of the data about a running turn at one moment. It does not change."""

    looks: Sequence[Observation]
    times: Mapping[str, int | None]
    spans: _Spans | None
    """None: the agent can write at any time."""

    def _is_last_of_others(self, path: str) -> bool:
        return self.spans is not None and not self.spans.hold(self.times.get(path))

    def doubted(self, paths: Collection[str]) -> list[str]:
        """The changed files that somebody else wrote, perhaps besides the agent; sorted."""
        theirs = {path for look in self.looks for path in look.theirs}
        return sorted(path for path in paths if path in theirs or self._is_last_of_others(path))

    def tell_apart(self, doubted: Collection[str], sides: Sequence[Mapping[str, Side]]) -> ForeignChanges:
        """Find out who wrote the doubted files. `sides`: the content of these files at each look."""
        found = ForeignChanges()
        for path in doubted:
            whole, pieces = self._pieces_of_others(path, sides)
            if pieces is None:
                found.mixed.append(path)
            elif pieces and all(same(*step) for step in own_steps(whole, pieces)):
                found.theirs.append(path)
            elif pieces:
                found.pieces[path] = pieces
        return found

    def _pieces_of_others(self, path: str, sides: Sequence[Mapping[str, Side]]) -> tuple[Pair, list[Pair] | None]:
        """The first and last content of a file, and the changes of somebody else in between, as pairs of before and
        after.

        `sides`: its content at each look. The time of a file shows only who wrote it last; earlier changes count as the
        agent's. None: both the agent and somebody else wrote the file between two looks, so that their changes cannot
        be separated.
        """
        seen = [
            look.instead[path] if path in look.instead else one.get(path)
            for look, one in zip(self.looks, sides, strict=True)
        ]
        changed = [number for number in range(1, len(seen)) if not same(seen[number - 1], seen[number])]
        last_is_theirs = self._is_last_of_others(path)
        if last_is_theirs and changed and path in self.looks[changed[-1]].reported:
            return (seen[0], seen[-1]), None
        pieces = [
            (seen[number - 1], seen[number])
            for number in changed
            if path in self.looks[number].theirs or (last_is_theirs and number == changed[-1])
        ]
        return (seen[0], seen[-1]), pieces


def named_files(call: JsonObject, directory: Path) -> list[str]:
    """URIs of the files that a call names: in its input, in the edits that a person is asked about, and in the
    locations that an ACP agent reports."""
    asked: JsonObject = call.get("edits") or {}
    edits: Sequence[JsonObject] = asked.get("items") or ()
    sides: list[JsonObject] = [edit.get(name) or {} for edit in edits for name in ("before", "after")]
    given = call.get("toolInput")
    text = given if isinstance(given, str) and len(given) <= _MAX_INPUT else ""
    named = subject_of("", "", text, workspace=str(directory)).paths
    paths = [*named, *_located(call)]
    return [*(side["uri"] for side in sides if "uri" in side), *(Path(path).as_uri() for path in paths)]


def _located(call: JsonObject) -> list[str]:
    """The absolute paths among the locations that an agent reported with a call. The report is not validated, so it may
    have any shape."""
    meta: JsonObject = call.get("_meta") or {}
    details: Any = meta.get(ACP)
    places: Any = cast("JsonObject", details).get("locations") if isinstance(details, dict) else None
    listed = cast("list[Any]", places) if isinstance(places, list) else []
    paths = [cast("JsonObject", place).get("path") for place in listed if isinstance(place, dict)]
    return [path for path in paths if isinstance(path, str) and os.path.isabs(path)]


__all__ = ["COARSE", "Activity", "Observation", "named_files"]
