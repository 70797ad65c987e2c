"""Trace context in `_meta`: only its own keys, only strings."""

from __future__ import annotations

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import TracerProvider

from ahpkit.wire.trace_context import TRACE_KEYS, carried, injected, joined, passed_on

PARENT = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"


def test_only_the_reserved_keys_are_read_and_only_when_they_are_text() -> None:
    assert carried({"traceparent": "00-a-b-01", "tracestate": 7, "requestId": "x"}) == {"traceparent": "00-a-b-01"}
    assert carried(None) == {}


def test_a_span_is_written_under_the_reserved_keys_only() -> None:
    span = TracerProvider().get_tracer("test").start_span("x")
    written = injected(span)
    assert set(written) <= set(TRACE_KEYS)
    assert written["traceparent"].split("-")[2] == trace.format_span_id(span.get_span_context().span_id)
    assert injected() == {}


def test_what_is_far_too_long_is_no_trace_context() -> None:
    assert carried(dict.fromkeys(TRACE_KEYS, "a=" + "1" * 10_000)) == {}


@pytest.mark.parametrize("meta", [None, "x", 5, [], {}])
def test_a_meta_of_any_shape_can_be_read(meta: object) -> None:
    assert carried(meta) == {}
    assert passed_on(meta) == {}


def test_inside_the_context_of_a_meta_its_baggage_is_there_and_nothing_of_before() -> None:
    with joined({"baggage": "before=1"}), joined({"traceparent": PARENT, "tracestate": "a=b", "baggage": "user=ada"}):
        assert baggage.get_all() == {"user": "ada"}
        assert injected() == {"traceparent": PARENT, "tracestate": "a=b", "baggage": "user=ada"}
    assert injected() == {}


def test_what_is_passed_on_has_our_span_and_the_rest_as_it_was() -> None:
    theirs = {"traceparent": PARENT, "tracestate": "a=b", "baggage": "user=ada", "requestId": 1, "x.dev/y": [None]}
    assert passed_on(theirs) == theirs  # Nobody traces here.
    with TracerProvider().get_tracer("test").start_as_current_span("ours") as span:
        sent = passed_on(theirs)
    assert trace.format_span_id(span.get_span_context().span_id) in sent.pop("traceparent")
    assert sent == {"baggage": "user=ada", "requestId": 1, "x.dev/y": [None]}
