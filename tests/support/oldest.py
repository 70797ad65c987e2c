"""Checks that a message has the shape of AHP 0.4.0, for tests of clients that talk to a host of that version."""

from __future__ import annotations

from ahpkit.dialects import Generation, validation
from ahpkit.protocol.common.state import JsonObject


def check_action(action: JsonObject) -> None:
    validation.check_action(action, by=Generation.V0_4)


def check_params(method: str, params: JsonObject) -> None:
    validation.check_params(method, params, by=Generation.V0_4)
