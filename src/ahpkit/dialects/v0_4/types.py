"""Every wire type by its name in the specification. Knows nothing about them but where they are written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag
from types import MappingProxyType, ModuleType
from typing import Any

from ahpkit.dialects.v0_4.annotations import actions as annotations_actions
from ahpkit.dialects.v0_4.annotations import state as annotations_state
from ahpkit.dialects.v0_4.changeset import actions as changeset_actions
from ahpkit.dialects.v0_4.changeset import commands as changeset_commands
from ahpkit.dialects.v0_4.changeset import state as changeset_state
from ahpkit.dialects.v0_4.chat import actions as chat_actions
from ahpkit.dialects.v0_4.chat import commands as chat_commands
from ahpkit.dialects.v0_4.chat import state as chat_state
from ahpkit.dialects.v0_4.common import actions as common_actions
from ahpkit.dialects.v0_4.common import commands as common_commands
from ahpkit.dialects.v0_4.common import errors as common_errors
from ahpkit.dialects.v0_4.common import notifications as common_notifications
from ahpkit.dialects.v0_4.common import state as common_state
from ahpkit.dialects.v0_4.resource_watch import actions as watch_actions
from ahpkit.dialects.v0_4.resource_watch import commands as watch_commands
from ahpkit.dialects.v0_4.resource_watch import state as watch_state
from ahpkit.dialects.v0_4.root import actions as root_actions
from ahpkit.dialects.v0_4.root import commands as root_commands
from ahpkit.dialects.v0_4.root import notifications as root_notifications
from ahpkit.dialects.v0_4.root import state as root_state
from ahpkit.dialects.v0_4.session import actions as session_actions
from ahpkit.dialects.v0_4.session import commands as session_commands
from ahpkit.dialects.v0_4.session import state as session_state
from ahpkit.dialects.v0_4.telemetry import notifications as telemetry_notifications
from ahpkit.dialects.v0_4.telemetry import state as telemetry_state
from ahpkit.dialects.v0_4.terminal import actions as terminal_actions
from ahpkit.dialects.v0_4.terminal import commands as terminal_commands
from ahpkit.dialects.v0_4.terminal import state as terminal_state
from ahpkit.protocol.common import messages as common_messages

_MODULES = (
    common_state,
    common_actions,
    common_commands,
    common_errors,
    common_messages,
    common_notifications,
    root_state,
    root_actions,
    root_commands,
    root_notifications,
    session_state,
    session_actions,
    session_commands,
    chat_state,
    chat_actions,
    chat_commands,
    terminal_state,
    terminal_actions,
    terminal_commands,
    changeset_state,
    changeset_actions,
    changeset_commands,
    annotations_state,
    annotations_actions,
    watch_state,
    watch_actions,
    watch_commands,
    telemetry_state,
    telemetry_notifications,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # states and messages hold the number, with bits nobody knows
        elif not isinstance(value, str):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


__all__ = ["TYPES"]
