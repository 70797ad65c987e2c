"""Computes the changes of one session: of each turn, and of all turns together.

A turn is the span between two checkpoints. So changes of other people between two turns never count as the session's.
In a git work tree everything that differs between two checkpoints was changed. Outside git only the files that the
agent reported count (`edits_only`), and the checkpoint before a turn has all files only if they are not too many.
Somebody else may write during a turn as well: `attribution` finds out who wrote what.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from ahpkit.changes.attribution import Activity, Observation
from ahpkit.changes.blobs import Blobs
from ahpkit.changes.record import Record, TurnRecord, UndoRecord, add, with_changes
from ahpkit.changes.sides import FileChange, Pair, Side, own_steps, paths_of, same
from ahpkit.changes.undo import MixedChanges, Outcome, undo, unhurried, versions, without
from ahpkit.changes.work_tree import IGNORE_FILE, WorkTree

MAX_TURNS = 2_000
"""Turns whose own changes are kept. The sum over all turns is kept for longer."""

_MAX_UNDONE = 5_000
"""Files in all undos that redo can bring back. The last undo can always be brought back, even if it has more files."""

_SHARED = "another session changed it at the same time"
_MIXED = "somebody else changed it just after the agent"
_IGNORED = "git ignored it before"
_UNKNOWN = "there are too many files here to know what it held"


class SessionChanges:
    """Follows one session in one work tree."""

    def __init__(self, tree: WorkTree, record: Record | None = None, *, edits_only: bool = False) -> None:
        self.tree = tree
        self.record = record or Record()
        self.edits_only = edits_only
        self.reported: set[str] = set()
        """Paths that the agent of this session is known to have written in the running turns."""
        self._active: dict[str, Activity] = {}
        """By id of a running turn: the periods in which its agent could write, and the looks at its files."""
        self._final: set[str] = set()
        """Turns whose final checkpoint is taken."""
        self._read_last: dict[str, set[str]] = {}
        """With `edits_only`: for each turn that is ending, the files that the final checkpoint has read."""
        self._of_chats: dict[str, list[FileChange]] = {}
        """A cache of the changes of each chat. New changes in a chat remove its entry."""

    async def begin(self, turn_id: str, chat: str = "", *, outside_calls: bool | None = True) -> None:
        """Remember the files as they are before a turn of a chat. `outside_calls`: its agent may write also while none
        of its tool calls runs. None: it does not, once it was seen to report a call."""
        tells_late = outside_calls is None
        if tells_late and self.record.saw_calls:
            outside_calls = False
        self._final.discard(turn_id)
        self._read_last.pop(turn_id, None)
        began = self.tree.clock()
        partial = self.edits_only and not await self.tree.is_small()
        checkpoint = await self.tree.checkpoint(await self.tree.known() if partial else None)
        outside = {path: [why, checkpoint.marks[path]] for path, why in checkpoint.left_out.items()}
        self.record.turns[turn_id] = TurnRecord(
            turn_id, checkpoint.tree, chat=chat, outside=outside, is_open=True, partial=partial
        )
        self._active[turn_id] = Activity(began, checkpoint.tree, outside_calls=outside_calls, tells_late=tells_late)
        while len(self.record.turns) > MAX_TURNS:
            del self.record.turns[next(iter(self.record.turns))]

    async def take_final_checkpoint(self, turn_id: str) -> None:
        """Take the final checkpoint of a turn, before clients get the turn's end.

        With `edits_only` the agent may still report edits of other files; `end` reads those.
        """
        if not self.edits_only:
            await self.refresh(turn_id)
            self._final.add(turn_id)
        elif self.reported:
            reported = {*self.reported}
            await self.refresh(turn_id)
            self._read_last[turn_id] = reported

    async def refresh(self, turn_id: str, paths: Collection[str] | None = None) -> None:
        """Look at the files again while a turn runs; with `paths` only at these."""
        if turn_id in self._final:
            await self._name_elsewhere(turn_id, paths or ())
            if (activity := self._active.get(turn_id)) is not None:
                activity.looks[-1].reported |= {*(paths or ())}
            return
        if paths is None and self.edits_only:
            paths = set(self.reported)
        if paths is not None and turn_id in self._read_last:
            paths = set(paths) - self._read_last[turn_id]
            if not paths:
                return
        checkpoint = await self.tree.checkpoint(paths)
        if (turn := self.record.turns.get(turn_id)) is None:  # It was truncated away meanwhile.
            return
        turn.after = checkpoint.tree
        turn.unkept |= {
            path: why
            for path, why in checkpoint.left_out.items()
            if path not in turn.outside or turn.outside[path][1] != checkpoint.marks[path]
        }
        # A file that was left out before and is not any more was removed, or is small now.
        looked_at = set(turn.outside) if paths is None else set(turn.outside).intersection(paths)
        turn.unkept |= {path: turn.outside[path][0] for path in looked_at if path not in checkpoint.left_out}
        if turn.partial and paths is not None:
            known = await self.tree.sides(turn.before, paths)
            turn.unkept |= {path: _UNKNOWN for path in paths if path not in known}
        turn.unkept |= dict.fromkeys(await self._seen_late(turn), _IGNORED)
        self.record.notes |= turn.unkept
        if (activity := self._active.get(turn_id)) is not None:
            activity.add_look(Observation(checkpoint.tree, reported={*(paths or ())}))
            await self._attribute(turn, activity, paths)

    def saw_call(self, call_id: str, status: str) -> None:
        """A tool call has this status now. It may be a sub-agent's, so it counts for all turns that run."""
        for activity in self._active.values():
            activity.saw_call(call_id, status, self.tree.clock())
            self.record.saw_calls = True

    async def written_by_others(self, turn_id: str, paths: Collection[str]) -> Mapping[str, int]:
        """The files that somebody else wrote since a turn began, with the times. No contents are read."""
        activity = self._active.get(turn_id)
        if activity is None or turn_id in self._final:
            return {}
        times = await asyncio.to_thread(self.tree.written_at, paths)
        return {path: at for path, at in times.items() if at and at > activity.began and activity.is_of_others(at)}

    async def look_before(self, turn_id: str, theirs: Mapping[str, int]) -> None:
        """Record the contents of files that somebody else wrote (found by `written_by_others`), before the agent writes
        them."""
        activity, turn = self._active.get(turn_id), self.record.turns.get(turn_id)
        if activity is None or turn is None or turn_id in self._final:
            return
        checkpoint = await self.tree.checkpoint(theirs)
        again = await asyncio.to_thread(self.tree.written_at, theirs)
        turn.after = checkpoint.tree
        activity.add_look(Observation(checkpoint.tree, theirs={path for path in theirs if again[path] == theirs[path]}))

    async def _attribute(self, turn: TurnRecord, activity: Activity, looked_at: Collection[str] | None) -> None:
        """Separate the changes of the agent from those of somebody else. `looked_at`: files that were just read."""
        changes = await self.tree.compare(turn.before, turn.after or turn.before)
        paths = await asyncio.to_thread(paths_of, changes)
        new = paths if looked_at is None else {*(paths - activity.times.keys()), *paths.intersection(looked_at)}
        activity.times |= await asyncio.to_thread(self.tree.written_at, new, activity.began)
        seen = activity.seen()
        doubted = await asyncio.to_thread(seen.doubted, paths)
        sides = [await self.tree.sides(look.tree, doubted) for look in seen.looks] if doubted else []
        others = await asyncio.to_thread(seen.tell_apart, doubted, sides)
        guessed = await asyncio.to_thread(sorted, paths - self.reported - {*others.theirs})
        turn.theirs, turn.others, turn.mixed, turn.guessed = others.theirs, others.pieces, others.mixed, guessed

    async def _seen_late(self, turn: TurnRecord) -> set[str]:
        """Files that seem to be new, but were ignored when the turn began. Their content at that time is not known."""
        changes = await self.tree.compare(turn.before, turn.after)
        activity = self._active.get(turn.turn_id)
        began = 0 if activity is None else activity.began
        new, rules_changed = await asyncio.to_thread(self._new_files, changes, {*turn.unkept}, began)
        late = await asyncio.to_thread(self.tree.older, new, began)
        doubtful = new - late if rules_changed else (new - late) & self.tree.tracked_late
        return late | await self.tree.match_ignored(doubtful, turn.before)

    def _new_files(self, changes: Iterable[FileChange], unkept: Collection[str], began: int) -> tuple[set[str], bool]:
        """Paths that were not there before, without the unkept ones and those that only came with their folder; and
        whether a file that says what git ignores changed. Called in a thread."""
        present = [change for change in changes if change.after is not None]
        moved = (change for change in present if change.before is None or change.before.path != change.path)
        new = {change.path for change in moved if not self.tree.moved_with_folder(change, began)}
        return new.difference(unkept), any(os.path.basename(path) == IGNORE_FILE for path in paths_of(present))

    async def _name_elsewhere(self, turn_id: str, paths: Collection[str]) -> None:
        """Note reported files that lie in a submodule, because a look at all files does not find them."""
        if (turn := self.record.turns.get(turn_id)) is not None:
            turn.unkept |= await self.tree.elsewhere(paths)
            self.record.notes |= turn.unkept

    async def end(self, turn_id: str) -> None:
        """Close a turn and add what it changed to the session's sum."""
        if turn_id in self.record.turns:
            await self.refresh(turn_id)
        activity, turn = self._active.pop(turn_id, None), self.record.turns.get(turn_id)
        self._final.discard(turn_id)
        self._read_last.pop(turn_id, None)
        if turn is None:
            return
        if activity is not None:  # The agent may have reported files after the last look.
            await self._attribute(turn, activity, ())
        turn.reported = sorted(self.reported)
        await self._count(turn)
        self.reported.clear()

    async def _count(self, turn: TurnRecord) -> None:
        changed, record = await self.turn(turn.turn_id), self.record
        sums = record.total, changed, record.between, turn.others
        record.total, record.between = await asyncio.to_thread(with_changes, *sums)
        if changed and turn.chat:
            record.chats[turn.chat], _ = await asyncio.to_thread(with_changes, record.chats.get(turn.chat, {}), changed)
            self._of_chats.pop(turn.chat, None)
        turn.is_open = False

    async def count_interrupted(self) -> None:
        """Add turns that an earlier run of the host did not finish to the sums, with the changes that it had seen."""
        for turn in [turn for turn in self.record.turns.values() if turn.is_open]:
            await self._count(turn)

    async def doubt(self, turn_id: str, theirs: Collection[str], reported: Collection[str]) -> None:
        """Another session worked here while a turn ran: note which files it may have written.

        `theirs`: the paths that changed while it did. `reported`: those of them that it is known to have written. A
        file that changed in both turns may be from either, unless only one of them reported it.
        """
        if (turn := self.record.turns.get(turn_id)) is None:
            return
        own = set(turn.reported) - set(reported)
        turn.unsure = await asyncio.to_thread(sorted, {*turn.unsure, *(set(theirs) - own)})
        self.record.unsure = await asyncio.to_thread(sorted, {*self.record.unsure, *turn.unsure})

    async def turn(self, turn_id: str) -> list[FileChange]:
        """The changes of one turn; none if it was truncated away."""
        if (turn := self.record.turns.get(turn_id)) is None:
            return []
        changes = await self.tree.compare(turn.before, turn.after or turn.before)
        foreign, unkept = {*turn.foreign}, {**turn.unkept}
        return await asyncio.to_thread(_shown, changes, {*foreign, *turn.theirs, *unkept}, foreign, unkept)

    async def between(self, first: str, last: str) -> list[FileChange]:
        """What changed from the start of one turn to the end of another."""
        start, end = self.record.turns[first], self.record.turns[last]
        return await self.tree.compare(start.before, end.after or end.before)

    async def session(self, running: Iterable[str] = ()) -> list[FileChange]:
        """What all turns changed, those that still run included."""
        total, _, counted = await self._sum(running)
        return [*await compare_pairs(self.tree, total, counted), *self._noted(total)]

    async def _sum(self, running: Iterable[str]) -> tuple[dict[str, Pair], dict[str, list[Pair]], list[FileChange]]:
        """The session's sum including running turns; what others changed in between; and what the running turns
        changed."""
        total, between, counted = self.record.total, self.record.between, list[FileChange]()
        for turn_id in running:
            if changed := [change for change in await self.turn(turn_id) if not change.note]:
                others = self.record.turns[turn_id].others
                total, between = await asyncio.to_thread(with_changes, total, changed, between, others)
                counted += changed
        return total, between, counted

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
        self,
        turn_id: str | None = None,
        *,
        only: Collection[str] | None = None,
        running: Collection[str] = (),
        store: Callable[[], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Undo the changes of a turn, or of all turns, including running ones. `store` makes the record durable before
        the first file is written: redo can then bring back also what a crash left half undone.

        The undone changes leave the session's sum and do not count for a running turn any more. Redo can bring them
        back.
        """
        turns = [self.record.turns[turn_id]] if turn_id is not None else [*self.record.turns.values()]
        if turn_id is not None:
            changes, between, unsure = await self.turn(turn_id), turns[0].others, turns[0].unsure
        else:
            changes, (_, between, _), unsure = await self.session(running), await self._sum(running), self.record.unsure
        doubts = dict.fromkeys(unsure, _SHARED) | {path: _MIXED for turn in turns for path in turn.mixed}
        earlier = self.record.undone

        async def remember(outcome: Outcome) -> None:
            self._remember_undo(outcome, outcome.was)
            if store is None or not outcome.was:
                return
            try:
                await store()
            except BaseException:
                self.record.undone = earlier
                raise

        outcome = await undo(self.tree, changes, only=only, between=between, doubts=doubts, before_writing=remember)
        self.record.undone = earlier
        self._remember_undo(outcome, outcome.undone)
        outcome.guessed = sorted({path for turn in turns for path in turn.guessed}.intersection(outcome.undone))
        await self._resum(outcome)
        for one in running:
            if (turn := self.record.turns.get(one)) is not None:
                whole = turn_id in (None, one)
                await self._begin_without(turn, versions(changes, outcome.undone), outcome.became, whole=whole)
        return outcome

    def _remember_undo(self, outcome: Outcome, paths: Collection[str]) -> None:
        """Keep an undo of these files for redo, and as many of the earlier undos as the limit of files allows."""
        if not paths:
            return
        undone = self.record.part({path: (outcome.was[path], outcome.became[path]) for path in paths})
        undone.raw = {path: outcome.raw[path] for path in paths if path in outcome.raw}
        room = _MAX_UNDONE
        kept = [undone]
        for one in reversed(self.record.undone):
            room -= 1 + len(one.files)
            if room < 0:
                break
            kept.insert(0, one)
        self.record.undone = kept

    def left_to_others(self, turn_id: str | None) -> dict[str, str]:
        """Files that changed during a turn (or during all turns), but were written by others. An undo reports that it
        left them alone."""
        turns = self.record.turns
        chosen = [turns[turn_id]] if turn_id in turns else [] if turn_id is not None else [*turns.values()]
        return {
            path: "somebody else wrote it while the turn ran"
            for turn in chosen
            for path in turn.theirs
            if path not in self.record.total
        }

    async def redo(self) -> Outcome:
        """Bring back the changes of the last undo. Files that somebody changed since are left alone."""
        if not self.record.undone:
            return Outcome()
        last = self.record.undone[-1]
        changes = [FileChange(was, now) for was, now in last.files.values()]
        outcome = await undo(self.tree, changes, exact=last.raw)
        self.record.undone.pop()
        self._of_chats.clear()
        now = outcome.became | outcome.back
        async for path in unhurried((*outcome.undone, *outcome.back)):
            if same(now[path], last.files[path][0]):
                self._count_again(path, last)
            elif path not in outcome.back:
                change = FileChange(outcome.was[path], outcome.became[path])
                add(self.record.total, change, path, self.record.between)
        return outcome

    def _count_again(self, path: str, undone: UndoRecord) -> None:
        """Restore the sums for a file to the state before the undo."""
        chats = [(self.record.chats.setdefault(chat, {}), total) for chat, total in undone.chats.items()]
        for total, before in chats:
            if path in before:
                total[path] = before[path]
        if path in undone.between:
            self.record.between[path] = undone.between[path]
        was, now = undone.files[path]  # If the turn was running when it was undone, no sum contained it.
        self.record.total[path] = undone.total.get(path, (now, was))

    async def _begin_without(
        self, turn: TurnRecord, undone: Mapping[str, Pair], now: Mapping[str, Side | None], *, whole: bool
    ) -> None:
        """Make a running turn count as if the undone changes had never existed. Otherwise the turn itself would seem to
        have undone them. `whole`: everything that the turn changed in these files is undone."""
        began = await self.tree.sides(turn.before, undone.keys())
        instead = {
            path: before
            for path, (before, after) in undone.items()
            if _key(before) == _key(now.get(path)) or _key(after) == _key(began.get(path))
        }
        if whole:
            instead |= {path: now.get(path) for path in undone if path in turn.others}
        turn.before = await self.tree.tree_with(turn.before, instead)
        if turn.after:  # The final checkpoint of this turn may be running.
            turn.after = await self.tree.tree_with(turn.after, {path: now.get(path) for path in undone})
        if (activity := self._active.get(turn.turn_id)) is not None:
            activity.begin_with(instead)
            activity.add_look(Observation(turn.after or turn.before))
            activity.times |= await asyncio.to_thread(self.tree.written_at, undone)

    def accept(self, paths: Collection[str]) -> None:
        """Accept changes: they leave the session's sum, so a later undo of the session does not touch them."""
        self._of_chats.clear()
        for path in paths:
            for total in (self.record.total, *self.record.chats.values()):
                total.pop(path, None)
            self.record.notes.pop(path, None)
            self.record.between.pop(path, None)
        self.record.unsure = [path for path in self.record.unsure if path not in paths]

    async def _resum(self, outcome: Outcome) -> None:
        """Count files again, in the state in which the undo left or found them."""
        self._of_chats.clear()
        record, was, now = self.record, outcome.was | outcome.back, outcome.became | outcome.back
        async for path in unhurried((*outcome.undone, *outcome.back)):
            latest = record.total.get(path, (None, None))[1]
            for total in record.chats.values():
                # A chat keeps a change that is below a later one.
                if path in total and _key(total[path][1]) == _key(latest):
                    add(total, FileChange(total[path][1], now.get(path)), path)
            if path in record.total:
                add(record.total, FileChange(was[path], now[path]), path, record.between)
                if await self._is_of_others(path, now.get(path)):
                    for total in (record.total, *record.chats.values()):
                        total.pop(path, None)
                    record.between.pop(path, None)

    async def _is_of_others(self, path: str, now: Side | None) -> bool:
        """Whether nothing of this session is left in a file that others changed as well."""
        if path not in self.record.total or path not in self.record.between:
            return False
        try:
            steps = own_steps(self.record.total[path], self.record.between[path])
            async with Blobs(self.tree.git) as blobs:
                return same(await without(self.tree, blobs, steps, now), now)
        except MixedChanges:
            return False

    def _noted(self, total: Mapping[str, Pair]) -> list[FileChange]:
        return [_noted(path, why) for path, why in sorted(self.record.notes.items()) if path not in total]


async def compare_pairs(
    tree: WorkTree, total: Mapping[str, Pair], counted: Iterable[FileChange] = ()
) -> list[FileChange]:
    """Compute changes, with renames and line counts, from the states before and after of single files.

    A file that exists on both sides is not part of a rename, so its change can be taken from `counted` if it is the
    same.
    """
    known, befores, afters = await asyncio.to_thread(_split_known, total, counted)
    if not befores and not afters:
        return known
    compared = await tree.compare(await tree.tree_of(befores), await tree.tree_of(afters))
    return await asyncio.to_thread(_in_order, [*known, *compared])


def _split_known(
    total: Mapping[str, Pair], counted: Iterable[FileChange]
) -> tuple[list[FileChange], list[Side], list[Side]]:
    """The changes that are known already; and the states before and after of all others."""
    edits = {(change.before, change.after): change for change in counted}
    known = {path: edits[pair] for path, pair in total.items() if None not in pair and pair in edits}
    rest = [pair for path, pair in total.items() if path not in known]
    befores = [before for before, _ in rest if before is not None]
    afters = [after for _, after in rest if after is not None]
    return _in_order(known.values()), befores, afters


def _in_order(changes: Iterable[FileChange]) -> list[FileChange]:
    """Sorted by path, as git lists them."""
    return sorted(changes, key=lambda change: os.fsencode(change.path))


def _shown(
    changes: Iterable[FileChange], hidden: Collection[str], foreign: Collection[str], unkept: Mapping[str, str]
) -> list[FileChange]:
    """The changes of a turn for clients: without hidden files, and with the names of files whose contents were not
    kept. Called in a thread."""
    visible = (_visible(change, hidden) for change in changes)
    named = (_noted(path, why) for path, why in sorted(unkept.items()) if path not in foreign)
    return [*(change for change in visible if change is not None), *named]


def _visible(change: FileChange, hidden: Collection[str]) -> FileChange | None:
    """A change without some files; None if nothing remains. Of a rename, the other half may remain."""
    before = change.before if change.before is not None and change.before.path not in hidden else None
    after = change.after if change.after is not None and change.after.path not in hidden else None
    if before is change.before and after is change.after:
        return change
    return None if before is None and after is None else FileChange(before, after)


def _noted(path: str, why: str) -> FileChange:
    return FileChange(None, Side(path, "100644", ""), note=why)


def _key(side: Side | None) -> tuple[str, str] | None:
    return None if side is None else (side.mode, side.oid)


__all__ = ["MAX_TURNS", "SessionChanges"]
