"""Which extensions a host announced, checked before a call. Pure; sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.client.errors import ExtensionNotSupported
from ahpkit.protocol.extensions import announces


def check_announced(method: str, announced: Mapping[str, Any]) -> None:
    """Raise unless the extension that `method` belongs to is among the announced ones.

    An announcement stands under the namespace alone (`example.com`) or with the feature (`example.com/analytics`).
    """
    if not announces(announced, method):
        raise ExtensionNotSupported(method, announced)


__all__ = ["check_announced"]
