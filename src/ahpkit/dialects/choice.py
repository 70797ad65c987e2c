"""Which dialect a client is spoken to in: chosen in the handshake from the versions that it offers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ahpkit.dialects.base import Dialect, Identity
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.version import negotiate


def choose_dialect(offered: Sequence[str], capabilities: JsonObject) -> Dialect:
    """Raises `InvalidParams` for a malformed offer and `UnsupportedProtocolVersion` when none fits."""
    return _spoken(negotiate(offered))


@lru_cache(maxsize=16)
def _spoken(version: str) -> Dialect:
    """Connections of one version share their dialect."""
    return Identity(version)


__all__ = ["choose_dialect"]
