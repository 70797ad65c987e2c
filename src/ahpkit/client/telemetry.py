"""Follows a host's telemetry: log records, spans and metrics as typed values.

The host's answer to `initialize` says on which channels it sends which signals (`client.host.telemetry`). Their
payloads are OTLP/JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Self, TypeAlias, cast
from urllib.parse import quote

from ahpkit.client.channels import Channel
from ahpkit.client.core import Core
from ahpkit.client.errors import ClientError
from ahpkit.client.subscription import BoundedQueue, Lagged
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.telemetry import SEVERITIES
from ahpkit.wire.errors import AhpError

Level: TypeAlias = Literal["trace", "debug", "info", "warn", "error", "fatal"]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the host's log."""

    time: datetime
    level: str
    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    severity: int = 0
    """OTLP's number of the level, from 1 to 24; 0 when the host did not say."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that the host did, from its start to its end."""

    name: str
    start: datetime
    end: datetime
    trace_id: str
    span_id: str
    parent_id: str | None = None
    failed: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of a metric. For a histogram, `value` is the sum of `count` measurements."""

    name: str
    unit: str
    time: datetime
    value: float | int
    count: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


TelemetryEvent: TypeAlias = LogRecord | Span | MetricPoint


class Telemetry:
    """`async with client.telemetry(logs="warn") as telemetry`: iterate over what the host reports.

    Events that happen while the client is offline are not sent again. A consumer that falls far behind loses events.
    """

    def __init__(self, core: Core, *, logs: Level | None, traces: bool, metrics: bool) -> None:
        if logs is not None and logs not in SEVERITIES:
            raise ValueError(f"logs: {logs!r} is not a level; there are: {', '.join(SEVERITIES)}")
        self._core = core
        self._signals = [name for name, wanted in (("logs", logs), ("traces", traces), ("metrics", metrics)) if wanted]
        if not self._signals:
            raise ValueError("say what to follow: a level of logs, traces or metrics")
        self._level = logs or "trace"
        self._queue: BoundedQueue[TelemetryEvent] = BoundedQueue()
        self._channels: list[Channel] = []

    async def __aenter__(self) -> Self:
        assert self._core.handshake.host is not None, "the client is not connected yet"
        offered = self._core.handshake.host.telemetry
        if missing := [name for name in self._signals if not isinstance(offered.get(name), str)]:
            raise ClientError(f"the host does not report {' and '.join(missing)}")
        self._core.host_requests.listeners.append(self._on_notification)
        try:
            for name in self._signals:
                channel = await self._core.channels.open(expand(offered[name], level=self._level))
                channel.listeners.append(self)
                self._channels.append(channel)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._core.host_requests.listeners.remove(self._on_notification)
        for channel in self._channels:
            channel.listeners.remove(self)
            self._core.channels.release(channel)
        self._channels.clear()
        self._queue.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TelemetryEvent:
        while True:
            try:
                return await self._queue.take()
            except Lagged:
                continue  # Telemetry may have gaps, because the host drops events as well.

    def _on_notification(self, method: str, params: JsonObject) -> None:
        if not any(channel.uri == params.get("channel") for channel in self._channels):
            return
        for event in events_of(method, params):
            # A host may ignore the level that it was asked for.
            if not isinstance(event, LogRecord) or event.severity >= SEVERITIES[self._level] or not event.severity:
                self._queue.push(event)

    def on_action(self, envelope: JsonObject) -> None:
        """Do nothing, because these channels have no actions."""

    def on_reset(self) -> None:
        """Do nothing, because these channels have no state."""

    def on_gone(self, error: AhpError) -> None:
        self._queue.end(error)


_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_FORMS = {"": ("", ","), "+": ("", ","), "#": ("#", ","), ".": (".", "."), "/": ("/", "/")} | {
    ";": (";", ";"),
    "?": ("?", "&"),
    "&": ("&", "&"),
}
"""For each operator of an RFC 6570 expression: the prefix and the separator of the values."""


def expand(template: str, **values: str) -> str:
    """Expand a URI template. Variables without a value disappear, as RFC 6570 says."""

    def put(match: re.Match[str]) -> str:
        operator, names = match[1], [name.rstrip("*").split(":")[0] for name in match[2].split(",")]
        begin, between = _FORMS[operator]
        known = [(name, quote(values[name], safe="")) for name in names if name in values]
        texts = [f"{name}={value}" if operator and operator in ";?&" else value for name, value in known]
        return begin + between.join(texts) if texts else ""

    return _EXPRESSION.sub(put, template)


def events_of(method: str, params: Mapping[str, Any]) -> list[TelemetryEvent]:
    """The events in an `otlp/*` notification. Values that are not OTLP/JSON are left out."""
    payload = params.get("payload")
    match method:
        case "otlp/exportLogs":
            return [event for one in _inside(payload, "resourceLogs", "scopeLogs", "logRecords") for event in _log(one)]
        case "otlp/exportTraces":
            return [event for one in _inside(payload, "resourceSpans", "scopeSpans", "spans") for event in _span(one)]
        case "otlp/exportMetrics":
            found = _inside(payload, "resourceMetrics", "scopeMetrics", "metrics")
            return [event for one in found for event in _points(one)]
        case _:
            return []


def _inside(value: Any, *keys: str) -> list[JsonObject]:
    """The objects in nested lists: `keys` are the names of the lists, from the outside in."""
    found = _objects([value])
    for key in keys:
        found = [inner for one in found for inner in _objects(one.get(key))]
    return found


def _objects(value: Any) -> list[JsonObject]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("JsonObject", one) for one in listed if isinstance(one, dict)]


_DOWNWARDS = sorted(SEVERITIES.items(), key=lambda item: -item[1])


def _log(record: JsonObject) -> Iterator[LogRecord]:
    when = _time(record.get("timeUnixNano")) or _time(record.get("observedTimeUnixNano"))
    if when is not None:
        severity = _whole(record.get("severityNumber")) or 0
        level = next((name for name, least in _DOWNWARDS if severity >= least), "")
        text = _value(record.get("body"))
        yield LogRecord(when, level, "" if text is None else str(text), _attributes(record), severity)


def _span(span: JsonObject) -> Iterator[Span]:
    start, end = _time(span.get("startTimeUnixNano")), _time(span.get("endTimeUnixNano"))
    if start is None or end is None:
        return
    failed = any(status.get("code") == 2 for status in _objects([span.get("status")]))
    yield Span(
        str(span.get("name", "")),
        start,
        end,
        str(span.get("traceId", "")),
        str(span.get("spanId", "")),
        str(span["parentSpanId"]) if span.get("parentSpanId") else None,
        failed,
        _attributes(span),
    )


def _points(metric: JsonObject) -> Iterator[MetricPoint]:
    name, unit = str(metric.get("name", "")), str(metric.get("unit", ""))
    kinds = [metric.get(kind) for kind in ("sum", "gauge", "histogram", "exponentialHistogram", "summary")]
    for point in _inside({"kinds": kinds}, "kinds", "dataPoints"):
        when = _time(point.get("timeUnixNano"))
        values = (_number(point.get(key)) for key in ("asInt", "asDouble", "sum"))
        value = next((found for found in values if found is not None), None)
        if when is not None and value is not None:
            yield MetricPoint(name, unit, when, value, _whole(point.get("count")), _attributes(point))


def _time(value: Any) -> datetime | None:
    nanoseconds = _whole(value)
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC) if nanoseconds else None
    except (OverflowError, ValueError, OSError):
        return None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return number if isinstance(number, int) else None


def _number(value: Any) -> float | int | None:
    """A number; OTLP/JSON writes large ones as texts."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and value.lstrip("-").isdecimal():
        return int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_LONGEST_NUMBER = 20
"""Digits of a 64-bit integer."""


def _attributes(thing: JsonObject) -> dict[str, Any]:
    return {str(one.get("key", "")): _value(one.get("value")) for one in _objects(thing.get("attributes"))}


def _value(value: Any) -> Any:
    match value:
        case {"stringValue": str() as text} | {"bytesValue": str() as text}:
            return text
        case {"boolValue": bool() as yes}:
            return yes
        case {"intValue": number} | {"doubleValue": number}:
            return _number(number)
        case {"arrayValue": inner}:
            return [_value(one) for one in _inside(inner, "values")]
        case {"kvlistValue": inner}:
            return {str(one.get("key", "")): _value(one.get("value")) for one in _inside(inner, "values")}
        case _:
            return None


__all__ = [
    "Level",
    "LogRecord",
    "MetricPoint",
    "Span",
    "Telemetry",
    "TelemetryEvent",
    "events_of",
    "expand",
]
