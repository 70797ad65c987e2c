"""Lets clients of AHP 0.4 to 1.0 use a host that is 1.0.0 inside. Pure.

When the version of a connection is agreed on (`negotiate`), the connection gets a dialect, which translates the
client's messages to 1.0.0 and the host's messages from 1.0.0. Each logged action is written in at most three streams of
bytes: `routes` says which generation gets which stream, `payload` makes the bytes.
"""

from __future__ import annotations

from ahpkit.dialects.actions_down import payload
from ahpkit.dialects.actions_up import with_hints
from ahpkit.dialects.base import ClientFacts, Dialect, MustReconnect
from ahpkit.dialects.dialect import GenerationDialect, SessionLists, Surroundings, dialect_for
from ahpkit.dialects.generations import IDENTICAL, Generation, Routes, Stream, routes
from ahpkit.dialects.negotiation import OFFERED, SPOKEN, AgreedVersion, negotiate, pin, supported_versions

__all__ = [
    "IDENTICAL",
    "OFFERED",
    "SPOKEN",
    "AgreedVersion",
    "ClientFacts",
    "Dialect",
    "Generation",
    "GenerationDialect",
    "MustReconnect",
    "Routes",
    "SessionLists",
    "Stream",
    "Surroundings",
    "dialect_for",
    "negotiate",
    "payload",
    "pin",
    "routes",
    "supported_versions",
    "with_hints",
]
