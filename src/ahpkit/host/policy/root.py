"""What clients may do to the root channel: change the host's configuration within its schema. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.policy.config import check_change
from ahpkit.host.policy.proposed_action import ProposedAction, Rule
from ahpkit.protocol.common.state import ConfigPropertySchema
from ahpkit.protocol.root import RootConfigChangedAction, RootState


def _config_changed(proposed: ProposedAction[RootConfigChangedAction, RootState]) -> str | None:
    action = proposed.action
    return check_change(
        proposed.state.get("config"), action["config"], replace=action.get("replace", False), mutable=_writable
    )


def _writable(schema: ConfigPropertySchema) -> bool:
    return not schema.get("readOnly", False)


RULES: Mapping[str, Rule] = {"root/configChanged": _config_changed}

__all__ = ["RULES"]
