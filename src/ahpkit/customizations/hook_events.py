"""When hooks run: before a prompt, before and after a tool, at the end of a turn. Knows how a session tells of these.

Nothing runs unless the host's owner allowed hooks and the working directory is trusted.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hook_process import Outcome, PlacedHook, run_hooks
from ahpkit.customizations.hooks import Gate, HookEvent
from ahpkit.customizations.offers import Offering
from ahpkit.host.agent import AgentError
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)


class HookEvents:
    """Runs the hooks of sessions. `allowed` is the owner's word; trust comes with each call."""

    def __init__(self, services: Services, *, allowed: bool) -> None:
        self._services = services
        self.allowed = allowed
        self._started: set[str] = set()

    async def before_prompt(self, offering: Offering, session_uri: str, prompt: str, *, trusted: bool) -> str:
        """The prompt with what `SessionStart` and `UserPromptSubmit` hooks add; a denial ends the turn."""
        added: list[str] = []
        if session_uri not in self._started:
            self._started.add(session_uri)
            outcome = await self._run("SessionStart", offering, session_uri, trusted, {"source": "startup"})
            added += outcome.context
        outcome = await self._run("UserPromptSubmit", offering, session_uri, trusted, {"prompt": prompt})
        if outcome.denied:
            raise AgentError(f"A hook refused this message: {outcome.reason}", error_type="host/hook")
        added += outcome.context
        return "\n\n".join([prompt, "Context from hooks:", *added]) if added else prompt

    async def before_tool(
        self, offering: Offering, session_uri: str, name: str, tool_input: str, *, trusted: bool
    ) -> str | None:
        """Why a tool may not run, if a hook says so."""
        facts = {"tool_name": name, "tool_input": _parsed(tool_input)}
        outcome = await self._run("PreToolUse", offering, session_uri, trusted, facts)
        return outcome.reason or "a hook said no" if outcome.denied else None

    async def after_tool(self, offering: Offering, session_uri: str, call: JsonObject, *, trusted: bool) -> None:
        facts = {
            "tool_name": call.get("toolName"),
            "tool_input": _parsed(call.get("toolInput") or ""),
            "tool_response": {"success": call.get("success"), "content": call.get("content")},
        }
        await self._run("PostToolUse", offering, session_uri, trusted, facts)

    async def after_turn(self, offering: Offering, session_uri: str, *, trusted: bool) -> None:
        await self._run("Stop", offering, session_uri, trusted, {})

    def forget(self, session_uri: str) -> None:
        self._started.discard(session_uri)

    async def _run(
        self, event: HookEvent, offering: Offering, session_uri: str, trusted: bool, facts: dict[str, Any]
    ) -> Outcome:
        outcome = await run_hooks(
            placed_hooks(offering),
            event,
            gate=Gate(allowed=self.allowed, trusted=trusted),
            session_id=session_uri,
            workspace=offering.workspace or str(Path.cwd()),
            now=self._services.now(),
            facts=facts,
        )
        for message in outcome.messages:
            _log.warning("%s (%s)", message, session_uri)
        return outcome


def placed_hooks(offering: Offering) -> list[PlacedHook]:
    """The hooks that are in force, with the place of the plugin they came with. What clients publish is only listed."""
    found: list[PlacedHook] = []
    for placed, detail in offering.enabled("hook"):
        container = placed.container or {}
        if isinstance(detail, HookDetail) and "clientId" not in container:
            is_plugin = container.get("type") == "plugin"
            found.append(PlacedHook(detail, offering.root_of(placed) if is_plugin else None))
    return found


def _parsed(tool_input: str) -> Any:
    try:
        return json.loads(tool_input)
    except ValueError:
        return tool_input


__all__ = ["HookEvents", "placed_hooks"]
