"""Working directories of sessions: who may add, exchange and remove them. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.limits import MAX_DIRECTORIES
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, find
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject


def check_directories(root: JsonObject | None, session: JsonObject) -> str | None:
    """Why a session cannot have several directories: its agent has to say that it can."""
    if _capability(root, session) is None:
        return f"sessions of {session.get('provider')} have one working directory"
    return None


def _capability(root: JsonObject | None, session: JsonObject) -> JsonObject | None:
    agent = find((root or {}).get("agents"), "provider", session.get("provider")) or {}
    capabilities: JsonObject = agent.get("capabilities") or {}
    return capabilities.get("multipleWorkingDirectories")


def _set(proposed: ProposedAction) -> str | None:
    directories: list[str] = proposed.state.get("workingDirectories", [])
    full = len(directories) >= MAX_DIRECTORIES and proposed.action["directory"] not in directories
    reason = f"a session may have {MAX_DIRECTORIES} working directories; remove one first" if full else None
    return check_directories(proposed.state_of(ROOT_URI), proposed.state) or reason


def _removed(proposed: ProposedAction) -> str | None:
    reason = check_directories(proposed.state_of(ROOT_URI), proposed.state)
    return reason or _check_primary(proposed, "immutablePrimary", "primaryReplacement")


def _replaced(proposed: ProposedAction) -> str | None:
    reason = check_directories(proposed.state_of(ROOT_URI), proposed.state)
    capability = _capability(proposed.state_of(ROOT_URI), proposed.state) or {}
    return reason or (None if capability.get("primaryReplacement") else _check_primary(proposed, "immutablePrimary"))


def _check_primary(proposed: ProposedAction, *fixing: str) -> str | None:
    """Why the first directory has to stay, if one of these capabilities says so."""
    directories: list[str] = proposed.state.get("workingDirectories", [])
    capability = _capability(proposed.state_of(ROOT_URI), proposed.state) or {}
    is_first = directories[:1] == [proposed.action["directory"]]
    return "the first working directory stays" if is_first and any(map(capability.get, fixing)) else None


RULES: Mapping[str, Rule] = {
    "session/workingDirectorySet": _set,
    "session/workingDirectoryRemoved": _removed,
    "session/workingDirectoryReplaced": _replaced,
}

__all__ = ["RULES", "check_directories"]
