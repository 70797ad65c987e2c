"""Notifications on `ahp-otlp:` channels, which have no state. `payload` is OTLP/JSON."""

from __future__ import annotations

from ahpkit.dialects.v0_4.common.commands import BaseParams
from ahpkit.dialects.v0_4.common.state import JsonObject


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
    "OtlpExportLogsParams",
    "OtlpExportMetricsParams",
    "OtlpExportTracesParams",
]
