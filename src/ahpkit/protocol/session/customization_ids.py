"""The ids that the host gives to customizations. Clients choose other ids for the plugins that they publish."""

from __future__ import annotations

import hashlib
import re

_TYPES = ("plugin", "directory", "agent", "skill", "prompt", "rule", "hook", "mcpServer")
_TOP_LEVEL = re.compile(r"(?:plugin|directory|mcpServer)-[0-9a-f]{20}")
_ANY = re.compile(rf"(?:{'|'.join(_TYPES)})-[0-9a-f]{{20}}")


def stable_id(kind: str, *parts: str) -> str:
    """An opaque id for a customization. It does not depend on the contents, so that a switch survives an edit."""
    text = "\0".join((kind, *parts))
    return f"{kind}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def is_top_level_id(id: str) -> bool:
    """Whether `stable_id` made this id for an entry of a session's list. So the host recognises its own entries, also
    after a restart."""
    return _TOP_LEVEL.fullmatch(id) is not None


def is_host_id(id: str) -> bool:
    """Whether an id has the form of `stable_id`: an entry with this id may come into the session at any time."""
    return _ANY.fullmatch(id) is not None


__all__ = ["is_host_id", "is_top_level_id", "stable_id"]
