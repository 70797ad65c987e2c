"""The envelope that carries actions, and the union of them all."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.annotations import AnnotationsAction
from ahpkit.protocol.automation.actions import AutomationAction, AutomationRunAction
from ahpkit.protocol.canvas import CanvasAction
from ahpkit.protocol.changeset import ChangesetAction
from ahpkit.protocol.chat.actions import ChatAction
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.resource_watch import ResourceWatchAction
from ahpkit.protocol.root import RootAction
from ahpkit.protocol.session.actions import SessionAction
from ahpkit.protocol.terminal import TerminalAction

StateAction = (
    RootAction
    | SessionAction
    | ChatAction
    | TerminalAction
    | ChangesetAction
    | AnnotationsAction
    | ResourceWatchAction
    | CanvasAction
    | AutomationAction
    | AutomationRunAction
)
"""Any action. `type` tells which; an unknown type is passed on and changes nothing."""


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
