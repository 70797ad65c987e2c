"""Canvases of a session: what can be opened, what is open, what was asked."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import JsonValue

CanvasProviderKind = Literal["server", "activeClient"]

CanvasInstanceAvailability = Literal["ready", "stale"]

CanvasRequestKind = Literal["open", "action", "close"]

CanvasCancellationReason = Literal["timeout", "providerDisconnected", "instanceClosed", "hostShutdown"]


class SessionCanvasAction(TypedDict):
    """An action that an open canvas offers."""

    name: str
    description: NotRequired[str]
    inputSchema: NotRequired[JsonValue]


class ClientCanvasDeclaration(TypedDict):
    """A canvas that the active client provides; the host derives its `extensionId` from the client."""

    canvasId: str
    displayName: str
    description: str
    inputSchema: NotRequired[JsonValue]
    actions: NotRequired[list[SessionCanvasAction]]


class SessionCanvasDeclaration(ClientCanvasDeclaration):
    """A canvas the agent may open, with its provider."""

    extensionId: str
    extensionName: NotRequired[str]
    source: CanvasProviderKind
    clientId: NotRequired[str]


class CanvasRenderer(TypedDict):
    """The client that shows an instance."""

    clientId: str


class SessionOpenCanvas(TypedDict):
    """An open instance. `input` is kept so that a lost provider can be asked to reopen it."""

    instanceId: str
    canvasId: str
    extensionId: str
    extensionName: NotRequired[str]
    availability: CanvasInstanceAvailability
    input: NotRequired[JsonValue]
    title: NotRequired[str]
    status: NotRequired[str]
    url: NotRequired[str]
    renderer: NotRequired[CanvasRenderer]


class SessionOpenCanvasUpdate(TypedDict):
    """A patch of an instance: null removes a value, an absent key leaves it unchanged."""

    title: NotRequired[str | None]
    status: NotRequired[str | None]
    url: NotRequired[str | None]
    availability: NotRequired[CanvasInstanceAvailability]


class CanvasActiveClientTarget(TypedDict):
    """The active client has to answer."""

    kind: Literal["activeClient"]
    clientId: str


class CanvasServerTarget(TypedDict):
    """A provider inside the host has to answer."""

    kind: Literal["server"]


CanvasRequestTarget = CanvasActiveClientTarget | CanvasServerTarget


class SessionCanvasRequest(TypedDict):
    """A question to a provider that is not answered yet."""

    requestId: str
    kind: CanvasRequestKind
    instanceId: str
    canvasId: str
    extensionId: str
    target: CanvasRequestTarget
    actionName: NotRequired[str]
    input: NotRequired[JsonValue]
    reopen: NotRequired[bool]
    """Of kind `open`: the instance is in the session's state already, with the input of the last time."""
    deadlineMs: NotRequired[int]


class CanvasOpenResult(TypedDict):
    """The canvas is open."""

    kind: Literal["open"]
    url: NotRequired[str]
    title: NotRequired[str]
    status: NotRequired[str]


class CanvasActionResult(TypedDict):
    """The action is done."""

    kind: Literal["action"]
    value: NotRequired[JsonValue]


class CanvasCloseResult(TypedDict):
    """The canvas is closed."""

    kind: Literal["close"]


CanvasResult = CanvasOpenResult | CanvasActionResult | CanvasCloseResult


class CanvasErrorPayload(TypedDict):
    """The provider failed."""

    code: str
    message: str


__all__ = [
    "CanvasActionResult",
    "CanvasActiveClientTarget",
    "CanvasCancellationReason",
    "CanvasCloseResult",
    "CanvasErrorPayload",
    "CanvasInstanceAvailability",
    "CanvasOpenResult",
    "CanvasProviderKind",
    "CanvasRenderer",
    "CanvasRequestKind",
    "CanvasRequestTarget",
    "CanvasResult",
    "CanvasServerTarget",
    "ClientCanvasDeclaration",
    "SessionCanvasAction",
    "SessionCanvasDeclaration",
    "SessionCanvasRequest",
    "SessionOpenCanvas",
    "SessionOpenCanvasUpdate",
]
