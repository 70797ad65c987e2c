"""The channels of 0.4.0 in one table: URI → channel, its state, its reducer, its actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from ahpkit.dialects.v0_4.annotations import AnnotationsState, annotations_reducer
from ahpkit.dialects.v0_4.changeset import ChangesetState, changeset_reducer
from ahpkit.dialects.v0_4.chat.reducer import chat_reducer
from ahpkit.dialects.v0_4.chat.state import ChatState
from ahpkit.dialects.v0_4.common import ROOT_URI, JsonObject
from ahpkit.dialects.v0_4.registry import ACTIONS
from ahpkit.dialects.v0_4.resource_watch import ResourceWatchState, resource_watch_reducer
from ahpkit.dialects.v0_4.root import RootState, root_reducer
from ahpkit.dialects.v0_4.session.reducer import session_reducer
from ahpkit.dialects.v0_4.session.state import SessionState
from ahpkit.dialects.v0_4.terminal import TerminalState, terminal_reducer
from ahpkit.protocol.channels import MAX_URI
from ahpkit.protocol.registry import Shape


class Reducer(Protocol):
    """State and action to state; the same object when nothing changes."""

    def __call__(self, state: JsonObject, action: JsonObject, *, now: int) -> JsonObject: ...


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


def reduce(uri: str, state: JsonObject, action: JsonObject, *, now: int) -> JsonObject:
    """The state of `uri` after `action`; the same object for an unknown channel, or one without state."""
    channel = channel_of(uri)
    if channel is None or channel.reducer is None:
        return state
    return channel.reducer(state, action, now=now)


__all__ = ["CHANNELS", "ROOT_URI", "Channel", "Reducer", "channel_of", "reduce"]
