"""Decides whether a client may dispatch an action now. Pure; an action without a rule is refused.

Every action a client dispatches comes here after its shape was checked and its channel found. The answer is None (it
may) or a reason that a person can read. The rules for methods are in `methods`. Each row of the table of commands has
one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.policy.chat import RULES as CHAT_RULES
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, StateOf, TurnIds, allow, check_ids
from ahpkit.host.policy.session import RULES as SESSION_RULES
from ahpkit.host.policy.session import check_active_client, check_agent, check_model
from ahpkit.host.policy.small_channels import ANNOTATIONS_RULES, CANVAS_RULES, ROOT_RULES, TERMINAL_RULES
from ahpkit.protocol.channels import ChannelState
from ahpkit.protocol.common.actions import StateAction
from ahpkit.protocol.registry import ACTIONS
from ahpkit.protocol.session.state import SessionState

RULES: Mapping[str, Rule] = {
    **ROOT_RULES,
    **SESSION_RULES,
    **CANVAS_RULES,
    **CHAT_RULES,
    **TERMINAL_RULES,
    **ANNOTATIONS_RULES,
    "changeset/filesReviewChanged": allow,  # The changes feature refuses reviews where a changeset does not offer them.
}
"""The rule of each action type that clients may dispatch. A type without a rule is refused."""


_QUOTED = 200
"""Characters of a name that a reason repeats."""


def check_action(
    *,
    client_id: str,
    channel: str,
    kind: str | None,
    action: StateAction,
    state: ChannelState,
    state_of: StateOf,
    session: SessionState | None = None,
    turn_ids: TurnIds | None = None,
) -> str | None:
    """Why this client may not dispatch this action now.

    `session` is the state of the session that a chat belongs to, `kind` the kind of the channel, and `turn_ids` a cache
    that the caller keeps between two calls.
    """
    if (reason := _check_type(action["type"], channel, kind)) is not None:
        return reason
    if (reason := check_ids(action)) is not None:
        return reason
    return RULES[action["type"]](ProposedAction(client_id, channel, action, state, state_of, session, turn_ids))


def _check_type(action_type: str, channel: str, kind: str | None) -> str | None:
    spec = ACTIONS.get(action_type)
    if spec is None:
        return f"unknown action type {action_type[:_QUOTED]!r}"
    if action_type not in RULES:
        return f"{action_type} is dispatched by the host, not by clients"
    if kind != spec.channel:
        return f"{action_type} is an action of {spec.channel} channels; {channel} is not one"
    return None


__all__ = [
    "RULES",
    "StateOf",
    "TurnIds",
    "check_action",
    "check_active_client",
    "check_agent",
    "check_model",
]
