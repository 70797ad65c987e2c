"""Makes spans only while somebody reads them, and collects them.

Without an observer, OpenTelemetry's global tracer is used: a program that set up its own SDK gets the spans there, and
otherwise they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.trace import Span, Tracer, TracerProvider


class ObservedTracerProvider(TracerProvider):
    """Hands out tracers that look at `observed` for each span."""

    def __init__(self, resource: Resource, ended: Callable[[ReadableSpan], None]) -> None:
        self.observed = False
        self._recording = SdkTracerProvider(resource=resource, shutdown_on_exit=False)
        self._recording.add_span_processor(_Ended(ended))

    def get_tracer(self, instrumenting_module_name: str, *arguments: Any, **options: Any) -> Tracer:
        recording = self._recording.get_tracer(instrumenting_module_name, *arguments, **options)
        usual = trace.get_tracer(instrumenting_module_name, *arguments, **options)
        return _ObservedTracer(lambda: recording if self.observed else usual)

    def close(self) -> None:
        self._recording.shutdown()


class _ObservedTracer(Tracer):
    def __init__(self, tracer: Callable[[], Tracer]) -> None:
        self._tracer = tracer

    def start_span(self, name: str, *arguments: Any, **options: Any) -> Span:
        return self._tracer().start_span(name, *arguments, **options)

    def start_as_current_span(self, name: str, *arguments: Any, **options: Any) -> Any:
        return self._tracer().start_as_current_span(name, *arguments, **options)


class _Ended(SpanProcessor):
    def __init__(self, ended: Callable[[ReadableSpan], None]) -> None:
        self._ended = ended

    def on_end(self, span: ReadableSpan) -> None:
        self._ended(span)


__all__ = ["ObservedTracerProvider"]
