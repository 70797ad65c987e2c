"""Error codes of failed canvas calls, as agents see them.

A provider may answer with its own codes; these are the host's.
"""

from __future__ import annotations

from ahpkit.authoring.canvas import NO_HANDLER, PROVIDER_ERROR, PROVIDER_UNAVAILABLE, CanvasError

NOT_FOUND = "canvas_not_found"
AMBIGUOUS = "canvas_ambiguous"
INSTANCE_NOT_FOUND = "canvas_instance_not_found"
INSTANCE_TAKEN = "canvas_instance_taken"
INSTANCE_CLOSED = "canvas_instance_closed"
INVALID_INPUT = "canvas_invalid_input"
TIMEOUT = "canvas_timeout"
LIMIT = "canvas_limit"

CODES: dict[str, str] = {
    PROVIDER_UNAVAILABLE: "The provider is gone, or the instance is stale. Open it again once the provider is back.",
    NO_HANDLER: "The canvas has no such action.",
    NOT_FOUND: "No provider declares this canvas.",
    AMBIGUOUS: "Several providers declare it. Give the `extensionId`; the message names them.",
    INSTANCE_NOT_FOUND: "No instance with this id is open.",
    INSTANCE_TAKEN: "The id belongs to an instance of another canvas.",
    INSTANCE_CLOSED: "The instance was closed while the call waited.",
    INVALID_INPUT: "The input does not match the declared schema, is not JSON, or is too large.",
    TIMEOUT: "The provider did not answer in time.",
    LIMIT: "Too many instances are open, or too many calls wait, in this session.",
    PROVIDER_ERROR: "The provider failed, or its answer was not valid.",
}
"""Every code, and what it means for the caller."""

__all__ = [
    "AMBIGUOUS",
    "CODES",
    "INSTANCE_CLOSED",
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
