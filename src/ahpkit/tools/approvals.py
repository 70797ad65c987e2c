"""The options of an approval request, and the decision that was made. Pure.

Every approval offers the same options in the same places, whoever asks: first this time only, then what to remember.
The agent's own options come last, so that a key pressed without looking never means "always".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ahpkit.protocol.chat.state import ConfirmationOption
from ahpkit.protocol.common.state import JsonObject
from ahpkit.tools.rules import (
    SCOPES,
    WHERE,
    Decision,
    Place,
    Rule,
    RuleKind,
    Scope,
    command_prefix,
    path_pattern,
)
from ahpkit.tools.subject import Subject

ALLOW_ONCE = "allow-once"
DENY_ONCE = "deny-once"

ONCE, ALLOW_RULES, DENY_RULES, AGENTS_OWN = 0, 1, 2, 3
"""Groups of options, in the order they are shown."""

MAX_ENTRIES = 10_000
"""The number of decisions that are kept. The oldest are removed first."""


def options_for(subject: Subject, own: Sequence[ConfirmationOption] = ()) -> list[ConfirmationOption]:
    """The options of a request: allow once, deny once, what to remember, and then the agent's own options besides a
    plain yes and no.

    If an agent marks exactly one of its options as a plain yes (group 0), that option comes first.
    """
    yes = _plain(own, "approve") or {"id": ALLOW_ONCE, "label": "Allow once", "kind": "approve", "group": ONCE}
    no = _plain(own, "deny") or {"id": DENY_ONCE, "label": "Deny", "kind": "deny", "group": ONCE}
    kinds = _kinds(subject)
    offered: list[ConfirmationOption] = [yes, no]
    offered += [_rule_option("allow", kind, what, scope, ALLOW_RULES) for kind, what in kinds for scope in SCOPES]
    offered += [_rule_option("deny", kind, what, scope, DENY_RULES) for kind, what in kinds for scope in SCOPES]
    taken = {option["id"] for option in offered}
    return [*offered, *({**option, "group": AGENTS_OWN} for option in own if option["id"] not in taken)]


def _plain(own: Sequence[ConfirmationOption], kind: str) -> ConfirmationOption | None:
    found = [option for option in own if option["kind"] == kind and option.get("group") == ONCE]
    return found[0] if len(found) == 1 else None


def _kinds(subject: Subject) -> list[tuple[RuleKind, str]]:
    """The kinds of rules that fit this call, the narrowest first, each with its pattern."""
    kinds: list[tuple[RuleKind, str]] = []
    if (prefix := command_prefix(subject.command)) is not None:
        kinds.append(("command", f"`{prefix} …`"))
    elif not subject.more and (pattern := path_pattern(subject.touched)) is not None:
        kinds.append(("path", f"{subject.tool} in {pattern}"))
    kinds.append(("tool", subject.tool))
    if subject.is_server:
        kinds.append(("server", "every tool of this server"))
    return kinds


def _rule_option(decision: Decision, kind: RuleKind, what: str, scope: Scope, group: int) -> ConfirmationOption:
    verb = "Always allow" if decision == "allow" else "Always deny"
    return {
        "id": f"{decision}:{kind}:{scope}",
        "label": f"{verb} {what}{WHERE[scope]}",
        "kind": "approve" if decision == "allow" else "deny",
        "group": group,
    }


def rule_from(option_id: str | None, subject: Subject, place: Place, *, id: str, now: int, by: str) -> Rule | None:
    """The rule that a chosen option stands for; None for an option that is about this call only."""
    words = (option_id or "").split(":")
    if len(words) != 3 or words[0] not in ("allow", "deny") or words[2] not in SCOPES:
        return None
    found = [kind for kind, _ in _kinds(subject) if kind == words[1]]
    if not found:
        return None
    decision: Decision = words[0]
    scope: Scope = words[2]
    kind = cast("RuleKind", words[1])
    pattern = {"command": command_prefix(subject.command), "path": path_pattern(subject.touched)}.get(kind)
    return Rule(
        id=id,
        decision=decision,
        kind=kind,
        owner=subject.owner,
        tool="" if kind == "server" else subject.tool,
        pattern=pattern or "",
        scope=scope,
        place=place.of(scope),
        created_at=now,
        created_by=by,
    )


By = Literal["person", "client", "rule", "guard", "setting", "agent", "default"]
"""Who decided. `client`: a program that was connected, without asking a person."""

Of = Literal["call", "result"]
"""What a decision is about: whether a call may run, or whether the agent gets its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One decision about one call, to be looked up later."""

    at: int
    session: str
    chat: str
    turn: str
    call: str
    owner: str
    tool: str
    decision: Literal["allowed", "denied"]
    by: By
    of: Of = "call"
    who: str = ""
    """The client, or the rule's id."""
    shown: Mapping[str, Any]
    """What the person saw: title, message, input."""
    option: str = ""
    reason: str = ""
    edited: str = ""
    """The input as the person edited it."""

    def as_json(self) -> JsonObject:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {key: value for key, value in fields.items() if value not in ("", None)}


__all__ = ["ALLOW_ONCE", "DENY_ONCE", "MAX_ENTRIES", "Approval", "By", "Of", "options_for", "rule_from"]
