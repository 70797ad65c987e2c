"""Answers the host's requests to canvases that this client provides.

Canvases are defined in `ahpkit.authoring.canvas`. A client, a host and an extension can offer the same canvas.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ahpkit.authoring.canvas import (
    PROVIDER_ERROR,
    PROVIDER_UNAVAILABLE,
    Canvas,
    CanvasError,
    answer,
    call_context,
    canvas,
    canvas_action,
)
from ahpkit.client.channels import Channel, Channels
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.tasks import Tasks

_log = logging.getLogger(__name__)


class CanvasRunner:
    """Answers the canvas requests of one session that target this client, each exactly once, also after reconnects."""

    def __init__(
        self, channels: Channels, tasks: Tasks, session: Channel, *, client_id: str, canvases: Mapping[str, Canvas]
    ) -> None:
        self._channels = channels
        self._tasks = tasks
        self._session = session
        self._client_id = client_id
        self._canvases = canvases
        self._taken: set[str] = set()

    def answer_new_requests(self) -> None:
        """Start answering the requests that are new; forget those that have ended."""
        requests = (self._session.confirmed or {}).get("canvasRequests", ())
        ours = {request["requestId"]: request for request in requests if self._is_ours(request)}
        new = [request for request_id, request in ours.items() if request_id not in self._taken]
        self._taken = set(ours)
        for request in new:
            self._tasks.spawn(self._serve(request), name=f"canvas request {request['requestId']}")

    def _is_ours(self, request: Mapping[str, Any]) -> bool:
        target = request["target"]
        return target["kind"] == "activeClient" and target["clientId"] == self._client_id

    async def _serve(self, request: Mapping[str, Any]) -> None:
        action: JsonObject = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        try:
            action["result"] = await answer(self._canvas(request), request["kind"], self._call(request))
        except CanvasError as error:
            action["error"] = {"code": error.code, "message": error.message}
        except Exception as error:  # A canvas is the user's code.
            _log.exception("the canvas %s failed", request["canvasId"])
            action["error"] = {"code": PROVIDER_ERROR, "message": f"the provider failed: {type(error).__name__}"}
        self._channels.dispatch(self._session.uri, action)

    def _canvas(self, request: Mapping[str, Any]) -> Canvas:
        found = self._canvases.get(request["canvasId"])
        if found is None:
            raise CanvasError(f"this client provides no canvas {request['canvasId']!r}", code=PROVIDER_UNAVAILABLE)
        return found

    def _call(self, request: Mapping[str, Any]) -> JsonObject:
        """The request with the fields that providers in the host also get, so that handlers work in both places."""
        state = self._session.confirmed or {}
        call: JsonObject = {**request, **call_context(self._session.uri, state)}
        is_open = any(one["instanceId"] == request["instanceId"] for one in state.get("openCanvases", ()))
        return {**call, "reopen": True} if request["kind"] == "open" and is_open else call


__all__ = ["Canvas", "CanvasError", "CanvasRunner", "canvas", "canvas_action"]
