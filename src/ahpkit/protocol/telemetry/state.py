from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI


class TelemetryCapabilities(TypedDict):
    logs: NotRequired[URI]
    traces: NotRequired[URI]
    metrics: NotRequired[URI]
