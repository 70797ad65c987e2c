"""The Agent Host Protocol 1.0.0, with our additions: wire types, tables, validation, reducers. Pure: no I/O, no clock.

The names below are the public surface. The wire types are in the module of their channel, for example
`ahpkit.protocol.terminal`. The large channels `session`, `chat` and `automation` have a module for each part: `state`,
`actions`, `commands`. A name is loaded when it is first used, so a program that needs only an error class does not load
the tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ahpkit.protocol.channels import CHANNELS, MAX_URI, ROOT_URI, Channel, ChannelState, Reducer, channel_of, reduce
    from ahpkit.protocol.errors import (
        ERRORS,
        AhpError,
        AlreadyExists,
        AuthRequired,
        Conflict,
        ContentNotFound,
        InternalError,
        InvalidAnswer,
        InvalidParams,
        InvalidRequest,
        LocalProtocolError,
        MethodNotFound,
        NotFound,
        ParseError,
        PermissionDenied,
        ProtocolError,
        ProviderNotFound,
        RemoteProtocolError,
        RequestId,
        RpcError,
        SessionAlreadyExists,
        SessionNotFound,
        TransportClosed,
        TurnInProgress,
        UnsupportedProtocolVersion,
        from_error_object,
        to_error_object,
    )
    from ahpkit.protocol.registry import (
        ACTIONS,
        COMMANDS,
        NOTIFICATIONS,
        TYPES,
        ActionSpec,
        CommandSpec,
        Direction,
        NotificationSpec,
        Shape,
    )
    from ahpkit.protocol.rope import Rope
    from ahpkit.protocol.session.enablement import EffectiveEnablement, effective
    from ahpkit.protocol.validation import MAX_URI_LENGTH, check, check_action, check_params, make_whole, prepare_check
    from ahpkit.protocol.version import Version

_PARTS = ("errors", "rope", "version", "registry", "channels", "validation", "session.enablement")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for part in _PARTS:
            module = import_module(f"{__name__}.{part}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ACTIONS",
    "CHANNELS",
    "COMMANDS",
    "ERRORS",
    "MAX_URI",
    "MAX_URI_LENGTH",
    "NOTIFICATIONS",
    "ROOT_URI",
    "TYPES",
    "ActionSpec",
    "AhpError",
    "AlreadyExists",
    "AuthRequired",
    "Channel",
    "ChannelState",
    "CommandSpec",
    "Conflict",
    "ContentNotFound",
    "Direction",
    "EffectiveEnablement",
    "InternalError",
    "InvalidAnswer",
    "InvalidParams",
    "InvalidRequest",
    "LocalProtocolError",
    "MethodNotFound",
    "NotFound",
    "NotificationSpec",
    "ParseError",
    "PermissionDenied",
    "ProtocolError",
    "ProviderNotFound",
    "Reducer",
    "RemoteProtocolError",
    "RequestId",
    "Rope",
    "RpcError",
    "SessionAlreadyExists",
    "SessionNotFound",
    "Shape",
    "TransportClosed",
    "TurnInProgress",
    "UnsupportedProtocolVersion",
    "Version",
    "channel_of",
    "check",
    "check_action",
    "check_params",
    "effective",
    "from_error_object",
    "make_whole",
    "prepare_check",
    "reduce",
    "to_error_object",
]
