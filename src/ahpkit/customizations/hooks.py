"""Selects the hooks that an event calls, prepares their input, and interprets their answers. Pure.

The callers use this module only for hooks that the owner allows and trusts. If products disagree, the stricter reading
counts: a `PreToolUse` hook that cannot be run, fails or takes too long denies the call. If the host does not follow an
answer of a hook, people see that.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from ahpkit.customizations.details import HookDetail
from ahpkit.protocol.common.state import JsonObject

HookEvent = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
"""The events for which the host runs hooks. Hooks for other events are listed, but never run."""

EVENTS: frozenset[str] = frozenset(get_args(HookEvent))

_BLOCKING = frozenset({"UserPromptSubmit", "PreToolUse"})
"""Events whose hooks may deny. After a tool or a turn has ended, there is nothing to deny."""

_TELLING = frozenset({"SessionStart", "UserPromptSubmit"})
"""Events whose hooks may add something for the model."""

_YES = frozenset({"allow", "approve"})
_NO = frozenset({"deny", "block"})

_ANYWHERE = frozenset({"hookSpecificOutput", "hookEventName", "systemMessage", "suppressOutput"})
"""Members that have a meaning in every answer. `suppressOutput` has no effect, because the output of hooks is never
shown."""

_REASONS = ("permissionDecisionReason", "reason", "stopReason", "user_message", "agent_message")
_DECISIONS = ("permissionDecision", "decision", "permission")
"""The members with the decision: of Claude Code and Copilot, of older hooks and Gemini CLI, and of Cursor."""

_CHANGED_INPUT = ("updatedInput", "modifiedArgs", "updated_input")
_NO_CHANGE = "a hook wants to change the input of this call, which this host does not do"
_NO_REASON = "a hook denied it"

_ENDED = frozenset({"PostToolUse", "Stop"})
"""Events after a tool or a turn has ended. Exit status 2 asks the agent to continue or to look again, which the host
does not do."""

_FOLLOWED: Mapping[HookEvent, frozenset[str]] = {
    "SessionStart": _ANYWHERE | {"additionalContext"},
    "UserPromptSubmit": _ANYWHERE | {"additionalContext", "continue", *_DECISIONS, *_REASONS},
    "PreToolUse": _ANYWHERE | {"continue", *_DECISIONS, *_REASONS, *_CHANGED_INPUT},
    "PostToolUse": _ANYWHERE | {*_REASONS},
    "Stop": _ANYWHERE | {*_REASONS},
}
"""The members of a hook's answer that have a meaning. All other members are reported as having no effect."""

_MEANS_NOTHING: tuple[tuple[str, Any], ...] = (
    ("continue", True),
    ("decision", "approve"),
    ("decision", "allow"),
    ("decision", None),
    ("additionalContext", ""),
)
"""Answers that ask for nothing."""

_EXIT_DENY = 2
"""The exit status with which a hook says no; its reason is on stderr."""

_PLAIN_MATCHER = re.compile(r"[\w ,|-]+$")
_NESTED_QUANTIFIER = re.compile(r"[+*}]\)+[+*{]")
"""A pattern like `(a+)+`, which takes forever on the wrong name."""

_SHELL_SYNTAX = re.compile(r"[|&;<>()`$\\*?\[\]#~!{}\n]|^\s*\w+=")
_BUILT_IN = frozenset(
    {".", ":", "cd", "command", "eval", "exec", "exit", "export", "read", "set", "source", "trap", "umask"}
)
"""First words of a line that only a shell knows."""
_PLACE = re.compile(r"\$\{?(CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT|CLAUDE_PROJECT_DIR)\}?")

_TIMEOUT = 30.0
_LONGEST_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class HookCommand:
    """A program to run. A shell is used only if its author wrote a line of shell."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    timeout: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one hook. `context` is for the model, `message` for people; `ignored` has the members without
    effect."""

    denied: bool = False
    reason: str | None = None
    context: str | None = None
    message: str | None = None
    asks: bool = False
    """Whether a person has to decide."""
    ignored: str | None = None


