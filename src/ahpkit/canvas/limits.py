"""Limits of canvas calls, with the reason for each number. Pure.

These values become part of the session's state, are written to the log, and are sent to every client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahpkit.canvas.errors import INVALID_INPUT, PROVIDER_ERROR, CanvasError
from ahpkit.host.policy.small_channels import check_providers
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import InvalidParams, LocalProtocolError
from ahpkit.protocol.session.canvases import ClientCanvasDeclaration
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import decode_json, encode, is_deeper

REQUEST_TIMEOUT = 30.0
"""Seconds a provider gets to answer."""

MAX_INSTANCES = 64
"""Open instances of one session. Nobody looks at more; an agent that opens more is in a loop."""

MAX_REQUESTS = 128
"""Calls of one session that wait at the same time: two for each instance."""

MAX_ID = 200
"""Characters of an instance id. It is repeated in every action about the instance."""

MAX_INPUT = 256 * 1024
"""Bytes of an agent's input. The input of an open stays in the state as long as the instance is open."""

MAX_ANSWER = 1024 * 1024
"""Bytes of a provider's answer. Larger things belong behind a URL."""

MAX_DECLARATIONS = 256 * 1024
"""Bytes of everything one provider declares. Each session has a copy."""

MAX_TEXT: Mapping[str, int] = {"title": 500, "status": 2_000, "url": 64 * 1024}
"""Characters of a text of a provider about an instance. A small page fits into a `data:` URL."""

MAX_DEPTH = 64
"""Levels of nesting in values of agents and providers. In an action they are nested deeper, and readers stop at 200."""

_MAX_ERROR = {"code": 100, "message": 2_000}


def check_id(instance_id: Any) -> str:
    """Check an instance id that an agent or a client chose, and return it."""
    if not isinstance(instance_id, str) or not instance_id or len(instance_id) > MAX_ID:
        raise CanvasError(f"an instance id is a string of 1 to {MAX_ID} characters", code=INVALID_INPUT)
    return instance_id


def own_input(value: Any) -> Any:
    """A copy of an agent's input that nobody else can change. Raises if the input is not JSON or too large."""
    return _copy(value, MAX_INPUT, what="the input", code=INVALID_INPUT)


def own_answer(result: JsonObject) -> JsonObject:
    """A copy of a provider's answer."""
    for key, limit in MAX_TEXT.items():
        if len(result.get(key, "")) > limit:
            raise CanvasError(f"the provider's {key} is longer than {limit} characters", code=PROVIDER_ERROR)
    return _copy(result, MAX_ANSWER, what="the provider's answer", code=PROVIDER_ERROR)


def own_error(error: CanvasError) -> JsonObject:
    """A provider's error as agents get it, with a shortened text."""
    return {key: str(getattr(error, key))[:limit] for key, limit in _MAX_ERROR.items()}


def own_changes(changes: Mapping[str, Any]) -> JsonObject:
    """The usable members of a provider's push: texts that are not too long, or None to clear one. Drops all others."""
    kept: JsonObject = {}
    for key, limit in MAX_TEXT.items():
        value = changes.get(key, 0)
        if value is None or (isinstance(value, str) and len(value) <= limit):
            kept[key] = value
    if "availability" in changes:
        # Section 2: "maps any forward-compat values from the underlying runtime to 'stale'".
        kept["availability"] = "ready" if changes["availability"] == "ready" else "stale"
    return kept


def check_push(changes: Mapping[str, Any]) -> str | None:
    """Why a client's push is too large; None: it is not."""
    for key, limit in MAX_TEXT.items():
        if len(changes.get(key) or "") > limit:
            return f"the {key} of a canvas has at most {limit} characters"
    return None


def check_declarations(declared: Any) -> str | None:
    """Why these are not the declarations of a provider, or None."""
    try:
        check(list[ClientCanvasDeclaration], declared, at="canvases")
    except InvalidParams as error:
        return error.message
    size = len(encode(declared))
    if size > MAX_DECLARATIONS:
        return f"the canvases are declared in {size} bytes; at most {MAX_DECLARATIONS} are accepted"
    return check_providers(declared)


def check_completion(action: JsonObject) -> str | None:
    """Why a client's answer is too large; None: it is not."""
    try:
        own_answer(action.get("result") or action.get("error") or {})
    except CanvasError as error:
        return error.message
    return None


def _copy(value: Any, limit: int, *, what: str, code: str) -> Any:
    try:
        data = encode(value)
    except LocalProtocolError as error:
        raise CanvasError(f"{what} is not JSON", code=code) from error
    if len(data) > limit:
        raise CanvasError(f"{what} has {len(data)} bytes; at most {limit} are accepted", code=code)
    copied = decode_json(data)
    if is_deeper(copied, MAX_DEPTH):
        raise CanvasError(f"{what} is nested more than {MAX_DEPTH} levels deep", code=code)
    return copied


__all__ = [
    "MAX_ANSWER",
    "MAX_DECLARATIONS",
    "MAX_DEPTH",
    "MAX_ID",
    "MAX_INPUT",
    "MAX_INSTANCES",
    "MAX_REQUESTS",
    "MAX_TEXT",
    "REQUEST_TIMEOUT",
    "check_completion",
    "check_declarations",
    "check_id",
    "check_push",
    "own_answer",
    "own_changes",
    "own_error",
    "own_input",
]
