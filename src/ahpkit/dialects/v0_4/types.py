"""Every wire type of 0.4.0 by its name in the specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from ahpkit.dialects.v0_4 import annotations, changeset, common, messages, resource_watch, root, terminal
from ahpkit.dialects.v0_4.chat import actions as chat_actions
from ahpkit.dialects.v0_4.chat import state as chat_state
from ahpkit.dialects.v0_4.session import actions as session_actions
from ahpkit.dialects.v0_4.session import state as session_state
from ahpkit.protocol.common import messages as common_messages

_MODULES = (
    common,
    messages,
    common_messages,
    root,
    session_state,
    session_actions,
    chat_state,
    chat_actions,
    terminal,
    changeset,
    annotations,
    resource_watch,
)


def _named_types(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The types that a module exports; not its constants and reducers."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, IntFlag):
            yield name, int  # states and messages hold the number, with bits nobody knows
        elif not isinstance(value, (str, FunctionType, Mapping)):
            yield name, value


TYPES: Mapping[str, Any] = MappingProxyType(
    {name: shape for module in _MODULES for name, shape in _named_types(module)}
)
"""Name → type: a `TypedDict`, a union of them, or a `Literal`. `ahpkit.protocol.validation.check` takes any of them."""


__all__ = ["TYPES"]
