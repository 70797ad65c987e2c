"""Ids that are the same after every parse and every restart. Knows only strings."""

from __future__ import annotations

import hashlib


def stable_id(kind: str, *parts: str) -> str:
    """An opaque id made of what identifies a customization: never its contents, so that a toggle survives an edit."""
    text = "\0".join((kind, *parts))
    return f"{kind}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


__all__ = ["stable_id"]
