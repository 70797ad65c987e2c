"""Remembers the environment that the agents of a session are started with, as the user's shell sent it.

A host in the background was started by one shell and serves many. What a later shell has (`PATH`, keys) is kept here,
in memory only, for the sessions that it opens. It reaches agents through the same filter as the host's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

MAX_SESSIONS = 1_000
"""Sessions whose shell is remembered; the oldest are forgotten and get the host's own environment."""


class Environments:
    """Session URI → environment."""

    def __init__(self, own: Mapping[str, str] = os.environ, *, most: int = MAX_SESSIONS) -> None:
        self._own = own
        self._most = most
        self._told: dict[str, Mapping[str, str]] = {}

    def tell(self, session: str, variables: Mapping[str, str]) -> None:
        """From now on agents of that session see these variables, and the host's where these say nothing."""
        self._told.pop(session, None)
        self._told[session] = dict(variables)
        while len(self._told) > self._most:
            del self._told[next(iter(self._told))]

    def of(self, session: str) -> Mapping[str, str]:
        return {**self._own, **self._told.get(session, {})}


__all__ = ["MAX_SESSIONS", "Environments"]
