"""Lists the changesets that a session offers, reads and writes their URIs, and converts changes to the wire form.
Pure."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from ahpkit.changes.sides import FileChange, Side
from ahpkit.protocol.changeset import (
    Changeset,
    ChangesetFile,
    ChangesetOperation,
    ChangesetOperationScope,
    ChangesetOperationStatus,
)
from ahpkit.protocol.common.state import ContentRef, FileEdit, FileEditSide, JsonObject

SCHEME = "ahp-changeset:/"
_OF_SESSION = "/changeset/"
"""Separates the URI of a session from the view, in the URIs that clients build from the session's."""

BLOB_SCHEME = "ahp-changed-file"
"""The scheme of the URIs of changed files' contents, before and after. The files may no longer exist on disk."""

NOT_KEPT = "none"
"""Stands in a URI for a content that was not kept, such as that of a huge file."""

Kind = Literal["uncommitted", "session", "turn", "compare-turns"]

_TEMPLATES: Mapping[Kind, tuple[str, str, str]] = {
    "uncommitted": ("Uncommitted changes", "uncommitted", "Everything that differs from the last commit"),
    "session": ("Session changes", "session", "What this session changed since it began"),
    "turn": ("Turn changes", "turn/{turnId}", "What one turn changed"),
    "compare-turns": (
        "Changes between turns",
        "compare/{originalTurnId}/{modifiedTurnId}",
        "What changed from the beginning of one turn to the end of another",
    ),
}

UNDO_QUESTION = "Undo these changes in the files? Later changes of others stay."
REMOVE_QUESTION = "Remove this work tree and its branch? Changes that were not merged are lost."


@dataclass(frozen=True, slots=True)
class View:
    """One changeset that clients can subscribe to: the session or chat, and the turns that it covers."""

    key: str
    """A directory of a session, as `key_of` names it."""
    kind: Kind
    turns: tuple[str, ...] = ()


def key_of(named: str) -> str:
    """A name for a directory in the URIs of changesets: short, and safe in any URI. A session's first directory has the
    session's name."""
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def catalogue(key: str, *, in_git: bool, name: str = "") -> list[Changeset]:
    """The entries of `SessionState.changesets` for one directory; `name` distinguishes it from other directories."""
    kinds: Sequence[Kind] = ("uncommitted", "session", "turn", "compare-turns") if in_git else ("session", "turn")
    return [_entry(key, kind, name) for kind in kinds]


def _entry(key: str, kind: Kind, name: str) -> Changeset:
    label, path, description = _TEMPLATES[kind]
    template = f"{SCHEME}{key}/{path}"
    label = f"{label} in {name}" if name else label
    entry: Changeset = {"label": label, "uriTemplate": template, "description": description, "changeKind": kind}
    if kind != "compare-turns":
        entry["capabilities"] = {"review": {}}
    return entry


def uri_of(view: View) -> str:
    """The URI of a view, with the ids of turns percent-encoded."""
    path = {"turn": "turn/", "compare-turns": "compare/"}.get(view.kind, view.kind)
    return f"{SCHEME}{view.key}/{path}" + "/".join(quote(turn, safe="") for turn in view.turns)


def read_uri(uri: str) -> View | None:
    """The view that a URI names; None for other URIs.

    VS Code ignores the templates. It asks for `<session>/changeset/turn/<id>`, in the session's first directory.
    """
    session, separator, path = uri.rpartition(_OF_SESSION)
    if separator and session:
        return _read_path(key_of(session), path)
    key, _, path = uri.removeprefix(SCHEME).partition("/")
    return _read_path(key, path) if uri.startswith(SCHEME) else None


def _read_path(key: str, path: str) -> View | None:
    name, *ids = path.split("/")
    turns = tuple(map(unquote, ids))
    match name, len(turns):
        case ("uncommitted" | "session") as kind, 0:
            return View(key, kind)
        case "turn", 1:
            return View(key, "turn", turns)
        case "compare", 2:
            return View(key, "compare-turns", turns)
        case _:
            return None


def operations(
    kind: Kind, *, in_git: bool, any_files: bool, own_tree: bool, can_redo: bool = False
) -> list[ChangesetOperation]:
    """The operations that a changeset offers. Without files there are only those for a whole work tree, and redo."""
    rows: list[tuple[str, str, list[ChangesetOperationScope], str | None]] = []
    if kind in ("session", "turn"):
        rows.append(("undo", "Undo", ["changeset", "resource"], UNDO_QUESTION))
    if kind == "session":
        rows.append(("keep", "Keep", ["changeset", "resource"], None))
    if in_git and kind in ("uncommitted", "session"):
        rows.append(("stage", "Stage", ["changeset", "resource"], None))
        rows.append(("commit", "Commit", ["changeset"], None))
    offered = [_operation(*row, enabled=any_files) for row in rows]
    if can_redo and kind in ("session", "turn"):
        offered.insert(1, _operation("redo", "Redo", ["changeset"], None))
    if own_tree and kind in ("uncommitted", "session"):
        offered.append(_operation("merge", "Merge back", ["changeset"], None))
        offered.append(_operation("remove", "Remove work tree", ["changeset"], REMOVE_QUESTION))
    return offered


