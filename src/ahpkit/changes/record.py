"""The stored record of a session's changes, as plain data. The host stores it beside the log, so that it survives
restarts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ahpkit.changes.sides import FileChange, Pair, Side, same


@dataclass
class TurnRecord:
    """One turn: the trees before and after it, and the changes in between that it did not make."""

    turn_id: str
    before: str
    after: str = ""
    chat: str = ""
    foreign: list[str] = field(default_factory=list[str])
    """Paths that another session is known to have written during the turn."""
    theirs: list[str] = field(default_factory=list[str])
    """Paths that only somebody else wrote during the turn."""
    others: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    """Path → the changes of somebody else during the turn, in a file that the agent changed as well."""
    mixed: list[str] = field(default_factory=list[str])
    """Paths in which the changes of the agent and of somebody else cannot be separated."""
    guessed: list[str] = field(default_factory=list[str])
    """Paths that count as the turn's, although it is not known who wrote them."""
    outside: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Path → why its content was not kept before the turn, and its mark at that time."""
    unkept: dict[str, str] = field(default_factory=dict[str, str])
    """Path → why it is only named: it changed in the turn, and its content before or after was not kept."""
    is_open: bool = False
    """Whether the turn is not yet included in the sums."""
    partial: bool = False
    """Whether the checkpoint before the turn left out files because there were too many. Their content is not known."""
    reported: list[str] = field(default_factory=list[str])
    """Paths that the agent is known to have written. Set when the turn is over."""
    unsure: list[str] = field(default_factory=list[str])
    """Paths that may have been written by another session that worked here at the same time."""


@dataclass
class UndoRecord:
    """The changes that one undo took back."""

    files: dict[str, Pair]
    """Path → its content before the undo, and after the undo."""
    total: dict[str, Pair]
    between: dict[str, list[Pair]]
    chats: dict[str, dict[str, Pair]]
    raw: dict[str, str] = field(default_factory=dict[str, str])
    """Path → the blob with the very bytes that were there, if git stores the file with other line ends; empty: git has
    to make the bytes of the file. A path that is missing had the bytes that git stores."""


@dataclass
class Record:
    """Everything that is stored about the changes of a session."""

    turns: dict[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    total: dict[str, Pair] = field(default_factory=dict[str, Pair])
    """Path → its content before the session first changed it, and after the last change."""
    between: dict[str, list[Pair]] = field(default_factory=dict[str, list[Pair]])
    """Path → the changes of others in between."""
    unsure: list[str] = field(default_factory=list[str])
    """Paths in the sum that another session may have written."""
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Path → why its content was not kept."""
    chats: dict[str, dict[str, Pair]] = field(default_factory=dict[str, dict[str, Pair]])
    """Chat → the same sum over its turns only."""
    undone: list[UndoRecord] = field(default_factory=list[UndoRecord])
    """The latest undos, the last one at the end."""
    saw_calls: bool = False
    """Whether the agent has ever reported a tool call."""

    def part(self, files: dict[str, Pair]) -> UndoRecord:
        """The sums, reduced to some files: what an undo of these files changes and a redo brings back."""
        return UndoRecord(
            files,
            {path: self.total[path] for path in files if path in self.total},
            {path: [*self.between[path]] for path in files if path in self.between},
            {
                chat: {path: total[path] for path in files if path in total}
                for chat, total in self.chats.items()
                if not files.keys().isdisjoint(total)
            },
        )

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data. This is fast also for very many files, because tuples are not converted."""
        return {
            "turns": [{**vars(turn), "others": _copied(turn.others)} for turn in self.turns.values()],
            "total": {**self.total},
            "between": _copied(self.between),
            "unsure": self.unsure,
            "notes": {**self.notes},
            "chats": {chat: {**total} for chat, total in self.chats.items()},
            "undone": [{**vars(one)} for one in self.undone],
            "saw_calls": self.saw_calls,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        turns = [_turn_from_json(turn) for turn in data.get("turns", ())]
        return cls(
            turns={turn.turn_id: turn for turn in turns},
            total=_sum_from_json(data.get("total", {})),
            between=_pieces_from_json(data.get("between", {})),
            unsure=list(data.get("unsure", ())),
            notes=dict(data.get("notes", {})),
            chats=_chats_from_json(data.get("chats", {})),
            undone=[_undone_from_json(one) for one in data.get("undone", ())],
            saw_calls=bool(data.get("saw_calls")),
        )


def with_changes(
    total: Mapping[str, Pair],
    changes: Iterable[FileChange],
    between: Mapping[str, Sequence[Pair]] | None = None,
    others: Mapping[str, Sequence[Pair]] | None = None,
) -> tuple[dict[str, Pair], dict[str, list[Pair]]]:
    """A sum with more changes, and what others changed in between. Changes whose content is not known are left out.

    `others`: what others did while these changes were made.
    """
    summed, pieces = dict(total), _copied(between or {})
    for change in changes:
        if not change.note:
            add(summed, change, between=pieces, others=others)
    return summed, pieces


def add(
    total: dict[str, Pair],
    change: FileChange,
    path: str | None = None,
    between: dict[str, list[Pair]] | None = None,
    others: Mapping[str, Sequence[Pair]] | None = None,
) -> None:
    """Add one change to a sum. A file that is again what it was at first leaves it. If a change does not begin where
    the last one ended, others changed the file in `between`. `others` is what they changed during the change itself."""
    for name in {path} if path is not None else change.paths:
        before = change.before if change.before is not None and change.before.path == name else None
        after = change.after if change.after is not None and change.after.path == name else None
        first, last = total.get(name, (before, before))
        if between is not None:
            pieces = [] if same(last, before) else [(last, before)]
            if pieces := [*pieces, *(others or {}).get(name, ())]:
                between.setdefault(name, []).extend(pieces)
        if same(first, after):
            total.pop(name, None)
            if between is not None:
                between.pop(name, None)
        else:
            total[name] = (first, after)


def _turn_from_json(data: Mapping[str, Any]) -> TurnRecord:
    """A turn from stored data. An older version may have stored more members, which are ignored, and `reported` under
    another name."""
    known = {one.name for one in fields(TurnRecord)}
    turn = TurnRecord(**{name: value for name, value in data.items() if name in known})
    turn.reported = data.get("reported", data.get("told", []))
    turn.others = _pieces_from_json(data.get("others", {}))
    return turn


def _undone_from_json(data: Mapping[str, Any]) -> UndoRecord:
    return UndoRecord(
        _sum_from_json(data["files"]),
        _sum_from_json(data["total"]),
        _pieces_from_json(data["between"]),
        _chats_from_json(data["chats"]),
        data["raw"] if "raw" in data else dict.fromkeys(data["files"], ""),
    )


def _chats_from_json(data: Mapping[str, Any]) -> dict[str, dict[str, Pair]]:
    return {chat: _sum_from_json(total) for chat, total in data.items()}


def _copied(pieces: Mapping[str, Sequence[Pair]]) -> dict[str, list[Pair]]:
    return {path: [*pairs] for path, pairs in pieces.items()}


def _pieces_from_json(data: Mapping[str, Any]) -> dict[str, list[Pair]]:
    return {path: [_pair_from_json(pair) for pair in pairs] for path, pairs in data.items()}


def _sum_from_json(data: Mapping[str, Any]) -> dict[str, Pair]:
    return {path: _pair_from_json(pair) for path, pair in data.items()}


def _pair_from_json(data: Sequence[Any]) -> Pair:
    return _from_json(data[0]), _from_json(data[1])


def _from_json(data: list[str] | None) -> Side | None:
    return None if data is None else Side(*data)


__all__ = ["Record", "TurnRecord", "UndoRecord", "add", "with_changes"]
