from __future__ import annotations

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import JsonObject


class OtlpExportLogsParams(BaseParams):
    payload: JsonObject


class OtlpExportTracesParams(BaseParams):
    payload: JsonObject


class OtlpExportMetricsParams(BaseParams):
    payload: JsonObject
