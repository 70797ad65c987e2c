"""What clients may do to the root channel: change the host's configuration within its schema. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.policy.attempt import Attempt, Rule
from ahpkit.host.policy.config import check_change
from ahpkit.protocol.common.state import JsonObject


def _config_changed(attempt: Attempt) -> str | None:
    action = attempt.action
    return check_change(
        attempt.state.get("config"), action["config"], replace=action.get("replace", False), mutable=_writable
    )


def _writable(schema: JsonObject) -> bool:
    return not schema.get("readOnly", False)


RULES: Mapping[str, Rule] = {"root/configChanged": _config_changed}

__all__ = ["RULES"]
