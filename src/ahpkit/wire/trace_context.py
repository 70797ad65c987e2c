"""W3C trace context inside `_meta`: reading it, and writing the present span's. Knows no messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.propagate import inject
from opentelemetry.trace import Span

TRACE_KEYS = ("traceparent", "tracestate", "baggage")
"""The only keys at the root of a `_meta` that belong to tracing; nothing else is ever stored under them."""


def carried(meta: Mapping[str, Any] | None) -> dict[str, str]:
    """The trace context inside a `_meta`."""
    found = {key: (meta or {}).get(key) for key in TRACE_KEYS}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def injected(of: Span | None = None) -> dict[str, str]:
    """A span as `_meta` keys: the given one, or the current."""
    carrier: dict[str, str] = {}
    inject(carrier, None if of is None else trace.set_span_in_context(of))
    return {key: value for key, value in carrier.items() if key in TRACE_KEYS}


__all__ = ["TRACE_KEYS", "carried", "injected"]
