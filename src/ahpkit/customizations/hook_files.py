"""Reads hook manifests: their events and matchers. Clients are not sent the commands.

Several shapes are in use: `{hooks: {Event: [...]}}` or the same without the wrapper, and in them flat entries
(`{command}`) or groups (`{matcher, hooks: [...]}`). Each event and matcher becomes one child.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ahpkit.customizations.build import Builder
from ahpkit.customizations.details import HookDetail
from ahpkit.customizations.hooks import EVENTS
from ahpkit.customizations.jsonc import Json, Node
from ahpkit.customizations.text import clean_text
from ahpkit.customizations.yaml_values import flag
from ahpkit.protocol.common.state import JsonObject

_CANONICAL = {
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "userPromptSubmitted": "UserPromptSubmit",
    "userPromptSubmit": "UserPromptSubmit",
    "beforeSubmitPrompt": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "permissionRequest": "PermissionRequest",
    "preCompact": "PreCompact",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "agentStop": "Stop",
    "stop": "Stop",
    "notification": "Notification",
    "errorOccurred": "ErrorOccurred",
}
"""Copilot's and Cursor's spellings of events that Claude Code named first."""

_NOT_EVENTS = frozenset({"version", "description", "disableAllHooks", "$schema", "name"})

_RUNNABLE = frozenset({"command", "bash", "powershell", "windows", "linux", "osx", "args", "url", "prompt", "tool"})
"""An entry needs one of these keys to do something."""

_MATCHER_LIMIT = 500


@dataclass(slots=True)
class _Group:
    event: str
    matcher: str | None
    nodes: list[Node] = field(default_factory=list[Node])
    actions: list[JsonObject] = field(default_factory=list[JsonObject])


def hook_file(builder: Builder, path: str, *, only_wrapped: bool = False) -> None:
    """A hook manifest. `only_wrapped`: the file is a settings file, in which everything except `hooks` means something
    else."""
    parsed = builder.json(path)
    if parsed is None:
        return
    wrapped = parsed.root.members.get("hooks")
    disabled = flag(parsed.root.get("disableAllHooks")) is True
    if wrapped is not None:
        hooks(builder, path, parsed, wrapped, disabled=disabled)
    elif not only_wrapped:
        hooks(builder, path, parsed, parsed.root, disabled=disabled)


def hooks(builder: Builder, path: str, parsed: Json, node: Node, *, disabled: bool = False) -> None:
    """The events at `path` and their hooks."""
    inner = node.members.get("hooks")
    if inner is not None:
        disabled = disabled or flag(node.get("disableAllHooks")) is True
        node = inner
    counts: dict[tuple[str, str | None], int] = {}
    for group in _groups(builder, path, parsed, node):
        ordinal = counts[group.event, group.matcher] = counts.get((group.event, group.matcher), 0) + 1
        _add(builder, path, parsed, group, ordinal, disabled)


def _groups(builder: Builder, path: str, parsed: Json, node: Node) -> Iterator[_Group]:
    if node.is_list:
        yield from _listed(builder, path, parsed, node)
    elif node.object is None:
        builder.report.warn("hooks-shape", "hooks are neither an object nor a list; ignored", path, parsed.line(node))
    for name, member in node.members.items():
        if name not in _NOT_EVENTS:
            yield from _event(builder, path, parsed, name, member)


def _listed(builder: Builder, path: str, parsed: Json, node: Node) -> Iterator[_Group]:
    """`hooks` as a list: every entry must say its event."""
    for item in node.items:
        event = item.get("event")
        if isinstance(event, str) and event:
            yield from _event(builder, path, parsed, event, Node([], item.start, item.end, items=[item]))
        else:
            builder.report.warn("hook-without-event", "a hook that names no event; not listed", path, parsed.line(item))


def _event(builder: Builder, path: str, parsed: Json, event: str, member: Node) -> Iterator[_Group]:
    """The hooks of one event. Nested groups are listed separately; flat entries with the same matcher are listed
    together."""
    items = member.items
    if not member.is_list:
        builder.report.note("hook-shape", f"`{event}` is not a list; read as its only entry", path, parsed.line(member))
        items = [member]
    flat: dict[str | None, _Group] = {}
    for item in items:
        matcher = _matcher(item)
        nested = item.members.get("hooks")
        if nested is not None and nested.is_list:
            actions = [action for inner in nested.items for action in _action(builder, path, parsed, event, inner)]
            yield _Group(event, matcher, [item], actions)
            continue
        for action in _action(builder, path, parsed, event, item):
            group = flat.setdefault(matcher, _Group(event, matcher))
            group.nodes.append(item)
            group.actions.append(action)
    yield from flat.values()


def _action(builder: Builder, path: str, parsed: Json, event: str, item: Node) -> list[JsonObject]:
    """One action of a hook; None if the entry does nothing, which is reported."""
    if isinstance(item.value, str) and item.value.strip():
        return [{"type": "command", "command": item.value}]
    if item.object is not None and not _RUNNABLE.isdisjoint(item.object):
        return [item.object]
    builder.report.warn("hook-shape", f"an entry of `{event}` does nothing; left out", path, parsed.line(item))
    return []


def _matcher(item: Node) -> str | None:
    """The pattern that limits a hook to some tools. A missing matcher, `""` and `*` do not limit it."""
    matcher = item.get("matcher")
    return matcher if isinstance(matcher, str) and matcher not in ("", "*") else None


def _add(builder: Builder, path: str, parsed: Json, group: _Group, ordinal: int, disabled: bool) -> None:
    event = _CANONICAL.get(group.event, group.event)
    if event not in EVENTS:
        line = parsed.line(group.nodes[0])
        builder.report.note("hook-event", f"hooks for `{group.event}` are listed and never run", path, line)
    shown = clean_text(event, limit=_MATCHER_LIMIT)
    child: JsonObject = {"type": "hook", "name": shown, "event": shown}
    if group.matcher is not None:
        child["matcher"] = clean_text(group.matcher, limit=_MATCHER_LIMIT)
        child["name"] = f"{shown} ({child['matcher']})"
    if disabled:
        child["enabled"] = False
    first, last = group.nodes[0], group.nodes[-1]
    child["range"] = parsed.range(Node(None, first.start, last.end))
    detail = HookDetail(event, group.matcher, tuple(group.actions), builder.dialect)
    builder.add(child, detail, path=path, key=f"{group.event}\0{group.matcher or ''}\0{ordinal}")


__all__ = ["hook_file", "hooks"]
