"""Every wire type by its name in the specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import ahpkit.protocol.annotations as annotations
from ahpkit.protocol import canvas, changeset, resource_watch, root, telemetry, terminal
from ahpkit.protocol.automation import actions as automation_actions
from ahpkit.protocol.automation import commands as automation_commands
from ahpkit.protocol.automation import state as automation_state
from ahpkit.protocol.chat import actions as chat_actions
from ahpkit.protocol.chat import commands as chat_commands
from ahpkit.protocol.chat import state as chat_state
from ahpkit.protocol.common import actions as common_actions
from ahpkit.protocol.common import commands as common_commands
from ahpkit.protocol.common import messages as common_messages
from ahpkit.protocol.common import state as common_state
from ahpkit.protocol.session import actions as session_actions
from ahpkit.protocol.session import commands as session_commands
from ahpkit.protocol.session import state as session_state

_MODULES = (
    common_state,
    common_actions,
    common_commands,
    common_messages,
    root,
    session_state,
    session_actions,
    session_commands,
    chat_state,
    chat_actions,
    chat_commands,
    terminal,
    changeset,
    annotations,
    resource_watch,
    canvas,
    automation_state,
    automation_actions,
    automation_commands,
    telemetry,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The types that a module exports; not its constants, constructors and reducers."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # States and messages contain the number, which may have unknown bits.
        elif not isinstance(value, (str, FunctionType, Mapping)):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


__all__ = ["TYPES"]
