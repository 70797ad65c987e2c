"""Runs hooks at their events, before a prompt, around a tool, at the end of a turn, as processes with limits.

A hook runs only if the host's owner allows hooks and trusts exactly this one. Trust is checked right before the start.
Each command has its own process group, and limits of time and output.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hooks import (
    HookCommand,
    HookEvent,
    Verdict,
    command_of,
    judge,
    matching,
    not_run,
    payload,
    tool_names,
)
from ahpkit.customizations.in_force import InForce
from ahpkit.customizations.runnables import CHANGED, OwnerTrust, Surrounding, runnable_of, source_of
from ahpkit.host.agent import AgentError
from ahpkit.host.feature import Services
from ahpkit.host.trust import Standing
from ahpkit.platform.cleaner import ended_with_us
from ahpkit.platform.limits import limit_child
from ahpkit.platform.processes import kill_group
from ahpkit.protocol.common.state import JsonObject
from ahpkit.tools.gate import Objection

_OUTPUT_LIMIT = 256 * 1024
"""Bytes that are kept of a hook's output. The rest is read and dropped, so that the hook does not block."""

_CHUNK = 64 * 1024

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""The environment variables that hooks get. None of them usually holds secrets."""


_NOTICE_LIMIT = 2000
"""Characters of a message of a hook that are shown in a chat."""

_A_PERSON = "a hook wants a person to decide"


@dataclass(frozen=True, slots=True)
class HookedChat:
    """The chat in which an event for hooks happens."""

    uri: str
    session_uri: str


@dataclass(frozen=True, slots=True)
class PlacedHook:
    """A hook that is in force, where it was declared, and where its plugin is."""

    detail: HookDetail
    plugin_root: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The joined result of all hooks of one event."""

    denied: bool = False
    reason: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Messages for people. They are shown each time."""
    doubts: tuple[str, ...] = ()
    """The reasons why a person has to decide."""
    ignored: tuple[str, ...] = ()
    """Answers that have no effect in this host. Each is shown once in a session."""


async def run_hooks(
    hooks: Sequence[PlacedHook],
    event: HookEvent,
    *,
    standing: Callable[[PlacedHook], Awaitable[Standing]],
    session_id: str,
    workspace: str,
    now: int,
    facts: Mapping[str, Any],
    subjects: Sequence[str] = (),
) -> Outcome:
    """Run the hooks of an event one after the other, until one denies.

    Hooks that are not trusted do not run. `subjects`: the texts that matchers are compared with, such as the names of a
    tool. `standing` is called right before each start. A hook that changed since it was trusted counts as one that
    could not be run.
    """
    told = payload(event, session_id=session_id, cwd=workspace, now=now, facts=facts)
    verdicts: list[Verdict] = []
    for hook in hooks:
        actions = list(matching([hook.detail], event, *subjects))
        found = await standing(hook) if actions else "unknown"
        for action in actions if found != "unknown" else ():
            if found == "changed":
                verdict = judge(event, None, "", f"{hook.source} {CHANGED}")
            else:
                verdict = await _run_action(action, hook, event, workspace, told, facts.get("tool_input"))
            verdicts.append(verdict)
            if verdict.denied:
                return _together(verdicts)
    return _together(verdicts)


def _together(verdicts: Sequence[Verdict]) -> Outcome:
    """Join the results of several hooks. Only the last one can be a denial."""
    denied = [verdict for verdict in verdicts if verdict.denied]
    return Outcome(
        denied=bool(denied),
        reason=denied[0].reason if denied else None,
        context=tuple(verdict.context for verdict in verdicts if verdict.context),
        messages=tuple(verdict.message for verdict in verdicts if verdict.message),
        doubts=tuple(verdict.reason or "" for verdict in verdicts if verdict.asks),
        ignored=tuple(verdict.ignored for verdict in verdicts if verdict.ignored),
    )


async def _run_action(
    action: Mapping[str, Any], hook: PlacedHook, event: HookEvent, workspace: str, told: bytes, tool_input: Any
) -> Verdict:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    command = command_of(action, workspace=workspace, plugin_root=hook.plugin_root, environment=environment)
    if command is None:
        return not_run(event, action.get("type"))
    status, stdout, stderr = await run_command(command, told)
    return judge(event, status, stdout, stderr, tool_input)


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The pipes as streams, and the exit of the hook: processes that it started may keep its pipes open."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def run_command(command: HookCommand, stdin: bytes) -> tuple[int | None, str, str]:
    """Exit status, stdout and stderr; None when it could not be started or took too long."""
    try:
        process, streams = await asyncio.get_running_loop().subprocess_exec(
            _Streams, *command.argv, cwd=command.cwd, env=dict(command.environment), start_new_session=True
        )
    except (OSError, ValueError) as error:
        return None, "", f"cannot run {command.argv[0]} ({getattr(error, 'strerror', None) or error})"
    limit_child(process.get_pid())
    with ended_with_us(process.get_pid()):
        return await _to_the_end(process, streams, stdin, command.timeout)


async def _to_the_end(
    process: asyncio.SubprocessTransport, streams: _Streams, stdin: bytes, seconds: float
) -> tuple[int | None, str, str]:
    try:
        async with asyncio.timeout(seconds):
            stdout, stderr, _, _ = await asyncio.gather(
                _take(streams.stdout), _take(streams.stderr), _feed(streams.stdin, stdin), _end_with(process, streams)
            )
        return process.get_returncode(), stdout, stderr
    except TimeoutError:
        return None, "", f"took longer than {seconds:g} s"
    finally:
        if process.get_returncode() is None:
            _kill_group(process)
            await streams.exited.wait()
        process.close()


async def _end_with(process: asyncio.SubprocessTransport, streams: _Streams) -> None:
    """End the hook's process group with it, so that its output ends too."""
    await streams.exited.wait()
    _kill_group(process)


