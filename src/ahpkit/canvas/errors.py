"""Canvas calls that failed, with the codes agents see. Knows no wire and no provider."""

from __future__ import annotations

from ahpkit.protocol.canvas import CanvasError

PROVIDER_UNAVAILABLE = "canvas_provider_unavailable"
"""The provider is gone, or the instance is stale."""

NO_HANDLER = "canvas_action_no_handler"
"""The canvas has no such action."""

NOT_FOUND = "canvas_not_found"
"""No provider declares this canvas."""

AMBIGUOUS = "canvas_ambiguous"
"""Several providers declare it: name the extension."""

INSTANCE_NOT_FOUND = "canvas_instance_not_found"
"""No instance with this id is open."""

INSTANCE_TAKEN = "canvas_instance_taken"
"""The id belongs to an instance of another canvas."""

INVALID_INPUT = "canvas_invalid_input"
"""The input does not match the declared schema."""

TIMEOUT = "canvas_timeout"
"""The provider did not answer in time."""

LIMIT = "canvas_limit"
"""Too many instances are open in the session."""

PROVIDER_ERROR = "canvas_provider_error"
"""The provider failed, or answered with something that is no answer."""

__all__ = [
    "AMBIGUOUS",
    "INSTANCE_NOT_FOUND",
    "INSTANCE_TAKEN",
    "INVALID_INPUT",
    "LIMIT",
    "NOT_FOUND",
    "NO_HANDLER",
    "PROVIDER_ERROR",
    "PROVIDER_UNAVAILABLE",
    "TIMEOUT",
    "CanvasError",
]
