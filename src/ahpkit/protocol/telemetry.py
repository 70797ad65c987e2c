"""Where a host's traces, metrics and logs can be subscribed to, and the notifications of `ahp-otlp:` channels."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, BaseParams, JsonObject


class TelemetryCapabilities(TypedDict):
    """Channels, or RFC 6570 templates of channels, by signal."""

    logs: NotRequired[URI]
    traces: NotRequired[URI]
    metrics: NotRequired[URI]


class OtlpExportLogsParams(BaseParams):
    """`otlp/exportLogs`."""

    payload: JsonObject


class OtlpExportTracesParams(BaseParams):
    """`otlp/exportTraces`."""

    payload: JsonObject


class OtlpExportMetricsParams(BaseParams):
    """`otlp/exportMetrics`."""

    payload: JsonObject


__all__ = ["OtlpExportLogsParams", "OtlpExportMetricsParams", "OtlpExportTracesParams", "TelemetryCapabilities"]
