"""The envelope that carries actions, and the union of them all. Knows no reducer."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.dialects.v0_4.annotations.actions import AnnotationsAction
from ahpkit.dialects.v0_4.changeset.actions import ChangesetAction
from ahpkit.dialects.v0_4.chat.actions import ChatAction
from ahpkit.dialects.v0_4.common.state import URI
from ahpkit.dialects.v0_4.resource_watch.actions import ResourceWatchAction
from ahpkit.dialects.v0_4.root.actions import RootAction
from ahpkit.dialects.v0_4.session.actions import SessionAction
from ahpkit.dialects.v0_4.terminal.actions import TerminalAction

StateAction = (
    RootAction | SessionAction | ChatAction | TerminalAction | ChangesetAction | AnnotationsAction | ResourceWatchAction
)
"""Any action. `type` tells which; a type nobody here knows is passed on and changes nothing."""


class ActionOrigin(TypedDict):
    """The client that dispatched an action, and its number there."""

    clientId: str
    clientSeq: int


class ActionEnvelope(TypedDict):
    """An action in its order. With `rejectionReason` it was refused and changed nothing."""

    channel: URI
    action: StateAction
    serverSeq: int
    origin: NotRequired[ActionOrigin]
    rejectionReason: NotRequired[str]


__all__ = ["ActionEnvelope", "ActionOrigin", "StateAction"]
