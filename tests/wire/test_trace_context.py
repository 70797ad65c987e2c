"""Trace context in `_meta`: only its own keys, only strings."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from ahpkit.wire.trace_context import TRACE_KEYS, carried, injected


def test_only_the_reserved_keys_are_read_and_only_when_they_are_text() -> None:
    assert carried({"traceparent": "00-a-b-01", "tracestate": 7, "requestId": "x"}) == {"traceparent": "00-a-b-01"}
    assert carried(None) == {}


def test_a_span_is_written_under_the_reserved_keys_only() -> None:
    span = TracerProvider().get_tracer("test").start_span("x")
    written = injected(span)
    assert set(written) <= set(TRACE_KEYS)
    assert written["traceparent"].split("-")[2] == trace.format_span_id(span.get_span_context().span_id)
    assert injected() == {}
