"""What clients may do about canvases: answer requests routed to them, ask to close, declare their own. Pure rules."""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.policy.proposed_action import ProposedAction, Rule, check_names, find
from ahpkit.protocol.json_schema import check_schema
from ahpkit.protocol.session.actions import (
    SessionCanvasInstanceCloseRequestedAction,
    SessionCanvasInstanceUpdatedAction,
    SessionCanvasRequestCompletedAction,
)
from ahpkit.protocol.session.canvases import (
    CanvasRequestTarget,
    CanvasResult,
    ClientCanvasDeclaration,
    SessionCanvasAction,
    SessionCanvasDeclaration,
    SessionCanvasRequest,
    SessionOpenCanvas,
)
from ahpkit.protocol.session.state import SessionState


def check_providers(declarations: list[ClientCanvasDeclaration]) -> str | None:
    """Ids of canvases, and names of a canvas's actions, must be unique."""
    reasons = [check_names("canvas id", (canvas["canvasId"] for canvas in declarations))]
    for canvas in declarations:
        names = (action["name"] for action in canvas.get("actions", ()))
        reasons.append(check_names("action name", names, where=f" in canvas {canvas['canvasId']!r}"))
        reasons += (_check_schema(one, canvas["canvasId"]) for one in (canvas, *canvas.get("actions", ())))
    return next((reason for reason in reasons if reason), None)


def _check_schema(declared: ClientCanvasDeclaration | SessionCanvasAction, canvas_id: str) -> str | None:
    schema = declared.get("inputSchema")
    reason = None if schema is None else check_schema(schema)
    return f"the input schema of canvas {canvas_id!r} is refused: {reason}" if reason else None


def _request_completed(proposed: ProposedAction[SessionCanvasRequestCompletedAction, SessionState]) -> str | None:
    action = proposed.action
    request = find(proposed.state.get("canvasRequests"), "requestId", action["requestId"])
    if request is None:
        return f"there is no canvas request {action['requestId']!r}"
    if (action.get("result") is None) == (action.get("error") is None):
        return "a completed canvas request has exactly one of result and error"
    return _check_target(request["target"], proposed.client_id) or _check_kind(request, action.get("result"))


def _check_target(target: CanvasRequestTarget, client_id: str) -> str | None:
    if target["kind"] == "server":
        return "this canvas request is answered by the host"
    return None if target["clientId"] == client_id else "this canvas request is for another client"


def _check_kind(request: SessionCanvasRequest, result: CanvasResult | None) -> str | None:
    if result is None or result["kind"] == request["kind"]:
        return None
    return f"a canvas request of kind {request['kind']} cannot have a result of kind {result['kind']}"


def _instance_close_requested(
    proposed: ProposedAction[SessionCanvasInstanceCloseRequestedAction, SessionState],
) -> str | None:
    # Closing an instance that is not open is accepted: it is closed already.
    instance = find(proposed.state.get("openCanvases"), "instanceId", proposed.action["instanceId"])
    renderer = instance.get("renderer") if instance else None
    if instance is None or renderer is None or renderer["clientId"] == proposed.client_id:
        return None
    return f"canvas instance {instance['instanceId']!r} is shown by another client"


def _instance_updated(proposed: ProposedAction[SessionCanvasInstanceUpdatedAction, SessionState]) -> str | None:
    """A client may change title, status and URL of canvases that it declares now. Whether they are available is decided
    by the host."""
    id = proposed.action["instanceId"]
    instance = find(proposed.state.get("openCanvases"), "instanceId", id)
    if instance is None:
        return f"there is no canvas instance {id!r}"
    if instance["extensionId"] != f"client:{proposed.client_id}":
        return f"canvas instance {id!r} is provided by somebody else"
    declared = proposed.state.get("canvasRegistry", ())
    if not any(_is_of(instance, one) for one in declared):
        return f"this client does not declare the canvas {instance['canvasId']!r} any more"
    wrong = sorted(set(proposed.action["changes"]) - {"title", "status", "url"})
    return f"a provider may change title, status and url, not {', '.join(wrong)}" if wrong else None


def _is_of(instance: SessionOpenCanvas, declared: SessionCanvasDeclaration) -> bool:
    return all(instance[key] == declared[key] for key in ("extensionId", "canvasId"))


RULES: Mapping[str, Rule] = {
    "session/canvasRequestCompleted": _request_completed,
    "session/canvasInstanceCloseRequested": _instance_close_requested,
    "session/canvasInstanceUpdated": _instance_updated,
}

__all__ = ["RULES", "check_providers"]
