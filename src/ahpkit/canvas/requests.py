"""Canvas requests of one session: creates, routes and awaits them, until they complete or are cancelled.

Every request is an entry of `canvasRequests` from its creation to its end, and it always ends: by a completion, by its
deadline, by its provider leaving, by its instance closing, or by the host stopping. Whatever ends it first removes it
from `_waiting`, so that exactly one end is reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from ahpkit.authoring.canvas import answer
from ahpkit.canvas.errors import (
    INSTANCE_CLOSED,
    LIMIT,
    PROVIDER_ERROR,
    PROVIDER_UNAVAILABLE,
    TIMEOUT,
    CanvasError,
)
from ahpkit.canvas.limits import MAX_REQUESTS, own_answer, own_error
from ahpkit.canvas.provider import Provider, ProviderGone
from ahpkit.host.feature import Services
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.actions import (
    SessionCanvasRequestCompletedAction,
    session_canvas_request_cancelled,
    session_canvas_request_completed,
    session_canvas_request_created,
)
from ahpkit.protocol.session.canvases import CanvasCancellationReason, CanvasRequestKind, SessionCanvasRequest

_log = logging.getLogger(__name__)

_FAILURES: dict[CanvasCancellationReason, tuple[str, str]] = {
    "timeout": (TIMEOUT, "the provider did not answer in time"),
    "providerDisconnected": (PROVIDER_UNAVAILABLE, "the provider of this canvas is gone"),
    "instanceClosed": (INSTANCE_CLOSED, "the instance was closed"),
    "hostShutdown": (PROVIDER_UNAVAILABLE, "the host is shutting down"),
}

_CALL_ONLY = ("sessionId", "host", "session")
"""Fields for the provider that are not stored, because the session's state has them elsewhere."""


@dataclass(slots=True, eq=False)
class _Waiting:
    request: JsonObject
    answer: asyncio.Future[JsonObject]
    serving: asyncio.Task[None] | None = None
    """The task of the provider's call, if the provider is on the host's side."""


class Requests:
    """The requests of one session."""

    def __init__(self, session_uri: str, services: Services, *, timeout: float) -> None:
        self._uri = session_uri
        self._services = services
        self._timeout = timeout
        self._waiting: dict[str, _Waiting] = {}

    async def ask(self, kind: CanvasRequestKind, call: JsonObject, target: Provider | str) -> JsonObject:
        """Ask a provider, or the client with that id. Returns the result, or raises `CanvasError`."""
        if len(self._waiting) >= MAX_REQUESTS:
            raise CanvasError(
                f"{MAX_REQUESTS} canvas calls wait in this session, which is the limit; wait for an answer", code=LIMIT
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(self._request(kind, call, target), loop.create_future())
        request_id = waiting.request["requestId"]
        self._waiting[request_id] = waiting
        request = cast("SessionCanvasRequest", waiting.request)
        self._services.dispatch(self._uri, session_canvas_request_created(request=request))
        if not isinstance(target, str):
            self._services.spawn(self._serve(waiting, call, target), name=f"canvas {kind} {call['instanceId']}")
        deadline = loop.call_later(self._timeout, self._cancel, request_id, "timeout")
        try:
            return await waiting.answer
        finally:
            deadline.cancel()
            self._cancel(request_id, "hostShutdown")  # The request is still open only if the call was cancelled.

    def on_completed(self, action: SessionCanvasRequestCompletedAction) -> None:
        """A completion was applied, from the host or from the client it was for."""
        waiting = self._waiting.pop(action["requestId"], None)
        if waiting is None or waiting.answer.done():
            return
        if (error := action.get("error")) is not None:
            waiting.answer.set_exception(CanvasError(error["message"], code=error["code"]))
        else:
            waiting.answer.set_result(cast("JsonObject", action)["result"])

    def cancel_instance(self, instance_id: str) -> None:
        """Cancel the request about an instance, because the instance is closed."""
        self._cancel_where(lambda request: request["instanceId"] == instance_id, "instanceClosed")

    def cancel_undeclared(self, declared: Collection[tuple[str, str]]) -> None:
        """Cancel the requests about canvases that nobody declares any more: their provider left, or took them back."""
        self._cancel_where(
            lambda request: (request["extensionId"], request["canvasId"]) not in declared, "providerDisconnected"
        )

    def cancel_all(self) -> None:
        """Cancel all requests, because the host stops."""
        self._cancel_where(lambda request: True, "hostShutdown")

    def forget(self) -> None:
        """The session is gone with all its state: only the waiting calls have to end."""
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            _fail(each, "instanceClosed")

    def _request(self, kind: CanvasRequestKind, call: JsonObject, target: Provider | str) -> JsonObject:
        return {
            "requestId": self._services.new_id(),
            "kind": kind,
            **{key: value for key, value in call.items() if key not in _CALL_ONLY},
            "target": {"kind": "activeClient", "clientId": target} if isinstance(target, str) else {"kind": "server"},
            "deadlineMs": self._services.now() + int(self._timeout * 1000),
        }

    async def _serve(self, waiting: _Waiting, call: JsonObject, provider: Provider) -> None:
        """Let a provider on the host's side answer, and dispatch its answer."""
        request_id = waiting.request["requestId"]
        if request_id not in self._waiting:
            return
        waiting.serving = asyncio.current_task()
        try:
            outcome: JsonObject = {"result": own_answer(await answer(provider, waiting.request["kind"], call))}
        except ProviderGone:
            self._cancel(request_id, "providerDisconnected")
            return
        except CanvasError as error:
            outcome = {"error": own_error(error)}
        except Exception as error:  # A provider is anybody's code.
            _log.exception("the canvas provider %s failed", provider.extension_id)
            outcome = {"error": {"code": PROVIDER_ERROR, "message": f"the provider failed: {type(error).__name__}"}}
        if request_id in self._waiting:
            completed = session_canvas_request_completed(
                request_id=request_id, result=outcome.get("result"), error=outcome.get("error")
            )
            self._services.dispatch(self._uri, completed)

    def _cancel_where(self, found: Callable[[JsonObject], bool], reason: CanvasCancellationReason) -> None:
        for request_id, waiting in list(self._waiting.items()):
            if found(waiting.request):
                self._cancel(request_id, reason)

    def _cancel(self, request_id: str, reason: CanvasCancellationReason) -> None:
        waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            return
        self._services.dispatch(self._uri, session_canvas_request_cancelled(request_id=request_id, reason=reason))
        _fail(waiting, reason)


def _fail(waiting: _Waiting, reason: CanvasCancellationReason) -> None:
    if waiting.serving is not None and waiting.serving is not asyncio.current_task():
        waiting.serving.cancel()
    if not waiting.answer.done():
        code, message = _FAILURES[reason]
        waiting.answer.set_exception(CanvasError(message, code=code))


__all__ = ["Requests"]
