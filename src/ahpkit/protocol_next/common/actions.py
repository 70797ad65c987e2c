"""The envelope that carries actions, and the union of them all. Knows no reducer."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol_next.annotations.actions import AnnotationsAction
from ahpkit.protocol_next.automation.actions import AutomationAction, AutomationRunAction
from ahpkit.protocol_next.canvas.actions import CanvasAction
from ahpkit.protocol_next.changeset.actions import ChangesetAction
from ahpkit.protocol_next.chat.actions import ChatAction
from ahpkit.protocol_next.common.state import URI
from ahpkit.protocol_next.resource_watch.actions import ResourceWatchAction
from ahpkit.protocol_next.root.actions import RootAction
from ahpkit.protocol_next.session.actions import SessionAction
from ahpkit.protocol_next.terminal.actions import TerminalAction

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
