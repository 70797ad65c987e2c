"""Writes metrics in the text format of Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.metrics.export import Gauge, Histogram, HistogramDataPoint, Metric, MetricsData, Sum

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_UNITS = {"By": "bytes", "s": "seconds"}


def text(data: MetricsData | None) -> str:
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


__all__ = ["CONTENT_TYPE", "text"]
