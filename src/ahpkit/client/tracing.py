"""OpenTelemetry for the client: a span per request and per turn, and the context in `_meta`. Knows no exporter.

Without an SDK installed the API does nothing and nothing is added to what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.propagate import inject
from opentelemetry.trace import Span, SpanKind

from ahpkit.protocol.common.state import JsonObject

_TRACE_KEYS = frozenset({"traceparent", "tracestate", "baggage"})
"""W3C trace context: the only keys of `_meta` that this module writes."""

_tracer = trace.get_tracer("ahpkit.client")


def span(name: str, **attributes: str) -> AbstractContextManager[Span]:
    """A span around what this client does; it is the current one inside the `with`."""
    return _tracer.start_as_current_span(f"ahp {name}", kind=SpanKind.CLIENT, attributes=attributes)


def start_turn(chat: str) -> Span:
    """A span for a turn; whoever follows the turn ends it."""
    return _tracer.start_span("ahp turn", kind=SpanKind.CLIENT, attributes={"ahp.chat": chat})


def with_context(meta: Mapping[str, Any] | None, of: Span | None = None) -> JsonObject:
    """`meta` with the trace context of a span, or of the current one; what the caller set itself stays."""
    carrier: dict[str, str] = {}
    inject(carrier, None if of is None else trace.set_span_in_context(of))
    return {key: value for key, value in carrier.items() if key in _TRACE_KEYS} | dict(meta or {})


__all__ = ["span", "start_turn", "with_context"]
