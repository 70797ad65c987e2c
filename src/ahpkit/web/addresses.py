"""Finds the addresses under which other devices may reach this machine. Sends nothing."""

from __future__ import annotations

import socket

_WILDCARDS = frozenset({"", "0.0.0.0", "::"})

_ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737): asking for the way there sends no packet."""


def own_addresses(host: str) -> list[str]:
    """The address a server was told to listen on; for every interface, the one that leads out of this machine."""
    if host not in _WILDCARDS:
        return [host]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return []
        return [probe.getsockname()[0]]


__all__ = ["own_addresses"]
