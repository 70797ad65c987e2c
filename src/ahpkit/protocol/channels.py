"""The table of channels: URI → channel, its state, its reducer, its actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from ahpkit.protocol.annotations import AnnotationsState, annotations_reducer
from ahpkit.protocol.automation.actions import automation_reducer, automation_run_reducer
from ahpkit.protocol.automation.state import AUTOMATIONS_URI, AutomationRunState, AutomationState
from ahpkit.protocol.canvas import CanvasState, canvas_reducer
from ahpkit.protocol.changeset import ChangesetState, changeset_reducer
from ahpkit.protocol.chat.reducer import chat_reducer
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.common.state import ROOT_URI, JsonObject
from ahpkit.protocol.registry import ACTIONS, Shape
from ahpkit.protocol.resource_watch import ResourceWatchState, resource_watch_reducer
from ahpkit.protocol.root import RootState, root_reducer
from ahpkit.protocol.session.reducer import session_reducer
from ahpkit.protocol.session.state import SessionState
from ahpkit.protocol.terminal import TerminalState, terminal_reducer

ChannelState = (
    RootState
    | AnnotationsState
    | SessionState
    | ChatState
    | TerminalState
    | ChangesetState
    | ResourceWatchState
    | CanvasState
    | AutomationState
    | AutomationRunState
)
"""The state of any channel."""


class Reducer(Protocol):
    """State and action to state; the same object when nothing changes."""

    def __call__(self, state: JsonObject, action: JsonObject) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class Channel:
    """A kind of channel. Without reducer it has no state: it only delivers."""

    name: str
    """As in the prefix of its actions, and in the `reducer` of conformance fixtures."""
    scheme: str
    pattern: re.Pattern[str]
    """What its URIs look like as a whole."""
    state: Shape
    reducer: Reducer | None
    actions: frozenset[str]


def _channel(name: str, uri: str, state: Shape = None, reducer: Reducer | None = None) -> Channel:
    actions = frozenset(spec.type for spec in ACTIONS.values() if spec.channel == name)
    return Channel(name, uri.partition(":")[0], re.compile(uri), state, reducer, actions)


MAX_URI = 2_048
"""Characters of a channel's URI: it is a name that is stored and sent with every action."""

_SEGMENT = r"[^\x00-\x20/?#]+"
_REST = r"[^\x00-\x20]+"

_CHANNELS = (
    _channel("root", "ahp-root://", RootState, root_reducer),
    _channel("annotations", f"ahp-session:/{_SEGMENT}/annotations", AnnotationsState, annotations_reducer),
    _channel("session", f"ahp-session:/{_SEGMENT}", SessionState, session_reducer),
    _channel("chat", f"ahp-chat:/{_SEGMENT}", ChatState, chat_reducer),
    _channel("terminal", f"ahp-terminal:/{_SEGMENT}", TerminalState, terminal_reducer),
    _channel("changeset", f"ahp-changeset:/{_REST}", ChangesetState, changeset_reducer),
    _channel("resourceWatch", f"ahp-resource-watch:/{_SEGMENT}", ResourceWatchState, resource_watch_reducer),
    _channel("canvas", f"ahp-canvas:/{_SEGMENT}", CanvasState, canvas_reducer),
    _channel("automation", re.escape(AUTOMATIONS_URI), AutomationState, automation_reducer),
    _channel("automationRun", f"ahp-automation-run:/{_SEGMENT}", AutomationRunState, automation_run_reducer),
    _channel("telemetry", f"ahp-otlp:{_REST}"),
    _channel("mcp", f"mcp://{_REST}"),
)

CHANNELS: Mapping[str, Channel] = MappingProxyType({channel.name: channel for channel in _CHANNELS})
"""Channel name → channel."""


def channel_of(uri: str) -> Channel | None:
    """The kind of channel a URI names, or None; a URI that is too long names none."""
    return _known_channel(uri) if len(uri) <= MAX_URI else None


@lru_cache(maxsize=4096)
def _known_channel(uri: str) -> Channel | None:
    """Cached, because it is called for every action, with few different URIs."""
    for channel in _CHANNELS:
        if channel.pattern.fullmatch(uri):
            return channel
    return None


def reduce(uri: str, state: JsonObject, action: JsonObject) -> JsonObject:
    """The state of `uri` after `action`; the same object for an unknown channel, or one without state."""
    channel = channel_of(uri)
    if channel is None or channel.reducer is None:
        return state
    return channel.reducer(state, action)


__all__ = ["CHANNELS", "MAX_URI", "ROOT_URI", "Channel", "ChannelState", "Reducer", "channel_of", "reduce"]
