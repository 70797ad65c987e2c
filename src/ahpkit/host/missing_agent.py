"""Stands in for an agent that a host had once: its sessions can be read, not continued. Knows no session."""

from __future__ import annotations

from typing import Any

from ahpkit.host.agent import Agent, AgentError


class MissingAgent(Agent):
    """Stands in for an agent this host no longer has: its sessions can be read, not continued."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.display_name = provider

    async def open(self, chat: Any) -> Any:
        raise AgentError(f"This host has no agent {self.provider!r} any more.", error_type="host/provider-missing")


__all__ = ["MissingAgent"]
