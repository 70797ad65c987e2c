"""The envelope that carries actions, and the union of them all."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.annotations.actions import AnnotationsAction
from ahpkit.protocol.automation.actions import AutomationAction, AutomationRunAction
from ahpkit.protocol.canvas.actions import CanvasAction
from ahpkit.protocol.changeset.actions import ChangesetAction
from ahpkit.protocol.chat.actions import ChatAction
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.resource_watch.actions import ResourceWatchAction
from ahpkit.protocol.root.actions import RootAction
from ahpkit.protocol.session.actions import SessionAction
from ahpkit.protocol.terminal.actions import TerminalAction

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
