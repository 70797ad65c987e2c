"""Converts a log that was written in the form of 0.4.0 to 1.0.0. Pure: bytes in, bytes out.

Each channel gets the state it has after all its actions, reduced by the reducers of 0.4.0 and then converted. Replay
begins anew: whoever comes back with an older number gets snapshots. The highest number of each client is kept, so that
an action it sends again is still known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from ahpkit.dialects.migration import migrate_channels
from ahpkit.dialects.v0_4.channels import channel_of, reduce
from ahpkit.host.sessions.session_times import PREFIX as TIMES
from ahpkit.host.spine.durable_values import PREFIX as VALUES
from ahpkit.log.engine import OPENED
from ahpkit.log.entry import ChannelSnapshot, Recovery
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

_log = logging.getLogger(__name__)

_ANNOTATIONS: Final = "/annotations"


def convert_0_4(old: Recovery) -> Recovery | None:
    """What an older host left, as this one keeps it; None when it is 1.0.0 already."""
    states: dict[str, JsonObject] = {uri: decode_own(one.state) for uri, one in old.snapshots.items()}
    sessions = [state for uri, state in states.items() if _kind(uri) == "session"]
    if sessions and not any("summary" in state for state in sessions):
        return None
    for entry in old.tail:
        try:
            action = decode_own(entry.payload)["action"]
            states[entry.channel] = reduce(entry.channel, states[entry.channel], action, now=entry.at)
        except Exception:  # An action that cannot be read is left out. All others are needed.
            _log.exception("the action %d of %s could not be applied again", entry.seq, entry.channel)
    return _converted(old, states)


def _converted(old: Recovery, states: Mapping[str, JsonObject]) -> Recovery:
    head = old.head_seq + 1  # A new number, so that no client seems up to date without having seen this.
    sessions = _sessions(states)
    values = {key: data for key, data in old.values.items() if not key.startswith(OPENED)}
    snapshots: dict[str, ChannelSnapshot] = {}
    for uri, (state, listed) in migrate_channels(states, _kind, sessions.get).items():
        snapshots[uri] = ChannelSnapshot(uri, head, encode(state))
        values[OPENED + uri] = b"%d" % head
        if listed is not None:
            values[VALUES + TIMES + uri] = encode([listed["createdAt"], listed["modifiedAt"]])
    return Recovery(head_seq=head, oldest_seq=head + 1, snapshots=snapshots, values=values, clients=old.clients)


def _sessions(states: Mapping[str, JsonObject]) -> dict[str, str]:
    """The session that each chat and each annotations channel belongs to."""
    found: dict[str, str] = {}
    for uri, state in states.items():
        if _kind(uri) == "session":
            chats: list[Any] = state["chats"]
            found |= {chat["resource"]: uri for chat in chats} | {uri: uri, uri + _ANNOTATIONS: uri}
    return found


def _kind(uri: str) -> str | None:
    channel = channel_of(uri)
    return None if channel is None else channel.name


__all__ = ["convert_0_4"]
