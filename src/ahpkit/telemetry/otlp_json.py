"""Writes spans, metrics and log records as OTLP/JSON, for `otlp/*` notifications. Pure.

The JSON form of OTLP: names in camel case, ids as hexadecimal digits, 64-bit integers as strings, enumerations as
numbers.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import Gauge, Histogram, HistogramDataPoint, MetricsData, NumberDataPoint, Sum
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from ahpkit.protocol.common.state import JsonObject

_LEVELS = ((logging.CRITICAL, 21), (logging.ERROR, 17), (logging.WARNING, 13), (logging.INFO, 9), (logging.DEBUG, 5))

_SCOPE: JsonObject = {"name": "ahpkit"}

_KINDS = {SpanKind.INTERNAL: 1, SpanKind.SERVER: 2, SpanKind.CLIENT: 3, SpanKind.PRODUCER: 4, SpanKind.CONSUMER: 5}


def traces(spans: Sequence[ReadableSpan], resource: Resource) -> JsonObject:
    """An ExportTraceServiceRequest."""
    scope = {"scope": _SCOPE, "spans": [_span(span) for span in spans]}
    return {"resourceSpans": [{"resource": _resource(resource), "scopeSpans": [scope]}]}


def _span(span: ReadableSpan) -> JsonObject:
    context = span.get_span_context()
    assert context is not None
    made: JsonObject = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes or {}),
        "status": {"code": span.status.status_code.value},
    }
    if span.parent is not None:
        made["parentSpanId"] = f"{span.parent.span_id:016x}"
    return made


def metrics(data: MetricsData | None, resource: Resource) -> JsonObject:
    """An ExportMetricsServiceRequest."""
    found = [
        _metric(metric)
        for by_resource in (data.resource_metrics if data is not None else ())
        for by_scope in by_resource.scope_metrics
        for metric in by_scope.metrics
    ]
    scope = {"scope": _SCOPE, "metrics": found}
    return {"resourceMetrics": [{"resource": _resource(resource), "scopeMetrics": [scope]}]}


def _metric(metric: SdkMetric) -> JsonObject:
    made: JsonObject = {"name": metric.name, "unit": metric.unit or "", "description": metric.description or ""}
    match metric.data:
        case Sum() as data:
            points = [_number(point) for point in data.data_points]
            temporality = data.aggregation_temporality.value
            return {
                **made,
                "sum": {
                    "dataPoints": points,
                    "aggregationTemporality": temporality,
                    "isMonotonic": data.is_monotonic,
                },
            }
        case Gauge() as data:
            return {**made, "gauge": {"dataPoints": [_number(point) for point in data.data_points]}}
        case Histogram() as data:
            spread = [_spread(point) for point in data.data_points]
            return {
                **made,
                "histogram": {"dataPoints": spread, "aggregationTemporality": data.aggregation_temporality.value},
            }
        case _:
            return made


def _number(point: NumberDataPoint) -> JsonObject:
    value = point.value
    return {
        **_times(point),
        "attributes": _attributes(point.attributes or {}),
        **({"asInt": str(value)} if isinstance(value, int) else {"asDouble": value}),
    }


def _spread(point: HistogramDataPoint) -> JsonObject:
    return {
        **_times(point),
        "attributes": _attributes(point.attributes or {}),
        "count": str(point.count),
        "sum": point.sum,
        "bucketCounts": [str(count) for count in point.bucket_counts],
        "explicitBounds": list(point.explicit_bounds),
        "min": point.min,
        "max": point.max,
    }


def _times(point: NumberDataPoint | HistogramDataPoint) -> JsonObject:
    return {
        "startTimeUnixNano": str(point.start_time_unix_nano or 0),
        "timeUnixNano": str(point.time_unix_nano),
    }


def logs(records: Sequence[JsonObject], resource: Resource) -> JsonObject:
    """An ExportLogsServiceRequest of records that `log_record` made."""
    scope = {"scope": _SCOPE, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": _resource(resource), "scopeLogs": [scope]}]}


def log_record(record: logging.LogRecord) -> JsonObject:
    """One record of the host's log."""
    attributes: dict[str, Any] = {"logger": record.name}
    if record.exc_info and record.exc_info[0] is not None:
        attributes |= {
            "exception.type": record.exc_info[0].__name__,
            "exception.message": str(record.exc_info[1]),
            "exception.stacktrace": "".join(traceback.format_exception(*record.exc_info)),
        }
    return {
        "timeUnixNano": str(int(record.created * 1_000_000_000)),
        "severityNumber": severity(record.levelno),
        "severityText": record.levelname,
        "body": {"stringValue": record.getMessage()},
        "attributes": _attributes(attributes),
    }


def severity(level: int) -> int:
    """The OTLP number of a level of Python's logging."""
    return next((number for at_least, number in _LEVELS if level >= at_least), 1)


def _resource(resource: Resource) -> JsonObject:
    return {"attributes": _attributes(resource.attributes)}


def _attributes(attributes: Mapping[str, Any]) -> list[JsonObject]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(one) for one in value]}}  # pyright: ignore[reportUnknownVariableType]  # Any JSON.
        case _:
            return {"stringValue": str(value)}


__all__ = ["log_record", "logs", "metrics", "severity", "traces"]
