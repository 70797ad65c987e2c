"""Every wire type by its name in the specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from ahpkit.protocol.annotations import actions as annotations_actions
from ahpkit.protocol.annotations import state as annotations_state
from ahpkit.protocol.automation import actions as automation_actions
from ahpkit.protocol.automation import commands as automation_commands
from ahpkit.protocol.automation import state as automation_state
from ahpkit.protocol.canvas import actions as canvas_actions
from ahpkit.protocol.canvas import state as canvas_state
from ahpkit.protocol.changeset import actions as changeset_actions
from ahpkit.protocol.changeset import commands as changeset_commands
from ahpkit.protocol.changeset import state as changeset_state
from ahpkit.protocol.chat import actions as chat_actions
from ahpkit.protocol.chat import commands as chat_commands
from ahpkit.protocol.chat import state as chat_state
from ahpkit.protocol.common import actions as common_actions
from ahpkit.protocol.common import commands as common_commands
from ahpkit.protocol.common import errors as common_errors
from ahpkit.protocol.common import messages as common_messages
from ahpkit.protocol.common import notifications as common_notifications
from ahpkit.protocol.common import state as common_state
from ahpkit.protocol.resource_watch import actions as watch_actions
from ahpkit.protocol.resource_watch import commands as watch_commands
from ahpkit.protocol.resource_watch import state as watch_state
from ahpkit.protocol.root import actions as root_actions
from ahpkit.protocol.root import commands as root_commands
from ahpkit.protocol.root import notifications as root_notifications
from ahpkit.protocol.root import state as root_state
from ahpkit.protocol.session import actions as session_actions
from ahpkit.protocol.session import commands as session_commands
from ahpkit.protocol.session import state as session_state
from ahpkit.protocol.telemetry import notifications as telemetry_notifications
from ahpkit.protocol.telemetry import state as telemetry_state
from ahpkit.protocol.terminal import actions as terminal_actions
from ahpkit.protocol.terminal import commands as terminal_commands
from ahpkit.protocol.terminal import state as terminal_state

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
    canvas_state,
    canvas_actions,
    automation_state,
    automation_actions,
    automation_commands,
    telemetry_state,
    telemetry_notifications,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The types that a module exports; not its constants and constructors."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # States and messages contain the number, which may have unknown bits.
        elif not isinstance(value, (str, FunctionType)):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


__all__ = ["TYPES"]
