"""The host's metrics: counted where things happen, read by the OpenTelemetry SDK on demand.

Counting is one addition, because there may be hundreds of thousands of actions. Only the ends of turns and tool calls,
which are rare, use an instrument directly.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    Gauge,
    Histogram,
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    MetricsData,
    Sum,
)
from opentelemetry.sdk.resources import Resource

from ahpkit.host.feature import Measures
from ahpkit.host.registration import AnyApplied

_OUTCOMES = {"chat/turnComplete": "completed", "chat/turnCancelled": "cancelled", "chat/error": "failed"}

_SECONDS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Bounds of the histogram of turns. OpenTelemetry's default bounds are for milliseconds, so too many turns would fall
into one bucket."""

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Metrics:
    """All instruments of one host."""

    def __init__(self, resource: Resource, measures: Callable[[], Measures]) -> None:
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self._measures = measures
        self._actions: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._tool_calls: Counter[str] = Counter()
        meter = self._provider.get_meter("ahpkit")
        counter, gauge = meter.create_observable_counter, meter.create_observable_gauge
        counter("ahpkit.actions", [self._observe(self._actions, "channel")], "{action}", "Actions that were applied.")
        counter("ahpkit.turns", [self._observe(self._turns, "outcome")], "{turn}", "Turns that ended.")
        counter("ahpkit.tool_calls", [self._observe(self._tool_calls, "outcome")], "{call}", "Tool calls that ended.")
        counter("ahpkit.commits", [self._of(lambda now: now.commits)], "{commit}", "Commits of the log.")
        counter(
            "ahpkit.deliveries", [self._of(lambda now: now.deliveries)], "{write}", "Batches written to connections."
        )
        gauge("ahpkit.connections", [self._of(lambda now: now.connections)], "{connection}", "Open connections.")
        gauge("ahpkit.sessions", [self._of(lambda now: now.sessions)], "{session}", "Sessions that exist.")
        gauge(
            "ahpkit.log.queue",
            [self._of(lambda now: now.backlog)],
            "{change}",
            "Changes that wait to become durable.",
        )
        gauge(
            "ahpkit.readers.queue", [self._of(lambda now: now.unread)], "By", "Bytes that connections have not taken."
        )
        gauge("process.memory.usage", [lambda options: [Observation(memory())]], "By", "Physical memory in use.")
        self._durations = meter.create_histogram(
            "ahpkit.turn.duration", "s", "How long turns took.", explicit_bucket_boundaries_advisory=_SECONDS
        )

    def on_applied(self, applied: AnyApplied) -> None:
        """An action was applied."""
        action = applied.action
        kind: str = action["type"]
        self._actions[kind.partition("/")[0]] += 1
        if (outcome := _OUTCOMES.get(kind)) is not None:
            self._turns[outcome] += 1
            duration = action.get("duration")
            if isinstance(duration, int | float):
                self._durations.record(duration / 1000, {"outcome": outcome})
        elif action["type"] == "chat/toolCallComplete":
            self._tool_calls["succeeded" if action["result"].get("success", True) else "failed"] += 1
        elif action["type"] == "chat/toolCallConfirmed" and not action["approved"]:
            self._tool_calls["denied"] += 1

    def collect(self) -> MetricsData | None:
        """The present values of all instruments."""
        return self._reader.get_metrics_data()

    def close(self) -> None:
        self._provider.shutdown()

    def _observe(self, counted: Counter[str], key: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda options: [Observation(number, {key: name}) for name, number in sorted(counted.items())]

    def _of(self, value: Callable[[Measures], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda options: [Observation(value(self._measures()))]


def memory() -> int:
    """Bytes of physical memory that this process uses; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_UNITS = {"By": "bytes", "s": "seconds"}


def prometheus_text(data: MetricsData | None) -> str:
    """All metrics, one line for each value."""
    lines = [
        line
        for by_resource in (data.resource_metrics if data is not None else ())
        for by_scope in by_resource.scope_metrics
        for metric in by_scope.metrics
        for line in _metric(metric)
    ]
    return "\n".join([*lines, ""])


def _metric(metric: Metric) -> Iterator[str]:
    unit = _UNITS.get(metric.unit or "", "")
    name = metric.name.replace(".", "_") + (f"_{unit}" if unit else "")
    match metric.data:
        case Sum() as data:
            name = f"{name}_total" if data.is_monotonic else name
            yield from _head(name, metric.description, "counter" if data.is_monotonic else "gauge")
            yield from (f"{name}{_labels(point.attributes)} {point.value}" for point in data.data_points)
        case Gauge() as data:
            yield from _head(name, metric.description, "gauge")
            yield from (f"{name}{_labels(point.attributes)} {point.value}" for point in data.data_points)
        case Histogram() as data:
            yield from _head(name, metric.description, "histogram")
            for point in data.data_points:
                yield from _buckets(name, point)
        case _:
            return


def _head(name: str, description: str | None, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {(description or name)}"
    yield f"# TYPE {name} {kind}"


def _buckets(name: str, point: HistogramDataPoint) -> Iterator[str]:
    attributes = point.attributes or {}
    so_far = 0
    for bound, count in zip([*point.explicit_bounds, "+Inf"], point.bucket_counts, strict=True):
        so_far += count
        yield f"{name}_bucket{_labels({**attributes, 'le': bound})} {so_far}"
    yield f"{name}_sum{_labels(attributes)} {point.sum}"
    yield f"{name}_count{_labels(attributes)} {point.count}"


def _labels(attributes: Mapping[str, Any] | None) -> str:
    if not attributes:
        return ""
    pairs = ",".join(f'{key.replace(".", "_")}="{_escaped(str(value))}"' for key, value in attributes.items())
    return f"{{{pairs}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


__all__ = ["CONTENT_TYPE", "Metrics", "memory", "prometheus_text"]
