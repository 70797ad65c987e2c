"""Finds the files that a tool call names before it runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahpkit.protocol.common.state import JsonObject
from ahpkit.tools.subject import subject_of

_MAX_INPUT = 256 * 1024
"""Characters of an input that is read. A longer one would hold the event loop; it is mostly the text of a file."""


def named_files(call: JsonObject, directory: Path) -> list[str]:
    """URIs of the files in the input of a call, and in the edits that it is asked about."""
    asked: JsonObject = call.get("edits") or {}
    edits: Sequence[JsonObject] = asked.get("items") or ()
    sides: list[JsonObject] = [edit.get(name) or {} for edit in edits for name in ("before", "after")]
    given = call.get("toolInput")
    text = given if isinstance(given, str) and len(given) <= _MAX_INPUT else ""
    named = subject_of("", "", text, workspace=str(directory)).paths
    return [*(side["uri"] for side in sides if "uri" in side), *(Path(path).as_uri() for path in named)]


__all__ = ["named_files"]