def tool_names(name: str, server: str | None) -> tuple[str, ...]:
    """The names of a tool in hooks. A tool of an MCP server has three: its own, the model's, and Claude Code's."""
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
    """The command line of a hook. `args` and simple lines become words; a line of shell is run by the shell, which gets
    the places as variables."""
    if isinstance(args, list):
        words = [line, *(str(item) for item in cast("list[Any]", args))]
    elif _SHELL_SYNTAX.search(_PLACE.sub("", line)):
        return ("/bin/sh", "-c", line)
    else:
        try:
            words = shlex.split(line)
        except ValueError:
            return ("/bin/sh", "-c", line)
        if words and words[0] in _BUILT_IN:
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
    """The input of a hook on stdin: the same facts under Claude Code's names and under Copilot's.

    `facts`: `tool_name`, `tool_input`, `tool_response`, `prompt`, as far as the event has them.
    """
    told: JsonObject = {"hook_event_name": event, "session_id": session_id, "cwd": cwd, **facts}
    copilot: JsonObject = {"hookEventName": event, "sessionId": session_id, "timestamp": now}
    if "tool_name" in facts:
        copilot |= {"toolName": facts["tool_name"], "toolArgs": json.dumps(facts.get("tool_input"))}
    if "tool_response" in facts:
        copilot["toolResult"] = facts["tool_response"]
    return json.dumps({**told, **copilot}).encode()


def judge(event: HookEvent, status: int | None, stdout: str, stderr: str, tool_input: Any = None) -> Verdict:
    """Interpret the end of a hook. `status` is None if the hook could not be run to its end; then `stderr` says why."""
    if status == _EXIT_DENY and event in _BLOCKING:
        return Verdict(denied=True, reason=stderr.strip() or _NO_REASON)
    if status == _EXIT_DENY and event in _ENDED:
        return Verdict(ignored=_ignored_answer(event, "exit status 2", stderr.strip()))
    if status != 0:
        problem = stderr.strip() or f"exit status {status}"
        if event == "PreToolUse":
            return Verdict(denied=True, reason=f"a hook that guards this tool failed: {problem}")
        return Verdict(message=f"a {event} hook failed: {problem}")
    return _answer(event, stdout.strip(), tool_input)


def not_run(event: HookEvent, kind: Any) -> Verdict:
    """The result for a hook that is not a command: if it guards a tool, a person has to decide instead."""
    message = f"a {event} hook of type `{kind}` is not run: only commands are"
    return Verdict(asks=True, reason=message) if event == "PreToolUse" else Verdict(message=message)


def _answer(event: HookEvent, stdout: str, tool_input: Any) -> Verdict:
    """Interpret the output of a hook. JSON is an answer; plain text is context for the model, if the event has one."""
    try:
        answer: Any = json.loads(stdout) if stdout.startswith("{") else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return Verdict(context=stdout or None) if event in _TELLING else Verdict()
    return _verdict_of(event, cast("JsonObject", answer), tool_input)


def _verdict_of(event: HookEvent, answer: JsonObject, tool_input: Any) -> Verdict:
    nested = answer.get("hookSpecificOutput")
    fields = {**answer, **cast("JsonObject", nested)} if isinstance(nested, dict) else answer
    verdict = _decided(event, fields, tool_input) if event in _BLOCKING else Verdict()
    return replace(
        verdict,
        context=_text(fields.get("additionalContext")) if event in _TELLING else None,
        message=_text(answer.get("systemMessage")),
        ignored=_ignored(event, fields),
    )


def _decided(event: HookEvent, fields: JsonObject, tool_input: Any) -> Verdict:
    """A no is stronger than "ask", and that is stronger than a yes. An unknown answer means "ask"."""
    words = {str(fields[key]) for key in _DECISIONS if fields.get(key)}
    reason = _reason(fields)
    if words & _NO or fields.get("continue") is False:
        return Verdict(denied=True, reason=reason or _NO_REASON)
    if event != "PreToolUse":
        return Verdict()
    if any(key in fields and fields[key] != tool_input for key in _CHANGED_INPUT):
        return Verdict(denied=True, reason=_NO_CHANGE)
    asks = bool(words - _YES)
    return Verdict(asks=asks, reason=reason if asks else None)


def _reason(fields: JsonObject) -> str | None:
    return next((text for key in _REASONS if (text := _text(fields.get(key))) is not None), None)


def _ignored(event: HookEvent, fields: JsonObject) -> str | None:
    """The members of an answer that have no effect, in words."""
    followed = _FOLLOWED[event]
    if event == "PreToolUse" and fields.get("continue") is False:
        return "a PreToolUse hook answered `continue: false`: its call is denied, and the turn goes on"
    left = [key for key in fields if key not in followed and (key, fields[key]) not in _MEANS_NOTHING]
    return _ignored_answer(event, ", ".join(f"`{key}`" for key in left), _reason(fields)) if left else None


def _ignored_answer(event: HookEvent, what: str, reason: str | None) -> str:
    return f"a {event} hook answered {what}, which has no effect here" + (f": {reason}" if reason else "")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


__all__ = [
    "EVENTS",
    "HookCommand",
    "HookEvent",
    "Verdict",
    "command_of",
    "judge",
    "matches",
    "matching",
    "not_run",
    "payload",
    "tool_names",
]