def _kill_group(process: asyncio.SubprocessTransport) -> None:
    kill_group(process.get_pid(), signal.SIGKILL)


async def _take(stream: asyncio.StreamReader | None) -> str:
    kept = bytearray()
    while stream is not None and (part := await stream.read(_CHUNK)):
        kept += part[: max(0, _OUTPUT_LIMIT - len(kept))]
    return kept.decode("utf-8", "replace")


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    if stream is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await stream.wait_closed()


_log = logging.getLogger(__name__)


class HookEvents:
    """Runs the hooks of sessions. `allowed`: the owner allows hooks at all; `trust`: the owner's decisions about
    each."""

    def __init__(self, services: Services, *, allowed: bool, trust: OwnerTrust, home: Path | None = None) -> None:
        self._services = services
        self.allowed = allowed
        self._trust = trust
        self._home = home
        self._started: set[str] = set()
        self._reported: set[tuple[str, str]] = set()
        """The messages that were shown, each with its session. They are not repeated there."""

    async def before_prompt(self, in_force: InForce, chat: HookedChat, prompt: str) -> str:
        """The prompt with what `SessionStart` and `UserPromptSubmit` hooks add; a denial ends the turn."""
        added: list[str] = []
        if chat.session_uri not in self._started:
            self._started.add(chat.session_uri)
            outcome = await self._run("SessionStart", in_force, chat, {"source": "startup"}, ("startup",))
            added += outcome.context
        outcome = await self._run("UserPromptSubmit", in_force, chat, {"prompt": prompt})
        if outcome.denied:
            raise AgentError(f"A hook refused this message: {outcome.reason}", error_type="host/hook")
        added += outcome.context
        return "\n\n".join([prompt, "Context from hooks:", *added]) if added else prompt

    async def before_tool(
        self, in_force: InForce, chat: HookedChat, name: str, tool_input: str, *, server: str | None = None
    ) -> Objection | None:
        """The objection of hooks to a tool call. `server`: the MCP server that the tool belongs to."""
        names = tool_names(name, server)
        facts = {"tool_name": names[-1], "tool_input": _parsed(tool_input)}
        outcome = await self._run("PreToolUse", in_force, chat, facts, names)
        if outcome.denied:
            return Objection(outcome.reason or "a hook denied it")
        if not outcome.doubts:
            return None
        reasons = "; ".join(filter(None, outcome.doubts))
        return Objection(f"a hook wants a person to decide: {reasons}" if reasons else _A_PERSON, asks=True)

    async def after_tool(
        self, in_force: InForce, chat: HookedChat, call: JsonObject, *, server: str | None = None
    ) -> None:
        names = tool_names(call.get("toolName", ""), server)
        facts = {
            "tool_name": names[-1],
            "tool_input": _parsed(call.get("toolInput") or ""),
            "tool_response": {"success": call.get("success"), "content": call.get("content")},
        }
        await self._run("PostToolUse", in_force, chat, facts, names)

    async def after_turn(self, in_force: InForce, chat: HookedChat) -> None:
        await self._run("Stop", in_force, chat, {})

    def forget(self, session_uri: str) -> None:
        self._started.discard(session_uri)
        self._reported = {one for one in self._reported if one[0] != session_uri}

    async def _run(
        self,
        event: HookEvent,
        in_force: InForce,
        chat: HookedChat,
        facts: dict[str, Any],
        subjects: Sequence[str] = (),
    ) -> Outcome:
        if not self.allowed:
            return Outcome()
        workspace = in_force.workspace or str(Path.cwd())

        async def standing(hook: PlacedHook) -> Standing:
            around = Surrounding(workspace, hook.plugin_root, None if self._home is None else str(self._home))
            return await asyncio.to_thread(lambda: self._trust.standing(runnable_of(hook.detail, hook.source, around)))

        outcome = await run_hooks(
            placed_hooks(in_force),
            event,
            standing=standing,
            session_id=chat.session_uri,
            workspace=workspace,
            now=self._services.now(),
            facts=facts,
            subjects=subjects,
        )
        self._tell(outcome, chat)
        return outcome

    def _tell(self, outcome: Outcome, chat: HookedChat) -> None:
        """Show messages of hooks in the running turn. If no turn runs, they are only logged."""
        new = [text for text in outcome.ignored if (chat.session_uri, text) not in self._reported]
        self._reported |= {(chat.session_uri, text) for text in new}
        turn = self._services.running_turn(chat.uri)
        for text in (*outcome.messages, *new):
            _log.warning("%s (%s)", text, chat.session_uri)
            if turn is not None:
                turn.notice(text[:_NOTICE_LIMIT])


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


__all__ = ["HookEvents", "HookedChat", "Outcome", "PlacedHook", "run_command", "run_hooks"]
