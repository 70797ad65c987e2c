"""What clients may do to the root channel, to terminals, to annotations, and about canvases. Pure rules.

- Root: change the host's configuration within its schema.
- Terminals: the holder types, resizes, clears and hands it on.
- Annotations: anything, as long as each keeps an entry and names its session.
- Canvases: answer the requests that are routed to the client, ask to close an instance, declare its own canvases.
"""

from __future__ import annotations

from collections.abc import Mapping

from ahpkit.host.limits import MAX_ANNOTATIONS, MAX_TITLE
from ahpkit.host.policy.config import check_change
from ahpkit.host.policy.proposed_action import ProposedAction, Rule, check_names, find
from ahpkit.protocol.annotations import (
    Annotation,
    AnnotationOrigin,
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSetAction,
    AnnotationsState,
    AnnotationsUpdatedAction,
)
from ahpkit.protocol.common.state import ConfigPropertySchema
from ahpkit.protocol.json_schema import check_schema
from ahpkit.protocol.root import RootConfigChangedAction, RootState
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
from ahpkit.protocol.terminal import (
    TerminalAction,
    TerminalClaimedAction,
    TerminalResizedAction,
    TerminalState,
    TerminalTitleChangedAction,
)


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


CANVAS_RULES: Mapping[str, Rule] = {
    "session/canvasRequestCompleted": _request_completed,
    "session/canvasInstanceCloseRequested": _instance_close_requested,
    "session/canvasInstanceUpdated": _instance_updated,
}


def _config_changed(proposed: ProposedAction[RootConfigChangedAction, RootState]) -> str | None:
    action = proposed.action
    return check_change(
        proposed.state.get("config"), action["config"], replace=action.get("replace", False), mutable=_writable
    )


def _writable(schema: ConfigPropertySchema) -> bool:
    return not schema.get("readOnly", False)


ROOT_RULES: Mapping[str, Rule] = {"root/configChanged": _config_changed}


def _by_holder(proposed: ProposedAction[TerminalAction, TerminalState]) -> str | None:
    claim = proposed.state["claim"]
    if claim["kind"] == "client" and claim["clientId"] == proposed.client_id:
        return None
    return f"this terminal is held by {'another client' if claim['kind'] == 'client' else 'a session'}"


def _by_holder_while_running(proposed: ProposedAction[TerminalAction, TerminalState]) -> str | None:
    return _by_holder(proposed) or _exited(proposed)


def _exited(proposed: ProposedAction[TerminalAction, TerminalState]) -> str | None:
    return "this terminal's process has exited" if proposed.state["lifecycle"]["status"] == "exited" else None


def _resized(proposed: ProposedAction[TerminalResizedAction, TerminalState]) -> str | None:
    small = min(proposed.action["cols"], proposed.action["rows"]) < 1
    return _by_holder(proposed) or ("a terminal has at least one column and one row" if small else None)


def _claimed(proposed: ProposedAction[TerminalClaimedAction, TerminalState]) -> str | None:
    kind = proposed.action["claim"]["kind"]
    odd = None if kind in ("client", "session") else f"a terminal is held by a client or a session, not by a {kind!r}"
    return _by_holder(proposed) or odd


def _titled(proposed: ProposedAction[TerminalTitleChangedAction, TerminalState]) -> str | None:
    length = len(proposed.action["title"])
    return None if length <= MAX_TITLE else f"a title may have {MAX_TITLE} characters, this one has {length}"


TERMINAL_RULES: Mapping[str, Rule] = {
    "terminal/input": _by_holder_while_running,
    "terminal/resized": _resized,
    "terminal/claimed": _claimed,
    "terminal/cleared": _by_holder,
    "terminal/titleChanged": _titled,
}


_KnownAction = (
    AnnotationsUpdatedAction | AnnotationsRemovedAction | AnnotationsEntrySetAction | AnnotationsEntryRemovedAction
)
"""An action on an annotation that exists."""

MAX_ENTRIES = 2 * MAX_ANNOTATIONS
"""Entries of one annotation."""


def _set(proposed: ProposedAction[AnnotationsSetAction, AnnotationsState]) -> str | None:
    annotation = proposed.action["annotation"]
    if not annotation["entries"]:
        return "an annotation has at least one entry"
    if len(annotation["entries"]) > MAX_ENTRIES:
        return f"an annotation may have {MAX_ENTRIES} entries, not {len(annotation['entries'])}"
    if (reason := _check_origin(annotation.get("origin"), proposed.channel)) is not None:
        return reason
    remarks = proposed.state["annotations"]
    if len(remarks) >= MAX_ANNOTATIONS and not find(remarks, "id", annotation["id"]):
        return f"a session may have {MAX_ANNOTATIONS} annotations; remove some first"
    return check_names("annotation id", [annotation["id"]]) or check_names(
        "entry id", (entry["id"] for entry in annotation["entries"])
    )


def _known(proposed: ProposedAction[_KnownAction, AnnotationsState]) -> str | None:
    annotation = _annotation(proposed)
    return annotation if isinstance(annotation, str) else None


def _updated(proposed: ProposedAction[AnnotationsUpdatedAction, AnnotationsState]) -> str | None:
    return _known(proposed) or _check_origin(proposed.action.get("origin"), proposed.channel)


def _check_origin(origin: AnnotationOrigin | None, channel: str) -> str | None:
    """An annotation comes from the session in which it is."""
    if origin is None or origin["session"] == channel.removesuffix("/annotations"):
        return None
    return f"origin: this annotation belongs to the session of its channel, not to {origin['session']}"


def _entry_set(proposed: ProposedAction[AnnotationsEntrySetAction, AnnotationsState]) -> str | None:
    annotation, entry = _annotation(proposed), proposed.action["entry"]
    if isinstance(annotation, str):
        return annotation
    if len(annotation["entries"]) >= MAX_ENTRIES and not find(annotation["entries"], "id", entry["id"]):
        return f"an annotation may have {MAX_ENTRIES} entries; remove some first"
    return check_names("entry id", [entry["id"]])


def _entry_removed(proposed: ProposedAction[AnnotationsEntryRemovedAction, AnnotationsState]) -> str | None:
    annotation = _annotation(proposed)
    if isinstance(annotation, str):
        return annotation
    entry_id = proposed.action["entryId"]
    if not find(annotation["entries"], "id", entry_id):
        return f"annotation {annotation['id']!r} has no entry {entry_id!r}"
    if len(annotation["entries"]) == 1:
        return "an annotation keeps at least one entry; remove the annotation instead"
    return None


def _annotation(proposed: ProposedAction[_KnownAction, AnnotationsState]) -> Annotation | str:
    annotation_id = proposed.action["annotationId"]
    return find(proposed.state["annotations"], "id", annotation_id) or f"there is no annotation {annotation_id!r}"


ANNOTATIONS_RULES: Mapping[str, Rule] = {
    "annotations/set": _set,
    "annotations/updated": _updated,
    "annotations/removed": _known,
    "annotations/entrySet": _entry_set,
    "annotations/entryRemoved": _entry_removed,
}


__all__ = ["ANNOTATIONS_RULES", "CANVAS_RULES", "ROOT_RULES", "TERMINAL_RULES", "check_providers"]
