"""Converts an agent's permission options to confirmation options, and a person's answer back. Pure.

An agent may offer several options of one kind, so the answer is always the option the person picked. Choices to
remember ("always allow") are remembered by the agent that offered them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ahpkit.agents.acp.limits import MAX_LISTED, short
from ahpkit.agents.acp.meta import annotated
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.host.agent import Confirmation
from ahpkit.protocol.chat.state import ConfirmationOption
from ahpkit.protocol.common.state import JsonObject

Policy = Literal["ask", "allow", "deny"]
"""Who answers an agent's permission requests: a person, or the configuration."""

CANCELLED: JsonObject = {"outcome": {"outcome": "cancelled"}}

ANSWER_META = "ahpkit/permission-answer"
"""Carries what ACP has no field for: the reason a person gave for a denial, and what they suggested instead."""

_ONCE, _ALWAYS = 0, 1

_IN_WORDS = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Deny",
    "reject_always": "Always deny",
}
"""For options whose name is only their id: people read words."""


def confirmation_options(options: object) -> list[ConfirmationOption]:
    """What clients show. An option of a kind we do not know counts as a denial: nothing runs by mistake."""
    return [_option(option) for option in objects(options)[:MAX_LISTED] if text(option.get("optionId"))]


def _option(option: JsonObject) -> ConfirmationOption:
    kind = text(option.get("kind")) or ""
    name = text(option.get("name")) or option["optionId"]
    shown: ConfirmationOption = {
        "id": option["optionId"],
        "label": short(_IN_WORDS.get(kind, name) if name == option["optionId"] else name),
        "kind": "approve" if kind.startswith("allow") else "deny",
        "group": _ALWAYS if kind.endswith("_always") else _ONCE,
    }
    return annotated(shown, meta=obj(option.get("_meta")))


def outcome(options: Sequence[ConfirmationOption], answer: Confirmation) -> JsonObject:
    """The result of `session/request_permission` for a person's answer."""
    kind = "approve" if answer.approved else "deny"
    picked = [option["id"] for option in options if option["id"] == answer.option_id and option["kind"] == kind]
    chosen = picked[0] if picked else default_option(options, approved=answer.approved)
    result = CANCELLED if chosen is None else {"outcome": {"outcome": "selected", "optionId": chosen}}
    said = {"reason": answer.reason, "suggestion": answer.suggestion}
    said = {key: value for key, value in said.items() if value is not None}
    meta = answer.meta | ({ANSWER_META: said} if said else {})
    return result | ({"_meta": meta} if meta else {})


def default_option(options: Sequence[ConfirmationOption], *, approved: bool) -> str | None:
    """The option a plain yes or no stands for: this time only, if the agent offers that."""
    kind = "approve" if approved else "deny"
    fitting = [option for option in options if option["kind"] == kind]
    fitting.sort(key=lambda option: option.get("group", _ONCE))
    return fitting[0]["id"] if fitting else None


__all__ = ["ANSWER_META", "CANCELLED", "Policy", "confirmation_options", "default_option", "outcome"]
