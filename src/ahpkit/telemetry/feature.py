"""The feature that serves telemetry: channels for clients, and a page for a scraper.

`ahp-otlp:/traces`, `ahp-otlp:/metrics` and `ahp-otlp:/logs/{level}` have no state: a subscriber gets new data from
then on, in OTLP/JSON. Nothing is recorded while nobody subscribes. Data that a slow reader cannot take is dropped and
counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.trace import Span, Tracer, TracerProvider
from starlette.responses import PlainTextResponse

from ahpkit import __version__
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.telemetry import SEVERITIES, TelemetryCapabilities
from ahpkit.telemetry import otlp_json
from ahpkit.telemetry.metrics import CONTENT_TYPE, Metrics, prometheus_text


class ObservedTracerProvider(TracerProvider):
    """Hands out tracers that make spans only while `observed` says that somebody reads them.

    Without an observer, OpenTelemetry's global tracer is used: a program that set up its own SDK gets the spans there,
    and otherwise they cost nothing.
    """

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


TRACES, METRICS, LOGS = "ahp-otlp:/traces", "ahp-otlp:/metrics", "ahp-otlp:/logs"
ADVERTISED: TelemetryCapabilities = {"traces": TRACES, "metrics": METRICS, "logs": f"{LOGS}/{{level}}"}

PATH = "/metrics"
"""The path at which a scraper finds the metrics, behind the same gate as everything else."""

INTERVAL = 10.0
"""Seconds between two exports of metrics to a subscriber."""

_GATHERED = 1.0
"""Seconds that spans and records are gathered for one notification."""

_MOST = 2_000
"""Spans or records of one notification; the oldest are dropped."""


class Telemetry(Feature):
    """The feature. Give `tracer_provider` to the host."""

    name = "telemetry"

    def __init__(self, *, interval: float = INTERVAL, gathered: float = _GATHERED) -> None:
        self.resource = Resource.create({"service.name": "ahpkit", "service.version": __version__})
        self.tracer_provider = ObservedTracerProvider(self.resource, self._span_ended)
        self._interval = interval
        self._patience = gathered
        self._spans: deque[ReadableSpan] = deque(maxlen=_MOST)
        self._records: deque[logging.LogRecord] = deque(maxlen=_MOST)
        self._handler = _Handler(self)
        self._followed: set[str] = set()
        self.flushing = False
        """Whether something was gathered and is about to be sent."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exporting: asyncio.Task[None] | None = None

    def register(self, host: Registration, services: Services) -> None:
        self.services = services
        self.metrics = Metrics(self.resource, services.measures)
        host.channels.telemetry.provide(ADVERTISED)
        host.channels.is_stateless.add(is_channel)
        host.actions.listen(self.metrics.on_applied)
        host.channels.subscribed.add(self._subscribed)
        host.channels.unsubscribed.add(self._unsubscribed)
        host.routes.add(self._mount)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def aclose(self) -> None:
        for uri in list(self._followed):
            self._unsubscribed(uri)
        self.metrics.close()
        self.tracer_provider.close()

    # -- who looks ---------------------------------------------------------------------------------------------------

    def _subscribed(self, uri: str) -> None:
        if not is_channel(uri):
            return
        self._followed.add(uri)
        self._look()
        if uri == METRICS and self._exporting is None:
            self._exporting = self.services.spawn(self._export_metrics(), name="export metrics")

    def _unsubscribed(self, uri: str) -> None:
        if uri not in self._followed:
            return
        self._followed.discard(uri)
        self._look()
        if uri == METRICS and self._exporting is not None:
            self._exporting.cancel()
            self._exporting = None

    def _look(self) -> None:
        """Record what subscribers want, and nothing else."""
        self.tracer_provider.observed = TRACES in self._followed
        logger = logging.getLogger("ahpkit")
        if any(level_of(uri) is not None for uri in self._followed):
            if self._handler not in logger.handlers:
                logger.addHandler(self._handler)
        else:
            logger.removeHandler(self._handler)

    # -- gathering ---------------------------------------------------------------------------------------------------

    def _span_ended(self, span: ReadableSpan) -> None:
        self._spans.append(span)
        self._flush_soon()

    def record(self, record: logging.LogRecord) -> None:
        """Take a line of the host's log, from any thread."""
        self._records.append(record)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self.flushing and self._loop is not None and not self._loop.is_closed():
            self.flushing = True
            self._loop.call_soon_threadsafe(self._loop.call_later, self._patience, self._flush)

    def _flush(self) -> None:
        self.flushing = False
        spans = [self._spans.popleft() for _ in range(len(self._spans))]
        records = [otlp_json.log_record(self._records.popleft()) for _ in range(len(self._records))]
        if spans:
            self._tell(TRACES, "otlp/exportTraces", otlp_json.traces(spans, self.resource))
        for uri in self._followed:
            at_least = level_of(uri)
            if at_least is not None and (seen := [one for one in records if one["severityNumber"] >= at_least]):
                self._tell(uri, "otlp/exportLogs", otlp_json.logs(seen, self.resource))

    async def _export_metrics(self) -> None:
        while True:
            payload = otlp_json.metrics(self.metrics.collect(), self.resource)
            self._tell(METRICS, "otlp/exportMetrics", payload)
            await asyncio.sleep(self._interval)

    def _tell(self, uri: str, method: str, payload: JsonObject) -> None:
        for client in self.services.subscribers(uri):
            client.notify(method, {"channel": uri, "payload": payload})

    # -- the scraper -------------------------------------------------------------------------------------------------

    def _mount(self, router: Any) -> None:
        router.mount(PATH, self._scraped)

    async def _scraped(self, scope: Any, receive: Any, send: Any) -> None:
        answer = PlainTextResponse(prometheus_text(self.metrics.collect()), media_type=CONTENT_TYPE)
        await answer(scope, receive, send)


class _Handler(logging.Handler):
    """Passes the host's log on."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__()
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        self._telemetry.record(record)


def is_channel(uri: str) -> bool:
    """Whether a URI is one of the telemetry channels."""
    return uri in (TRACES, METRICS) or level_of(uri) is not None


def level_of(uri: str) -> int | None:
    """The least severity that a logs channel is for; None: it is not such a channel."""
    return SEVERITIES.get(uri.removeprefix(f"{LOGS}/").lower()) if uri.startswith(f"{LOGS}/") else None


__all__ = ["PATH", "ObservedTracerProvider", "Telemetry"]
