"""Remembers the kind of each channel by its URI, also after restarts. The kind is stored when the channel is created.

URIs that the host makes contain the kind (`ahp-session:/…`, `ahp-chat:/…`). Clients may choose other URIs: VS Code's
sessions are `<provider>:/<uuid>`, and its chats `ahp-chat://default/…`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from ahpkit.host.feature import Values
from ahpkit.protocol.channels import CHANNELS, MAX_URI, Channel, ChannelState, channel_of
from ahpkit.protocol.common.actions import StateAction

_PREFIX: Final = "channel-kind/"
"""Prefix of the durable value with a channel's kind. It is stored only if the URI does not contain the kind."""

_CHOSEN: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20]{1,1000}")
"""The form of a URI that a client may choose."""

_FORBIDDEN: Final = ("file", "http", "https", "data", "javascript", "mcp", "ahp-root", "ahp-otlp", "ahp-resource-watch")
"""Schemes that are reserved for something else."""


_Reducer = Callable[[ChannelState, StateAction], ChannelState]
"""A reducer as the host calls it: only with states and actions of the channel's own kind."""

_MAX_KNOWN = 1_000
"""How many kinds are cached."""


class ChannelKinds:
    """The kinds of all channels of a host."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: dict[str, Channel] = {}
        """A cache: the kind of a channel is needed several times for each action."""

    def of(self, uri: str) -> Channel | None:
        try:
            return self._known[uri]
        except KeyError:
            name = self._values.get(_PREFIX + uri)
            found = channel_of(uri) if name is None else CHANNELS.get(name)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            if found is not None and len(uri) <= MAX_URI:
                self._known[uri] = found
            return found

    def name_of(self, uri: str) -> str | None:
        channel = self.of(uri)
        return None if channel is None else channel.name

    def may_be(self, uri: str, name: str) -> bool:
        """Whether a client may choose this URI for a new channel of that kind."""
        if len(uri) > MAX_URI or not uri.isprintable():
            return False
        told = channel_of(uri)
        if told is not None:
            return told.name == name
        return _CHOSEN.fullmatch(uri) is not None and uri.partition(":")[0].lower() not in _FORBIDDEN

    def bind(self, uri: str, name: str) -> None:
        """Note the kind of a channel that is created."""
        self._known.pop(uri, None)
        told = channel_of(uri)
        if told is None or told.name != name:
            self._values.set(_PREFIX + uri, name)

    def release(self, uri: str) -> None:
        """Forget the kind of a channel that is gone: its URI may later name a channel of another kind."""
        self._known.pop(uri, None)
        self._values.set(_PREFIX + uri, None)

    def reduce(self, uri: str, state: ChannelState, action: StateAction) -> ChannelState:
        """The state of a channel after an action; the same object for a channel without state."""
        channel = self.of(uri)
        if channel is None or channel.reducer is None:
            return state
        return cast("_Reducer", channel.reducer)(state, action)


__all__ = ["ChannelKinds"]
