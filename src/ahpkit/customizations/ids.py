"""Makes ids that stay the same after every parse and every restart."""

from __future__ import annotations

import hashlib
import re

_TOP_LEVEL = re.compile(r"(?:plugin|directory|mcpServer)-[0-9a-f]{20}")


def stable_id(kind: str, *parts: str) -> str:
    """An opaque id made of what identifies a customization: never its contents, so that a toggle survives an edit."""
    text = "\0".join((kind, *parts))
    return f"{kind}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def is_top_level_id(id: str) -> bool:
    """Whether `stable_id` made it for an entry of a session's list: such entries are ours, also after a restart."""
    return _TOP_LEVEL.fullmatch(id) is not None


__all__ = ["is_top_level_id", "stable_id"]
