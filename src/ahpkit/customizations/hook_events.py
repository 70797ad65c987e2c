"""Runs hooks at their events: before a prompt, before and after a tool, at the end of a turn.

Nothing runs unless the host's owner allowed hooks and trusts exactly this one, as it is right before it runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hook_process import Outcome, PlacedHook, run_hooks
from ahpkit.customizations.hooks import HookEvent
from ahpkit.customizations.in_force import InForce
from ahpkit.customizations.runnables import Surrounding, Word, runnable_of, source_of
from ahpkit.host.agent import AgentError
from ahpkit.host.feature import Services
from ahpkit.host.trust import Standing
from ahpkit.protocol.common.state import JsonObject

_log = logging.getLogger(__name__)


class HookEvents:
    """Runs the hooks of sessions. `allowed`: the owner allows hooks at all; `word`: the owner's decisions about
    each."""

    def __init__(self, services: Services, *, allowed: bool, word: Word, home: Path | None = None) -> None:
        self._services = services
        self.allowed = allowed
        self._word = word
        self._home = home
        self._started: set[str] = set()

    async def before_prompt(self, in_force: InForce, session_uri: str, prompt: str) -> str:
        """The prompt with what `SessionStart` and `UserPromptSubmit` hooks add; a denial ends the turn."""
        added: list[str] = []
        if session_uri not in self._started:
            self._started.add(session_uri)
            outcome = await self._run("SessionStart", in_force, session_uri, {"source": "startup"})
            added += outcome.context
        outcome = await self._run("UserPromptSubmit", in_force, session_uri, {"prompt": prompt})
        if outcome.denied:
            raise AgentError(f"A hook refused this message: {outcome.reason}", error_type="host/hook")
        added += outcome.context
        return "\n\n".join([prompt, "Context from hooks:", *added]) if added else prompt

    async def before_tool(self, in_force: InForce, session_uri: str, name: str, tool_input: str) -> str | None:
        """Why a tool may not run, if a hook says so."""
        facts = {"tool_name": name, "tool_input": _parsed(tool_input)}
        outcome = await self._run("PreToolUse", in_force, session_uri, facts)
        return outcome.reason or "a hook said no" if outcome.denied else None

    async def after_tool(self, in_force: InForce, session_uri: str, call: JsonObject) -> None:
        facts = {
            "tool_name": call.get("toolName"),
            "tool_input": _parsed(call.get("toolInput") or ""),
            "tool_response": {"success": call.get("success"), "content": call.get("content")},
        }
        await self._run("PostToolUse", in_force, session_uri, facts)

    async def after_turn(self, in_force: InForce, session_uri: str) -> None:
        await self._run("Stop", in_force, session_uri, {})

    def forget(self, session_uri: str) -> None:
        self._started.discard(session_uri)

    async def _run(self, event: HookEvent, in_force: InForce, session_uri: str, facts: dict[str, Any]) -> Outcome:
        if not self.allowed:
            return Outcome()
        workspace = in_force.workspace or str(Path.cwd())

        async def standing(hook: PlacedHook) -> Standing:
            around = Surrounding(workspace, hook.plugin_root, None if self._home is None else str(self._home))
            return await asyncio.to_thread(lambda: self._word.standing(runnable_of(hook.detail, hook.source, around)))

        outcome = await run_hooks(
            placed_hooks(in_force),
            event,
            standing=standing,
            session_id=session_uri,
            workspace=workspace,
            now=self._services.now(),
            facts=facts,
        )
        for message in outcome.messages:
            _log.warning("%s (%s)", message, session_uri)
        return outcome


def placed_hooks(in_force: InForce) -> list[PlacedHook]:
    """The hooks that are switched on, with the file that declares them and the place of the plugin they came with."""
    found: list[PlacedHook] = []
    for placed, detail in in_force.enabled("hook"):
        if isinstance(detail, HookDetail):
            container = placed.container
            is_plugin = container is not None and container["type"] == "plugin"
            source = source_of(placed.entry["uri"], container)
            found.append(PlacedHook(detail, in_force.root_of(placed) if is_plugin else None, source))
    return found


def _parsed(tool_input: str) -> Any:
    try:
        return json.loads(tool_input)
    except (ValueError, RecursionError):
        return tool_input


__all__ = ["HookEvents", "placed_hooks"]
