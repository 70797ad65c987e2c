"""Canvas requests in flight: created, routed, awaited with a deadline, completed or cancelled. Knows no registry.

Every request is an entry of `canvasRequests` from its creation to its end, and it always ends: by a completion, by its
deadline, by its provider leaving, by its instance closing, or by the host stopping.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from ahpkit.canvas.errors import PROVIDER_ERROR, PROVIDER_UNAVAILABLE, TIMEOUT, CanvasError
from ahpkit.canvas.provider import Provider, ProviderCall
from ahpkit.host.feature import Services
from ahpkit.protocol.codec import encode
from ahpkit.protocol.common.state import JsonObject

Kind = Literal["open", "action", "close"]
Reason = Literal["timeout", "providerDisconnected", "instanceClosed", "hostShutdown"]

MAX_ANSWER = 1024 * 1024
"""Bytes of a provider's answer. It goes to every subscriber and into the log; larger things belong behind a URL."""

_FAILURES: dict[Reason, tuple[str, str]] = {
    "timeout": (TIMEOUT, "the provider did not answer in time"),
    "providerDisconnected": (PROVIDER_UNAVAILABLE, "the provider of this canvas is gone"),
    "instanceClosed": (PROVIDER_UNAVAILABLE, "the instance was closed"),
    "hostShutdown": (PROVIDER_UNAVAILABLE, "the host is shutting down"),
}

_OPEN_KEYS = ("url", "title", "status")


@dataclass(slots=True)
class _Waiting:
    session_uri: str
    request: JsonObject
    answer: asyncio.Future[JsonObject]


class Requests:
    """All requests in flight of a host."""

    def __init__(self, services: Services, *, timeout: float) -> None:
        self._services = services
        self._timeout = timeout
        self._waiting: dict[str, _Waiting] = {}

    async def ask(self, session_uri: str, kind: Kind, call: ProviderCall, target: Provider | str) -> JsonObject:
        """Put a request to a provider, or to the client with that id; its result, or `CanvasError`."""
        request = self._request(kind, call, target)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[request["requestId"]] = _Waiting(session_uri, request, answer)
        self._services.dispatch(session_uri, {"type": "session/canvasRequestCreated", "request": request})
        if not isinstance(target, str):
            self._services.spawn(self._serve(session_uri, request, call, target), name=f"canvas {kind}")
        try:
            async with asyncio.timeout(self._timeout):
                return await answer
        except TimeoutError:
            self._cancel(request["requestId"], "timeout")
            raise CanvasError(_FAILURES["timeout"][1], code=TIMEOUT) from None
        except asyncio.CancelledError:
            self._cancel(request["requestId"], "instanceClosed")
            raise

    def on_completed(self, action: JsonObject) -> None:
        """A completion was applied, from the host or from the client it was for."""
        waiting = self._waiting.pop(action["requestId"], None)
        if waiting is None or waiting.answer.done():
            return
        if "error" in action:
            error = CanvasError(action["error"]["message"], code=action["error"]["code"])
            waiting.answer.set_exception(error)
        else:
            waiting.answer.set_result(action["result"])

    def cancel_instance(self, session_uri: str, instance_id: str, reason: Reason = "instanceClosed") -> None:
        """Nobody answers for an instance any more."""
        for request_id, waiting in list(self._waiting.items()):
            if waiting.session_uri == session_uri and waiting.request["instanceId"] == instance_id:
                self._cancel(request_id, reason)

    def cancel_provider(self, session_uri: str, extension_id: str) -> None:
        """A provider left a session."""
        for request_id, waiting in list(self._waiting.items()):
            if waiting.session_uri == session_uri and waiting.request["extensionId"] == extension_id:
                self._cancel(request_id, "providerDisconnected")

    def cancel_all(self, reason: Reason, session_uri: str | None = None) -> None:
        for request_id, waiting in list(self._waiting.items()):
            if session_uri in (None, waiting.session_uri):
                self._cancel(request_id, reason)

    def forget_session(self, session_uri: str) -> None:
        """A session is gone with all its state; only those who wait need to hear it."""
        for request_id, waiting in list(self._waiting.items()):
            if waiting.session_uri == session_uri:
                del self._waiting[request_id]
                _fail(waiting.answer, "instanceClosed")

    def _request(self, kind: Kind, call: ProviderCall, target: Provider | str) -> JsonObject:
        request: JsonObject = {
            "requestId": self._services.new_id(),
            "kind": kind,
            "instanceId": call.instance_id,
            "canvasId": call.canvas_id,
            "extensionId": call.extension_id,
            "target": {"kind": "activeClient", "clientId": target} if isinstance(target, str) else {"kind": "server"},
            "deadlineMs": self._services.now() + int(self._timeout * 1000),
        }
        if call.action_name is not None:
            request["actionName"] = call.action_name
        if call.input is not None:
            request["input"] = call.input
        return request

    async def _serve(self, session_uri: str, request: JsonObject, call: ProviderCall, provider: Provider) -> None:
        """Have a provider on the host's side answer, and say so to everyone."""
        action: JsonObject = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
        try:
            action["result"] = _checked(await _call(request["kind"], call, provider))
        except CanvasError as error:
            action["error"] = {"code": error.code, "message": error.message}
        except Exception as error:
            action["error"] = {"code": PROVIDER_ERROR, "message": f"the provider failed: {type(error).__name__}"}
        if request["requestId"] in self._waiting:
            self._services.dispatch(session_uri, action)

    def _cancel(self, request_id: str, reason: Reason) -> None:
        waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            return
        action = {"type": "session/canvasRequestCancelled", "requestId": request_id, "reason": reason}
        if self._services.state(waiting.session_uri) is not None:
            self._services.dispatch(waiting.session_uri, action)
        _fail(waiting.answer, reason)


def _fail(answer: asyncio.Future[JsonObject], reason: Reason) -> None:
    if not answer.done():
        code, message = _FAILURES[reason]
        answer.set_exception(CanvasError(message, code=code))


async def _call(kind: Kind, call: ProviderCall, provider: Provider) -> JsonObject:
    if kind == "open":
        return {"kind": "open", **_opening(await provider.open(call))}
    if kind == "close":
        await provider.close(call)
        return {"kind": "close"}
    value = await provider.invoke(call)
    return {"kind": "action"} if value is None else {"kind": "action", "value": value}


def _opening(answer: Any) -> JsonObject:
    """url, title and status, each a string or not there."""
    if not isinstance(answer, dict):
        raise CanvasError("the provider's answer to open is not an object", code=PROVIDER_ERROR)
    kept: JsonObject = {key: answer[key] for key in _OPEN_KEYS if key in answer and answer[key] is not None}
    wrong = next((key for key, value in kept.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise CanvasError(f"the provider's {wrong} is not a string", code=PROVIDER_ERROR)
    return kept


def _checked(result: JsonObject) -> JsonObject:
    """Only what can be sent and stored: JSON, and not too much of it."""
    try:
        size = len(encode(result))
    except (TypeError, ValueError) as error:
        raise CanvasError("the provider's answer is not JSON", code=PROVIDER_ERROR) from error
    if size > MAX_ANSWER:
        raise CanvasError(
            f"the provider's answer has {size} bytes; at most {MAX_ANSWER} are taken", code=PROVIDER_ERROR
        )
    return result


__all__ = ["MAX_ANSWER", "Kind", "Reason", "Requests"]
