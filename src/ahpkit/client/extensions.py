"""Which extensions a host announced, checked before a call. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.client.errors import ExtensionNotSupported
from ahpkit.protocol.extensions import announces


def check_announced(method: str, *announcements: Mapping[str, Any]) -> None:
    """Raise unless one of the `_meta` objects announces the extension that `method` belongs to.

    An announcement stands under the namespace alone (`example.com`) or with the feature (`example.com/analytics`).
    """
    if not any(announces(meta, method) for meta in announcements):
        raise ExtensionNotSupported(method, {name for meta in announcements for name in meta})


__all__ = ["check_announced"]
