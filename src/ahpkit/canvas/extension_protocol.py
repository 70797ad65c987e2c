"""Names and shapes of the messages between a host and a canvas extension: JSON-RPC, one message per line. Pure.

    host → extension   initialize              {hostInfo, host: {capabilities: {canvases}}}
                       ⟵ {extensionId?, extensionName?, canvases: [declaration]}
                       canvas.open             ⟵ {url?, title?, status?}
                       canvas.close            ⟵ null
                       canvas.action.invoke    ⟵ any value
                       canvas.refused          notification: why the host closes the connection
    extension → host   canvas.registry_changed notification: {canvases: [declaration]}, the full list
                       canvas.updated          notification: {sessionId, instanceId, and title?, status?, url?,
                                               availability?: what changed, null clears}

The three calls carry `sessionId`, `extensionId`, `canvasId`, `instanceId`, `host`, `session`, and where they apply
`input`, `actionName` and `reopen`. An error's `data.code` is the canvas error's code.
"""

from __future__ import annotations

from typing import Any, cast

from ahpkit.canvas.errors import NO_HANDLER, PROVIDER_ERROR, CanvasError
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import AhpError, MethodNotFound, RpcError

INITIALIZE = "initialize"
OPEN = "canvas.open"
CLOSE = "canvas.close"
INVOKE = "canvas.action.invoke"
REFUSED = "canvas.refused"
REGISTRY_CHANGED = "canvas.registry_changed"
UPDATED = "canvas.updated"

CANVAS_ERROR = -32050
"""Code of an error that has a canvas code in `data`; from the range JSON-RPC leaves to implementations."""


class ExtensionRefused(AhpError):
    """The host does not take this extension; the text says why."""


def to_rpc_error(error: CanvasError) -> RpcError:
    return RpcError(CANVAS_ERROR, error.message, {"code": error.code})


def from_rpc_error(error: RpcError) -> CanvasError:
    """The error that an agent gets when an extension answers with one."""
    data: Any = error.data
    code = cast("JsonObject", data).get("code") if isinstance(data, dict) else None
    if not isinstance(code, str) or not code:
        code = NO_HANDLER if isinstance(error, MethodNotFound) else PROVIDER_ERROR
    return CanvasError(error.message, code=code)


__all__ = [
    "CLOSE",
    "INITIALIZE",
    "INVOKE",
    "OPEN",
    "REFUSED",
    "REGISTRY_CHANGED",
    "UPDATED",
    "ExtensionRefused",
    "from_rpc_error",
    "to_rpc_error",
]
