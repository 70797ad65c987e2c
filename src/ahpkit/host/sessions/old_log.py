"""Converts a log that was written in the form of 0.4.0 to 1.0.0. Pure: bytes in, bytes out.

The reducers of 0.4.0 apply all actions of a channel; then the resulting state is converted. Actions from before the
conversion cannot be replayed, so a client that reconnects with an older number gets snapshots. The highest number of
each client is kept, so that an action that it sends again is recognised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ahpkit.dialects.states_up import migrate_channels
from ahpkit.dialects.v0_4.channels import channel_of, reduce
from ahpkit.host.sessions.catalogue import PREFIX as TIMES
from ahpkit.host.spine.durable_values import PREFIX as VALUES
from ahpkit.log.engine import OPENED
from ahpkit.log.entry import ChannelSnapshot, Entry, Recovery
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.codec import decode_own, encode

_log = logging.getLogger(__name__)

_ANNOTATIONS: Final = "/annotations"


class _OldEntry(msgspec.Struct):
    """What is needed of an entry. There may be a million of them, so the other members are skipped while reading."""

    action: JsonObject


_decoder: Final = msgspec.json.Decoder(_OldEntry)

Report = Callable[[int, int], None]
"""Called with the number of actions that were converted so far, and the number of all actions."""

_STREAMED: Final = frozenset({"chat/delta", "chat/reasoning"})
"""Actions that append text. Several of them in a row, for the same part, become one action."""


def convert_0_4(old: Recovery, report: Report | None = None) -> Recovery | None:
    """The data of an older host, converted to 1.0.0; None if it has this form already."""
    states: dict[str, JsonObject] = {uri: decode_own(one.state) for uri, one in old.snapshots.items()}
    sessions = [state for uri, state in states.items() if _kind(uri) == "session"]
    if sessions and not any("summary" in state for state in sessions):
        return None
    done = 0
    for channel, entries in _by_channel(old.tail).items():
        for entry, action in _joined(entries):
            try:
                states[channel] = reduce(channel, states[channel], action, now=entry.at)
            except Exception:  # An action that cannot be applied is left out. All others are needed.
                _log.exception("the action %d of %s could not be applied again", entry.seq, channel)
        done += len(entries)
        if report is not None:
            report(done, len(old.tail))
    return _converted(old, states)


def _by_channel(tail: Sequence[Entry]) -> Mapping[str, Sequence[Entry]]:
    """The entries of each channel: channels do not depend on each other, so each can be reduced separately."""
    found: dict[str, list[Entry]] = {}
    for entry in tail:
        found.setdefault(entry.channel, []).append(entry)
    return found


def _joined(entries: Sequence[Entry]) -> Iterator[tuple[Entry, JsonObject]]:
    """The actions of a channel, each with the last entry that it comes from. Text that was streamed in pieces becomes
    one action."""
    run: list[str] = []
    part: tuple[object, ...] | None = None
    last: tuple[Entry, JsonObject] | None = None
    for entry in entries:
        action = _action(entry)
        if action is None:
            continue
        streams_to = _part(action)
        if last is not None and streams_to is not None and streams_to == part:
            run.append(action["content"])
            last = entry, last[1]
            continue
        if last is not None:
            yield _whole(*last, run)
        last, part = (entry, action), streams_to
        run = [] if part is None else [action["content"]]
    if last is not None:
        yield _whole(*last, run)


def _action(entry: Entry) -> JsonObject | None:
    try:
        action = _decoder.decode(entry.payload).action
        if type(action["type"]) is not str:
            raise TypeError("its type is not a text")
        return action
    except Exception:  # An action that cannot be read is left out. All others are needed.
        _log.exception("the action %d of %s could not be read", entry.seq, entry.channel)
        return None


def _part(action: JsonObject) -> tuple[object, ...] | None:
    """What an action appends text to; None if it does something else."""
    if action["type"] in _STREAMED and type(action.get("content")) is str:
        return action["type"], action.get("turnId"), action.get("partId")
    return None


def _whole(entry: Entry, action: JsonObject, run: Sequence[str]) -> tuple[Entry, JsonObject]:
    return entry, {**action, "content": "".join(run)} if len(run) > 1 else action


def _converted(old: Recovery, states: Mapping[str, JsonObject]) -> Recovery:
    head = old.head_seq + 1  # A new number, because every client has to get this.
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
            found |= {chat["resource"]: uri for chat in state["chats"]} | {uri: uri, uri + _ANNOTATIONS: uri}
    return found


def _kind(uri: str) -> str | None:
    channel = channel_of(uri)
    return None if channel is None else channel.name


__all__ = ["convert_0_4"]
