"""What clients may do to the working directories of a session: add, replace and remove them. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.host.limits import MAX_DIRECTORIES
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, find
from ahpkit.protocol.root import MultipleWorkingDirectoriesCapability, RootState
from ahpkit.protocol.session.actions import (
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
from ahpkit.protocol.session.state import SessionState

_NO_CAPABILITY: MultipleWorkingDirectoriesCapability = {}


def check_directories(root: RootState | None, session: SessionState) -> str | None:
    """Why a session cannot have several directories: its agent has to say that it can."""
    if _capability(root, session) is None:
        return f"sessions of {session.get('provider')} have one working directory"
    return None


def _capability(root: RootState | None, session: SessionState) -> MultipleWorkingDirectoriesCapability | None:
    agent = find(root["agents"] if root else (), "provider", session.get("provider"))
    return agent.get("capabilities", {}).get("multipleWorkingDirectories") if agent else None


def _set(proposed: ProposedAction[SessionWorkingDirectorySetAction, SessionState]) -> str | None:
    directories = proposed.state.get("workingDirectories", [])
    full = len(directories) >= MAX_DIRECTORIES and proposed.action["directory"] not in directories
    reason = f"a session may have {MAX_DIRECTORIES} working directories; remove one first" if full else None
    return check_directories(proposed.root, proposed.state) or reason


def _removed(proposed: ProposedAction[SessionWorkingDirectoryRemovedAction, SessionState]) -> str | None:
    reason = check_directories(proposed.root, proposed.state)
    return reason or _check_primary(proposed, "immutablePrimary", "primaryReplacement")


def _replaced(proposed: ProposedAction[SessionWorkingDirectoryReplacedAction, SessionState]) -> str | None:
    reason = check_directories(proposed.root, proposed.state)
    capability = _capability(proposed.root, proposed.state) or _NO_CAPABILITY
    return reason or (None if capability.get("primaryReplacement") else _check_primary(proposed, "immutablePrimary"))


def _check_primary(proposed: ProposedAction[Any, SessionState], *fixing: str) -> str | None:
    """Why the first directory has to stay, if one of these capabilities says so."""
    directories = proposed.state.get("workingDirectories", [])
    capability = _capability(proposed.root, proposed.state) or _NO_CAPABILITY
    is_first = directories[:1] == [proposed.action["directory"]]
    return "the first working directory cannot change" if is_first and any(map(capability.get, fixing)) else None


RULES: Mapping[str, Rule] = {
    "session/workingDirectorySet": _set,
    "session/workingDirectoryRemoved": _removed,
    "session/workingDirectoryReplaced": _replaced,
}

__all__ = ["RULES", "check_directories"]
