"""Where a host's traces, metrics and logs can be subscribed to, and the notifications of `ahp-otlp:` channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, BaseParams, JsonObject

SEVERITIES: Mapping[str, int] = {"trace": 1, "debug": 5, "info": 9, "warn": 13, "error": 17, "fatal": 21}
"""The levels that a logs channel can be asked for, in any case; each with the first of its OTLP severity numbers."""


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


__all__ = [
    "SEVERITIES",
    "OtlpExportLogsParams",
    "OtlpExportMetricsParams",
    "OtlpExportTracesParams",
    "TelemetryCapabilities",
]
