"""Reads and writes W3C trace context in `_meta`.

Values of peers are parsed only by OpenTelemetry's propagators, and only if they have a sensible size, because the
propagators log what they refuse.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Span

from ahpkit.wire.codec import JsonObject

TRACE_KEYS = ("traceparent", "tracestate", "baggage")
"""The only keys at the root of a `_meta` that belong to tracing; nothing else is ever stored under them."""

MAX_LENGTH = {"traceparent": 256, "tracestate": 4096, "baggage": 8192}
"""Characters. The first two headers have at most 55 and 512, baggage has at most 8192."""


def carried(meta: object) -> dict[str, str]:
    """The trace context in a `_meta`. Values that cannot be valid are left out."""
    found = {key: _entries(meta).get(key) for key in TRACE_KEYS}
    return {key: value for key, value in found.items() if isinstance(value, str) and len(value) <= MAX_LENGTH[key]}


def injected(of: Span | None = None) -> dict[str, str]:
    """A span as `_meta` keys: the given one, or the current."""
    carrier: dict[str, str] = {}
    inject(carrier, None if of is None else trace.set_span_in_context(of))
    return {key: value for key, value in carrier.items() if key in TRACE_KEYS}


def passed_on(meta: object) -> JsonObject:
    """A `_meta` to pass on, with the current span instead of its sender's."""
    others = {key: value for key, value in _entries(meta).items() if key not in TRACE_KEYS}
    ours, theirs = injected(), carried(meta)
    if "traceparent" in ours:  # The two keys belong together: the sender's `tracestate` says nothing about our span.
        theirs.pop("tracestate", None)
    return others | theirs | ours


@contextmanager
def joined(meta: object) -> Generator[Context]:
    """Inside the `with`, the trace context of `meta`, including its baggage, is the current one."""
    token = context.attach(extract(carried(meta), Context()))
    try:
        yield context.get_current()
    finally:
        context.detach(token)


def _entries(meta: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", meta) if isinstance(meta, Mapping) else {}


__all__ = ["MAX_LENGTH", "TRACE_KEYS", "carried", "injected", "joined", "passed_on"]
