"""Computes what one session changed: per turn, and all turns together.

A turn is the span between two checkpoints. What other people change between two turns is therefore never the session's.
In a git work tree everything that differs between two checkpoints was changed. Elsewhere only the files that the agent
reported count (`edits_only`), and the checkpoint before a turn is whole only where there are not too many files.

The record is plain data, so that a host can keep it beside its log and go on after a restart.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ahpkit.changes.undo import Mixed, Outcome, Pair, own_steps, same, undo, versions, without
from ahpkit.changes.work_tree import IGNORE_FILE, FileChange, Side, WorkTree

MAX_TURNS = 2_000
"""Turns whose own changes can be looked at. The sum over all of them is kept beyond that."""

_IGNORED = "git ignored it before"
_UNKNOWN = "there are too many files here to know what it held"


@dataclass
class TurnRecord:
    """One turn: trees before and after it, and what in between was not its doing."""

    turn_id: str
    before: str
    after: str = ""
    chat: str = ""
    foreign: list[str] = field(default_factory=list[str])
    """Paths that another session is known to have written meanwhile."""
    outside: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Path → why its content was not kept before the turn, and its mark then."""
    unkept: dict[str, str] = field(default_factory=dict[str, str])
    """Path → why it is only named: it changed in the turn, and its content before or after was not kept."""
    is_open: bool = False
    """It is not part of the sums yet."""
    partial: bool = False
    """The tree before it does not hold all files: what a file held that is not in it is not known."""
    told: list[str] = field(default_factory=list[str])
    """Paths that the agent is known to have written in it, once it is over."""
    unsure: list[str] = field(default_factory=list[str])
    """Paths that another session, which worked here at the same time, may have written."""


