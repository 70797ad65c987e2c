from __future__ import annotations

from ahpkit.protocol.root.notifications import (
    AuthRequiredParams,
    SessionAddedParams,
    SessionRemovedParams,
    SessionSummaryChangedParams,
)
from ahpkit.protocol.telemetry.notifications import (
    OtlpExportLogsParams,
    OtlpExportMetricsParams,
    OtlpExportTracesParams,
)

ProtocolNotification = (
    AuthRequiredParams
    | SessionAddedParams
    | SessionRemovedParams
    | SessionSummaryChangedParams
    | OtlpExportLogsParams
    | OtlpExportTracesParams
    | OtlpExportMetricsParams
)