def _operation(
    id: str, label: str, scopes: list[ChangesetOperationScope], ask: str | None, *, enabled: bool = True
) -> ChangesetOperation:
    status: ChangesetOperationStatus = "idle" if enabled else "disabled"
    operation: ChangesetOperation = {"id": id, "label": label, "scopes": scopes, "status": status}
    if ask is not None:
        operation["confirmation"] = ask
    return operation


def file_entry(change: FileChange, key: str, root_uri: str, reviewed: Collection[str]) -> ChangesetFile:
    """The entry of a changed file for clients."""
    edit: FileEdit = {}
    if change.before is not None:
        edit["before"] = _side(change.before, key, root_uri, change.note)
    if change.after is not None:
        edit["after"] = _side(change.after, key, root_uri, change.note)
    if change.added is not None and change.removed is not None:
        edit["diff"] = {"added": change.added, "removed": change.removed}
    entry: ChangesetFile = {"id": file_uri(root_uri, change.path), "edit": edit}
    if mark(change) in reviewed:
        entry["reviewed"] = True
    if change.note:
        entry["_meta"] = {"ahpkit/note": change.note}
    return entry


def _side(side: Side, key: str, root_uri: str, note: str) -> FileEditSide:
    return {"uri": file_uri(root_uri, side.path), "content": _content(side, key, note)}


def mark(change: FileChange) -> str:
    """The value that a review mark is bound to: a file and its content. If the content changes, the file is not
    reviewed any more."""
    return f"{change.path}\0{change.after.oid if change.after is not None else ''}"


def mark_of_entry(entry: ChangesetFile, root_uri: str) -> str:
    """The mark of an entry for clients."""
    after = entry["edit"].get("after")
    blob = read_blob_uri(after["content"]["uri"] if after else "")
    return f"{path_in(root_uri, entry['id']) or ''}\0{blob[1].oid if blob is not None else ''}"


def file_uri(root_uri: str, path: str) -> str:
    return f"{root_uri}/{quote(path.encode('utf-8', 'surrogateescape'))}"


def path_in(root_uri: str, uri: str) -> str | None:
    """The path of a file URI below a root. The URI may contain detours, even through folders outside the root."""
    begin = f"{root_uri}/"
    if not uri.startswith(begin):
        return None
    path = posixpath.normpath(unquote(uri.removeprefix(begin), errors="surrogateescape"))
    return None if path.startswith("/") or path.split("/")[0] in (".", "..") else path


def _content(side: Side, key: str, note: str) -> ContentRef:
    if note or not side.oid:
        return {"uri": blob_uri(key, Side(side.path, side.mode, NOT_KEPT))}
    return {"uri": blob_uri(key, side)}


def blob_uri(key: str, side: Side) -> str:
    """The URI of a file's content. It ends with the file's path, because editors show that as the name."""
    path = quote(side.path.encode("utf-8", "surrogateescape"))
    return f"{BLOB_SCHEME}://{key}.{side.mode}.{side.oid}/{path}"


_WHOLE_NAME = re.compile(rf"[0-9a-f]{{40}}|[0-9a-f]{{64}}|{NOT_KEPT}")
"""Only complete object names are accepted. Git also accepts the beginning of a name, so a client could find all objects
by trying."""


def read_blob_uri(uri: str) -> tuple[str, Side] | None:
    """The session (or chat) and the object that a content's URI names."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # An address with unbalanced brackets.
        return None
    names, path = parts.netloc.split("."), parts.path.strip("/")
    if parts.scheme != BLOB_SCHEME or len(names) != 3 or not path:
        return None
    key, mode, oid = names
    return (key, Side(unquote(path, errors="surrogateescape"), mode, oid)) if _WHOLE_NAME.fullmatch(oid) else None


def totals(changes: Sequence[FileChange]) -> dict[str, int]:
    """`ChangesSummary` of some changes."""
    return {
        "additions": sum(change.added or 0 for change in changes),
        "deletions": sum(change.removed or 0 for change in changes),
        "files": len(changes),
    }


def edited_files(result: Mapping[str, Any]) -> list[str]:
    """The URIs of the files that a finished tool call reports as changed.

    The reported content is not used, because agents often report only the part of a file that they changed.
    """
    edits = [item for item in result.get("content") or () if item.get("type") == "fileEdit"]
    sides: list[JsonObject] = [edit.get(side) or {} for edit in edits for side in ("before", "after")]
    return [side["uri"] for side in sides if "uri" in side]


def content_type(path: str) -> str:
    """The type of a changed file, by its name."""
    kinds = {".md": "text/markdown", ".json": "application/json", ".html": "text/plain", ".png": "image/png"}
    return kinds.get(PurePosixPath(path).suffix.lower(), "text/plain")


__all__ = [
    "BLOB_SCHEME",
    "NOT_KEPT",
    "Kind",
    "View",
    "catalogue",
    "content_type",
    "edited_files",
    "file_entry",
    "key_of",
    "mark",
    "mark_of_entry",
    "operations",
    "path_in",
    "read_blob_uri",
    "read_uri",
    "totals",
    "uri_of",
]
