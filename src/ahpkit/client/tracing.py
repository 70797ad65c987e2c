"""Makes the client's OpenTelemetry spans, one per request and per turn, and puts their context into `_meta`.

Without an SDK installed the API does nothing and nothing is added to what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, TracerProvider

from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.trace_context import injected


class Tracing:
    """Makes the spans."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ahpkit.client", tracer_provider=provider)

    def span(self, name: str) -> AbstractContextManager[Span]:
        """A span around what this client does; it is the current one inside the `with`."""
        return self._tracer.start_as_current_span(f"ahp {name}", kind=SpanKind.CLIENT)

    def start_turn(self, chat: str) -> Span:
        """A span for a turn. The caller ends it."""
        return self._tracer.start_span("ahp turn", kind=SpanKind.CLIENT, attributes={"ahp.chat": chat})


def with_context(meta: Mapping[str, Any] | None, of: Span | None = None) -> JsonObject:
    """`meta` with the trace context of a span, or of the current one; what the caller set itself stays."""
    return injected(of) | dict(meta or {})


__all__ = ["Tracing", "with_context"]
