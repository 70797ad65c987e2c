"""Runs hook commands as processes: each in its own group, with limits of time and output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hooks import HookCommand, HookEvent, Verdict, command_of, judge, matching, payload
from ahpkit.host.trust import Standing
from ahpkit.platform.limits import limit_child
from ahpkit.platform.processes import kill_group

CHANGED = "changed since it was trusted, so it does not run; look at it with `ahpkit trust show`"
"""The reason for a hook or server whose content is not the one that was trusted."""

_OUTPUT_LIMIT = 256 * 1024
"""Bytes kept of a hook's output; the rest is read and dropped, so that it does not block."""

_CHUNK = 64 * 1024

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""Environment variables hooks get: none that usually hold secrets."""


@dataclass(frozen=True, slots=True)
class PlacedHook:
    """A hook that is in force, where it was declared, and where its plugin is."""

    detail: HookDetail
    plugin_root: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What all hooks of one event said together."""

    denied: bool = False
    reason: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


async def run_hooks(
    hooks: Sequence[PlacedHook],
    event: HookEvent,
    *,
    standing: Callable[[PlacedHook], Awaitable[Standing]],
    session_id: str,
    workspace: str,
    now: int,
    facts: Mapping[str, Any],
) -> Outcome:
    """Run the hooks of an event one after the other, until one says no. What is not trusted does not run.

    `standing` is asked right before. A hook that changed since it was trusted counts as one that could not be run.
    """
    told = payload(event, session_id=session_id, cwd=workspace, now=now, facts=facts)
    subject = facts.get("tool_name") or facts.get("source")
    context: list[str] = []
    messages: list[str] = []
    for hook in hooks:
        actions = list(matching([hook.detail], event, subject if isinstance(subject, str) else None))
        found = await standing(hook) if actions else "unknown"
        for action in actions if found != "unknown" else ():
            if found == "changed":
                verdict = judge(event, None, "", f"{hook.source} {CHANGED}")
            else:
                verdict = await _run_action(action, hook, event, workspace, told)
            context += [verdict.context] if verdict.context else []
            messages += [verdict.message] if verdict.message else []
            if verdict.denied:
                return Outcome(True, verdict.reason, tuple(context), tuple(messages))
    return Outcome(False, None, tuple(context), tuple(messages))


async def _run_action(
    action: Mapping[str, Any], hook: PlacedHook, event: HookEvent, workspace: str, told: bytes
) -> Verdict:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    command = command_of(action, workspace=workspace, plugin_root=hook.plugin_root, environment=environment)
    if command is None:
        return Verdict(message=f"a {event} hook of type `{action.get('type')}` is not run: only commands are")
    status, stdout, stderr = await run_command(command, told)
    return judge(event, status, stdout, stderr)


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
    try:
        async with asyncio.timeout(command.timeout):
            stdout, stderr, _, _ = await asyncio.gather(
                _take(streams.stdout), _take(streams.stderr), _feed(streams.stdin, stdin), _end_with(process, streams)
            )
        return process.get_returncode(), stdout, stderr
    except TimeoutError:
        return None, "", f"took longer than {command.timeout:g} s"
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


__all__ = ["CHANGED", "PASSED_ON", "Outcome", "PlacedHook", "run_command", "run_hooks"]
