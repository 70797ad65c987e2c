"""Selects the hooks that an event calls, prepares their input, and interprets their answers. Pure.

Nothing here is asked unless the owner allowed hooks and trusts exactly this one. What products disagree on
is read restrictively: a `PreToolUse` hook that cannot be run, fails or takes too long denies the call.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ahpkit.customizations.details import HookDetail
from ahpkit.protocol.common.state import JsonObject

HookEvent = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
"""The events the host runs hooks for; others are listed and never run."""

_BLOCKING = frozenset({"UserPromptSubmit", "PreToolUse", "Stop"})
"""Events whose hooks may say no."""

_EXIT_DENY = 2
"""The exit status with which a hook says no; its reason is on stderr."""

_PLAIN_MATCHER = re.compile(r"[\w ,|-]+$")
_NESTED_QUANTIFIER = re.compile(r"[+*}]\)+[+*{]")
"""A pattern like `(a+)+`, which takes forever on the wrong name."""

_SHELL_SYNTAX = re.compile(r"[|&;<>()`$\\*?\[\]#~!{}\n]|^\s*\w+=")
_PLACE = re.compile(r"\$\{?(CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT|CLAUDE_PROJECT_DIR)\}?")

_TIMEOUT = 30.0
_LONGEST_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class HookCommand:
    """A program to run, without a shell unless its author wrote one line of shell."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    timeout: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one hook said. `context` goes to the model, `message` to people."""

    denied: bool = False
    reason: str | None = None
    context: str | None = None
    message: str | None = None


def tool_names(name: str, server: str | None) -> tuple[str, ...]:
    """What hooks may call a tool. One of an MCP server has three names: its own, the model's, and Claude Code's."""
    if server is None:
        return (name,)
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", server)
    return name, f"{plain}_{name}", f"mcp__{plain}__{name}"


def matching(hooks: Iterable[HookDetail], event: HookEvent, *subjects: str) -> Iterator[JsonObject]:
    """The actions for an event, in order; the subjects are the tool's names, or what the event is about."""
    for hook in hooks:
        if hook.event == event and (hook.matcher is None or any(matches(hook, one) for one in subjects or ("",))):
            for action in hook.actions:
                yield dict(action)


def matches(hook: HookDetail, subject: str) -> bool:
    """Claude Code: a list of names, or a pattern that may match anywhere. Copilot: a pattern for the whole name."""
    matcher = hook.matcher or ""
    if _PLAIN_MATCHER.match(matcher):
        return subject in [name.strip() for name in re.split(r"[|,]", matcher)]
    if _NESTED_QUANTIFIER.search(matcher):
        return False
    try:
        pattern = re.compile(matcher)
    except re.error:
        return False
    whole = hook.dialect == "copilot"
    return (pattern.fullmatch(subject[:200]) if whole else pattern.search(subject[:200])) is not None


def command_of(
    action: Mapping[str, Any], *, workspace: str, plugin_root: str | None, environment: Mapping[str, str]
) -> HookCommand | None:
    """What an action runs; None for kinds that are not commands (`http`, `prompt`, `agent`), which are never run."""
    line = next((action[key] for key in ("command", "bash", "linux") if isinstance(action.get(key), str)), None)
    if line is None or not line.strip() or action.get("type", "command") != "command":
        return None
    places = {"CLAUDE_PROJECT_DIR": workspace}
    if plugin_root is not None:
        places |= {"CLAUDE_PLUGIN_ROOT": plugin_root, "PLUGIN_ROOT": plugin_root}
    own = action.get("env")
    extra = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    return HookCommand(
        argv=_argv(str(line), action.get("args"), places),
        cwd=_folder(action.get("cwd"), workspace, places),
        environment={**environment, **{key: str(value) for key, value in extra.items()}, **places},
        timeout=_seconds(action.get("timeout", action.get("timeoutSec"))),
    )


def _argv(line: str, args: Any, places: Mapping[str, str]) -> tuple[str, ...]:
    """`args` and simple lines become words; a line of shell goes to the shell, which knows the places as variables."""
    if isinstance(args, list):
        words = [line, *(str(item) for item in cast("list[Any]", args))]
    elif _SHELL_SYNTAX.search(_PLACE.sub("", line)):
        return ("/bin/sh", "-c", line)
    else:
        try:
            words = shlex.split(line)
        except ValueError:
            return ("/bin/sh", "-c", line)
    return tuple(_PLACE.sub(lambda match: places.get(match[1], match[0]), word) for word in words)


def _folder(given: Any, workspace: str, places: Mapping[str, str]) -> str:
    if not isinstance(given, str) or not given:
        return workspace
    folder = _PLACE.sub(lambda match: places.get(match[1], match[0]), given)
    return folder if folder.startswith("/") else f"{workspace}/{folder}"


def _seconds(given: Any) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
    return float(min(given, _LONGEST_TIMEOUT)) if is_number else _TIMEOUT


def payload(event: HookEvent, *, session_id: str, cwd: str, now: int, facts: Mapping[str, Any]) -> bytes:
    """What a hook reads on stdin: the same facts under Claude Code's and under Copilot's names.

    `facts`: `tool_name`, `tool_input`, `tool_response`, `prompt`, as far as the event has them.
    """
    told: JsonObject = {"hook_event_name": event, "session_id": session_id, "cwd": cwd, **facts}
    copilot: JsonObject = {"hookEventName": event, "sessionId": session_id, "timestamp": now}
    if "tool_name" in facts:
        copilot |= {"toolName": facts["tool_name"], "toolArgs": json.dumps(facts.get("tool_input"))}
    if "tool_response" in facts:
        copilot["toolResult"] = facts["tool_response"]
    return json.dumps({**told, **copilot}).encode()


def judge(event: HookEvent, status: int | None, stdout: str, stderr: str) -> Verdict:
    """What the end of a hook means; `status` None: it could not be run, or not to its end (`stderr` says why)."""
    if status == _EXIT_DENY and event in _BLOCKING:
        return Verdict(denied=True, reason=stderr.strip() or "a hook said no")
    if status != 0:
        problem = stderr.strip() or f"exit status {status}"
        if event == "PreToolUse":
            return Verdict(denied=True, reason=f"a hook that guards this tool failed: {problem}")
        return Verdict(message=f"a {event} hook failed: {problem}")
    return _answer(event, stdout.strip())


def _answer(event: HookEvent, stdout: str) -> Verdict:
    """JSON is an answer; plain text is context where the event has a model to tell it to."""
    try:
        answer: Any = json.loads(stdout) if stdout.startswith("{") else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        tells = event in ("SessionStart", "UserPromptSubmit")
        return Verdict(context=stdout or None) if tells else Verdict()
    return _said(event, cast("JsonObject", answer))


def _said(event: HookEvent, answer: JsonObject) -> Verdict:
    nested = answer.get("hookSpecificOutput")
    specific = cast("JsonObject", nested) if isinstance(nested, dict) else answer
    decision = specific.get("permissionDecision") or answer.get("decision")
    stopped = answer.get("continue") is False
    denied = event in _BLOCKING and (decision in ("deny", "block") or stopped)
    reasons = (specific.get("permissionDecisionReason"), answer.get("reason"), answer.get("stopReason"))
    return Verdict(
        denied=denied,
        reason=next(filter(None, map(_text, reasons)), "a hook said no" if denied else None),
        context=_text(specific.get("additionalContext")),
        message=_text(answer.get("systemMessage")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


__all__ = ["HookCommand", "HookEvent", "Verdict", "command_of", "judge", "matches", "matching", "payload", "tool_names"]
