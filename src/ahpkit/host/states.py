"""Typed readers for the states of channels. Every class that can look up the state of any channel derives from
`States`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Protocol, cast

from ahpkit.protocol.changeset import ChangesetState
from ahpkit.protocol.channels import ROOT_URI, ChannelState
from ahpkit.protocol.chat.state import ChatState
from ahpkit.protocol.root import RootState
from ahpkit.protocol.session.state import SessionState
from ahpkit.protocol.terminal import TerminalState

NO_ROOT: Final[RootState] = {"agents": []}
"""The state of the root channel before it is opened."""

NO_SESSION: Final[SessionState] = {
    "provider": "",
    "title": "",
    "status": 0,
    "lifecycle": "failed",
    "activeClients": [],
    "chats": [],
}
"""Used in place of the state of a session that is gone: valid but empty."""

NO_CHAT: Final[ChatState] = {"resource": "", "title": "", "status": 0, "modifiedAt": "", "turns": []}
"""Used in place of the state of a chat that is gone: valid but empty."""


NO_STATE: Final = cast("ChannelState", {})
"""Used in place of the state of a channel that is gone, whatever its kind was."""


class States(Protocol):
    """The present states of channels. Never change them in place."""

    @abstractmethod
    def state(self, uri: str) -> ChannelState | None:
        """The state of any channel."""
        ...

    def root(self) -> RootState:
        """The state of the host itself."""
        return cast("RootState | None", self.state(ROOT_URI)) or NO_ROOT

    def session(self, uri: str | None) -> SessionState | None:
        """The state of a session."""
        return cast("SessionState | None", self.state(uri or ""))

    def chat(self, uri: str | None) -> ChatState | None:
        """The state of a chat."""
        return cast("ChatState | None", self.state(uri or ""))

    def terminal(self, uri: str) -> TerminalState | None:
        """The state of a terminal."""
        return cast("TerminalState | None", self.state(uri))

    def changeset(self, uri: str) -> ChangesetState | None:
        """The state of a changeset."""
        return cast("ChangesetState | None", self.state(uri))


__all__ = ["NO_CHAT", "NO_SESSION", "NO_STATE", "States"]
