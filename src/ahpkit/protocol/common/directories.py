"""Working directories of sessions and chats, in reducers: a list of URIs, compared as strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.protocol.common.state import JsonObject

__all__ = ["directory_added", "directory_removed"]


def directory_added(state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    """Handler of `*/workingDirectorySet`: a directory that is there already stays where it is."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] in directories:
        return state
    return {**state, "workingDirectories": [*directories, action["directory"]]}


def directory_removed(state: JsonObject, action: Mapping[str, Any]) -> JsonObject:
    """Handler of `*/workingDirectoryRemoved`: the list may become empty."""
    directories: list[str] = state.get("workingDirectories") or []
    if action["directory"] not in directories:
        return state
    return {**state, "workingDirectories": [each for each in directories if each != action["directory"]]}