@dataclass
class Record:
    """Everything that is remembered about a session."""

    turns: dict[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    total: dict[str, Pair] = field(default_factory=dict[str, Pair])
    """Path → before the session first touched it, and after it last did."""
    between: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    """Path → what others changed in between."""
    unsure: list[str] = field(default_factory=list[str])
    """Paths in the sum that another session may have written."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Path → why its content was not kept."""
    chats: dict[str, dict[str, Pair]] = field(default_factory=dict[str, dict[str, Pair]])
    """Chat → the same sum over its turns only."""

    def to_json(self) -> dict[str, Any]:
        return {
            "turns": [vars(turn) for turn in self.turns.values()],
            "total": _sum_to_json(self.total),
            "between": {path: [_pair_to_json(pair) for pair in pairs] for path, pairs in self.between.items()},
            "unsure": self.unsure,
            "notes": self.notes,
            "chats": {chat: _sum_to_json(total) for chat, total in self.chats.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        turns = [_turn_from_json(turn) for turn in data.get("turns", ())]
        chats = {chat: _sum_from_json(total) for chat, total in data.get("chats", {}).items()}
        total, notes = _sum_from_json(data.get("total", {})), dict(data.get("notes", {}))
        between = {path: [*map(_pair_from_json, pairs)] for path, pairs in data.get("between", {}).items()}
        known = {turn.turn_id: turn for turn in turns}
        return cls(known, total, between, list(data.get("unsure", ())), notes, chats)


class SessionChanges:
    """Follows one session in one work tree."""

    def __init__(self, tree: WorkTree, record: Record | None = None, *, edits_only: bool = False) -> None:
        self.tree = tree
        self.record = record or Record()
        self.edits_only = edits_only
        self.told: set[str] = set()
        """Paths that the agent of this session is known to have written in the running turns."""
        self._began: dict[str, int] = {}
        """When the running turns began, in nanoseconds."""
        self._final: set[str] = set()
        """Turns whose final checkpoint is taken."""
        self._of_chats: dict[str, list[FileChange]] = {}
        """A cache of what each chat changed; new changes remove the chat from it."""

    async def begin(self, turn_id: str, chat: str = "") -> None:
        """Remember the files as they are before a turn of a chat."""
        self._final.discard(turn_id)
        self._began[turn_id] = self.tree.clock()
        partial = self.edits_only and not await self.tree.is_small()
        checkpoint = await self.tree.checkpoint(await self.tree.known() if partial else None)
        outside = {path: [why, checkpoint.marks[path]] for path, why in checkpoint.left_out.items()}
        self.record.turns[turn_id] = TurnRecord(
            turn_id, checkpoint.tree, chat=chat, outside=outside, is_open=True, partial=partial
        )
        while len(self.record.turns) > MAX_TURNS:
            del self.record.turns[next(iter(self.record.turns))]

    async def take_final_checkpoint(self, turn_id: str) -> None:
        """Take the last checkpoint of a turn. Clients get the turn's end afterwards.

        With `edits_only` this does nothing: the agent may still report edits, so `end` takes the checkpoint.
        """
        if not self.edits_only:
            await self.refresh(turn_id)
            self._final.add(turn_id)

    async def refresh(self, turn_id: str, paths: Collection[str] | None = None) -> None:
        """Look at the files again while a turn runs; with `paths` at these only."""
        if turn_id in self._final:
            await self._name_elsewhere(turn_id, paths or ())
            return
        if paths is None and self.edits_only:
            paths = set(self.told)
        checkpoint = await self.tree.checkpoint(paths)
        if (turn := self.record.turns.get(turn_id)) is None:  # It was truncated away meanwhile.
            return
        turn.after = checkpoint.tree
        turn.unkept |= {
            path: why
            for path, why in checkpoint.left_out.items()
            if path not in turn.outside or turn.outside[path][1] != checkpoint.marks[path]
        }
        # What was left out before and is not any more has gone, or is small now.
        looked_at = set(turn.outside) if paths is None else set(turn.outside).intersection(paths)
        turn.unkept |= {path: turn.outside[path][0] for path in looked_at if path not in checkpoint.left_out}
        if turn.partial and paths is not None:
            known = await self.tree.sides(turn.before, paths)
            turn.unkept |= {path: _UNKNOWN for path in paths if path not in known}
        turn.unkept |= dict.fromkeys(await self._seen_late(turn), _IGNORED)
        self.record.notes |= turn.unkept

    async def _seen_late(self, turn: TurnRecord) -> set[str]:
        """Files that seem to be new, but were only ignored when the turn began: what they held then is not known."""
        changes = [change for change in await self.tree.compare(turn.before, turn.after) if change.after is not None]
        new = {change.path for change in changes if change.before is None or change.before.path != change.path}
        new -= turn.unkept.keys()
        late = await asyncio.to_thread(self.tree.older, new, self._began.get(turn.turn_id, 0))
        rules_changed = any(os.path.basename(path) == IGNORE_FILE for change in changes for path in change.paths)
        doubtful = new - late if rules_changed else (new - late) & self.tree.tracked_late
        return late | await self.tree.match_ignored(doubtful, turn.before)

    async def _name_elsewhere(self, turn_id: str, paths: Collection[str]) -> None:
        """A look at all files does not see those of a submodule. The agent may tell of them last."""
        if (turn := self.record.turns.get(turn_id)) is not None:
            turn.unkept |= await self.tree.elsewhere(paths)
            self.record.notes |= turn.unkept

    async def end(self, turn_id: str) -> None:
        """Close a turn and add what it changed to the session's sum."""
        if turn_id not in self.record.turns:
            self._final.discard(turn_id)
            return
        await self.refresh(turn_id)
        self._final.discard(turn_id)
        if (turn := self.record.turns.get(turn_id)) is not None:
            turn.told = sorted(self.told)
            await self._count(turn)
        self.told.clear()

    async def _count(self, turn: TurnRecord) -> None:
        changed, record = await self.turn(turn.turn_id), self.record
        record.total, record.between = await asyncio.to_thread(_with, record.total, changed, record.between)
        if changed and turn.chat:
            record.chats[turn.chat], _ = await asyncio.to_thread(_with, record.chats.get(turn.chat, {}), changed)
            self._of_chats.pop(turn.chat, None)
        turn.is_open = False

    async def count_interrupted(self) -> None:
        """Add turns to the sums that a host did not live to add, as far as it had seen them."""
        for turn in [turn for turn in self.record.turns.values() if turn.is_open]:
            await self._count(turn)

    def doubt(self, turn_id: str, theirs: Collection[str], told: Collection[str]) -> None:
        """Another session worked here while a turn ran. `theirs`: the paths that changed while it did; `told`: those
        of them that it is known to have written. What changed in both may be from either, unless only one of them
        reported it."""
        if (turn := self.record.turns.get(turn_id)) is None:
            return
        own = set(turn.told) - set(told)
        turn.unsure = sorted({*turn.unsure, *(set(theirs) - own)})
        self.record.unsure = sorted({*self.record.unsure, *turn.unsure})

    async def turn(self, turn_id: str) -> list[FileChange]:
        """What one turn changed; nothing when it was truncated away."""
        if (turn := self.record.turns.get(turn_id)) is None:
            return []
        changes = await self.tree.compare(turn.before, turn.after or turn.before)
        hidden = {*turn.foreign, *turn.unkept}
        named = [_noted(path, why) for path, why in sorted(turn.unkept.items()) if path not in turn.foreign]
        shown = (change if change.path not in hidden else _removal(change) for change in changes)
        return [*(change for change in shown if change is not None and not change.paths & hidden), *named]

    async def between(self, first: str, last: str) -> list[FileChange]:
        """What changed from the start of one turn to the end of another."""
        start, end = self.record.turns[first], self.record.turns[last]
        return await self.tree.compare(start.before, end.after or end.before)

    async def session(self, running: Iterable[str] = ()) -> list[FileChange]:
        """What all turns changed, those that still run included."""
        total, _, counted = await self._sum(running)
        return [*await compare_pairs(self.tree, total, counted), *self._noted(total)]

    async def _sum(
        self, running: Iterable[str]
    ) -> tuple[Mapping[str, Pair], Mapping[str, Sequence[Pair]], list[FileChange]]:
        """The session's sum with turns that still run; what others changed in between; and what those turns changed."""
        counted = [change for turn_id in running for change in await self.turn(turn_id) if not change.note]
        if not counted:
            return self.record.total, self.record.between, []
        return *await asyncio.to_thread(_with, self.record.total, counted, self.record.between), counted

    async def chat(self, chat: str) -> list[FileChange]:
        """What the finished turns of one chat changed."""
        if chat not in self._of_chats:
            self._of_chats[chat] = await compare_pairs(self.tree, self.record.chats.get(chat, {}))
        return self._of_chats[chat]

    async def uncommitted(self) -> list[FileChange]:
        """Everything that differs from the last commit, whoever changed it."""
        changes, left_out = await self.tree.uncommitted()
        return [*changes, *(_noted(path, why) for path, why in sorted(left_out.items()))]

    async def undo(
        self, turn_id: str | None = None, *, only: Collection[str] | None = None, running: Collection[str] = ()
    ) -> Outcome:
        """Take back what a turn changed; without one what all turns did, those that still run included.

        What is undone is no longer part of the session's sum, nor the work of a running turn.
        """
        if turn_id is not None:
            changes, unsure = await self.turn(turn_id), self.record.turns[turn_id].unsure
            outcome = await undo(self.tree, changes, only=only, unsure=unsure)
        else:
            changes, (_, between, _) = await self.session(running), await self._sum(running)
            outcome = await undo(self.tree, changes, only=only, between=between, unsure=self.record.unsure)
        now = await self._resum(outcome)
        for one in running:
            if (turn := self.record.turns.get(one)) is not None:
                await self._begin_without(turn, versions(changes, outcome.undone), now)
        return outcome

    async def _begin_without(self, turn: TurnRecord, undone: Mapping[str, Pair], now: Mapping[str, Side]) -> None:
        """Have a running turn begin as if what is undone now had never been there: else it seems to have undone it."""
        began = await self.tree.sides(turn.before, undone.keys())
        instead = {
            path: before
            for path, (before, after) in undone.items()
            if _key(before) == _key(now.get(path)) or _key(after) == _key(began.get(path))
        }
        turn.before = await self.tree.tree_with(turn.before, instead)

    def accept(self, paths: Collection[str]) -> None:
        """Keep changes for good: they leave the session's sum, and undoing the session leaves them alone."""
        self._of_chats.clear()
        for path in paths:
            for total in (self.record.total, *self.record.chats.values()):
                total.pop(path, None)
            self.record.notes.pop(path, None)
            self.record.between.pop(path, None)
        self.record.unsure = [path for path in self.record.unsure if path not in paths]

    async def _resum(self, outcome: Outcome) -> Mapping[str, Side]:
        """Count some files again, as they are now."""
        paths = outcome.undone
        checkpoint = await self.tree.checkpoint(paths)
        now = await self.tree.sides(checkpoint.tree, paths)
        self._of_chats.clear()
        record = self.record
        for path in paths:
            latest = record.total.get(path, (None, None))[1]
            for total in record.chats.values():
                # A chat whose change lies under a later one keeps it.
                if path in total and _key(total[path][1]) == _key(latest):
                    add(total, FileChange(total[path][1], now.get(path)), path)
            if path in record.total:
                add(record.total, FileChange(outcome.was[path], now.get(path)), path, record.between)
                if await self._is_of_others(path, now.get(path)):
                    for total in (record.total, *record.chats.values()):
                        total.pop(path, None)
                    record.between.pop(path, None)
        return now

    async def _is_of_others(self, path: str, now: Side | None) -> bool:
        """Whether nothing of this session is left in a file that others changed as well."""
        if path not in self.record.total or path not in self.record.between:
            return False
        try:
            steps = own_steps(self.record.total[path], self.record.between[path])
            return same(await without(self.tree, steps, now), now)
        except Mixed:
            return False

    def _noted(self, total: Mapping[str, Pair]) -> list[FileChange]:
        return [_noted(path, why) for path, why in sorted(self.record.notes.items()) if path not in total]


def _with(
    total: Mapping[str, Pair], changes: Iterable[FileChange], between: Mapping[str, Sequence[Pair]] | None = None
) -> tuple[dict[str, Pair], dict[str, list[Pair]]]:
    """A sum with more changes, and what others changed in between; those whose content is not known are no part."""
    summed, others = dict(total), {path: [*pairs] for path, pairs in (between or {}).items()}
    for change in changes:
        if not change.note:
            add(summed, change, between=others)
    return summed, others


def add(
    total: dict[str, Pair], change: FileChange, path: str | None = None, between: dict[str, list[Pair]] | None = None
) -> None:
    """Add one change to a sum. A file that is again what it was at first leaves it. When a change does not begin where
    the last one ended, others changed the file: `between` gets the difference."""
    for name in {path} if path is not None else change.paths:
        before = change.before if change.before is not None and change.before.path == name else None
        after = change.after if change.after is not None and change.after.path == name else None
        first, last = total.get(name, (before, before))
        if between is not None and not same(last, before):
            between.setdefault(name, []).append((last, before))
        if same(first, after):
            total.pop(name, None)
            if between is not None:
                between.pop(name, None)
        else:
            total[name] = (first, after)


async def compare_pairs(
    tree: WorkTree, total: Mapping[str, Pair], counted: Iterable[FileChange] = ()
) -> list[FileChange]:
    """Changes with renames and line counts from befores and afters of single files.

    A file that is on both sides is part of no rename, so its change can be taken from `counted` where it is the same.
    """
    known, befores, afters = await asyncio.to_thread(_split_known, total, counted)
    if not befores and not afters:
        return known
    compared = await tree.compare(await tree.tree_of(befores), await tree.tree_of(afters))
    return await asyncio.to_thread(_in_order, [*known, *compared])


def _split_known(
    total: Mapping[str, Pair], counted: Iterable[FileChange]
) -> tuple[list[FileChange], list[Side], list[Side]]:
    """Changes that are known already; the befores and the afters of all others."""
    edits = {(change.before, change.after): change for change in counted}
    known = {path: edits[pair] for path, pair in total.items() if None not in pair and pair in edits}
    rest = [pair for path, pair in total.items() if path not in known]
    befores = [before for before, _ in rest if before is not None]
    afters = [after for _, after in rest if after is not None]
    return _in_order(known.values()), befores, afters


def _in_order(changes: Iterable[FileChange]) -> list[FileChange]:
    """Sorted by path, as git lists them."""
    return sorted(changes, key=lambda change: os.fsencode(change.path))


def _removal(change: FileChange) -> FileChange | None:
    """What is left of a change when the file that is there afterwards is not looked at."""
    is_rename = change.before is not None and change.after is not None and change.before.path != change.after.path
    return FileChange(change.before, None) if is_rename else None


def _noted(path: str, why: str) -> FileChange:
    return FileChange(None, Side(path, "100644", ""), note=why)


def _key(side: Side | None) -> tuple[str, str] | None:
    return None if side is None else (side.mode, side.oid)


def _turn_from_json(data: Mapping[str, Any]) -> TurnRecord:
    """A turn as it was kept, also by a version that kept more of it."""
    known = {one.name for one in fields(TurnRecord)}
    return TurnRecord(**{name: value for name, value in data.items() if name in known})


def _sum_to_json(total: Mapping[str, Pair]) -> dict[str, Any]:
    return {path: _pair_to_json(pair) for path, pair in total.items()}


def _sum_from_json(data: Mapping[str, Any]) -> dict[str, Pair]:
    return {path: _pair_from_json(pair) for path, pair in data.items()}


def _pair_to_json(pair: Pair) -> list[Any]:
    return [_to_json(side) for side in pair]


def _pair_from_json(data: Sequence[Any]) -> Pair:
    return _from_json(data[0]), _from_json(data[1])


def _to_json(side: Side | None) -> list[str] | None:
    return None if side is None else [side.path, side.mode, side.oid]


def _from_json(data: list[str] | None) -> Side | None:
    return None if data is None else Side(*data)


__all__ = ["MAX_TURNS", "Record", "SessionChanges", "TurnRecord", "add"]
